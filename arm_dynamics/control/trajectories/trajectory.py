"""The interface of all trajectories, their feedforward efforts, and the stop."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.state import Reference
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.safety.braking import STOP_TIME


class Trajectory(Protocol):
    """Joint or task-space references over time."""

    @property
    def start(self) -> float:
        """Time of the first waypoint [s]."""
        ...

    @property
    def end(self) -> float:
        """Time of the last waypoint [s]; the reference is at rest after it."""
        ...

    def at(self, time: float) -> Reference:
        """Return the reference at ``time`` [s]."""
        ...

    def starting_from(self, now: float, current_reference: Reference) -> Trajectory:
        """Return this trajectory started at ``now`` [s] from a reference, without a jump."""
        ...

    def check(self, arm: ArmModel) -> None:
        """Raise TrajectoryRejected if ``arm`` cannot follow."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class FeedForward:
    """Efforts added to the controller's command, linear between samples and constant outside.

    Parameters
    ----------
    times : tuple of float
        Times of the samples [s].
    rows : tuple of (nv,) arrays
        Efforts [N·m or N].

    """

    times: tuple[float, ...]
    rows: tuple[Vector, ...]

    def at(self, time: float) -> Vector | None:
        """Return the efforts (nv,) at ``time`` [s]; None if they are 0 from then on."""
        if time >= self.times[-1]:
            last = self.rows[-1]
            return last if last.any() else None
        k = bisect_right(self.times, time)
        if k == 0:
            return self.rows[0]
        weight = (time - self.times[k - 1]) / (self.times[k] - self.times[k - 1])
        return as_readonly((1 - weight) * self.rows[k - 1] + weight * self.rows[k])

    @staticmethod
    def starting_from(
        feedforward: FeedForward | None, now: float, current: Vector | None, until: float
    ) -> FeedForward | None:
        """Return ``feedforward`` started at ``now`` [s] from the ``current`` efforts.

        None stands for 0. Without ``feedforward`` the efforts are 0 from the time ``until`` [s].
        """
        if feedforward is None:
            if current is None:
                return None
            return FeedForward((now, until), (current, as_readonly(np.zeros_like(current))))
        ahead = [k for k, time in enumerate(feedforward.times) if time > now] or [-1]
        rows: Sequence[Vector] = [feedforward.rows[k] for k in ahead]
        times = [feedforward.times[k] for k in ahead] if ahead != [-1] else [until]
        start = as_readonly(np.zeros_like(rows[0])) if current is None else current
        return FeedForward((now, *times), (start, *rows))


@dataclass(frozen=True, eq=False)
class StopTrajectory:
    """q = q0 + v0 s - ½ d sign(v0) s²,  v = v0 - d sign(v0) s,  until v = 0 at s = |v0| / d.

    Each joint has its own constant deceleration d.

    Parameters
    ----------
    start : float
        Time at which the stop starts [s].
    q, v : (nv,) arrays
        Position [rad or m] and velocity [rad/s or m/s] at the start.
    deceleration : (nv,) array
        d [rad/s² or m/s²]; 0 stops immediately. It is increased to stop within the limits.
    lower, upper : (nv,) arrays
        Position limits [rad or m].
    effort : FeedForward, optional
        Feedforward efforts that fade out.

    """

    start: float
    q: Vector
    v: Vector
    deceleration: Vector
    lower: Vector
    upper: Vector
    effort: FeedForward | None = None

    @classmethod
    def of(cls, arm: ArmModel, deceleration: Vector) -> StopTrajectory:
        """Return the stop of an arm, to be used with ``starting_from``."""
        zero = as_readonly(np.zeros(arm.nv))
        return cls(0.0, zero, zero, deceleration, arm.lower, arm.upper)

    @cached_property
    def _duration(self) -> Vector:
        """Time until each joint rests (nv,) [s]."""
        speed = np.abs(self.v)
        distance = np.where(self.v > 0, self.upper - self.q, self.q - self.lower)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            longest = np.where(self.deceleration > 0, speed / self.deceleration, 0.0)
            within = np.where(distance > 0, 2 * distance / speed, 0.0)
        return as_readonly(np.where(speed > 0, np.minimum(longest, within), 0.0))

    @property
    def end(self) -> float:
        """Time from which all joints rest [s]."""
        return self.start + float(self._duration.max())

    def at(self, time: float) -> Reference:
        """Return the reference at ``time`` [s]."""
        T = self._duration
        s = np.clip(time - self.start, 0.0, T)
        moving = (T > 0) & (s < T)
        a = np.where(moving, -self.v / np.where(T > 0, T, 1.0), 0.0)
        travel = np.where(T > 0, self.v * s * (1 - 0.5 * s / np.where(T > 0, T, 1.0)), 0.0)
        v = as_readonly(np.where(moving, self.v + a * s, 0.0))
        effort = None if self.effort is None else self.effort.at(time)
        return Reference(as_readonly(self.q + travel), v, as_readonly(a), effort=effort)

    def starting_from(self, now: float, current_reference: Reference) -> StopTrajectory:
        """Return the stop from a reference at ``now`` [s]; its feedforward effort fades out."""
        effort = FeedForward.starting_from(None, now, current_reference.effort, now + STOP_TIME)
        q, v = current_reference.q, current_reference.v
        return replace(self, start=now, q=q, v=v, effort=effort)

    def check(self, arm: ArmModel) -> None:
        """Accept every arm: a stop is always possible."""
