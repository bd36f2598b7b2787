"""The numbers of an arm's safety; the limits of its joints are the URDF's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.core.parameters import Parameter

POLICIES = ("hold", "damp", "ramp", "disable")
"""How an arm stops; ``stop_policy`` has the laws."""

_MANY, _LONG = 1e4, 60.0
PARAMETERS = (
    Parameter("command_timeout", 0.1, "s", "age of a command that is still obeyed", 1e-3, _LONG),
    Parameter("watchdog", 0.2, "s", "silence after which a motor stops by itself", 1e-3, _LONG),
    Parameter("silent_cycles", 5, "1", "cycles that a joint may be silent", 0, _MANY),
    Parameter("silent_time", 0.25, "s", "age of a joint's reading that is still told", 1e-3, _LONG),
    Parameter("fresh_cycles", 3, "1", "whole cycles in a row before torque", 1, _MANY),
    Parameter("recovery_cycles", 20, "1", "good cycles after which a lost link is back", 1, _MANY),
    Parameter("reopen_period", 0.5, "s", "time between two tries to open a lost port", 0, _LONG),
    Parameter("effort_share", 1.0, "1", "share of the effort limits", 0, 1, 0),
    Parameter("velocity_share", 1.0, "1", "share of the velocity limits", 0, 1, 0),
    Parameter("effort_rate", 50.0, "1/s", "effort limits that an effort may change by", 0, above=0),
    Parameter("soft_zone", 0.1, "rad", "way before a position limit where efforts fade", 0, 1),
    Parameter("position_margin", 0.02, "rad", "way beyond a position limit that trips", 0, 1),
    Parameter("velocity_margin", 0.25, "1", "share above a velocity limit that trips", 0, 10),
    Parameter("derate_from", 60.0, "°C", "temperature where efforts begin to be derated", -50, 200),
    Parameter("hottest", 75.0, "°C", "temperature that trips", -50, 200),
    Parameter("derate_to", 0.3, "1", "share of the effort limit that is left when hottest", 0, 1),
    Parameter("following_error", 0.5, "rad", "way behind a position goal that trips", 0, above=0),
    Parameter("following_time", 0.3, "s", "how long it may be exceeded", 0, _LONG),
    Parameter("swing_turns", 8, "1", "turns of an effort, end to end in 1 s, that trip", 2, _MANY),
    Parameter("activation_speed", 0.5, "rad/s", "speed of a joint that is taken up", 0, above=0),
    Parameter("take_up", 0.2, "rad", "way beyond a position limit that may be led back", 0, 1),
    Parameter("activation_motion", 0.02, "rad", "motion by torque on that trips", 0, 1, 0),
)
"""Every number, its default and its range, as nodes declare them."""


@dataclass(frozen=True, slots=True)
class SafetySettings:
    """Checked numbers, one a name of PARAMETERS, and the stop ``policy``.

    Raises InvalidValue for a number out of its range and for derating without a range,
    UnknownName for another policy than POLICIES.
    """

    policy: str = "hold"
    command_timeout: float = 0.1
    watchdog: float = 0.2
    silent_cycles: int = 5
    silent_time: float = 0.25
    fresh_cycles: int = 3
    recovery_cycles: int = 20
    reopen_period: float = 0.5
    effort_share: float = 1.0
    velocity_share: float = 1.0
    effort_rate: float = 50.0
    soft_zone: float = 0.1
    position_margin: float = 0.02
    velocity_margin: float = 0.25
    derate_from: float = 60.0
    hottest: float = 75.0
    derate_to: float = 0.3
    following_error: float = 0.5
    following_time: float = 0.3
    swing_turns: int = 8
    activation_speed: float = 0.5
    take_up: float = 0.2
    activation_motion: float = 0.02

    def __post_init__(self) -> None:
        """Check every number."""
        if self.policy not in POLICIES:
            raise UnknownName("stop policy", self.policy, POLICIES)
        for parameter in PARAMETERS:
            number = parameter.check("safety", getattr(self, parameter.name))
            if parameter.name.endswith(("_cycles", "_turns")):
                number = _whole(parameter.name, number)
            object.__setattr__(self, parameter.name, number)
        if not self.derate_from < self.hottest:
            raise InvalidValue(
                f"safety: derate_from = {self.derate_from:g} °C: below hottest,"
                f" {self.hottest:g} °C, is allowed"
            )

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> SafetySettings:
        """Settings by name, as a parameter file has them; raises UnknownName for others."""
        known = tuple(field.name for field in fields(cls))
        for name in given:
            if name not in known:
                raise UnknownName("parameter of safety", name, known)
        return cls(**given)


def _whole(name: str, number: float) -> int:
    if number % 1:
        raise InvalidValue(f"safety: {name} = {number:g}: a whole number is expected")
    return int(number)
