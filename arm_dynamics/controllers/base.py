"""The seam of every control law: state and reference in, command out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from arm_dynamics.arrays import Vector, frozen
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.given_arm import given_arm, require_same_joints
from arm_dynamics.parameters import Parameter, complete
from arm_dynamics.state import Command, Reference, State

Gains = Mapping[str, Mapping[str, float]]
"""Joint name → parameter name → value."""


class Controller(ABC):
    """A law with a model of its own: ``arm`` may differ from the arm it controls.

    ``parameters`` are set per joint; a default of None means that the law finds the value
    from the model.
    """

    interface: ClassVar[str] = "effort"
    parameters: ClassVar[tuple[Parameter, ...]] = ()

    def __init__(self, arm: ArmModel, gains: Gains | None = None) -> None:
        self.arm = given_arm(arm)
        self.gains: dict[str, Vector] = {}
        self._limit = arm.effort_limit
        self.configure(gains or {})

    def configure(self, gains: Gains) -> None:
        """Take new gains without disturbing the law's memory.

        Raises UnknownName for a joint or gain that does not exist, InvalidValue for one out
        of its range; the old gains then stay in force.
        """
        for joint in gains:
            self.arm.index(joint)
        found = self.found_from_model()
        rows = [
            complete(
                f"joint '{name}'", self.parameters, {**found.get(name, {}), **gains.get(name, {})}
            )
            for name in self.arm.joint_names
        ]
        self.gains = {p.name: frozen([row[p.name] for row in rows]) for p in self.parameters}

    def found_from_model(self) -> Gains:
        """Values for the parameters whose default is None."""
        return {}

    def use_model(self, arm: ArmModel) -> None:
        """Tell the law another model (a payload, say), gains and memory unchanged.

        Raises InvalidValue when it has other joints.
        """
        self.arm = require_same_joints("model", arm, self.arm)

    def reset(self, state: State) -> None:
        """Forget the past; the next update starts from ``state``."""
        del state

    @abstractmethod
    def update(self, state: State, reference: Reference, dt: float) -> Command:
        """Command for this instant; dt [s] since the last update, 0 at the first one."""

    def limited(self, effort: Vector, state: State) -> Command:
        """clip(effort, ±limit) as a command that answers ``state``."""
        value = np.minimum(np.maximum(effort, -self._limit), self._limit)
        value.flags.writeable = False
        return Command(self.interface, value, state.time)
