"""The model that a law has of its arm: the load that it reckons with, and what it has wrong."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rclpy.node import Node

from arm_dynamics.errors import ConfigError
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model_error import require_bearable, with_model_error
from arm_dynamics.parameters import Parameter
from arm_dynamics.ros.arm_parameters import PAYLOAD
from arm_dynamics.ros.parameters import declare_live, declare_number

ERRORS = tuple(
    Parameter(f"model_error.{name}", 0.0, "%", f"error of the law's {what}", above=-100, upper=1e3)
    for name, what in (
        ("mass", "masses"),
        ("length", "lengths"),
        ("inertia", "inertias"),
        ("friction", "friction"),
    )
)
SEED = "model_error.seed"
NO_SEED = -1


class LawModel:
    """Live parameters ``payload_mass`` and ``model_error.*``; ``arm`` is the model they make."""

    def __init__(self, node: Node, nominal: ArmModel) -> None:
        self._nominal = nominal
        self._values: dict[str, Any] = {
            one.name: declare_number(node, one.name, one, 0.0) for one in (PAYLOAD, *ERRORS)
        }
        text = f"each link's and joint's errors drawn within ± from this seed; {NO_SEED}: exact"
        self._values[SEED] = declare_live(node, SEED, NO_SEED, text)
        self.arm = self._made(self._values)

    def changed(self, values: Mapping[str, Any]) -> ArmModel | None:
        """The model after a change of ``values``, None where they do not concern it.

        Raises InvalidValue and ConfigError for values that make none; nothing changes yet.
        """
        mine = {name: value for name, value in values.items() if name in self._values}
        return self._made({**self._values, **mine}) if mine else None

    def take(self, values: Mapping[str, Any]) -> ArmModel | None:
        """Put ``values`` in force; the model as ``changed`` gives it."""
        model = self.changed(values)
        if model is not None:
            self._values |= {n: v for n, v in values.items() if n in self._values}
            self.arm = model
        return model

    def _made(self, values: Mapping[str, Any]) -> ArmModel:
        seed = values[SEED]
        if not isinstance(seed, int) or isinstance(seed, bool) or seed < NO_SEED:
            raise ConfigError(f"{SEED} = {seed}: a whole number of at least {NO_SEED} is expected")
        errors = {one.name.partition(".")[2]: values[one.name] for one in ERRORS}
        drawn = None if seed == NO_SEED else seed
        loaded = require_bearable(self._nominal.with_payload(values[PAYLOAD.name]))
        if not any(errors.values()):
            return loaded
        return with_model_error(loaded, seed=drawn, **errors)
