"""Positions of waypoints that give velocities or accelerations alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.state import Reference


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
