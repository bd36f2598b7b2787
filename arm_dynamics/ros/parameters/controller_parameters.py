"""Parameters of controllers: gains, model and tool limits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter

from arm_dynamics.control.config import NAMELESS
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.controller_choice import successor
from arm_dynamics.control.controller_warm_up import warm_up_controller
from arm_dynamics.control.controllers.controller import Controller, Gains
from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
from arm_dynamics.control.trajectories.tool_paths import ToolLimits
from arm_dynamics.core import plugins
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.model_error import require_holdable, with_model_error
from arm_dynamics.ros.parameters.ros_parameters import (
    bounded,
    by_joint,
    declare_fixed,
    declare_live,
    declare_number,
    from_ros_bound,
    require_declared,
)
from arm_dynamics.simulation.simulation_parameters import PAYLOAD

ERRORS = tuple(
    Parameter(
        f"model_error.{name}", 0.0, "%", f"error of the controller's {kind}", above=-100, upper=1e3
    )
    for name, kind in (
        ("mass", "masses"),
        ("length", "lengths"),
        ("inertia", "inertias"),
        ("friction", "friction"),
    )
)
SEED = "model_error.seed"
NO_SEED = -1


class ControllerModelParameters:
    """Live parameters ``payload_mass`` and ``model_error.*``; ``arm`` is the resulting model."""

    def __init__(self, node: Node, nominal: ArmModel) -> None:
        self._nominal = nominal
        self._values: dict[str, Any] = {
            spec.name: declare_number(node, spec.name, spec, 0.0) for spec in (PAYLOAD, *ERRORS)
        }
        text = f"seed of random errors within ± the given ones; {NO_SEED}: exactly the given ones"
        self._values[SEED] = declare_live(node, SEED, NO_SEED, text)
        self.arm = self._build_model(self._values)

    def changed(self, values: Mapping[str, Any]) -> ArmModel | None:
        """Return the model after a change of ``values``, None if they do not affect it.

        Raise InvalidValue or ConfigError for invalid values. The active model does not change.
        """
        changes = {name: value for name, value in values.items() if name in self._values}
        return self._build_model({**self._values, **changes}) if changes else None

    def take(self, values: Mapping[str, Any]) -> ArmModel | None:
        """Apply ``values``; return the model as ``changed`` does."""
        model = self.changed(values)
        if model is not None:
            self._values |= {n: v for n, v in values.items() if n in self._values}
            self.arm = model
        return model

    def _build_model(self, values: Mapping[str, Any]) -> ArmModel:
        seed = values[SEED]
        if not isinstance(seed, int) or isinstance(seed, bool) or seed < NO_SEED:
            raise ConfigError(f"{SEED} = {seed}; expected a whole number of at least {NO_SEED}")
        errors = {spec.name.partition(".")[2]: values[spec.name] for spec in ERRORS}
        loaded = require_holdable(self._nominal.with_payload(values[PAYLOAD.name]))
        if not any(errors.values()):
            return loaded
        return with_model_error(loaded, seed=None if seed == NO_SEED else seed, **errors)


def declare_gains(node: Node, controller: Controller) -> Gains:
    """Declare the gains ``gains.<group>.<name>`` of a controller; return their active values.

    Most groups are joints. The controller's values are the defaults. Raise ConfigError for gains
    given at the start that no controller has.
    """
    declared = {
        group: {
            spec.name: from_ros_bound(
                declare_number(
                    node, f"gains.{group}.{spec.name}", spec, controller.values[group][spec.name]
                )
            )
            for spec in parameters
        }
        for group, parameters in controller.parameter_groups.items()
    }
    require_declared(node, "gains")  # before a controller compiles for a minute
    return declared


def changed_gains(controller: Controller, values: Mapping[str, Any]) -> Gains | None:
    """Return all given gains including the changed ones; None if no gain changed."""
    changed = by_joint(values, "gains")
    if all(
        row.items() <= controller.values.get(group, {}).items() for group, row in changed.items()
    ):
        return None
    gains = {group: dict(row) for group, row in controller.given.items()}
    for group, row in changed.items():
        gains[group] = {**gains.get(group, {}), **row}
    return gains


def change_controller(
    controller: Controller,
    model: ControllerModelParameters,
    values: Mapping[str, Any],
    loop: ControlLoop,
) -> None:
    """Apply changed gains and model parameters; on an error of this package nothing changes."""
    gains = changed_gains(controller, values)
    model.changed(values)  # raises before any change
    if gains is not None:
        loop.gain_scaling.take(gains)
    arm = model.take(values)
    if arm is not None:
        controller.set_model(arm)


def show_gains(node: Node, controller: Controller) -> None:
    """Set the parameters to the active gains, where these were reduced."""
    values = {
        f"gains.{group}.{name}": bounded(value)
        for group, row in controller.values.items()
        for name, value in row.items()
    }
    node.set_parameters(
        [
            RosParameter(name, RosParameter.Type.DOUBLE, value)
            for name, value in values.items()
            if node.has_parameter(name) and node.get_parameter(name).value != value
        ]
    )


def redeclare_gains(node: Node, before: Controller, after: Controller) -> None:
    """Replace the gains of one controller by those of another; common gains stay declared."""
    for group, parameters in before.parameter_groups.items():
        for spec in parameters:
            if spec not in after.parameter_groups.get(group, ()):
                node.undeclare_parameter(f"gains.{group}.{spec.name}")
    for group, parameters in after.parameter_groups.items():
        for spec in parameters:
            name = f"gains.{group}.{spec.name}"
            if not node.has_parameter(name):
                declare_number(node, name, spec, after.values[group][spec.name], ignore_given=True)


NAME = "controller"


class ControllerParameters:
    """Controller, gains and model as parameters; the loop switches in its next control cycle."""

    def __init__(self, node: Node, arm: ArmModel) -> None:
        self._node, self._nominal = node, arm
        names = ", ".join(plugins.registered_names("controllers"))
        name = declare_live(node, NAME, NAMELESS, f"controller: {names}")
        self._model = ControllerModelParameters(node, arm)
        text = "file of an LQR gain table, computed by `arm-dynamics gain-table`; empty: none"
        self._table = str(declare_fixed(node, "gain_table", "", text))
        controller = joint_space_controller_class(name)
        with plugins.guarded("controllers", name):
            self.controller: Controller = controller(arm, declare_gains(node, controller(arm)))
        self.controller.set_model(self._model.arm)
        self._tabulate(self.controller)
        warm_up_controller(self.controller)
        self._declared = self.controller
        node.add_post_set_parameters_callback(self._follow_up)

    def change(self, values: Mapping[str, Any], loop: ControlLoop) -> None:
        """Apply changed parameters; on an error of this package nothing changes."""
        if NAME in values:
            self._replace(values, loop)
            return
        change_controller(self.controller, self._model, values, loop)

    def _replace(self, values: Mapping[str, Any], loop: ControlLoop) -> None:
        others = [name for name in values if name != NAME]
        if others:
            raise ConfigError(
                f"parameters set with {NAME} = {others}; expected none; set {NAME} first"
            )
        joint_space_controller_class(values[NAME])  # raises for a task-space controller
        controller = successor(self.controller, values[NAME], self._nominal)
        self._tabulate(controller)
        warm_up_controller(
            controller
        )  # in the services' thread: the old controller runs until this one is compiled
        loop.switch_controller(controller)
        self.controller = controller

    def _tabulate(self, controller: Controller) -> None:
        """Set the gain table of a controller that has one; raise if the table is of another arm."""
        if self._table and hasattr(controller, "set_gain_table"):
            from arm_dynamics.control.lqr_design.gain_table import load_gain_table  # noqa: PLC0415 - a slow start

            regulator: Any = controller
            regulator.set_gain_table(
                load_gain_table(self._table, controller.arm, regulator.weights)
            )

    def _follow_up(self, parameters: Sequence[RosParameter]) -> None:
        """Show the active gains: a change of one may reduce the defaults of others.

        After a controller switch the gains of the new controller replace those of the old one.
        """
        if (
            any(parameter.name == NAME for parameter in parameters)
            and self._declared is not self.controller
        ):
            before, self._declared = self._declared, self.controller
            redeclare_gains(self._node, before, self.controller)
        show_gains(self._node, self.controller)


def joint_space_controller_class(name: str) -> type[Controller]:
    """Return the joint-space controller ``name``; raise ConfigError for a task-space one."""
    controller: type[Controller] = plugins.load_class("controllers", name)
    if issubclass(controller, TaskSpaceController):
        raise ConfigError(
            f"{NAME} = '{name}'; expected a joint-space controller; start task_space_controller"
            " for a task-space controller (task_space.launch.py)"
        )
    return controller


TOOL_LIMITS = (
    Parameter(
        "max_linear_velocity", 0.25, "m/s", "velocity limit of the tool", lower=1e-6, upper=100
    ),
    Parameter(
        "max_linear_acceleration",
        1.0,
        "m/s²",
        "acceleration limit of the tool",
        lower=1e-6,
        upper=1e4,
    ),
    Parameter(
        "max_angular_velocity",
        1.0,
        "rad/s",
        "angular velocity limit of the tool",
        lower=1e-6,
        upper=1e3,
    ),
    Parameter(
        "max_angular_acceleration",
        4.0,
        "rad/s²",
        "angular acceleration limit of the tool",
        lower=1e-6,
        upper=1e5,
    ),
)
TOOL_TIMEOUT = Parameter(
    "command_timeout", 0.25, "s", "time after which a twist or wrench expires", above=0, upper=10
)


class ToolMotionParameters:
    """Live limits of tool motions, and the timeout of twists and wrenches."""

    def __init__(self, node: Node) -> None:
        self._values = {
            spec.name: declare_number(node, spec.name, spec, spec.default or 0.0)
            for spec in (*TOOL_LIMITS, TOOL_TIMEOUT)
        }

    @property
    def limits(self) -> ToolLimits:
        """Limits of the next motion."""
        return ToolLimits(**{spec.name: self._values[spec.name] for spec in TOOL_LIMITS})

    @property
    def timeout(self) -> float:
        """Time [s] of the states after which a twist or wrench expires."""
        return self._values[TOOL_TIMEOUT.name]

    def changed(self, values: Mapping[str, Any]) -> dict[str, float]:
        """Return the ``values`` of these parameters; raise InvalidValue for one out of range."""
        specs = [spec for spec in (*TOOL_LIMITS, TOOL_TIMEOUT) if spec.name in values]
        return {spec.name: spec.check("tool", values[spec.name]) for spec in specs}

    def take(self, changed: Mapping[str, float]) -> None:
        """Apply changed values."""
        self._values |= changed
