"""Trajectories of the tool: lines, arcs and holds, one after the other, from rest to rest."""

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
from arm_dynamics.core.arrays import Vector, as_readonly, check_float, check_vector
from arm_dynamics.core.state import Reference, TaskReference
from arm_dynamics.dynamics.kinematics import pose
from arm_dynamics.dynamics.kinematics.pose_target import rotation_matrix
from arm_dynamics.model.arm_model import ArmModel

ENTRY = 0.1
"""Least time [s] in which a trajectory is entered from elsewhere."""
STILL = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class CartesianTrajectory:
    """Pieces of ``path`` and profile, one after the other from ``start_time`` [s] on.

    ``position`` (3,) [m] and ``rotation`` (3, 3) of the tool before the first piece. ``posture``
    (nv,) and ``wrench`` (6,) [N, N·m] are told at all times. ``weights`` (6,), as inverse
    kinematics takes them, say along which axes the arm must be able to follow; None: those that
    it controls. With ``allow_unreachable`` a check lets ways pass that the arm can not follow.
    """

    arm: ArmModel
    position: Vector
    rotation: Vector
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
        """Stand where the tool is with the joints at ``q`` (nv,), which are the posture too."""
        at = check_type(ArmModel, "arm", arm)
        return cls(at, *pose(at, q), check_vector("q", q, at.nv), check_float("start [s]", start))

    @classmethod
    def from_pose(
        cls, arm: ArmModel, position: ArrayLike, rotation: ArrayLike, posture: ArrayLike,
        start: float = 0.0,
    ) -> CartesianTrajectory:  # fmt: skip
        """Stand with the tool at ``position`` (3,) [m] and ``rotation`` (3, 3)."""
        arm = check_type(ArmModel, "arm", arm)
        where = check_vector("position", position, 3), rotation_matrix("rotation", rotation)
        return cls(
            arm, *where, check_vector("posture", posture, arm.nv), check_float("start [s]", start)
        )

    def line(
        self, to: ArrayLike, timing: Profile | ToolLimits, rotation: ArrayLike | None = None
    ) -> CartesianTrajectory:
        """Go on straight to ``to`` (3,) [m], turning to ``rotation`` (3, 3), or keeping it."""
        before = self._last[0]
        return self._go(
            Line(before, as_readonly(check_vector("to", to, 3) - before)), timing, rotation
        )

    def arc(
        self, via: ArrayLike, to: ArrayLike, timing: Profile | ToolLimits,
        rotation: ArrayLike | None = None,
    ) -> CartesianTrajectory:  # fmt: skip
        """Go on along the arc over ``via`` (3,) to ``to`` (3,) [m]."""
        return self._go(arc_through(self._last[0], via, to), timing, rotation)

    def circle(
        self, centre: ArrayLike, axis: ArrayLike, angle: float, timing: Profile | ToolLimits,
        rotation: ArrayLike | None = None,
    ) -> CartesianTrajectory:  # fmt: skip
        """Go on round the line through ``centre`` (3,) [m] along ``axis`` (3,) by ``angle``."""
        return self._go(circle(self._last[0], centre, axis, angle), timing, rotation)

    def hold(self, duration: float) -> CartesianTrajectory:
        """Stand for ``duration`` [s]."""
        length = check_float("duration [s]", duration, above=0)
        position, rotation = self._last
        still = ToolPath(Line(position, ZERO_TWIST[:3]), rotation, ZERO_TWIST[:3])
        return replace(self, segments=(*self.segments, (still, Profile((0.0,), (STILL,), length))))

    def _go(
        self, curve: Curve, timing: Profile | ToolLimits, rotation: ArrayLike | None
    ) -> CartesianTrajectory:
        path = ToolPath.to(curve, self._last[1], rotation)
        profile = timing.profile(path) if isinstance(timing, ToolLimits) else timing
        if profile is None:  # limits allow a way of no length in no time
            return self
        check_type(
            Profile, "timing", profile, "cubic(T), quintic(T), trapezoidal(...) or ToolLimits"
        )
        return replace(self, segments=(*self.segments, (path, profile)))

    @cached_property
    def _last(self) -> tuple[Vector, Vector]:
        """Where the last piece ends."""
        if not self.segments:
            return self.position, self.rotation
        position, rotation, _, _ = self.segments[-1][0].at(1.0)
        return as_readonly(position), as_readonly(rotation)

    @cached_property
    def knots(self) -> tuple[float, ...]:
        """Times [s] at which a piece begins, and the end of the last one."""
        return tuple(accumulate((p.duration for _, p in self.segments), initial=self.start_time))

    @property
    def start(self) -> float:
        """Time [s] from which on it moves: the first piece's, or that of its entry."""
        return self.start_time if self.entry is None else self.entry.begin

    @property
    def end(self) -> float:
        """Time [s] from which on the tool stands still."""
        return self.knots[-1] if self.entry is None else max(self.knots[-1], self.entry.end)

    def at(self, time: float) -> TaskReference:
        """What the tool should do at ``time`` [s]; it rests before the start and after the end.

        Raises InvalidValue for NaN.
        """
        if isnan(time):
            raise invalid_time_error(time)
        if self.entry is None or time >= self.entry.end:
            return self._planned(time)
        if time < self.entry.begin:
            return at_rest(self.at(self.entry.begin))
        return self.entry.added(self._planned(time), time)

    def _planned(self, time: float) -> TaskReference:
        """Without what an entry adds."""
        i = min(bisect_right(self.knots, time), len(self.segments)) - 1
        if i < 0:
            return self._reference(self.position, self.rotation, ZERO_TWIST, ZERO_TWIST)
        path, profile = self.segments[i]
        s, ds, dds = profile.at(time - self.knots[i])
        p, rotation, first, second = path.at(s)
        return self._reference(p, rotation, ds * first, dds * first + ds * ds * second)

    def _reference(self, p: Vector, R: Vector, rates: Vector, changes: Vector) -> TaskReference:
        still = self._still
        told = as_readonly(p), as_readonly(R), as_readonly(rates), as_readonly(changes)
        return TaskReference(self.posture, still, still, *told, self.wrench)

    @cached_property
    def _still(self) -> Vector:
        return as_readonly(np.zeros(self.arm.nv))

    def starting_from(self, now: float, current_reference: Reference) -> CartesianTrajectory:
        """This trajectory entered at ``now`` [s] from the ``current_reference`` reference, without a jump.

        Position, rotation, twist, acceleration, wrench and posture of the current_reference one, of which a
        plain Reference has the tool's by its joints, pass into the planned ones by the end of the
        piece that is under way, or by the start; at least for ENTRY.
        """
        ends = [t for t in self.knots if t > now]
        end = max(ends[0] if ends else now, now + ENTRY)
        planned, told = self._planned(now), to_task_reference(self.arm, current_reference)
        return replace(self, entry=TransitionBlend.between(planned, told, now, end))

    def check(self, arm: ArmModel) -> None:
        """Raise TrajectoryRefused where ``arm`` can not follow, unless ``allow_unreachable`` allows it."""
        if not self.allow_unreachable:
            feasibility.require_feasible(arm, self, self.weights)
