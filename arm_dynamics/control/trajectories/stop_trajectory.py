"""Coming to rest: every joint slows down at its own constant rate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from arm_dynamics.control.trajectories.feed_forward import FeedForward
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.state import Reference
from arm_dynamics.model.arm_model import ArmModel

SLOWING = 0.25
"""Time [s] in which a joint stops from its velocity limit, where no deceleration is given."""
USUAL = 10.0
"""Deceleration [rad/s² or m/s²] of a joint without a velocity limit."""


def default_deceleration(arm: ArmModel) -> Vector:
    """Deceleration (nv,) [rad/s²]: from the velocity limit to rest in SLOWING."""
    limit = arm.velocity_limit
    return as_readonly(np.where(np.isfinite(limit), limit / SLOWING, USUAL))


@dataclass(frozen=True, eq=False)
class StopTrajectory:
    """q = q0 + v0 s - ½ d sign(v0) s²,  v = v0 - d sign(v0) s,  until v = 0 at s = |v0| / d.

    d (nv,) [rad/s²] is ``deceleration``, where 0 is a stand at once, and as much more as it takes
    to stop within [lower, upper].
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
        """How an arm stops, for ``after``; itself a stand in the middle of nowhere."""
        none = as_readonly(np.zeros(arm.nv))
        return cls(0.0, none, none, deceleration, arm.lower, arm.upper)

    @cached_property
    def _duration(self) -> Vector:
        """Time [s] until each joint stands (nv,)."""
        speed = np.abs(self.v)
        room = np.where(self.v > 0, self.upper - self.q, self.q - self.lower)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            slowest = np.where(self.deceleration > 0, speed / self.deceleration, 0.0)
            within = np.where(room > 0, 2 * room / speed, 0.0)
        return as_readonly(np.where(speed > 0, np.minimum(slowest, within), 0.0))

    @property
    def end(self) -> float:
        """Time [s] from which all joints stand."""
        return self.start + float(self._duration.max())

    def at(self, time: float) -> Reference:
        """Reference at ``time`` [s]."""
        T = self._duration
        s = np.clip(time - self.start, 0.0, T)
        moving = (T > 0) & (s < T)
        a = np.where(moving, -self.v / np.where(T > 0, T, 1.0), 0.0)
        gone = np.where(T > 0, self.v * s * (1 - 0.5 * s / np.where(T > 0, T, 1.0)), 0.0)
        v = as_readonly(np.where(moving, self.v + a * s, 0.0))
        effort = None if self.effort is None else self.effort.at(time)
        return Reference(as_readonly(self.q + gone), v, as_readonly(a), effort=effort)

    def starting_from(self, now: float, current_reference: Reference) -> StopTrajectory:
        """From the ``current_reference`` reference to rest, beginning ``now``; its effort fades out."""
        effort = FeedForward.after(None, now, current_reference.effort, now + SLOWING)
        return replace(self, start=now, q=current_reference.q, v=current_reference.v, effort=effort)

    def check(self, arm: ArmModel) -> None:
        """Nothing to refuse: an arm may always stop."""
