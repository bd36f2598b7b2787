"""How well a frame can be moved: Yoshikawa's measure and the condition of its Jacobian."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.arrays import Vector, frozen
from arm_dynamics.errors import InvalidValue, UnknownName
from arm_dynamics.expect import names
from arm_dynamics.kinematics import AXIS_NAMES, jacobian
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.given_arm import takes_arm

POSITION = AXIS_NAMES[:3]
SINGULAR = 1e-12
"""Share of the largest singular value up to which one is 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Manipulability:
    """w = sqrt(det J Jᵀ) = Π σ_i, condition number σ_1 / σ_m, and σ (m,) falling.

    The condition is 1 where all directions are alike and inf where one is lost. In [m/rad]
    per axis of translation and [1] per axis of rotation: axes of both kinds mix units.
    """

    w: float
    condition: float
    singular_values: Vector


@takes_arm
def manipulability(
    arm: ArmModel, q: ArrayLike, axes: Sequence[str] = POSITION, frame: str | None = None
) -> Manipulability:
    """Of the rows ``axes`` of J(q) (6, nv): any of x, y, z, rx, ry, rz along the base's axes.

    ``frame`` is the tool's where none is named. With more axes than joints, or axes along which
    the arm never moves, w is 0: name those that it can move along, as x and z for an arm in a
    vertical plane. Raises InvalidValue for a wrong size, a non-finite entry, no or a repeated
    axis, UnknownName for an unknown axis or frame.
    Source: T. Yoshikawa, Int. J. Robotics Research 4(2) (1985), 3, eq. 11.
    """
    rows = _rows(axes)
    found = np.linalg.svd(jacobian(arm, q, frame)[rows], compute_uv=False)
    singular = np.zeros(len(rows))
    singular[: found.size] = np.where(found > SINGULAR * found[0], found, 0.0)
    least = float(singular[-1])
    condition = float(singular[0]) / least if least > 0 else float("inf")
    return Manipulability(float(np.prod(singular)), condition, frozen(singular))


def _rows(axes: Sequence[str]) -> list[int]:
    chosen = names("axes", axes)
    for axis in chosen:
        if axis not in AXIS_NAMES:
            raise UnknownName("axis", axis, AXIS_NAMES)
    if not chosen or len(set(chosen)) < len(chosen):
        raise InvalidValue(f"axes = {chosen}: one or more of {AXIS_NAMES} are expected, each once")
    return [AXIS_NAMES.index(axis) for axis in chosen]
