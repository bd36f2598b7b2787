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
from arm_dynamics.control.trajectories.profiles import Profile, no_time
from arm_dynamics.control.trajectories.tool_paths import (
    Curve,
    Line,
    ToolLimits,
    ToolPath,
    Way,
    arc_through,
    circle,
)
from arm_dynamics.control.trajectories.transition_blend import NOTHING, Entry, stopped, task_of
from arm_dynamics.core.argument_checks import expect
from arm_dynamics.core.arrays import Vector, frozen, scalar, vector
from arm_dynamics.core.state import Reference, TaskReference
from arm_dynamics.dynamics.kinematics import pose
from arm_dynamics.dynamics.kinematics.pose_target import rotation_matrix
from arm_dynamics.model.arm_model import ArmModel

ENTRY = 0.1
"""Least time [s] in which a trajectory is entered from elsewhere."""
STILL = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class CartesianTrajectory:
    """Pieces of ``path`` and profile, one after the other from ``begin`` [s] on.

    ``position`` (3,) [m] and ``rotation`` (3, 3) of the tool before the first piece. ``posture``
    (nv,) and ``wrench`` (6,) [N, N·m] are told at all times. ``weights`` (6,), as inverse
    kinematics takes them, say along which axes the arm must be able to follow; None: those that
    it controls. With ``beyond`` a check lets ways pass that the arm can not follow.
    """

    arm: ArmModel
    position: Vector
    rotation: Vector
    posture: Vector
    begin: float = 0.0
    pieces: tuple[tuple[Way, Profile], ...] = ()
    wrench: Vector = field(default_factory=lambda: NOTHING)
    weights: Vector | None = None
    beyond: bool = False
    entry: Entry | None = None

    @classmethod
    def rest(cls, arm: ArmModel, q: ArrayLike, start: float = 0.0) -> CartesianTrajectory:
        """Stand where the tool is with the joints at ``q`` (nv,), which are the posture too."""
        at = expect(ArmModel, "arm", arm)
        return cls(at, *pose(at, q), vector("q", q, at.nv), scalar("start [s]", start))

    @classmethod
    def rest_at(
        cls, arm: ArmModel, position: ArrayLike, rotation: ArrayLike, posture: ArrayLike,
        start: float = 0.0,
    ) -> CartesianTrajectory:  # fmt: skip
        """Stand with the tool at ``position`` (3,) [m] and ``rotation`` (3, 3)."""
        arm = expect(ArmModel, "arm", arm)
        where = vector("position", position, 3), rotation_matrix("rotation", rotation)
        return cls(arm, *where, vector("posture", posture, arm.nv), scalar("start [s]", start))

    def line(
        self, to: ArrayLike, timing: Profile | ToolLimits, rotation: ArrayLike | None = None
    ) -> CartesianTrajectory:
        """Go on straight to ``to`` (3,) [m], turning to ``rotation`` (3, 3), or keeping it."""
        before = self._last[0]
        return self._go(Line(before, frozen(vector("to", to, 3) - before)), timing, rotation)

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
        length = scalar("duration [s]", duration, above=0)
        position, rotation = self._last
        still = ToolPath(Line(position, NOTHING[:3]), rotation, NOTHING[:3])
        return replace(self, pieces=(*self.pieces, (still, Profile((0.0,), (STILL,), length))))

    def _go(
        self, curve: Curve, timing: Profile | ToolLimits, rotation: ArrayLike | None
    ) -> CartesianTrajectory:
        path = ToolPath.to(curve, self._last[1], rotation)
        profile = timing.profile(path) if isinstance(timing, ToolLimits) else timing
        if profile is None:  # limits allow a way of no length in no time
            return self
        expect(Profile, "timing", profile, "cubic(T), quintic(T), trapezoidal(...) or ToolLimits")
        return replace(self, pieces=(*self.pieces, (path, profile)))

    @cached_property
    def _last(self) -> tuple[Vector, Vector]:
        """Where the last piece ends."""
        if not self.pieces:
            return self.position, self.rotation
        position, rotation, _, _ = self.pieces[-1][0].at(1.0)
        return frozen(position), frozen(rotation)

    @cached_property
    def knots(self) -> tuple[float, ...]:
        """Times [s] at which a piece begins, and the end of the last one."""
        return tuple(accumulate((p.duration for _, p in self.pieces), initial=self.begin))

    @property
    def start(self) -> float:
        """Time [s] from which on it moves: the first piece's, or that of its entry."""
        return self.begin if self.entry is None else self.entry.begin

    @property
    def end(self) -> float:
        """Time [s] from which on the tool stands still."""
        return self.knots[-1] if self.entry is None else max(self.knots[-1], self.entry.end)

    def at(self, time: float) -> TaskReference:
        """What the tool should do at ``time`` [s]; it rests before the start and after the end.

        Raises InvalidValue for NaN.
        """
        if isnan(time):
            raise no_time(time)
        if self.entry is None or time >= self.entry.end:
            return self._planned(time)
        if time < self.entry.begin:
            return stopped(self.at(self.entry.begin))
        return self.entry.added(self._planned(time), time)

    def _planned(self, time: float) -> TaskReference:
        """Without what an entry adds."""
        i = min(bisect_right(self.knots, time), len(self.pieces)) - 1
        if i < 0:
            return self._reference(self.position, self.rotation, NOTHING, NOTHING)
        path, profile = self.pieces[i]
        s, ds, dds = profile.at(time - self.knots[i])
        p, rotation, first, second = path.at(s)
        return self._reference(p, rotation, ds * first, dds * first + ds * ds * second)

    def _reference(self, p: Vector, R: Vector, rates: Vector, changes: Vector) -> TaskReference:
        still = self._still
        told = frozen(p), frozen(R), frozen(rates), frozen(changes)
        return TaskReference(self.posture, still, still, *told, self.wrench)

    @cached_property
    def _still(self) -> Vector:
        return frozen(np.zeros(self.arm.nv))

    def after(self, now: float, present: Reference) -> CartesianTrajectory:
        """This trajectory entered at ``now`` [s] from the ``present`` reference, without a jump.

        Position, rotation, twist, acceleration, wrench and posture of the present one, of which a
        plain Reference has the tool's by its joints, pass into the planned ones by the end of the
        piece that is under way, or by the start; at least for ENTRY.
        """
        ends = [t for t in self.knots if t > now]
        end = max(ends[0] if ends else now, now + ENTRY)
        planned, told = self._planned(now), task_of(self.arm, present)
        return replace(self, entry=Entry.between(planned, told, now, end))

    def check(self, arm: ArmModel) -> None:
        """Raise TrajectoryRefused where ``arm`` can not follow, unless ``beyond`` allows it."""
        if not self.beyond:
            feasibility.check(arm, self, self.weights)
