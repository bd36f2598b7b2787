"""Stop motion of a physical arm, and the control period that its gains are designed for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from arm_dynamics.core.arrays import Vector, check_float
from arm_dynamics.core.state import State
from arm_dynamics.core.timing import LoopTiming
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.safety.command_limiter import CommandLimiter
from arm_dynamics.safety.controlled_stop import StopMotion, make_stop, require_policy
from arm_dynamics.safety.events import Trip
from arm_dynamics.safety.oscillation import Settling

PERIOD_SAMPLES = 10
"""Control cycles whose median duration is the measured period."""
MIN_PERIOD_SAMPLES = 5
"""Durations required before their median is used."""
DEFAULT_PERIOD = 0.01
"""Control period [s] assumed if neither a configured nor a measured one exists."""


class PeriodMeter:
    """Measure the control period of the host and the delay of the feedback.

    Parameters
    ----------
    configured : float
        Configured control period [s]; 0 uses the measured one only.
    feedback_delay : float
        Age of a bus's readings [control periods]; 0 derives it from the duration of a read.

    """

    def __init__(self, configured: float, feedback_delay: float) -> None:
        self._configured = check_float("period [s]", configured, lower=0)
        self._feedback_delay = feedback_delay
        self._starts: deque[float] = deque(maxlen=PERIOD_SAMPLES)
        self.read_time = 0.0
        """Duration [s] of the last read."""

    def start_cycle(self, now: float) -> None:
        """Record the start [s] of a control cycle."""
        self._starts.append(now)

    def reset(self) -> None:
        """Discard the measured cycles; those without replies last longer."""
        self._starts.clear()

    @property
    def timing(self) -> LoopTiming | None:
        """Longer of the configured and the measured period, with the delay; None without either."""
        durations = np.diff(self._starts)
        measured = float(np.median(durations)) if durations.size >= MIN_PERIOD_SAMPLES else 0.0
        period = max(self._configured, measured)
        return self._with_delay(period) if period else None

    @property
    def assumed_timing(self) -> LoopTiming:
        """``timing``, else that of DEFAULT_PERIOD."""
        return self.timing or self._with_delay(DEFAULT_PERIOD)

    def _with_delay(self, period: float) -> LoopTiming:
        """Add the delay: fresh readings are about twice the duration of a read old."""
        delay = self._feedback_delay or min(1.0, 2 * self.read_time / period)
        return LoopTiming(period, delay)


class StopController:
    """Create the stop motion of an arm; a softer one while the arm oscillates.

    Raises ConfigError if motors on ``interface`` cannot execute the stop ``policy``.

    Attributes
    ----------
    motion : StopMotion or None
        Stop motion in progress; None while commands are executed.

    """

    def __init__(
        self, policy: str, interface: str, arm: ArmModel, limiter: CommandLimiter,
        period: PeriodMeter,
    ) -> None:  # fmt: skip
        require_policy(policy, interface)
        self.policy, self.interface, self.arm = policy, interface, arm
        self._limiter, self._period = limiter, period
        self._settling = Settling(arm)
        self.motion: StopMotion | None = None

    def start(self, now: float, state: Callable[[float], State]) -> None:
        """Start a stop by the policy at ``state(now)``, the last known state."""
        self._settling.begin(now)
        self.motion = self._make(self.policy, state(now))

    def hold(self, state: State) -> StopMotion:
        """Return a motion that holds the arm at ``state``, for the time before a command."""
        return self._make("hold", state)

    def restart(self, now: float) -> None:
        """Use the stiffest stop again, after an activation at ``now`` [s]."""
        self._settling.restart(now)

    def require_softer(self) -> None:
        """Skip the stiffest stop: the efforts oscillate."""
        self._settling.stage = max(self._settling.stage, 1)

    def check_settling(self, now: float, v: Vector) -> list[Trip]:
        """Return the trips of joints that oscillate at velocities v (nv,); the next is softer."""
        return self._settling.look(now, v)

    @property
    def exhausted(self) -> bool:
        """Whether no softer stop exists: the next remedy is to disable torque."""
        return self._settling.exhausted or self.interface != "effort"

    def _make(self, policy: str, state: State) -> StopMotion:
        timing = self._period.assumed_timing.longer(self._settling.softer)
        last = self._limiter.last
        return make_stop(policy, self.interface, self.arm, state, last, timing)
