"""Numbers among the settings of a CAN line, given as text."""

from __future__ import annotations

from collections.abc import Mapping

from arm_dynamics.drivers.mit_can.motors import MitMotor
from arm_dynamics.errors import ConfigError, InvalidValue
from arm_dynamics.parameters import Parameter

QUIET = Parameter("reply_timeout", 3e-3, "s", "longest silence that is waited for", above=0.0)
OFFSET = Parameter("reply_offset", 16, "1", "from a motor's id to that of its answers", lower=0)
BITRATE = Parameter("bitrate", 1e6, "bit/s", "of the CAN line", above=0.0)
BAUD = Parameter("baud", 1e6, "bit/s", "of the serial port to an slcan adapter", above=0.0)
NAMES = (
    *("interface", "channel", "codec", "sleep_after_open", "udp_port", "kp", "kd"),
    *(parameter.name for parameter in (QUIET, OFFSET, BITRATE)),
)
"""All that a CAN line is told, beside ``port`` and ``baud``."""


def number(settings: Mapping[str, str], parameter: Parameter, owner: str = "CAN") -> float:
    """The setting ``parameter``, else its default; raises ConfigError for one out of range."""
    try:
        text = settings.get(parameter.name, parameter.default)
        return parameter.check(owner, text)  # type: ignore[arg-type]
    except InvalidValue as error:
        raise ConfigError(str(error)) from error


def gains(settings: Mapping[str, str], id: int, model: MitMotor) -> tuple[float, float]:
    """kp [N·m/rad], kd [N·m·s/rad] of motor ``id``: ``kp_3`` before ``kp`` before the table's.

    Raises ConfigError for one out of range. kd must be above 0: undamped, a motor that holds a
    position oscillates, as Damiao's manual warns.
    """
    kp = Parameter("kp", model.kp, "N·m/rad", "stiffness", lower=0.0, upper=model.ranges.kp)
    kd = Parameter("kd", model.kd, "N·m·s/rad", "damping", above=0.0, upper=model.ranges.kd)
    own = {p.name: settings[f"{p.name}_{id}"] for p in (kp, kd) if f"{p.name}_{id}" in settings}
    given = {**settings, **own}
    return number(given, kp, f"motor {id}"), number(given, kd, f"motor {id}")
