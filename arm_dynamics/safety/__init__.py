"""Limits, watchdogs and stops between a controller and the motors.

May import ``dynamics`` and below; active by default, and no plugin can bypass it. Start with
``safety_settings`` (every limit and its default) and ``command_watchdog`` (validation of commands,
time-out). ``command_limiter`` bounds what is sent, ``limit_monitor`` and ``oscillation`` trip,
``controlled_stop`` and ``emergency_stop`` stop the arm.
"""

from typing import TYPE_CHECKING

from arm_dynamics.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from arm_dynamics.safety.command_limiter import (
        CommandLimiter,
    )
    from arm_dynamics.safety.command_watchdog import (
        CommandWatchdog,
        Guard,
    )
    from arm_dynamics.safety.controlled_stop import (
        ControlledStop,
        DampedStop,
        PositionHold,
        RampedStop,
        StopMotion,
        VelocityRampDown,
        make_stop,
    )
    from arm_dynamics.safety.emergency_stop import (
        EmergencyStopLatch,
        TorqueOffRequest,
    )
    from arm_dynamics.safety.events import (
        Events,
        Trip,
        Trips,
    )
    from arm_dynamics.safety.limit_monitor import (
        LimitMonitor,
    )
    from arm_dynamics.safety.oscillation import (
        OscillationMonitor,
    )
    from arm_dynamics.safety.safety_settings import (
        SafetySettings,
    )

_MODULES = {
    "CommandLimiter": ".command_limiter",
    "CommandWatchdog": ".command_watchdog",
    "ControlledStop": ".controlled_stop",
    "DampedStop": ".controlled_stop",
    "EmergencyStopLatch": ".emergency_stop",
    "Events": ".events",
    "Guard": ".command_watchdog",
    "LimitMonitor": ".limit_monitor",
    "OscillationMonitor": ".oscillation",
    "PositionHold": ".controlled_stop",
    "RampedStop": ".controlled_stop",
    "SafetySettings": ".safety_settings",
    "StopMotion": ".controlled_stop",
    "TorqueOffRequest": ".emergency_stop",
    "Trip": ".events",
    "Trips": ".events",
    "VelocityRampDown": ".controlled_stop",
    "make_stop": ".controlled_stop",
}

__all__ = [
    "CommandLimiter",
    "CommandWatchdog",
    "ControlledStop",
    "DampedStop",
    "EmergencyStopLatch",
    "Events",
    "Guard",
    "LimitMonitor",
    "OscillationMonitor",
    "PositionHold",
    "RampedStop",
    "SafetySettings",
    "StopMotion",
    "TorqueOffRequest",
    "Trip",
    "Trips",
    "VelocityRampDown",
    "make_stop",
]

__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
