"""Driver, port, rate and safety limits of the hardware node."""

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

RATE = Parameter(
    "update_rate", 100.0, "Hz", "control cycles: read, then write", lower=1, upper=5000
)
TAKEN = tuple(name for name in INTERFACES if name != MIXED)
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
            "settings",
            "",
            "settings of the driver, in addition to the URDF's: 'name=value ...'",
        )
        interface = f"command interface of the motors: {', '.join(TAKEN)}"
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
        if values["command_interface"] not in TAKEN:
            raise ConfigError(
                f"command_interface = '{values['command_interface']}';"
                f" expected one of {', '.join(TAKEN)}"
            )
        if values["baud"] < 0:
            raise ConfigError(f"baud = {values['baud']}; expected 0 (the URDF's) or more")
        if values["driver"]:
            require_bus(values["driver"])
        given = {name: str(values[name]) for name in ("port", "baud") if values[name]}
        given |= _pairs(values["driver_settings"])
        return HardwareConfig(
            values["driver"],
            given,
            values["command_interface"],
            RATE.check("hardware", values[RATE.name]),
            SafetySettings.of({k: _number(v) for k, v in safety.items()}),
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


def require_bus(name: str) -> None:
    """Raise UnknownName for an unregistered driver, ConfigError for one without motors."""
    kind = plugins.load_class("drivers", name)
    if not issubclass(kind, MotorBus):
        raise ConfigError(
            f"driver = '{name}'; expected a driver of motors; for a simulated arm start the node"
            " simulator (hardware.launch.py driver:=simulated)"
        )


def _pairs(text: str) -> dict[str, str]:
    """Return 'name=value name=value' as a dict; raise ConfigError for other text."""
    pairs = [word.partition("=") for word in text.split()]
    for name, sign, value in pairs:
        if not (name and sign and value):
            raise ConfigError(f"driver_settings = '{name}{sign}{value}'; expected name=value")
    return {name: value for name, _, value in pairs}


def _number(value: Any) -> Any:
    return from_ros_bound(value) if isinstance(value, float) else value
