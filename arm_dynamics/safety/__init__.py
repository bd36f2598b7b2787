"""Limits, watchdogs and stops between a controller and the motors.

May import ``dynamics`` and below; active by default, and no plugin can bypass it. Start with
``safety_settings`` (every limit and its default) and ``command_watchdog`` (validation of commands,
time-out). ``command_limiter`` bounds what is sent, ``limit_monitor`` and ``oscillation`` trip,
``controlled_stop`` and ``emergency_stop`` stop the arm.
"""

from typing import TYPE_CHECKING

from arm_dynamics.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from arm_dynamics.safety.command_watchdog import (
        CommandWatchdog,
        Guard,
    )
    from arm_dynamics.safety.emergency_stop import EmergencyStopLatch
    from arm_dynamics.safety.events import Events, Trip
    from arm_dynamics.safety.safety_settings import (
        SafetySettings,
    )

_MODULES = {
    "CommandWatchdog": ".command_watchdog",
    "EmergencyStopLatch": ".emergency_stop",
    "Events": ".events",
    "Guard": ".command_watchdog",
    "SafetySettings": ".safety_settings",
    "Trip": ".events",
}

__all__ = [
    "CommandWatchdog",
    "EmergencyStopLatch",
    "Events",
    "Guard",
    "SafetySettings",
    "Trip",
]

__getattr__, __dir__ = lazy_exports(__name__, _MODULES)
