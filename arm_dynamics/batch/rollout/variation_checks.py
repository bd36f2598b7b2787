"""What differs between the lanes of a batch, checked: name → (lanes, size)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.batch.rollout import variation
from arm_dynamics.batch.rollout.inputs import check_array
from arm_dynamics.core.argument_checks import check_type
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.model.arm_model import ArmModel


def variations(
    arm: ArmModel, vary: Mapping[str, ArrayLike] | None, lanes: int
) -> dict[str, Vector]:
    """What differs between the lanes: name → (lanes, size).

    Takes (lanes,) where a lane has one number or all joints share it, else (lanes, nv). Raises
    UnknownName listing what may vary, InvalidValue for another shape and for a number that the
    arm of its lane refuses (the lane is named).
    """
    found = {}
    for name, values in check_mapping(vary).items():
        found[name] = by_rollout(name, values, lanes, variation.values_per_rollout(arm, name))
        if name in ("link.mass", "link.inertia") and (found[name] <= 0).any():
            lane, i = np.argwhere(found[name] <= 0)[0].tolist()
            joint, value = arm.joint_names[i], found[name][lane, i]
            raise InvalidValue(
                f"lane {lane}: {name} of joint '{joint}' = {value:g}: must be above 0"
            )
    if found:
        _require_possible(arm, found)
    return found


def check_mapping(vary: Mapping[str, ArrayLike] | None) -> Mapping[str, ArrayLike]:
    """``vary`` when it is a mapping from names; raises InvalidValue."""
    told = check_type(
        Mapping,  # type: ignore[type-abstract]
        "vary",
        {} if vary is None else vary,
        "{'payload': [0.1, 0.2]} is one",
    )
    for name in told:
        check_type(str, "name in vary", name)
    return told


def _require_possible(arm: ArmModel, found: Mapping[str, Vector]) -> None:
    """Two arms with all that is least and largest stand for the lanes between: ranges are that.

    Raises InvalidValue naming the lane.
    """
    try:
        for end in (np.min, np.max):
            variation.rollout_arm(
                arm, {name: end(values, axis=0) for name, values in found.items()}
            )
    except InvalidValue:
        _name_impossible(arm, found)


def _name_impossible(arm: ArmModel, found: Mapping[str, Vector]) -> None:
    for lane in _extremes(found):
        try:
            variation.rollout_arm(arm, {n: v[lane] for n, v in found.items()})
        except InvalidValue as error:
            raise InvalidValue(f"lane {lane}: {error}") from error


def _extremes(varied: Mapping[str, Vector]) -> list[int]:
    """Lanes that hold the least and the largest of each varied number."""
    ends = [f(values, axis=0) for values in varied.values() for f in (np.argmin, np.argmax)]
    return sorted({int(lane) for end in ends for lane in end})


def by_rollout(name: str, values: ArrayLike, lanes: int, size: int) -> Vector:
    """(lanes, size) from (lanes,) or (lanes, size); raises InvalidValue."""
    x = check_array(name, values)
    x = x[:, None] if x.ndim == 1 else x
    if x.shape not in ((lanes, 1), (lanes, size)):
        allowed = f"({lanes},) or ({lanes}, {size})"
        raise InvalidValue(f"{name}: shape {np.shape(values)} given, {allowed} expected")
    return np.array(np.broadcast_to(x, (lanes, size)))
