"""Parameters of the arm: model, simulation, hardware driver and safety limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from rclpy.node import Node

from arm_dynamics.collision.scene import Scene
from arm_dynamics.control.collision_avoidance import UNCHECKED
from arm_dynamics.control.config import node_parameters
from arm_dynamics.core import plugins
from arm_dynamics.core.arrays import Vector, check_float
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.state import INTERFACES, MIXED
from arm_dynamics.core.warning_filters import ignoring
from arm_dynamics.hardware.motor_bus import MotorBus
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.hardware_info import read_hardware_info
from arm_dynamics.model.load import load_arm
from arm_dynamics.ros.parameters.ros_parameters import (
    declare_fixed,
    declare_list,
    declare_live,
    declare_number,
    from_ros_bound,
    from_ros_bounds,
)
from arm_dynamics.safety.safety_settings import PARAMETERS, POLICIES, SafetySettings
from arm_dynamics.simulation.simulation import Simulation
from arm_dynamics.simulation.simulation_parameters import (
    FACTOR,
    JOINT_NUMBERS,
    PAYLOAD,
    TIMEOUT,
    changed_arm,
    control_period,
)

LOCK = "lock"


def declared_model(node: Node) -> ArmModel:
    """Load the arm that the parameters ``arm``, ``lock`` and ``tool_frame`` name."""
    arm = declare_fixed(node, "arm", "five_dof", "bundled arm or URDF file")
    # An empty list has no type: rclpy reads it as bytes.
    lock = declare_fixed(node, LOCK, [""], "locked joints")
    tool = declare_fixed(node, "tool_frame", "", "link that is the tool frame; empty: selected")
    return load_arm(arm, [joint for joint in lock if joint], tool_frame=tool or None)


def declared_self_collision(node: Node) -> bool:
    """Return whether the node checks collisions; a warning if not."""
    text = "reject motions and stop the arm before links touch each other or objects"
    checked = bool(declare_fixed(node, "self_collision", True, text))
    if not checked:
        node.get_logger().warning(UNCHECKED)
    return checked


def without_arm_warnings() -> dict[str, str]:
    """Return the environment of nodes whose arm the process that starts them loads as well.

    ``declared_model`` then does not repeat the warnings of ``load_arm``.
    """
    return ignoring("RuntimeWarning", __name__)


def declare_arm(node: Node, arm: ArmModel) -> ArmModel:
    """Declare the live parameters of a simulated arm; return the arm with their values."""
    values: dict[str, Any] = {
        PAYLOAD.name: declare_number(node, PAYLOAD.name, PAYLOAD, 0.0),
        "gravity": declare_live(node, "gravity", arm.gravity.tolist(), "gravity [m/s²], z up"),
    }
    for joint, actuator in zip(arm.joints, arm.actuators, strict=True):
        for spec in JOINT_NUMBERS:
            name = f"joints.{joint.name}.{spec.name}"
            values[name] = declare_number(node, name, spec, getattr(joint, spec.name))
        for spec in actuator.parameters:
            name = f"motors.{joint.name}.{spec.name}"
            values[name] = declare_number(node, name, spec, actuator.constants[spec.name])
    return changed_arm(arm, from_ros_bounds(values))


def declared_simulation(
    node: Node,
    arm: ArmModel,
    nominal: ArmModel,
    display: Callable[[Vector], AbstractContextManager[None]],
    scene: Scene,
) -> tuple[Simulation, float]:
    """Return the simulation of ``arm`` that the parameters define, and its real-time factor.

    Parameters
    ----------
    node : Node
        Node of the simulator.
    arm, nominal : ArmModel
        Simulated arm, and model of the controlled stop.
    display : callable
        Context that gets the initial configuration (nv,) and lasts while the simulation is
        compiled.
    scene : Scene
        Objects around the arm.

    Raises
    ------
    ConfigError
        For a period that is not a multiple of the time step; more errors as ``Simulation``.

    """
    rate = declare_fixed(node, "update_rate", 500.0, "control cycles per simulated second [Hz]")
    dt = check_float(
        "dt [s]", declare_fixed(node, "dt", 1e-4, "time step of the integrator [s]"), above=0
    )
    method = declare_fixed(node, "integrator", "semi_implicit_euler", "integrator")
    start = declare_list(
        node,
        "initial_positions",
        "initial positions; empty: the arm's configuration initial",
        read_only=True,
    )
    timeout = declare_number(node, TIMEOUT.name, TIMEOUT, 0.1)
    factor = declare_number(node, FACTOR.name, FACTOR, 1.0)
    q = arm.check_position("initial q", start) if start else arm.configuration("initial")
    period = control_period(rate, dt)
    with display(q):
        terms = {"dt": dt, "period": period, "timeout": timeout, "integrator": method}
        simulation = Simulation(arm, q=q, nominal=nominal, scene=scene, **terms)
    return simulation, factor


def lockstep_by_default(file: str | Path | None) -> bool:
    """Return whether ``sim`` and the launch files simulate in lockstep by default.

    They do unless the parameter ``file`` sets ``lockstep`` or ``publish_clock`` to false.
    In lockstep a busy machine slows simulated time down and delays no command.
    """
    given = {} if file is None else node_parameters(file, "simulator")
    return bool(given.get("lockstep", given.get("publish_clock", True)))


RATE = Parameter(
    "update_rate", 100.0, "Hz", "control cycles: read, then write", lower=1, upper=5000
)
COMMAND_INTERFACES = tuple(name for name in INTERFACES if name != MIXED)
POLICY = "safety.stop_policy"
PREFIX = "safety."


@dataclass(frozen=True, slots=True)
class HardwareConfig:
    """Driver, its settings in addition to the URDF's, update rate and safety settings."""

    driver: str
    settings: Mapping[str, str]
    interface: str
    rate: float
    safety: SafetySettings


