"""What the hardware node is told: driver, port, rate, and every number of safety."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from rclpy.node import Node

from arm_dynamics.core import plugins
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.state import INTERFACES, MIXED
from arm_dynamics.hardware.motor_bus import MotorBus
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.hardware_info import read_hardware_info
from arm_dynamics.ros.ros_parameters import declare_live, declare_number, from_ros_bound
from arm_dynamics.safety.safety_settings import PARAMETERS, POLICIES, SafetySettings

RATE = Parameter("rate", 100.0, "Hz", "cycles of reading and writing", lower=1, upper=5000)
TAKEN = tuple(name for name in INTERFACES if name != MIXED)
POLICY = "safety.stop_policy"
PREFIX = "safety."


@dataclass(frozen=True, slots=True)
class HardwareConfig:
    """Which driver, with which settings over the URDF's, how fast and how safe."""

    driver: str
    settings: Mapping[str, str]
    interface: str
    rate: float
    safety: SafetySettings


class HardwareParameters:
    """All of them may change while nothing is open: they count when the node is configured."""

    def __init__(self, node: Node, arm: ArmModel) -> None:
        self._node, self._arm = node, arm
        drivers = ", ".join(
            n for n in plugins.registered_names("drivers") if n not in ("simulated", "topic")
        )
        declare_live(node, "driver", "", f"{drivers}; empty: the URDF's <hardware> param driver")
        declare_live(node, "port", "", "serial port or CAN channel; empty: the URDF's")
        declare_live(node, "baud", 0, "rate of the port [1/s]; 0: the URDF's")
        declare_live(node, "settings", "", "the driver's own over the URDF's: 'name=value ...'")
        interface = f"what the motors are commanded: {', '.join(TAKEN)}"
        declare_live(node, "interface", "effort", interface)
        declare_number(node, RATE.name, RATE, RATE.default or 0.0)
        declare_live(node, POLICY, POLICIES[0], f"how the arm stops: {', '.join(POLICIES)}")
        for number in PARAMETERS:
            declare_number(node, f"{PREFIX}{number.name}", number, number.default or 0.0)
        self._names = (
            *("driver", "port", "baud", "settings", "interface", RATE.name, POLICY),
            *(f"{PREFIX}{number.name}" for number in PARAMETERS),
        )
        self.wanted({})

    def concerns(self, values: Mapping[str, Any]) -> list[str]:
        """Those of ``values`` that are parameters of this room."""
        return [name for name in values if name in self._names]

    def wanted(self, changed: Mapping[str, Any]) -> HardwareConfig:
        """What the parameters say, after a change; raises the errors of what cannot be."""
        values = {name: self._node.get_parameter(name).value for name in self._names}
        values |= {name: changed[name] for name in self.concerns(changed)}
        safety = {field.name: values[f"{PREFIX}{field.name}"] for field in fields(SafetySettings)}
        if values["interface"] not in TAKEN:
            raise ConfigError(
                f"interface '{values['interface']}': one of {', '.join(TAKEN)} is expected"
            )
        if values["baud"] < 0:
            raise ConfigError(f"baud = {values['baud']}: 0 (the URDF's) or more is expected")
        if values["driver"]:
            require_bus(values["driver"])
        given = {name: str(values[name]) for name in ("port", "baud") if values[name]}
        given |= _pairs(values["settings"])
        return HardwareConfig(
            values["driver"],
            given,
            values["interface"],
            RATE.check("hardware", values[RATE.name]),
            SafetySettings.of({k: _number(v) for k, v in safety.items()}),
        )

    def driver(self, wanted: HardwareConfig) -> str:
        """The driver's name: the given one, else the URDF's; raises ConfigError without any."""
        name = wanted.driver or read_hardware_info(self._arm).settings.get("driver", "")
        if not name:
            raise ConfigError(
                f"driver: none is given, and the URDF of '{self._arm.name}' names none in its"
                f" <ros2_control> <hardware>; known: {', '.join(plugins.registered_names('drivers'))}"
            )
        require_bus(name)
        return name


def require_bus(name: str) -> None:
    """Raise UnknownName for a driver that is not registered, ConfigError for one of no motors."""
    kind = plugins.load_class("drivers", name)
    if not issubclass(kind, MotorBus):
        raise ConfigError(
            f"driver '{name}' has no motors: a simulated arm has the node simulator"
            " (hardware.launch.py driver:=simulated starts it)"
        )


def _pairs(text: str) -> dict[str, str]:
    """'name=value name=value' as a table; raises ConfigError for another text."""
    pairs = [word.partition("=") for word in text.split()]
    for name, sign, value in pairs:
        if not (name and sign and value):
            raise ConfigError(f"settings: '{name}{sign}{value}': name=value is expected")
    return {name: value for name, _, value in pairs}


def _number(value: Any) -> Any:
    return from_ros_bound(value) if isinstance(value, float) else value
