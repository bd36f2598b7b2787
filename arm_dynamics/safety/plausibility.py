"""Readings that no joint can have reached are held back until the next one confirms them.

The checksums of some lines let a spoilt answer in 256 pass: one such position would trip, or move
the arm. A joint that truly runs away is believed one cycle later.
"""

from __future__ import annotations

from math import isfinite, nan

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.safety.freshness import Flags
from arm_dynamics.scalar import FLAGS_OUT, VECTOR, VECTOR_OUT, compiled_for

FASTEST = 3.0
"""Speed, in velocity limits, that a joint cannot have."""
SLACK = 0.05
"""Way [rad or m] that is believed whatever the time between two readings."""


@compiled_for(*[VECTOR] * 5, VECTOR_OUT, VECTOR, FLAGS_OUT)
def doubt(
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
            far = way > speed[i] * max(time[i] - last_time[i], 0.0) + SLACK
            confirmed = abs(q[i] - held[i]) <= way  # nearer to what was held back
            out[i] = (far or abs(v[i]) > speed[i]) and isfinite(last[i]) and not confirmed
            held[i] = q[i] if out[i] else nan
            some += out[i]
    return some > 0


class Plausibility:
    """Doubts |q - q'| > 3 V (t - t') + SLACK and |v| > 3 V for joints of velocity limits V."""

    def __init__(self, velocity_limit: Vector) -> None:
        """``velocity_limit`` (nv,) [rad/s or m/s]."""
        size = velocity_limit.size
        self._speed: Vector = FASTEST * velocity_limit
        self.held: Vector = np.full(size, nan)
        """What was held back (nv,), NaN for nothing."""
        self.doubted: Flags = np.zeros(size, bool)
        """Joints (nv,) whose reading was held back this cycle."""
        self.any = False

    def sift(self, time: Vector, q: Vector, v: Vector, last_time: Vector, last: Vector) -> Vector:
        """The times (nv,) [s] of readings to believe, NaN for none and for those held back.

        Joints (nv,) have answered at ``time`` with q and v, and had ``last`` at ``last_time``.
        """
        self.any = doubt(time, q, v, last_time, last, self.held, self._speed, self.doubted)
        believed: Vector = np.where(self.doubted, nan, time) if self.any else time
        return believed
