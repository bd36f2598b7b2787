"""How old each joint's last reading is, and who has been silent for too long.

Readings that no joint can have reached are held back until the next one confirms them.

The checksums of some lines let a spoilt answer in 256 pass: one such position would trip, or move
the arm. A joint that truly runs away is believed one cycle later.
"""

from __future__ import annotations

from math import isfinite, nan

import numpy as np
from numpy.typing import NDArray

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.compiled_math import (
    COUNT,
    COUNTS_OUT,
    FLAGS_OUT,
    NUMBER,
    VECTOR,
    VECTOR_OUT,
    compiled_for,
)

Flags = NDArray[np.bool_]

FADE_AGE = 0.5
"""Age [s] from which an unseen joint's effort fades; at twice this age it is none."""


@compiled_for(VECTOR, NUMBER, NUMBER, COUNT, VECTOR_OUT, COUNTS_OUT, *[FLAGS_OUT] * 3)
def update_freshness(
    times: Vector, now: float, longest: float, cycles: int, time: Vector, missed: Vector,
    new: Flags, stale: Flags, silent: Flags,
) -> bool:  # fmt: skip
    """One cycle of ``Freshness``, in place; whether no joint is silent."""
    count = 0
    for i in range(times.size):
        t = times[i]
        new[i] = t > time[i] and t <= now and now - t <= longest
        stale[i] = isfinite(t) and not new[i]
        time[i] = t if new[i] else time[i]
        missed[i] = 0 if new[i] else missed[i] + 1
        # a host that stood still has missed no cycle
        silent[i] = missed[i] > cycles or now - time[i] > longest
        count += silent[i]
    return count == 0


class Freshness:
    """Per joint: time [s] of the last new reading, and the cycles that went without one.

    A reading is new when its time is later than that of the last one, not yet to come and no older
    than ``silent_time``; one handed on twice counts as none.
    """

    def __init__(self, size: int, silent_cycles: int, silent_time: float = np.inf) -> None:
        """Joints are silent after more than so many cycles, or so long [s]."""
        self.silent_cycles = silent_cycles
        self.silent_time = float(silent_time)
        self.time: Vector = np.full(size, -np.inf)
        self.missed = np.full(size, silent_cycles + 1)
        self.stale: Flags = np.zeros(size, bool)
        """Joints that answered this cycle with an old reading."""
        self.silent: Flags = np.ones(size, bool)
        """Joints (nv,) whose last value is too old to be told."""
        self.complete = False
        """Whether no joint is silent."""

    def update(self, times: Vector, now: float) -> Flags:
        """One cycle's times (nv,) [s], NaN where no answer came; which of them are new."""
        new, longest = np.empty(times.size, np.bool_), self.silent_time
        self.complete = update_freshness(
            times, now, longest, self.silent_cycles, self.time, self.missed,
            new, self.stale, self.silent,
        )  # fmt: skip
        return new

    @property
    def newest(self) -> float:
        """Time [s] of the newest reading; -inf before any."""
        return float(self.time.max())

    def confidence(self, now: float) -> Vector:
        """clip(2 - age / LET_GO, 0, 1) (nv,): how far an effort may rest on the last reading."""
        share: Vector = np.minimum(np.maximum(2 - self.age(now) / FADE_AGE, 0), 1)
        return share

    def age(self, now: float) -> Vector:
        """now - time (nv,) [s]; infinite before the first reading."""
        return now - self.time


MAX_VELOCITY_RATIO = 3.0
"""Speed, in velocity limits, that a joint cannot have."""
POSITION_TOLERANCE = 0.05
"""Way [rad or m] that is believed whatever the time between two readings."""


@compiled_for(*[VECTOR] * 5, VECTOR_OUT, VECTOR, FLAGS_OUT)
def find_implausible(
    time: Vector, q: Vector, v: Vector, last_time: Vector, last: Vector, held: Vector,
    speed: Vector, out: Flags,
) -> bool:  # fmt: skip
    """Which readings (nv,) to hold back, into ``out``, their positions into ``held``; whether any.

    NaN stands for no reading and for none before; ``held`` has the position that was held back in
    the cycle before, NaN for none.
    """
    some = 0
    for i in range(q.size):
        out[i] = False
        if isfinite(time[i]):
            way = abs(q[i] - last[i])
            far = way > speed[i] * max(time[i] - last_time[i], 0.0) + POSITION_TOLERANCE
            confirmed = abs(q[i] - held[i]) <= way  # nearer to what was held back
            out[i] = (far or abs(v[i]) > speed[i]) and isfinite(last[i]) and not confirmed
            held[i] = q[i] if out[i] else nan
            some += out[i]
    return some > 0


class PlausibilityFilter:
    """Doubts |q - q'| > 3 V (t - t') + SLACK and |v| > 3 V for joints of velocity limits V."""

    def __init__(self, velocity_limit: Vector) -> None:
        """``velocity_limit`` (nv,) [rad/s or m/s]."""
        size = velocity_limit.size
        self._speed: Vector = MAX_VELOCITY_RATIO * velocity_limit
        self.held: Vector = np.full(size, nan)
        """What was held back (nv,), NaN for nothing."""
        self.doubted: Flags = np.zeros(size, bool)
        """Joints (nv,) whose reading was held back this cycle."""
        self.any = False

    def filter(self, time: Vector, q: Vector, v: Vector, last_time: Vector, last: Vector) -> Vector:
        """The times (nv,) [s] of readings to believe, NaN for none and for those held back.

        Joints (nv,) have answered at ``time`` with q and v, and had ``last`` at ``last_time``.
        """
        self.any = find_implausible(
            time, q, v, last_time, last, self.held, self._speed, self.doubted
        )
        believed: Vector = np.where(self.doubted, nan, time) if self.any else time
        return believed
