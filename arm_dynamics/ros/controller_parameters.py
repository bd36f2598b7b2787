"""The model that a law has of its arm: the load that it reckons with, and what it has wrong.

Gains of a control law as parameters ``gains.<group>.<name>``; a group is a joint mostly.

The control law as parameters: which one, its gains, the model it reckons with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter

from arm_dynamics.control.config import NAMELESS
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.controller_warm_up import warm_up_controller
from arm_dynamics.control.controllers.controller import Controller, Gains
from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
from arm_dynamics.core import plugins
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.model_error import require_holdable, with_model_error
from arm_dynamics.ros.arm_parameters import PAYLOAD
from arm_dynamics.ros.ros_parameters import (
    bounded,
    by_joint,
    declare_fixed,
    declare_live,
    declare_number,
    from_ros_bound,
    require_declared,
)

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


class ControllerModelParameters:
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
        loaded = require_holdable(self._nominal.with_payload(values[PAYLOAD.name]))
        if not any(errors.values()):
            return loaded
        return with_model_error(loaded, seed=drawn, **errors)


def declare_gains(node: Node, law: Controller) -> Gains:
    """Declare the law's gains with its own values as defaults; return those in force.

    Raises ConfigError for gains given at the start that no controller has.
    """
    declared = {
        group: {
            spec.name: from_ros_bound(
                declare_number(
                    node, f"gains.{group}.{spec.name}", spec, law.values[group][spec.name]
                )
            )
            for spec in parameters
        }
        for group, parameters in law.parameter_groups.items()
    }
    require_declared(node, "gains")  # before a law compiles for a minute
    return declared


def changed_gains(law: Controller, values: Mapping[str, Any]) -> Gains | None:
    """All given gains with the changed ones among them; None when no gain changed."""
    changed = by_joint(values, "gains")
    if all(row.items() <= law.values.get(group, {}).items() for group, row in changed.items()):
        return None
    found = {group: dict(row) for group, row in law.given.items()}
    for group, row in changed.items():
        found[group] = {**found.get(group, {}), **row}
    return found


def show_gains(node: Node, law: Controller) -> None:
    """Set the parameters to the gains in force, where these have been slowed down."""
    values = {
        f"gains.{group}.{name}": bounded(value)
        for group, row in law.values.items()
        for name, value in row.items()
    }
    node.set_parameters(
        [
            RosParameter(name, RosParameter.Type.DOUBLE, value)
            for name, value in values.items()
            if node.has_parameter(name) and node.get_parameter(name).value != value
        ]
    )


def common_gains(before: Controller, after: Controller) -> Gains:
    """Gains in force that mean the same in another law: the same parameter, unit and all."""
    return {
        group: {
            spec.name: before.values[group][spec.name]
            for spec in parameters
            if spec in before.parameter_groups.get(group, ())
        }
        for group, parameters in after.parameter_groups.items()
    }


def redeclare_gains(node: Node, before: Controller, after: Controller) -> None:
    """Replace the gains of one law by those of another; what means the same stays declared."""
    for group, parameters in before.parameter_groups.items():
        for spec in parameters:
            if spec not in after.parameter_groups.get(group, ()):
                node.undeclare_parameter(f"gains.{group}.{spec.name}")
    for group, parameters in after.parameter_groups.items():
        for spec in parameters:
            name = f"gains.{group}.{spec.name}"
            if not node.has_parameter(name):
                declare_number(node, name, spec, after.values[group][spec.name], anew=True)


NAME = "controller"


class ControllerParameters:
    """``law`` is the one that the parameters describe; the loop has it from its next tick on."""

    def __init__(self, node: Node, arm: ArmModel) -> None:
        self._node, self._nominal = node, arm
        laws = ", ".join(plugins.registered_names("controllers"))
        name = declare_live(node, NAME, NAMELESS, f"control law: {laws}")
        self._model = ControllerModelParameters(node, arm)
        text = "file of regulator gains for the law lqr, made by `arm-dynamics gains`; empty: none"
        self._table = str(declare_fixed(node, "gain_table", "", text))
        law = joint_space_controller_class(name)
        with plugins.guarded("controllers", name):
            self.law: Controller = law(arm, declare_gains(node, law(arm)))
        self.law.set_model(self._model.arm)
        self._tabulate(self.law)
        warm_up_controller(self.law)
        self._declared = self.law
        node.add_post_set_parameters_callback(self._follow_up)

    def change(self, values: Mapping[str, Any], loop: ControlLoop) -> None:
        """Put changed parameters in force; raises the package's errors, and nothing changed."""
        if NAME in values:
            self._replace(values, loop)
            return
        gains = changed_gains(self.law, values)
        self._model.changed(values)  # refused before anything is in force
        if gains is not None:
            loop.fit.take(gains)
        model = self._model.take(values)
        if model is not None:
            self.law.set_model(model)

    def _replace(self, values: Mapping[str, Any], loop: ControlLoop) -> None:
        others = [name for name in values if name != NAME]
        if others:
            raise ConfigError(f"{NAME} and {others[0]} at once: set the law first, then the rest")
        with plugins.guarded("controllers", values[NAME]):
            law = joint_space_controller_class(values[NAME])(self._nominal)
        law.slow_down(self.law.scale)  # or defaults that were slowed down would count as given
        law.set_gains(common_gains(self.law, law))
        law.set_model(self._model.arm)
        self._tabulate(law)
        warm_up_controller(
            law
        )  # in the services' thread: the old law commands until this one is compiled
        loop.switch_controller(law)
        self.law = law

    def _tabulate(self, law: Controller) -> None:
        """Give a law that takes one the table of gains; raises where it is another arm's."""
        if self._table and hasattr(law, "set_gain_table"):
            from arm_dynamics.control.lqr_design.gain_table import load_gain_table  # noqa: PLC0415 - a slow start

            regulator: Any = law
            regulator.set_gain_table(load_gain_table(self._table, law.arm, regulator.weights))

    def _follow_up(self, parameters: Sequence[RosParameter]) -> None:
        """Show the gains in force: a change of one may slow the defaults of others down.

        Once another law is accepted, its gains take the place of those of the old one.
        """
        if (
            any(parameter.name == NAME for parameter in parameters)
            and self._declared is not self.law
        ):
            before, self._declared = self._declared, self.law
            redeclare_gains(self._node, before, self.law)
        show_gains(self._node, self.law)


def joint_space_controller_class(name: str) -> type[Controller]:
    """The law of the joints registered as ``name``; raises ConfigError for one of the tool."""
    law: type[Controller] = plugins.load_class("controllers", name)
    if issubclass(law, TaskSpaceController):
        raise ConfigError(
            f"{NAME} '{name}' is a law of the tool: task_space_controller runs it"
            " (task_space.launch.py)"
        )
    return law
