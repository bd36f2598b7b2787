"""Whether the joints can follow a motion of the tool: found before it starts, with time and amount.

The joints are led along by inverse kinematics from sample to sample, within their limits.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

from arm_dynamics.arrays import Vector, frozen, scalar, vector
from arm_dynamics.errors import TrajectoryRefused
from arm_dynamics.kinematics.inverse import Solution, nearest_reachable
from arm_dynamics.kinematics.tool_motion import controlled_axes
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.given_arm import takes_arm
from arm_dynamics.state import TaskReference
from arm_dynamics.trajectories.joint_moves import smooth
from arm_dynamics.trajectories.joint_trajectory import JointTrajectory, Trajectory
from arm_dynamics.trajectories.way_parts import (
    TOLERANCE,
    Part,
    out_of_reach,
    reached,
    runs,
    singular,
    too_fast,
)

PERIOD = 0.02
"""Longest time [s] between two samples."""
FEWEST, MOST = 32, 50_000
"""Samples of a short way, and the most of a long one: each is an inverse kinematics."""
EDGE = 1e-3
"""Time [s] to which the edge of a part out of reach is found."""
FINE = 1e-8
"""What inverse kinematics aims at [m, rad]."""


@dataclass(frozen=True, slots=True, eq=False)
class Following:
    """Joints q (n, nv) at ``times`` (n,) [s], ``missed`` [m] and ``turned`` [rad] (n,) there.

    ``parts`` in the order of time; those of kind "singular" need not be faults.
    """

    times: Vector
    q: Vector
    missed: Vector
    turned: Vector
    parts: tuple[Part, ...]

    @property
    def faults(self) -> tuple[Part, ...]:
        """The parts that the arm can not follow."""
        return tuple(part for part in self.parts if part.kind != "singular")

    def joints(self) -> JointTrajectory:
        """The joints' motion as a smooth spline; raises TrajectoryRefused for a fault."""
        for part in self.faults:
            raise TrajectoryRefused(part.text)
        return smooth(list(self.q), self.times)


@takes_arm
def check(arm: ArmModel, trajectory: Trajectory, weights: Vector | None = None) -> None:
    """Raise TrajectoryRefused telling the first part that ``follow`` finds at fault."""
    for part in follow(arm, trajectory, weights).faults:
        raise TrajectoryRefused(part.text)


@takes_arm
def follow(
    arm: ArmModel,
    trajectory: Trajectory,
    weights: Vector | None = None,
    period: float = PERIOD,
) -> Following:
    """Lead the joints along a trajectory of TaskReferences, from its start's posture.

    ``weights`` (6,) of inverse kinematics say which axes count; None: those that the arm
    controls. What is nearest is followed where a pose is out of reach. ``period`` [s] is the
    longest time between samples; the edges of parts out of reach are found to 1 ms.
    Raises TrajectoryRefused for a motion of more than MOST periods.
    """
    leader = _Leader(arm, trajectory, weights)
    times = _samples(trajectory, scalar("period [s]", period, above=0))
    found = [leader.first(float(times[0]))]
    for time in times[1:]:
        found.append(leader.at(float(time), found[-1].q))
    q = np.array([solution.q for solution in found])
    missed, turned = (np.array([getattr(s, n) for s in found]) for n in ("missed", "turned"))
    parts = [
        *leader.unreached(times, found),
        *too_fast(arm, times, q, np.maximum(missed, turned) <= TOLERANCE),
        *singular(arm, times, q, leader.weights > 0),
    ]
    parts.sort(key=lambda part: part.begin)
    return Following(frozen(times), frozen(q), frozen(missed), frozen(turned), tuple(parts))


def _samples(trajectory: Trajectory, period: float) -> Vector:
    """Times [s] from the trajectory's start to its end."""
    span = trajectory.end - trajectory.start
    if not span <= MOST * period:
        raise TrajectoryRefused(
            f"the motion takes {span:.6g} s: at most {MOST * period:g} s is allowed, for every"
            f" {period:g} s of it is looked at"
        )
    count = max(ceil(span / period), FEWEST if span > 0 else 0)
    return trajectory.start + span * np.arange(count + 1) / max(count, 1)


class _Leader:
    """Inverse kinematics along one trajectory."""

    def __init__(self, arm: ArmModel, trajectory: Trajectory, weights: Vector | None) -> None:
        self.arm, self.trajectory = arm, trajectory
        axes = np.array(controlled_axes(arm), dtype=float)
        self.weights = axes if weights is None else vector("weights", weights, 6)

    def target(self, time: float) -> TaskReference:
        """What the tool should do; raises TrajectoryRefused for a motion of joints."""
        asked = self.trajectory.at(time)
        if not isinstance(asked, TaskReference):
            raise TrajectoryRefused("this trajectory is one of joints: one of the tool is expected")
        return asked

    def first(self, time: float) -> Solution:
        """From the posture; from elsewhere too where that fails."""
        posture = self.target(time).q
        found = self.at(time, posture)
        return found if reached(found) else self.at(time, posture, restarts=10)

    def at(self, time: float, q: Vector, restarts: int = 0) -> Solution:
        """From ``q`` to what is asked at ``time``, or the nearest to it."""
        asked = self.target(time)
        rotation = asked.rotation if self.weights[3:].any() else None
        return nearest_reachable(
            self.arm, asked.position, rotation, start=q, weights=self.weights,
            tolerance=FINE, restarts=restarts,
        )  # fmt: skip

    def unreached(self, times: Vector, found: list[Solution]) -> list[Part]:
        """Runs of samples that were missed."""
        parts = []
        for first, last in runs([not reached(s) for s in found]):
            worst = max(range(first, last + 1), key=lambda k: max(found[k].missed, found[k].turned))
            begin = self._edge(times, found, first, first - 1)
            end = self._edge(times, found, last, last + 1)
            parts.append(out_of_reach(self.arm, begin, end, float(times[worst]), found[worst]))
        return parts

    def _edge(self, times: Vector, found: list[Solution], bad: int, good: int) -> float:
        """Time between a missed sample and its neighbour from which on it is reached."""
        if not 0 <= good < len(times):
            return float(times[bad])
        out, inside, q = float(times[bad]), float(times[good]), found[good].q
        while abs(out - inside) > EDGE:
            middle = (out + inside) / 2
            solution = self.at(middle, q)
            out, inside = (out, middle) if reached(solution) else (middle, inside)
        return out
