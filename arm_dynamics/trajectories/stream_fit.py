"""Where a stream of waypoints is and how fast: a parabola through the last of them."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from arm_dynamics.arrays import Vector

WINDOW = 0.18
"""Time [s] of the waypoints that count; at least PERIODS of the stream."""
PERIODS = 6
MOST = 64
"""Waypoints that count at most."""
STRAIGHT = 4
"""Waypoints up to which the stream counts as a straight line: their parabola would be noise."""
SCALE = 0.03
"""Time [s] by which velocities are weighed against positions."""
LEAP = 2.0
"""Velocity between two waypoints, in velocity limits, beyond which a stream begins again."""


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """A waypoint of a stream: due at ``time`` [s], q (nv,), and v (nv,) where given."""

    time: float
    q: Vector
    v: Vector | None


class StreamFit:
    """Least squares of q(t) = q0 + v0 τ + a0 τ²/2, τ = t - t_newest, over the last waypoints.

    Exact for a stream that is such a motion, whatever its times are; otherwise the mean of what
    late and early messages make of it.
    """

    def __init__(self, top: Vector) -> None:
        self._top = top
        self._samples: deque[Sample] = deque(maxlen=MOST)

    def restart(self) -> None:
        """Forget the waypoints."""
        self._samples.clear()

    def add(self, sample: Sample, period: float) -> None:
        """Count one more waypoint of a stream that has one each ``period`` [s].

        One that is due no later than half a period after the one before replaces it. A leap, and
        a change between waypoints with and without velocities, begin the stream again.
        """
        samples = self._samples
        if samples and (samples[-1].v is None) != (sample.v is None):
            samples.clear()
        while samples and sample.time - samples[-1].time < period / 2:
            samples.pop()
        if samples:
            way = np.abs(sample.q - samples[-1].q)
            if (way > LEAP * self._top * max(sample.time - samples[-1].time, period)).any():
                samples.clear()
        samples.append(sample)
        oldest = sample.time - max(WINDOW, PERIODS * period) - 1e-9
        while samples[0].time < oldest:
            samples.popleft()

    def fit(self) -> Vector:
        """Return q0, v0 and a0 / 2 (3, nv) at the newest waypoint."""
        samples, newest = self._samples, self._samples[-1]
        times = np.array([sample.time for sample in samples]) - newest.time
        degree = 2 if len(samples) > STRAIGHT else min(len(samples) - 1, 1)
        if newest.v is not None:
            degree = max(degree, 1)
        length, powers = max(-float(times[0]), SCALE), np.arange(degree + 1)
        x = times[:, None] / length
        columns, rows = x**powers, np.array([sample.q for sample in samples])
        if newest.v is not None:
            slopes = powers * x ** np.maximum(powers - 1, 0)
            columns = np.vstack([columns, SCALE / length * slopes])
            rows = np.vstack([rows, [SCALE * np.asarray(sample.v) for sample in samples]])
        fit = np.zeros((3, rows.shape[1]))
        found = np.linalg.solve(columns.T @ columns, columns.T @ rows)
        fit[: degree + 1] = found / length ** powers[:, None]
        return fit
