"""Whether the joints can follow a motion of the tool: found before it starts, with time and amount.

The joints are led along by inverse kinematics from sample to sample, within their limits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from arm_dynamics.control.trajectories.joint_splines import spline_trajectory
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Trajectory
from arm_dynamics.control.trajectories.path_inverse_kinematics import (
    PERIOD,
    TOLERANCE,
    PathFault,
    PathInverseKinematics,
    reached,
    singular_spans,
    true_runs,
    unreachable_span,
    velocity_spans,
)
from arm_dynamics.core.arrays import Vector, as_readonly, check_float
from arm_dynamics.core.errors import TrajectoryRejected
from arm_dynamics.dynamics.kinematics.inverse_kinematics import IkSolution
from arm_dynamics.model.arm_argument import requires_arm
from arm_dynamics.model.arm_model import ArmModel

REPORT_TIME = 1.0
"""Time [s] beyond a joint that is too fast in which a part out of reach is told instead."""
WIDER = 1.2
"""Ratio of two intervals between looks ahead from where a way is out of reach on."""
IkSample = tuple[float, IkSolution]
"""Time [s], and what inverse kinematics found there."""


@dataclass(frozen=True, slots=True, eq=False)
class FeasibilityReport:
    """Joints q (n, nv) at ``times`` (n,) [s], ``missed`` [m] and ``turned`` [rad] (n,) there.

    ``parts`` in the order of time; those of kind "singular" need not be faults.
    """

    times: Vector
    q: Vector
    missed: Vector
    turned: Vector
    parts: tuple[PathFault, ...]

    @property
    def faults(self) -> tuple[PathFault, ...]:
        """The parts that the arm can not follow."""
        return tuple(part for part in self.parts if part.kind != "singular")

    def joints(self) -> JointTrajectory:
        """The joints' motion as a smooth spline; raises TrajectoryRefused for a fault."""
        for part in self.faults:
            raise TrajectoryRejected(part.text)
        return spline_trajectory(list(self.q), self.times)


@requires_arm
def require_feasible(arm: ArmModel, trajectory: Trajectory, weights: Vector | None = None) -> None:
    """Raise TrajectoryRefused where ``solve_feasible`` does."""
    solve_feasible(arm, trajectory, weights)


@requires_arm
def solve_feasible(
    arm: ArmModel,
    trajectory: Trajectory,
    weights: Vector | None = None,
    pause: Callable[[], None] | None = None,
) -> FeasibilityReport:
    """What ``solve_along`` finds of a trajectory without faults, but for its singular parts.

    Raises TrajectoryRefused telling the first part out of reach, else the first at which a joint
    is too fast, and looks no further: how long and how far a part is out of reach comes from a few
    looks ahead, WIDER and wider apart. ``pause`` is called after every sample.
    """
    leader, late = PathInverseKinematics(arm, trajectory, weights), np.inf
    for time in leader.samples(PERIOD):
        if not reached(leader.found[-1]):
            raise TrajectoryRejected(_miss_ahead(leader).text)
        if late == np.inf and leader.velocity_ratio() > 1 + 1e-6:
            late = time + REPORT_TIME
        if time >= late:
            break
        if pause is not None:
            pause()
    found = _following(leader, [])
    for part in found.faults:
        raise TrajectoryRejected(part.text)
    return found


@requires_arm
def solve_along(
    arm: ArmModel,
    trajectory: Trajectory,
    weights: Vector | None = None,
    period: float = PERIOD,
) -> FeasibilityReport:
    """Lead the joints along a trajectory of TaskReferences, from its start's posture.

    ``weights`` (6,) of inverse kinematics say which axes count; None: those that the arm
    controls. What is nearest is followed where a pose is out of reach. ``period`` [s] is the
    longest time between samples of a tool that moves by more than some millimetres in it; the
    edges of parts out of reach are found to 1 ms.
    Raises TrajectoryRefused for a motion of more than MOST periods.
    """
    leader = PathInverseKinematics(arm, trajectory, weights)
    for _ in leader.samples(check_float("period [s]", period, above=0)):
        pass
    q = np.array([solution.q for solution in leader.found])
    nearly = singular_spans(arm, np.array(leader.times), q, leader.weights > 0)
    return _following(leader, [*_misses(leader), *nearly])


def _following(leader: PathInverseKinematics, parts: list[PathFault]) -> FeasibilityReport:
    """All that was found, with the joints that were too fast."""
    times, found = as_readonly(leader.times), leader.found
    q = as_readonly([solution.q for solution in found])
    missed, turned = (
        as_readonly([getattr(s, n) for s in found]) for n in ("position_error", "orientation_error")
    )
    fast = velocity_spans(leader.arm, times, q, np.maximum(missed, turned) <= TOLERANCE)
    every = sorted([*parts, *fast], key=lambda part: part.begin)
    return FeasibilityReport(times, q, missed, turned, tuple(every))


def _misses(leader: PathInverseKinematics) -> list[PathFault]:
    """Runs of samples that were missed."""
    samples, parts = list(zip(leader.times, leader.found, strict=True)), []
    for first, last in true_runs([not reached(s) for s in leader.found]):
        before = samples[first - 1] if first > 0 else None
        after = samples[last + 1] if last + 1 < len(samples) else None
        parts.append(_part(leader, samples[first : last + 1], before, after))
    return parts


def _miss_ahead(leader: PathInverseKinematics) -> PathFault:
    """The part out of reach that the latest sample begins, from looks ahead."""
    samples = list(zip(leader.times[-2:], leader.found[-2:], strict=True))
    before, missed = samples[0] if len(samples) > 1 else None, samples[-1:]
    time, end, step = leader.times[-1], leader.trajectory.end, PERIOD
    while time < end:
        time, step = min(time + step, end), WIDER * step
        found = time, leader.solve_next(leader.target(time), missed[-1][1])
        if reached(found[1]):
            return _part(leader, missed, before, found)
        missed.append(found)
    return _part(leader, missed, before, None)


def _part(
    leader: PathInverseKinematics,
    missed: list[IkSample],
    before: IkSample | None,
    after: IkSample | None,
) -> PathFault:
    """A run of samples that were missed, between two that were not, where there are such."""
    begin = missed[0][0] if before is None else leader.reachability_boundary(missed[0], before)
    end = missed[-1][0] if after is None else leader.reachability_boundary(missed[-1], after)
    at, worst = max(
        missed, key=lambda sample: max(sample[1].position_error, sample[1].orientation_error)
    )
    return unreachable_span(leader.arm, begin, end, at, worst)
