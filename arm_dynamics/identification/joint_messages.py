"""Values of joints from messages that contain all joints, or only some of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from arm_dynamics.core.arrays import FloatArray, Matrix, Vector

LARGEST_DISTANCE = 1.5
"""Distance to the nearest message of a joint, in its median periods, up to which it counts."""


def joint_values(
    joints: Sequence[str], names: Sequence[str], fields: Sequence[Sequence[float]]
) -> Matrix:
    """Return the values (fields, joints) of a message; NaN where it contains none."""
    found = np.full((len(fields), len(joints)), np.nan)
    at = [(i, names.index(joint)) for i, joint in enumerate(joints) if joint in names]
    for row, values in zip(found, fields, strict=True):
        if len(values) == len(names):
            for i, k in at:
                row[i] = values[k]
    return found


def has_all_joints(rows: Sequence[Matrix]) -> bool:
    """Return whether messages (fields, joints) together contain positions of all joints."""
    found = np.zeros(rows[0].shape[1], dtype=bool)
    for row in rows:
        found |= np.isfinite(row[0])
        if found.all():
            return True
    return False


def combined(time: Vector, values: FloatArray) -> tuple[Vector, FloatArray]:
    """Return the values of all joints at common stamps.

    If messages contain all joints, the others are dropped. Otherwise joints are interpolated
    linearly to the stamps of the joint with the fewest messages. Values are NaN before the first
    and after the last message of their joint, and more than LARGEST_DISTANCE periods from any.

    Parameters
    ----------
    time : Vector
        Stamps (n,) [s] of the messages.
    values : FloatArray
        Values (n, fields, joints) with positions first; NaN where a message contains none.

    Returns
    -------
    tuple[Vector, FloatArray]
        Stamps (m,) [s] and values (fields, m, joints).

    """
    has = np.isfinite(values[:, 0])
    complete = has.all(axis=1)
    if complete.any():
        return time[complete], np.moveaxis(values[complete], 1, 0)
    order = np.argsort(time, kind="stable")  # messages of different publishers
    time, values, has = time[order], values[order], has[order]
    common = np.unique(time[has[:, np.argmin(has.sum(axis=0))]])
    found = np.full((values.shape[1], common.size, values.shape[2]), np.nan)
    for field, row in enumerate(found):
        for i in range(values.shape[2]):
            known = np.isfinite(values[:, field, i])
            if known.sum() > 1:
                row[:, i] = _interpolated(common, time[known], values[known, field, i])
    return common, found


def _interpolated(at: Vector, time: Vector, values: Vector) -> Vector:
    """Return values (n,) of stamps ``time`` at other stamps; NaN outside and in gaps."""
    found: Vector = np.interp(at, time, values, np.nan, np.nan)
    after = np.clip(np.searchsorted(time, at), 1, time.size - 1)
    distance = np.minimum(np.abs(at - time[after - 1]), np.abs(time[after] - at))
    found[distance > LARGEST_DISTANCE * np.median(np.diff(time))] = np.nan
    return found
