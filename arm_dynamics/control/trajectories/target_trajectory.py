"""Motion to a joint target that another target replaces after a short interval."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, sqrt

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.control.trajectories.limited_move import Limits, Moment, Track, settle
from arm_dynamics.control.trajectories.stream_trajectory import (
    joint_limits,
    moments_of,
    reference_of,
)
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.state import Reference
from arm_dynamics.model.arm_model import ArmModel

MIN_SPEED = 1e-6
"""Minimum cruise velocity [rad/s or m/s]: a joint at its target stays there."""


@dataclass(frozen=True, slots=True, eq=False)
class TargetTrajectory:
    """Each joint accelerates, cruises at v and comes to rest at its target, within its limits.

    v h + v² / (2 a) = distance:  deceleration starts after the interval h. If targets that move at
    constant velocity arrive once per interval, v is that velocity. A missing target only ends the
    motion: nothing is extrapolated.

    Parameters
    ----------
    limits : tuple of Limits
        Limits of each joint.
    target : (nv,) array
        Target [rad or m].
    interval : float
        Expected time until the next target [s]; 0: the fastest motion.
    start, end : float
        Times of the motion [s], set by ``starting_from``.
    tracks : tuple of Track
        Motion of each joint, set by ``starting_from``.

    """

    limits: tuple[Limits, ...]
    target: Vector
    interval: float = 0.0
    start: float = 0.0
    end: float = inf
    tracks: tuple[Track, ...] = ()

    @classmethod
    def of(
        cls, arm: ArmModel, target: Vector, interval: float = 0.0, max_speed: ArrayLike = inf
    ) -> TargetTrajectory:
        """Return the motion to a target, limited to the ranges of the joints.

        Parameters
        ----------
        arm : ArmModel
            Arm that moves.
        target : (nv,) array
            Target [rad or m].
        interval : float
            Expected time until the next target [s].
        max_speed : float or (nv,) array
            Velocity limits [rad/s or m/s] in addition to those of the joints.

        """
        speeds = np.broadcast_to(max_speed, target.shape).tolist()
        limits = tuple(
            x._replace(velocity=min(x.velocity, speed))
            for x, speed in zip(joint_limits(arm), speeds, strict=True)
        )
        return cls(limits, as_readonly(np.clip(target, arm.lower, arm.upper)), interval)

    def at(self, time: float) -> Reference:
        """Return the reference at ``time`` [s], after ``starting_from``."""
        return reference_of([track.at(time) for track in self.tracks])

    def starting_from(self, now: float, current_reference: Reference) -> TargetTrajectory:
        """Return the motion from a reference at ``now`` [s]."""
        tracks, end = [], now
        joints = zip(moments_of(current_reference), self.target.tolist(), self.limits, strict=True)
        for present, goal, limits in joints:
            track = Track((), ())
            end = max(end, settle(track, now, present, goal, self._cruise(present, goal, limits)))
            tracks.append(track)
        return replace(self, start=now, end=end, tracks=tuple(tracks))

    def _cruise(self, present: Moment, goal: float, limits: Limits) -> Limits:
        """Return limits with the cruise velocity v of a joint."""
        a, h, distance = limits.acceleration, self.interval, abs(goal - present.q)
        speed = a * (sqrt(h * h + 2 * distance / a) - h)
        return limits._replace(velocity=max(min(limits.velocity, speed), MIN_SPEED))

    def check(self, arm: ArmModel) -> None:
        """Accept: the target is within the ranges, and the motion within the limits."""
