"""Efforts that come with a trajectory, added to a controller's: linear between waypoints."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from arm_dynamics.core.arrays import Vector, as_readonly


@dataclass(frozen=True, slots=True, eq=False)
class FeedForward:
    """Efforts ``rows`` (nv,) [N·m or N] at ``times`` [s]; the last one stays, as the first does."""

    times: tuple[float, ...]
    rows: tuple[Vector, ...]

    def at(self, time: float) -> Vector | None:
        """Return the efforts (nv,) at ``time`` [s]; None once they are 0 to the end."""
        if time >= self.times[-1]:
            last = self.rows[-1]
            return last if last.any() else None
        k = bisect_right(self.times, time)
        if k == 0:
            return self.rows[0]
        share = (time - self.times[k - 1]) / (self.times[k] - self.times[k - 1])
        return as_readonly((1 - share) * self.rows[k - 1] + share * self.rows[k])

    @staticmethod
    def after(
        following: FeedForward | None, now: float, present: Vector | None, until: float
    ) -> FeedForward | None:
        """Return efforts entered at ``now`` from the ``present`` ones, None being 0.

        Where nothing follows they are 0 from the time ``until`` [s] on.
        """
        if following is None:
            if present is None:
                return None
            return FeedForward((now, until), (present, as_readonly(np.zeros_like(present))))
        ahead = [k for k, time in enumerate(following.times) if time > now] or [-1]
        rows: Sequence[Vector] = [following.rows[k] for k in ahead]
        times = [following.times[k] for k in ahead] if ahead != [-1] else [until]
        begin = as_readonly(np.zeros_like(rows[0])) if present is None else present
        return FeedForward((now, *times), (begin, *rows))
