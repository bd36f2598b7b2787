"""Whether the joints can follow a motion of the tool: found before it starts, with time and amount.

The joints are led along by inverse kinematics from sample to sample, within their limits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from arm_dynamics.control.trajectories.joint_splines import smooth
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Trajectory
from arm_dynamics.control.trajectories.path_inverse_kinematics import (
    PERIOD,
    TOLERANCE,
    Part,
    WayLeader,
    out_of_reach,
    reached,
    runs,
    singular,
    too_fast,
)
from arm_dynamics.core.arrays import Vector, frozen, scalar
from arm_dynamics.core.errors import TrajectoryRefused
from arm_dynamics.dynamics.kinematics.inverse_kinematics import Solution
from arm_dynamics.model.arm_argument import takes_arm
from arm_dynamics.model.arm_model import ArmModel

PATIENCE = 1.0
"""Time [s] beyond a joint that is too fast in which a part out of reach is told instead."""
WIDER = 1.2
"""Ratio of two intervals between looks ahead from where a way is out of reach on."""
Sample = tuple[float, Solution]
"""Time [s], and what inverse kinematics found there."""


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
    """Raise TrajectoryRefused where ``led`` does."""
    led(arm, trajectory, weights)


@takes_arm
def led(
    arm: ArmModel,
    trajectory: Trajectory,
    weights: Vector | None = None,
    pause: Callable[[], None] | None = None,
) -> Following:
    """What ``follow`` finds of a trajectory without faults, but for its singular parts.

    Raises TrajectoryRefused telling the first part out of reach, else the first at which a joint
    is too fast, and looks no further: how long and how far a part is out of reach comes from a few
    looks ahead, WIDER and wider apart. ``pause`` is called after every sample.
    """
    leader, late = WayLeader(arm, trajectory, weights), np.inf
    for time in leader.walk(PERIOD):
        if not reached(leader.found[-1]):
            raise TrajectoryRefused(_miss_ahead(leader).text)
        if late == np.inf and leader.share() > 1 + 1e-6:
            late = time + PATIENCE
        if time >= late:
            break
        if pause is not None:
            pause()
    found = _following(leader, [])
    for part in found.faults:
        raise TrajectoryRefused(part.text)
    return found


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
    longest time between samples of a tool that moves by more than some millimetres in it; the
    edges of parts out of reach are found to 1 ms.
    Raises TrajectoryRefused for a motion of more than MOST periods.
    """
    leader = WayLeader(arm, trajectory, weights)
    for _ in leader.walk(scalar("period [s]", period, above=0)):
        pass
    q = np.array([solution.q for solution in leader.found])
    nearly = singular(arm, np.array(leader.times), q, leader.weights > 0)
    return _following(leader, [*_misses(leader), *nearly])


def _following(leader: WayLeader, parts: list[Part]) -> Following:
    """All that was found, with the joints that were too fast."""
    times, found = frozen(leader.times), leader.found
    q = frozen([solution.q for solution in found])
    missed, turned = (frozen([getattr(s, n) for s in found]) for n in ("missed", "turned"))
    fast = too_fast(leader.arm, times, q, np.maximum(missed, turned) <= TOLERANCE)
    every = sorted([*parts, *fast], key=lambda part: part.begin)
    return Following(times, q, missed, turned, tuple(every))


def _misses(leader: WayLeader) -> list[Part]:
    """Runs of samples that were missed."""
    samples, parts = list(zip(leader.times, leader.found, strict=True)), []
    for first, last in runs([not reached(s) for s in leader.found]):
        before = samples[first - 1] if first > 0 else None
        after = samples[last + 1] if last + 1 < len(samples) else None
        parts.append(_part(leader, samples[first : last + 1], before, after))
    return parts


def _miss_ahead(leader: WayLeader) -> Part:
    """The part out of reach that the latest sample begins, from looks ahead."""
    samples = list(zip(leader.times[-2:], leader.found[-2:], strict=True))
    before, missed = samples[0] if len(samples) > 1 else None, samples[-1:]
    time, end, step = leader.times[-1], leader.trajectory.end, PERIOD
    while time < end:
        time, step = min(time + step, end), WIDER * step
        found = time, leader.onward(leader.target(time), missed[-1][1])
        if reached(found[1]):
            return _part(leader, missed, before, found)
        missed.append(found)
    return _part(leader, missed, before, None)


def _part(
    leader: WayLeader, missed: list[Sample], before: Sample | None, after: Sample | None
) -> Part:
    """A run of samples that were missed, between two that were not, where there are such."""
    begin = missed[0][0] if before is None else leader.edge(missed[0], before)
    end = missed[-1][0] if after is None else leader.edge(missed[-1], after)
    at, worst = max(missed, key=lambda sample: max(sample[1].missed, sample[1].turned))
    return out_of_reach(leader.arm, begin, end, at, worst)
