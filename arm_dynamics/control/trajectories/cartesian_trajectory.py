"""Cartesian trajectories: lines, arcs, circles and holds in sequence, from rest to rest."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from math import isnan

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.control.trajectories import feasibility
from arm_dynamics.control.trajectories.profiles import Profile, invalid_time_error
from arm_dynamics.control.trajectories.tool_paths import (
    Curve,
    Line,
    PosePath,
    ToolLimits,
    ToolPath,
    arc_through,
    circle,
)
from arm_dynamics.control.trajectories.transition_blend import (
    ZERO_TWIST,
    TransitionBlend,
    at_rest,
    to_task_reference,
)
from arm_dynamics.core.argument_checks import check_type
from arm_dynamics.core.arrays import Matrix, Vector, as_readonly, check_float, check_vector
from arm_dynamics.core.state import Reference, TaskReference
from arm_dynamics.dynamics.kinematics.frames import pose
from arm_dynamics.dynamics.kinematics.pose_target import rotation_matrix
from arm_dynamics.model.arm_model import ArmModel

MIN_BLEND_TIME = 0.1
"""Minimum duration of the transition from another reference [s]."""
REST_PHASE = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class CartesianTrajectory:
    """Segments of path and profile in sequence from ``start_time`` on.

    Each method ``line``, ``arc``, ``circle`` and ``hold`` returns a trajectory with one more
    segment.

    Parameters
    ----------
    arm : ArmModel
        Arm that moves.
    position : (3,) array
        Position of the tool before the first segment [m].
    rotation : (3, 3) array
        Orientation of the tool before the first segment.
    posture : (nv,) array
        Null-space posture of the joints [rad or m].
    start_time : float
        Start of the first segment [s].
    segments : tuple of (PosePath, Profile)
        Paths and their time scalings.
    wrench : (6,) array
        Wrench that the tool applies [N, N·m], in the base's axes.
    weights : (6,) array, optional
        Axes along which the arm must be able to follow, as for inverse kinematics; default: the
        controlled axes.
    allow_unreachable : bool
        Skip the feasibility check.
    entry : TransitionBlend, optional
        Transition from another reference, set by ``starting_from``.

    """

    arm: ArmModel
    position: Vector
    rotation: Matrix
    posture: Vector
    start_time: float = 0.0
    segments: tuple[tuple[PosePath, Profile], ...] = ()
    wrench: Vector = field(default_factory=lambda: ZERO_TWIST)
    weights: Vector | None = None
    allow_unreachable: bool = False
    entry: TransitionBlend | None = None

    @classmethod
    def from_configuration(
        cls, arm: ArmModel, q: ArrayLike, start: float = 0.0
    ) -> CartesianTrajectory:
        """Return a trajectory that rests at the tool pose of ``q``, which is also the posture.

        Parameters
        ----------
        arm : ArmModel
            Arm that moves.
        q : (nv,) array
            Configuration [rad or m].
        start : float
            Start time [s].

        """
        at = check_type(ArmModel, "arm", arm)
        return cls(at, *pose(at, q), check_vector("q", q, at.nv), check_float("start [s]", start))

    @classmethod
    def from_pose(
        cls, arm: ArmModel, position: ArrayLike, rotation: ArrayLike, posture: ArrayLike,
        start: float = 0.0,
    ) -> CartesianTrajectory:  # fmt: skip
        """Return a trajectory that rests at a tool pose.

        Parameters
        ----------
        arm : ArmModel
            Arm that moves.
        position : (3,) array
            Position [m] in the base frame.
        rotation : (3, 3) array
            Orientation in the base frame.
        posture : (nv,) array
            Null-space posture [rad or m].
        start : float
            Start time [s].

        """
        arm = check_type(ArmModel, "arm", arm)
        at = check_vector("position", position, 3), rotation_matrix("rotation", rotation)
        joints = check_vector("posture", posture, arm.nv)
        return cls(arm, *at, joints, check_float("start [s]", start))

    def line(
        self, to: ArrayLike, timing: Profile | ToolLimits, rotation: ArrayLike | None = None
    ) -> CartesianTrajectory:
        """Append a straight line.

        Parameters
        ----------
        to : (3,) array
            End position [m].
        timing : Profile or ToolLimits
            Time scaling, or the limits of the fastest one.
        rotation : (3, 3) array, optional
            Orientation at the end; default: unchanged.

        """
        before = self._last[0]
        end = check_vector("to", to, 3)
        return self._appended(Line(before, as_readonly(end - before)), timing, rotation)

    def arc(
        self, via: ArrayLike, to: ArrayLike, timing: Profile | ToolLimits,
        rotation: ArrayLike | None = None,
    ) -> CartesianTrajectory:  # fmt: skip
        """Append the arc through ``via`` (3,) to ``to`` (3,) [m]; other parameters as ``line``."""
        return self._appended(arc_through(self._last[0], via, to), timing, rotation)

    def circle(
        self, center: ArrayLike, axis: ArrayLike, angle: float, timing: Profile | ToolLimits,
        rotation: ArrayLike | None = None,
    ) -> CartesianTrajectory:  # fmt: skip
        """Append an arc by ``angle`` [rad] about the axis through ``center`` [m], each (3,).

        Other parameters as ``line``.
        """
        return self._appended(circle(self._last[0], center, axis, angle), timing, rotation)

    def hold(self, duration: float) -> CartesianTrajectory:
        """Append a rest of ``duration`` [s]."""
        length = check_float("duration [s]", duration, above=0)
        position, rotation = self._last
        rest = ToolPath(Line(position, ZERO_TWIST[:3]), rotation, ZERO_TWIST[:3])
        segment = rest, Profile((0.0,), (REST_PHASE,), length)
        return replace(self, segments=(*self.segments, segment))

    def _appended(
        self, curve: Curve, timing: Profile | ToolLimits, rotation: ArrayLike | None
    ) -> CartesianTrajectory:
        path = ToolPath.to(curve, self._last[1], rotation)
        profile = timing.profile(path) if isinstance(timing, ToolLimits) else timing
        if profile is None:  # a path of length 0 within limits takes no time
            return self
        check_type(Profile, "timing", profile, "cubic(T), quintic(T), trapezoidal(...), ToolLimits")
        return replace(self, segments=(*self.segments, (path, profile)))

    @cached_property
    def _last(self) -> tuple[Vector, Matrix]:
        """Pose at the end of the last segment."""
        if not self.segments:
            return self.position, self.rotation
        position, rotation, _, _ = self.segments[-1][0].at(1.0)
        return as_readonly(position), as_readonly(rotation)

    @cached_property
    def knots(self) -> tuple[float, ...]:
        """Start times of the segments, and the end of the last one [s]."""
        return tuple(accumulate((p.duration for _, p in self.segments), initial=self.start_time))

    @property
    def start(self) -> float:
        """Time from which the tool moves [s]: of the first segment, or of the transition."""
        return self.start_time if self.entry is None else self.entry.begin

    @property
    def end(self) -> float:
        """Time from which the tool rests [s]."""
        return self.knots[-1] if self.entry is None else max(self.knots[-1], self.entry.end)

    def at(self, time: float) -> TaskReference:
        """Return the reference at ``time`` [s]; at rest before the start and after the end.

        Raises
        ------
        InvalidValue
            For NaN.

        """
        if isnan(time):
            raise invalid_time_error(time)
        if self.entry is None or time >= self.entry.end:
            return self._planned(time)
        if time < self.entry.begin:
            return at_rest(self.at(self.entry.begin))
        return self.entry.added(self._planned(time), time)

    def _planned(self, time: float) -> TaskReference:
        """Return the reference without the transition."""
        i = min(bisect_right(self.knots, time), len(self.segments)) - 1
        if i < 0:
            return self._reference(self.position, self.rotation, ZERO_TWIST, ZERO_TWIST)
        path, profile = self.segments[i]
        s, ds, dds = profile.at(time - self.knots[i])
        p, rotation, first, second = path.at(s)
        return self._reference(p, rotation, ds * first, dds * first + ds * ds * second)

    def _reference(
        self, p: Vector, R: Matrix, twist: Vector, acceleration: Vector
    ) -> TaskReference:
        zero = self._zero
        tool = as_readonly(p), as_readonly(R), as_readonly(twist), as_readonly(acceleration)
        return TaskReference(self.posture, zero, zero, *tool, self.wrench)

    @cached_property
    def _zero(self) -> Vector:
        return as_readonly(np.zeros(self.arm.nv))

    def starting_from(self, now: float, current_reference: Reference) -> CartesianTrajectory:
        """Return this trajectory started at ``now`` [s] from a reference, without a jump.

        Position, rotation, twist, acceleration, wrench and posture of the current reference blend
        into the planned ones by the end of the active segment, or by the start; at least for
        MIN_BLEND_TIME. Of a joint reference the tool's values are used.
        """
        ends = [t for t in self.knots if t > now]
        end = max(ends[0] if ends else now, now + MIN_BLEND_TIME)
        planned = self._planned(now)
        current = to_task_reference(self.arm, current_reference)
        return replace(self, entry=TransitionBlend.between(planned, current, now, end))

    def check(self, arm: ArmModel) -> None:
        """Raise TrajectoryRejected if ``arm`` cannot follow, unless ``allow_unreachable``."""
        if not self.allow_unreachable:
            feasibility.require_feasible(arm, self, self.weights)
