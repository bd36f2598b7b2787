"""What a user may set of a Dynamixel line."""

from __future__ import annotations

from collections.abc import Mapping

from arm_dynamics.core.errors import ConfigError, InvalidValue
from arm_dynamics.core.parameters import Parameter, with_defaults

BROADCAST_FREE = 252
"""The largest id that a motor may have."""

SETTINGS = (
    Parameter("baud", 57_600, "bit/s", "rate of the line; motors come with 57600", 9600, 4.5e6),
    Parameter("latency", 4e-3, "s", "least time that answers are waited for", 0, 0.1),
    Parameter("fast", 1, "1", "0: never fast reads, 1: where every motor knows them", 0, 1),
)


def read_settings(settings: Mapping[str, str]) -> tuple[float, float, bool]:
    """Rate [bit/s], latency [s] and whether fast reads may be used; other names are left alone.

    Raises ConfigError naming the one that is no number or out of its range.
    """
    names = [parameter.name for parameter in SETTINGS]
    given = {name: settings[name] for name in names if settings.get(name)}
    try:
        values = with_defaults("driver 'dynamixel'", SETTINGS, given)  # type: ignore[arg-type]
    except InvalidValue as error:
        raise ConfigError(str(error)) from error
    return values["baud"], values["latency"], bool(values["fast"])


def port_path(settings: Mapping[str, str]) -> str:
    """The serial device's path; raises ConfigError where none is given."""
    if not settings.get("port"):
        raise ConfigError("driver 'dynamixel': port is missing: the serial device's path")
    return settings["port"]
