"""Joint trajectories from plain rows, as a JointTrajectory message contains them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Waypoint
from arm_dynamics.control.trajectories.trajectory import (
    FeedForward,
    StopTrajectory,
)
from arm_dynamics.core.arrays import Matrix, Vector, as_readonly
from arm_dynamics.core.errors import TrajectoryRejected
from arm_dynamics.core.state import Reference
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.safety.braking import default_deceleration


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """Options of a trajectory, named as the parameters of joint_trajectory_controller.

    Parameters
    ----------
    end_in_motion : bool
        allow_nonzero_velocity_at_trajectory_end.
    integrate_from : Reference, optional
        With allow_integration_in_goal_trajectories: the reference at ``now``.
    held : (nv,) array, optional
        With allow_partial_joints_goal: configuration [rad or m] at which omitted joints rest.
    now : float
        Time [s].

    """

    end_in_motion: bool = False
    integrate_from: Reference | None = None
    held: Vector | None = None
    now: float = 0.0


NO_OPTIONS = Options()
NO_POSITIONS = (
    "positions: none given; expected positions of every waypoint (velocities alone are integrated"
    " with the parameter allow_integration_in_goal_trajectories true)"
)


def parse_trajectory(
    arm: ArmModel,
    names: Sequence[str],
    times: Sequence[float],
    positions: Sequence[ArrayLike],
    velocities: Sequence[ArrayLike] = (),
    accelerations: Sequence[ArrayLike] = (),
    start: float = 0.0,
    efforts: Sequence[ArrayLike] = (),
    options: Options = NO_OPTIONS,
) -> JointTrajectory:
    """Return a checked trajectory with the joints in the arm's order.

    Parameters
    ----------
    arm : ArmModel
        Arm that is to follow.
    names : Sequence[str]
        Joint names in the order of the columns.
    times : Sequence[float]
        Times of the waypoints after ``start`` [s], increasing.
    positions, velocities, accelerations, efforts : Sequence of (nv,) arrays
        One row per waypoint, or none at all [rad, rad/s, rad/s², N·m; m and N for prismatic
        joints]. With positions, a row of velocities or accelerations may be empty.
    start : float
        Start time [s].
    options : Options
        Permissions that the message itself does not contain.

    Returns
    -------
    JointTrajectory

    Raises
    ------
    TrajectoryRejected
        Naming the joint or waypoint, its value and what is expected.

    """
    if fault := joint_fault(arm, names, partial=options.held is not None):
        raise TrajectoryRejected(fault)
    check_times(times, start)
    q = table("positions", positions, len(times), names)
    rates = (("velocities", velocities), ("accelerations", accelerations))
    v, a = (table(n, rows, len(times), names, optional=q is not None) for n, rows in rates)
    effort = table("efforts", efforts, len(times), names)
    if q is not None and a is not None:
        check_velocities_with(a, v)
    if not options.end_in_motion:
        check_end(v, names)
    held = np.zeros(arm.nv) if options.held is None else options.held
    rest = np.zeros(arm.nv)
    columns = ((q, held), (v, rest), (a, rest), (effort, rest))
    q, v, a, effort = (all_joints(arm, names, table, missing) for table, missing in columns)
    at = [start + time for time in times]
    if q is None:
        if options.integrate_from is None or (v is None and a is None):
            raise TrajectoryRejected(NO_POSITIONS)
        past = min(sum(time <= options.now for time in at), len(at) - 1)
        v, a, effort = (None if x is None else x[past:] for x in (v, a, effort))
        at = at[past:]
        q, v = integrated(options.now, options.integrate_from, at, v, a)
    rows = ([None] * len(at) if x is None else map(_if_given, x) for x in (q, v, a))
    points = tuple(Waypoint(*row) for row in zip(at, *rows, strict=True))
    feedforward = None
    if effort is not None:
        feedforward = FeedForward(tuple(at), tuple(map(as_readonly, effort)))
    return JointTrajectory(points, feedforward, stop_after(arm, points[-1]), start)


def stop_after(arm: ArmModel, last: Waypoint) -> StopTrajectory | None:
    """Return the stop from the velocity of the last waypoint; None if it is at rest."""
    if last.v is None or not last.v.any():
        return None
    end = Reference(last.q, last.v, as_readonly(np.zeros(arm.nv)))
    return StopTrajectory.of(arm, default_deceleration(arm)).starting_from(last.time, end)


def joint_fault(arm: ArmModel, names: Sequence[str], *, partial: bool = False) -> str:
    """Return a message unless ``names`` are the arm's joints, each once; else "".

    With ``partial`` some joints may be omitted, but not all.
    """
    joints, listed = arm.joint_names, list(names)
    missing = [] if partial and listed else [name for name in joints if name not in listed]
    remedy = " (or the parameter allow_partial_joints_goal true)" if listed and not partial else ""
    for kind, odd, also in (
        ("unknown", [name for name in listed if name not in joints], ""),
        ("repeated", sorted({name for name in listed if listed.count(name) > 1}), ""),
        ("missing", missing, remedy),
    ):
        if odd:
            return f"{kind} joint '{odd[0]}'; expected each of {', '.join(joints)} once{also}"
    return ""


def all_joints(
    arm: ArmModel, names: Sequence[str], table: Matrix | None, missing: Vector
) -> Matrix | None:
    """Return a table (n, nv) in the arm's order, with ``missing`` (nv,) for omitted joints.

    A row that is not given, NaN, stays NaN.
    """
    if table is None:
        return None
    whole = np.tile(missing, (len(table), 1))
    whole[np.isnan(table).any(axis=1)] = np.nan
    whole[:, [arm.index(name) for name in names]] = table
    return whole


def _if_given(row: Vector) -> Vector | None:
    return None if np.isnan(row).any() else as_readonly(row)


def check_times(times: Sequence[float], start: float) -> None:
    """Raise TrajectoryRejected unless the times after ``start`` [s] increase from 0 or more."""
    if len(times) == 0:
        raise TrajectoryRejected("trajectory: number of waypoints = 0; expected at least 1")
    previous = -np.inf
    for i, time in enumerate(times):
        if not np.isfinite(time) or time < 0 or start + time <= start + previous:
            raise TrajectoryRejected(
                f"waypoint {i}: time_from_start = {time} s; expected finite, not negative and"
                f" strictly increasing times (previous: {previous})"
            )
        previous = time


def check_velocities_with(a: Matrix, v: Matrix | None) -> None:
    """Raise TrajectoryRejected for a row of accelerations without one of velocities."""
    has_velocity = np.zeros(len(a), dtype=bool) if v is None else np.isfinite(v).all(axis=1)
    for i in np.flatnonzero(np.isfinite(a).all(axis=1) & ~has_velocity).tolist():
        raise TrajectoryRejected(
            f"accelerations: given without velocities at waypoint {i}; expected both"
        )


def check_end(v: Matrix | None, names: Sequence[str]) -> None:
    """Raise TrajectoryRejected if the last waypoint has a velocity."""
    if v is None:
        return
    for j in np.flatnonzero(np.nan_to_num(v[-1])).tolist():
        raise TrajectoryRejected(
            f"joint '{names[j]}': velocity = {v[-1, j]:.6g} rad/s at the last waypoint; expected 0"
            " (or the parameter allow_nonzero_velocity_at_trajectory_end true)"
        )


def table(
    name: str, rows: Sequence[ArrayLike], count: int, names: Sequence[str], *,
    optional: bool = False,
) -> Matrix | None:  # fmt: skip
    """Return rows as an array (count, n); None if all are empty; raises TrajectoryRejected.

    With ``optional`` a row may be empty; it is NaN in the array.
    """
    if not any(np.size(row) for row in rows):
        return None
    if len(rows) != count:
        raise TrajectoryRejected(f"{name}: {len(rows)} rows; expected {count}, one per waypoint")
    with suppress(TypeError, ValueError):  # rows of different lengths are no array
        whole = np.array(rows, dtype=float)
        if whole.ndim == 2 and whole.shape[1] == len(names) and np.isfinite(whole).all():
            return whole
    result = np.full((count, len(names)), np.nan)
    for i, row in enumerate(rows):
        values = np.asarray(row, dtype=float)
        if optional and values.size == 0:
            continue
        if values.shape != (len(names),):
            raise TrajectoryRejected(
                f"waypoint {i}: {values.size} {name}; expected {len(names)}, one per joint"
            )
        for j in np.flatnonzero(~np.isfinite(values)).tolist():
            raise TrajectoryRejected(
                f"joint '{names[j]}': {name} of waypoint {i} = {values[j]}; expected a finite"
                " number"
            )
        result[i] = values
    return result


def integrated(
    now: float, current_reference: Reference, times: Sequence[float], v: Matrix | None,
    a: Matrix | None,
) -> tuple[Matrix, Matrix]:  # fmt: skip
    """Return positions and velocities (n, nv) of waypoints, integrated from a reference.

    v_k = v_k-1 + (a_k-1 + a_k) h / 2 if only accelerations are given, and
    q_k = q_k-1 + (v_k-1 + v_k) h / 2, h = t_k - t_k-1 [s], as joint_trajectory_controller does.
    """
    h, start = np.diff([now, *times])[:, None], current_reference
    rates = np.asarray(v) if v is not None or a is None else _integral(start.v, h, start.a, a)
    return _integral(start.q, h, start.v, rates), rates


def _integral(start: Vector, h: Matrix, rate: Vector, rates: Matrix) -> Matrix:
    """Return the integral (n, nv) of a rate that is linear between its values."""
    means = (np.vstack([rate, rates[:-1]]) + rates) / 2
    values: Matrix = start + np.cumsum(h * means, axis=0)
    return values
