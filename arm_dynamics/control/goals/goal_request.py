"""A goal as somebody asks for it, and what is refused of it before anything moves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.control.goals.goal import (
    Constraints,
    ErrorCode,
    GoalTolerances,
    ToleranceOverrides,
)
from arm_dynamics.control.trajectories.joint_trajectory import (
    NO_OPTIONS,
    JointTrajectory,
    Options,
    parse_trajectory,
)
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import ArmDynamicsError, GoalRejected
from arm_dynamics.model.arm_model import ArmModel

AT_ONCE = 0.05
"""Time [s] that a single waypoint has which is due the moment it comes."""


@dataclass(frozen=True, slots=True, eq=False)
class GoalRequest:
    """Rows by waypoint, columns in the order of ``names``; times [s] from ``start`` [s].

    ``start`` 0 is now. ``path`` and ``goal`` are tolerances by joint, ``goal_time`` [s] 0 is the
    default and a negative one waits for ever.
    """

    names: Sequence[str]
    times: Sequence[float]
    positions: Sequence[ArrayLike]
    velocities: Sequence[ArrayLike] = ()
    accelerations: Sequence[ArrayLike] = ()
    efforts: Sequence[ArrayLike] = ()
    start: float = 0.0
    path: ToleranceOverrides = field(default_factory=dict)
    goal: ToleranceOverrides = field(default_factory=dict)
    goal_time: float = 0.0


@contextmanager
def rejecting_with(code: ErrorCode) -> Iterator[None]:
    """Turn any of the package's errors into GoalRefused with this code."""
    try:
        yield
    except GoalRejected:
        raise
    except ArmDynamicsError as error:
        raise GoalRejected(code, str(error)) from error


def check_joints(arm: ArmModel, names: Sequence[str], *, partial: bool) -> None:
    """Raises GoalRefused INVALID_JOINTS for names that are not the arm's, each once.

    With ``partial`` some of the arm's may be left out, but not all.
    """
    known, given = arm.joint_names, list(names)
    missing = [] if partial and given else [name for name in known if name not in given]
    for kind, odd in (
        ("unknown", [name for name in given if name not in known]),
        ("repeated", sorted({name for name in given if given.count(name) > 1})),
        ("missing", missing),
    ):
        if odd:
            raise GoalRejected(
                ErrorCode.INVALID_JOINTS,
                f"{kind} joint '{odd[0]}'; each of {', '.join(known)} is expected once",
            )


def fill_missing_joints(arm: ArmModel, request: GoalRequest, q: Vector) -> GoalRequest:
    """The same for all joints: those that are not named stay at ``q`` (nv,)."""
    absent = [name for name in arm.joint_names if name not in request.names]
    if not absent:
        return request
    held = [q[arm.index(name)] for name in absent]
    still = [0.0] * len(absent)
    return replace(
        request,
        names=[*request.names, *absent],
        positions=[_extended(row, held) for row in request.positions],
        velocities=[_extended(row, still) for row in request.velocities],
        accelerations=[_extended(row, still) for row in request.accelerations],
        efforts=[_extended(row, still) for row in request.efforts],
    )


def _extended(row: ArrayLike, more: list[float]) -> ArrayLike:
    """A row with more columns; one that is left empty stays so."""
    given = np.asarray(row, dtype=float)
    return np.concatenate([given, more]) if given.size else given


def build_trajectory(
    arm: ArmModel, request: GoalRequest, now: float, options: Options = NO_OPTIONS
) -> JointTrajectory:
    """The trajectory of a request for all joints; raises GoalRefused.

    A single waypoint due at once has AT_ONCE, as far as the joints' limits allow.
    """
    at_once = not request.start and list(request.times) == [0.0]
    with rejecting_with(ErrorCode.INVALID_GOAL):
        trajectory = parse_trajectory(
            arm,
            request.names,
            [AT_ONCE] if at_once else request.times,
            request.positions,
            request.velocities,
            request.accelerations,
            start=request.start or now,
            efforts=request.efforts,
            options=options,
        )
    if request.start and trajectory.end <= now:
        raise GoalRejected(
            ErrorCode.OLD_HEADER_TIMESTAMP,
            f"the last waypoint is due at {trajectory.end:.6g} s and it is {now:.6g} s: a time"
            f" later than now is expected, or the stamp 0",
        )
    return trajectory


def goal_tolerances(arm: ArmModel, request: GoalRequest, default: Constraints) -> GoalTolerances:
    """Tolerances of a request, else the default ones; raises GoalRefused."""
    with rejecting_with(ErrorCode.INVALID_GOAL):
        path = default.path.overridden_by("path", arm.joint_names, request.path)
        goal = default.goal.overridden_by("goal", arm.joint_names, request.goal)
    wait = request.goal_time or default.goal_time
    return GoalTolerances(path, goal, max(wait, 0.0))
