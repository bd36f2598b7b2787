"""Checks of the rows and times that a trajectory is made of.

Positions of waypoints that give velocities or accelerations alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import TrajectoryRejected
from arm_dynamics.core.state import Reference
from arm_dynamics.model.arm_model import ArmModel


def joint_order(arm: ArmModel, names: Sequence[str]) -> list[int]:
    """Column of each of the arm's joints in ``names``."""
    for kind, odd in (
        ("unknown", [n for n in names if n not in arm.joint_names]),
        ("repeated", sorted({n for n in names if list(names).count(n) > 1})),
        ("missing", [n for n in arm.joint_names if n not in names]),
    ):
        if odd:
            raise TrajectoryRejected(
                f"{kind} joint '{odd[0]}'; each of {', '.join(arm.joint_names)} is expected once"
            )
    return [list(names).index(n) for n in arm.joint_names]


def check_times(times: Sequence[float], start: float) -> None:
    """Raise TrajectoryRefused unless times from ``start`` [s] increase, none of them negative."""
    if len(times) == 0:
        raise TrajectoryRejected("no waypoints; at least one is expected")
    previous = -np.inf
    for i, time in enumerate(times):
        if not np.isfinite(time) or time < 0 or start + time <= start + previous:
            raise TrajectoryRejected(
                f"waypoint {i}: time_from_start {time} s; finite, not negative and strictly"
                f" increasing times are expected (previous: {previous})"
            )
        previous = time


def check_end(v: Vector | None, names: Sequence[str]) -> None:
    """A trajectory stands still at its end, unless it is allowed to end in motion."""
    if v is None:
        return
    for j in np.flatnonzero(v[-1]).tolist():
        raise TrajectoryRejected(
            f"joint '{names[j]}': velocity {v[-1, j]:.6g} rad/s at the last waypoint; 0 expected"
            " (or the parameter allow_nonzero_velocity_at_trajectory_end true)"
        )


def table(name: str, rows: Sequence[ArrayLike], count: int, names: Sequence[str]) -> Vector | None:
    """Rows as (count, nv); None when none of them has an entry."""
    if not any(np.size(row) for row in rows):
        return None
    if len(rows) != count:
        raise TrajectoryRejected(f"{name}: {len(rows)} rows for {count} waypoints")
    whole = _even(rows)
    if whole is not None and whole.shape[1] == len(names) and np.isfinite(whole).all():
        return whole
    for i, row in enumerate(rows):
        values = np.asarray(row, dtype=float)
        if values.shape != (len(names),):
            raise TrajectoryRejected(f"waypoint {i}: {values.size} {name} for {len(names)} joints")
        for j in np.flatnonzero(~np.isfinite(values)).tolist():
            raise TrajectoryRejected(
                f"joint '{names[j]}': {name} of waypoint {i} is {values[j]}; finite expected"
            )
    return np.array(rows, dtype=float)


def _even(rows: Sequence[ArrayLike]) -> Vector | None:
    """Rows of one length as one array."""
    try:
        found = np.array(rows, dtype=float)
    except (TypeError, ValueError):
        return None
    return found if found.ndim == 2 else None


def integrated(
    now: float, present: Reference, times: Sequence[float], v: Vector | None, a: Vector | None
) -> tuple[Vector, Vector]:
    """Return positions and velocities (n, nv) of waypoints, from the ``present`` reference on.

    v_k = v_k-1 + (a_k-1 + a_k) h / 2 where only accelerations are given, and
    q_k = q_k-1 + (v_k-1 + v_k) h / 2, h = t_k - t_k-1 [s], as joint_trajectory_controller does.
    """
    h = np.diff([now, *times])[:, None]
    rates = _from(present.v, h, present.a, a) if v is None and a is not None else np.asarray(v)
    return _from(present.q, h, present.v, rates), rates


def _from(begin: Vector, h: Vector, rate: Vector, rates: Vector) -> Vector:
    """Return the integral of a rate that is linear between its values."""
    means = (np.vstack([rate, rates[:-1]]) + rates) / 2
    found: Vector = begin + np.cumsum(h * means, axis=0)
    return found
