"""A driver by its registered name: a bus of motors becomes an arm, a driver is what it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType

from arm_dynamics.core import plugins
from arm_dynamics.core.errors import ConfigError, UnknownName
from arm_dynamics.hardware.driver import Driver
from arm_dynamics.hardware.motor_bus import MotorBus
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.hardware_info import read_hardware_info
from arm_dynamics.safety.events import Events
from arm_dynamics.safety.safety_settings import SafetySettings

NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
UNWATCHED = "unwatched"
"""Setting of every driver: "accept" goes without motors' watchdogs."""
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
) -> Driver:
    """The driver registered as ``name``, unconfigured: nothing is opened yet.

    ``period`` [s] is the host's configured control period; 0: measured only.
    ``settings`` (port, baud ...) go over those of the URDF's <ros2_control> block. Raises
    UnknownName for another name, PluginError for a plugin that cannot be imported, ConfigError
    for a URDF without the motors' wiring and for motors that do not take ``interface``.
    """
    kind = plugins.load_class("drivers", name)
    if isinstance(kind, type) and issubclass(kind, MotorBus):
        bus = build_bus(arm, name, settings)
        return MotorBusDriver(
            arm, bus, interface=interface, safety=safety, events=events, period=period
        )
    if isinstance(kind, type) and issubclass(kind, Driver):
        with plugins.guarded("drivers", name):
            return kind(arm)
    raise ConfigError(f"driver '{name}' is {kind!r}: a MotorBus or a Driver is expected")


def build_bus(arm: ArmModel, name: str, settings: Mapping[str, str] = NO_SETTINGS) -> MotorBus:
    """The arm's motors alone, without safety; errors as of ``build_driver``.

    Raises ConfigError for a driver that has no motors.
    """
    kind, wiring = bus_class(name, settings), read_hardware_info(arm)
    with plugins.guarded("drivers", name):
        return kind(wiring.motors, {**wiring.settings, **settings})


def bus_class(name: str, settings: Mapping[str, str] = NO_SETTINGS) -> type[MotorBus]:
    """The kind of motors that the driver ``name`` speaks to; errors as of ``build_bus``.

    Raises UnknownName for a setting that it does not know.
    """
    kind = None if name in WITHOUT_MOTORS else plugins.load_class("drivers", name)
    if not (isinstance(kind, type) and issubclass(kind, MotorBus)):
        known = ", ".join(n for n in plugins.registered_names("drivers") if n not in WITHOUT_MOTORS)
        raise ConfigError(f"driver '{name}' has no motors; known with motors: {known}")
    known_names = (*kind.setting_names, "port", "baud", UNWATCHED)
    for given in settings if kind.setting_names else ():
        if re.sub(r"_\d+$", "", given) not in known_names:
            raise UnknownName(f"setting of driver '{name}'", given, known_names)
    return kind
