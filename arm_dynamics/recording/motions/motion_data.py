"""Recorded motion of an arm as arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from arm_dynamics.core.arrays import BoolArray, Matrix, Vector, as_readonly
from arm_dynamics.core.errors import InvalidValue

GAP_PERIODS, GAP_TIME = 5.0, 0.02
"""Gap between samples, in median periods and in s, up to the larger of which it is interpolated."""
MIN_SEGMENT = 20
"""Samples below which a segment is dropped."""
ARRAYS = ("q", "effort", "v", "current", "voltage", "command_position", "command_effort")


@dataclass(frozen=True, slots=True, eq=False)
class MotionData:
    """Positions and efforts of a motion, and further values that were recorded with them.

    ``time`` (n,) [s], increasing; ``q`` (n, nv) [rad or m]; ``effort`` (n, nv) [N·m or N] or None;
    ``source`` names the file in messages. ``v`` [rad/s or m/s], ``current`` [A], ``voltage`` [V],
    ``command_position`` [rad or m] and ``command_effort`` [N·m or N] are (n, nv) or None; their
    entries are NaN where nothing was recorded. ``notes``: sentences of the reader for the user.
    Arrays are read-only.
    """

    joint_names: tuple[str, ...]
    time: Vector
    q: Matrix
    effort: Matrix | None
    source: str = "motion"
    v: Matrix | None = None
    current: Matrix | None = None
    voltage: Matrix | None = None
    command_position: Matrix | None = None
    command_effort: Matrix | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        time = as_readonly(self.time)
        shape = (time.size, len(self.joint_names))
        if time.ndim != 1 or time.size < 2 or not (np.diff(time) > 0).all():
            raise InvalidValue(
                f"{self.source}: time = {time.size} values; expected at least 2, increasing"
            )
        object.__setattr__(self, "time", time)
        for name in ARRAYS:
            given = getattr(self, name)
            if given is None:
                continue
            values = as_readonly(given)
            if values.shape != shape:
                raise InvalidValue(
                    f"{self.source}: {name}: shape = {values.shape}; expected {shape}"
                )
            if name in ("q", "effort") and not np.isfinite(values).all():
                row = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0])
                raise InvalidValue(
                    f"{self.source}: {name} = {values[row]} {time[row] - time[0]:g} s after the"
                    " first sample; expected numbers other than NaN and infinity"
                )
            object.__setattr__(self, name, values)

    @property
    def period(self) -> float:
        """Median time between samples [s]."""
        return float(np.median(np.diff(self.time)))

    def part(self, used: slice | BoolArray, name: str = "") -> MotionData:
        """Return the samples ``used``; ``name`` is appended to the source."""
        arrays = {key: getattr(self, key) for key in ("time", *ARRAYS)}
        cut = {key: values[used] for key, values in arrays.items() if values is not None}
        return replace(self, source=f"{self.source} ({name})" if name else self.source, **cut)

    def segments(self, gap: float = GAP_TIME) -> tuple[MotionData, ...]:
        """Return the parts between gaps of more than GAP_PERIODS median periods and ``gap`` [s].

        Nothing is interpolated across such a gap. Parts of less than MIN_SEGMENT samples are
        dropped, except the longest one.
        """
        ends = 1 + np.flatnonzero(np.diff(self.time) > max(GAP_PERIODS * self.period, gap))
        if ends.size == 0:
            return (self,)
        edges = [0, *ends.tolist(), self.time.size]
        sizes = np.diff(edges)
        least = min(MIN_SEGMENT, int(sizes.max()))
        return tuple(
            self.part(slice(edges[i], edges[i + 1]))
            for i in range(len(sizes))
            if sizes[i] >= max(least, 2)
        )