class HardwareParameters:
    """Parameters of a driver: live while unconfigured, applied by the transition configure."""

    def __init__(self, node: Node, arm: ArmModel) -> None:
        self._node, self._arm = node, arm
        drivers = ", ".join(
            n for n in plugins.registered_names("drivers") if n not in ("simulated", "topic")
        )
        declare_live(node, "driver", "", f"{drivers}; empty: the URDF's <hardware> param driver")
        declare_live(node, "port", "", "serial port or CAN channel; empty: the URDF's")
        declare_live(node, "baud", 0, "rate of the port [1/s]; 0: the URDF's")
        declare_live(
            node,
            "driver_settings",
            "",
            "settings of the driver, in addition to the URDF's: 'name=value ...'",
        )
        interface = f"command interface of the motors: {', '.join(COMMAND_INTERFACES)}"
        declare_live(node, "command_interface", "effort", interface)
        declare_number(node, RATE.name, RATE, RATE.default or 0.0)
        declare_live(
            node, POLICY, POLICIES[0], f"policy of the controlled stop: {', '.join(POLICIES)}"
        )
        for number in PARAMETERS:
            declare_number(node, f"{PREFIX}{number.name}", number, number.default or 0.0)
        self._names = (
            *("driver", "port", "baud", "driver_settings", "command_interface", RATE.name, POLICY),
            *(f"{PREFIX}{number.name}" for number in PARAMETERS),
        )
        self.config({})

    def concerns(self, values: Mapping[str, Any]) -> list[str]:
        """Return the names among ``values`` that are parameters of the driver."""
        return [name for name in values if name in self._names]

    def config(self, changed: Mapping[str, Any]) -> HardwareConfig:
        """Return the configuration after a change; raise the errors of invalid values."""
        values = {name: self._node.get_parameter(name).value for name in self._names}
        values |= {name: changed[name] for name in self.concerns(changed)}
        safety = {field.name: values[f"{PREFIX}{field.name}"] for field in fields(SafetySettings)}
        if values["command_interface"] not in COMMAND_INTERFACES:
            raise ConfigError(
                f"command_interface = '{values['command_interface']}';"
                f" expected one of {', '.join(COMMAND_INTERFACES)}"
            )
        if values["baud"] < 0:
            raise ConfigError(f"baud = {values['baud']}; expected 0 (the URDF's) or more")
        if values["driver"]:
            require_bus(values["driver"])
        return HardwareConfig(
            values["driver"],
            _driver_settings(values),
            values["command_interface"],
            RATE.check("hardware", values[RATE.name]),
            SafetySettings.of(
                {
                    name: from_ros_bound(value) if isinstance(value, float) else value
                    for name, value in safety.items()
                }
            ),
        )

    def driver(self, config: HardwareConfig) -> str:
        """Return the driver's name, given or from the URDF; raise ConfigError without one."""
        name = config.driver or read_hardware_info(self._arm).settings.get("driver", "")
        if not name:
            raise ConfigError(
                f"driver = ''; expected a name, here or in <hardware> of the URDF of"
                f" '{self._arm.name}': {', '.join(plugins.registered_names('drivers'))}"
            )
        require_bus(name)
        return name


def _driver_settings(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the settings of a driver that the parameters give: port, baud, driver_settings."""
    settings = {name: str(values[name]) for name in ("port", "baud") if values[name]}
    for word in values["driver_settings"].split():
        name, sign, value = word.partition("=")
        if not (name and sign and value):
            raise ConfigError(f"driver_settings = '{word}'; expected name=value")
        settings[name] = value
    return settings


def require_bus(name: str) -> None:
    """Raise UnknownName for an unregistered driver, ConfigError for one without motors."""
    kind = plugins.load_class("drivers", name)
    if not issubclass(kind, MotorBus):
        raise ConfigError(
            f"driver = '{name}'; expected a driver of motors; for a simulated arm start the node"
            " simulator (hardware.launch.py driver:=simulated)"
        )


def declare_voltage_order(node: Node, names: Sequence[str]) -> list[str]:
    """Return the joint order of voltage_commands: the parameter voltage_joint_order."""
    order = list(
        declare_fixed(node, "voltage_joint_order", list(names), "joint order of voltage_commands")
    )
    if sorted(order) != sorted(names):
        raise ConfigError(f"voltage_joint_order = {order}; expected each of {list(names)} once")
    return order
