"""Safety settings of an arm; the limits of its joints are those of the URDF."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.core.parameters import Parameter

POLICIES = ("hold", "damp", "ramp", "disable")
"""Stop motions, see ``controlled_stop.make_stop``."""

_MANY, _LONG = 1e4, 60.0
PARAMETERS = (
    Parameter("command_timeout", 0.1, "s", "largest age of a command", 1e-3, _LONG),
    Parameter(
        "motor_watchdog_timeout",
        0.2,
        "s",
        "time without commands after which a motor stops",
        1e-3,
        _LONG,
    ),
    Parameter("max_missed_cycles", 5, "1", "cycles without feedback of a joint", 0, _MANY),
    Parameter(
        "feedback_timeout", 0.25, "s", "largest age of feedback that is published", 1e-3, _LONG
    ),
    Parameter("activation_cycles", 3, "1", "consecutive complete cycles before torque", 1, _MANY),
    Parameter("recovery_cycles", 20, "1", "good cycles after which a lost bus recovers", 1, _MANY),
    Parameter("reconnect_period", 0.5, "s", "time between attempts to open a lost port", 0, _LONG),
    Parameter("effort_limit_scale", 1.0, "1", "scale of the effort limits", 0, 1, 0),
    Parameter("velocity_limit_scale", 1.0, "1", "scale of the velocity limits", 0, 1, 0),
    Parameter(
        "max_effort_rate", 50.0, "1/s", "largest change of effort, in effort limits", 0, above=0
    ),
    Parameter(
        "soft_limit_zone", 0.1, "rad", "zone before a position limit where efforts fade", 0, 1
    ),
    Parameter("position_margin", 0.02, "rad", "distance beyond a position limit that trips", 0, 1),
    Parameter("velocity_margin", 0.25, "1", "fraction above a velocity limit that trips", 0, 10),
    Parameter(
        "derating_temperature",
        60.0,
        "°C",
        "temperature at which derating starts",
        -50,
        200,
    ),
    Parameter("max_temperature", 75.0, "°C", "temperature that trips", -50, 200),
    Parameter("derating_min_scale", 0.3, "1", "scale of the effort limit at max_temperature", 0, 1),
    Parameter("max_following_error", 0.5, "rad", "following error that trips", 0, above=0),
    Parameter(
        "following_error_timeout", 0.3, "s", "time above max_following_error that trips", 0, _LONG
    ),
    Parameter(
        "max_effort_reversals", 8, "1", "full-scale effort reversals in 1 s that trip", 2, _MANY
    ),
    Parameter(
        "activation_max_velocity", 0.5, "rad/s", "largest velocity at activation", 0, above=0
    ),
    Parameter(
        "limit_recovery_margin",
        0.2,
        "rad",
        "distance beyond a limit allowed at activation",
        0,
        1,
    ),
    Parameter("activation_max_motion", 0.02, "rad", "motion during activation that trips", 0, 1, 0),
)
"""All numbers with default and range; nodes declare them as ROS parameters."""


@dataclass(frozen=True, slots=True)
class SafetySettings:
    """Checked safety settings: the numbers of PARAMETERS, and ``stop_policy``.

    Raises InvalidValue for a number out of its range and for derating without a range,
    UnknownName for another policy than POLICIES.
    """

    stop_policy: str = "hold"
    command_timeout: float = 0.1
    motor_watchdog_timeout: float = 0.2
    max_missed_cycles: int = 5
    feedback_timeout: float = 0.25
    activation_cycles: int = 3
    recovery_cycles: int = 20
    reconnect_period: float = 0.5
    effort_limit_scale: float = 1.0
    velocity_limit_scale: float = 1.0
    max_effort_rate: float = 50.0
    soft_limit_zone: float = 0.1
    position_margin: float = 0.02
    velocity_margin: float = 0.25
    derating_temperature: float = 60.0
    max_temperature: float = 75.0
    derating_min_scale: float = 0.3
    max_following_error: float = 0.5
    following_error_timeout: float = 0.3
    max_effort_reversals: int = 8
    activation_max_velocity: float = 0.5
    limit_recovery_margin: float = 0.2
    activation_max_motion: float = 0.02

    def __post_init__(self) -> None:
        """Check every number."""
        if self.stop_policy not in POLICIES:
            raise UnknownName("stop policy", self.stop_policy, POLICIES)
        for parameter in PARAMETERS:
            number = parameter.check("safety", getattr(self, parameter.name))
            if parameter.name.endswith(("_cycles", "_reversals")):
                if number % 1:
                    raise InvalidValue(
                        f"safety: {parameter.name} = {number:g}; expected an integer"
                    )
                number = int(number)
            object.__setattr__(self, parameter.name, number)
        if not self.derating_temperature < self.max_temperature:
            raise InvalidValue(
                f"safety: derating_temperature = {self.derating_temperature:g} °C; expected below"
                f" max_temperature = {self.max_temperature:g} °C"
            )

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> SafetySettings:
        """Return settings from the names of a parameter file; raises UnknownName for others."""
        names = tuple(field.name for field in fields(cls))
        for name in values:
            if name not in names:
                raise UnknownName("parameter of safety", name, names)
        return cls(**values)
