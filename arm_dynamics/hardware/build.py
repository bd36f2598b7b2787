"""Drivers by name: a motor bus becomes a ``MotorBusDriver``, a ``Driver`` is used as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from arm_dynamics.core import plugins
from arm_dynamics.core.errors import ConfigError, UnknownName
from arm_dynamics.hardware.driver import Driver
from arm_dynamics.hardware.motor_bus import MotorBus
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.hardware_info import JointMotor, read_hardware_info
from arm_dynamics.safety.events import Events
from arm_dynamics.safety.safety_settings import SafetySettings

NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
ALLOW_MISSING_WATCHDOG = "allow_missing_watchdog"
"""Setting of every driver: "true" activates motors without a watchdog."""
WITHOUT_MOTORS = ("simulated", "topic")


def build_driver(
    arm: ArmModel,
    name: str,
    settings: Mapping[str, str] = NO_SETTINGS,
    *,
    safety: SafetySettings = SafetySettings(),  # noqa: B008  # frozen
    interface: str = "effort",
    period: float = 0.0,
    events: Events | None = None,
    motors: Sequence[JointMotor] | None = None,
) -> Driver:
    """Create the driver registered as ``name``, unconfigured: nothing is opened yet.

    Parameters
    ----------
    arm : ArmModel
        The arm; for motors its URDF has a <ros2_control> block.
    name : str
        Registered name, for example "dynamixel" or "simulated".
    settings : Mapping[str, str]
        Settings (port, baud ...) that override those of the <ros2_control> block.
    safety : SafetySettings
        Time-outs, limits and the stop policy.
    interface : str
        Command interface: "effort", "voltage", "position" or "velocity".
    period : float
        Configured control period [s]; 0 uses the measured one only.
    events : Events, optional
        Receives every trip and event.
    motors : Sequence[JointMotor], optional
        Motor of each joint, with another calibration than that of the <ros2_control> block.

    Returns
    -------
    Driver
        A ``MotorBusDriver`` for motors.

    Raises
    ------
    UnknownName
        No driver or setting has this name.
    PluginError
        A plugin cannot be imported.
    ConfigError
        The URDF names no motors, or they do not accept ``interface``.

    """
    kind = plugins.load_class("drivers", name)
    if isinstance(kind, type) and issubclass(kind, MotorBus):
        bus = build_bus(arm, name, settings, motors)
        return MotorBusDriver(
            arm, bus, wiring=motors, interface=interface, safety=safety, events=events,
            period=period,
        )  # fmt: skip
    if isinstance(kind, type) and issubclass(kind, Driver):
        with plugins.guarded("drivers", name):
            return kind(arm)
    raise ConfigError(f"driver '{name}': class = {kind!r}; expected a MotorBus or a Driver")


def build_bus(
    arm: ArmModel,
    name: str,
    settings: Mapping[str, str] = NO_SETTINGS,
    motors: Sequence[JointMotor] | None = None,
) -> MotorBus:
    """Create the bus of the arm's motors, without safety functions.

    Parameters
    ----------
    arm : ArmModel
        Arm whose URDF has a <ros2_control> block.
    name : str
        Registered name of the driver.
    settings : Mapping[str, str]
        Settings that override those of the <ros2_control> block.
    motors : Sequence[JointMotor], optional
        Motors of the joints; default: those of the <ros2_control> block.

    Returns
    -------
    MotorBus

    Raises
    ------
    UnknownName, PluginError
        As ``build_driver``.
    ConfigError
        The driver or the URDF has no motors.

    """
    kind, info = bus_class(name, settings), read_hardware_info(arm)
    with plugins.guarded("drivers", name):
        return kind(motors or info.motors, {**info.settings, **settings})


def bus_class(name: str, settings: Mapping[str, str] = NO_SETTINGS) -> type[MotorBus]:
    """Return the bus class of a driver.

    Parameters
    ----------
    name : str
        Registered name of the driver.
    settings : Mapping[str, str]
        Settings, whose names are checked.

    Returns
    -------
    type of MotorBus

    Raises
    ------
    UnknownName
        No driver has this name, or the class does not have a setting.
    PluginError
        The plugin cannot be imported.
    ConfigError
        The driver has no motors.

    """
    kind = None if name in WITHOUT_MOTORS else plugins.load_class("drivers", name)
    if not (isinstance(kind, type) and issubclass(kind, MotorBus)):
        with_motors = [n for n in plugins.registered_names("drivers") if n not in WITHOUT_MOTORS]
        raise ConfigError(
            f"driver = '{name}' has no motors; expected one of {', '.join(with_motors)}"
        )
    setting_names = (*kind.setting_names, "port", "baud", ALLOW_MISSING_WATCHDOG)
    for setting in settings if kind.setting_names else ():
        if re.sub(r"_\d+$", "", setting) not in setting_names:
            raise UnknownName(f"setting of driver '{name}'", setting, setting_names)
    return kind
