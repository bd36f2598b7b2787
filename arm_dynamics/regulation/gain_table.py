"""Regulator gains over the configuration: stored, loaded, interpolated."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from arm_dynamics.arrays import Vector
from arm_dynamics.errors import ConfigError
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.regulation.regulator import Weights, viscous
from arm_dynamics.scalar import (
    INDICES,
    INF,
    MATRIX,
    VECTOR,
    compiled,
    compiled_for,
    maximum,
    minimum,
    where,
)
from arm_dynamics.writing import writing

EDGE = 1e-9
"""Share of a cell by which rounding may put a pose beyond the grid."""


@compiled
def place_on_axis(x: float, lower: float, upper: float, turn: float, count: float) -> float:
    """Where ``x`` is on an axis, counted in cells from its start; -1 where it is not on it."""
    x = where(turn < INF, lower + (x - lower) % turn, x)
    place = (x - lower) / (upper - lower) * (count - 1.0)
    return where((place >= -EDGE) & (place <= count - 1.0 + EDGE), place, -1.0)


@compiled_for(MATRIX, INDICES, MATRIX, VECTOR)
def blended(
    table: Vector, joints: NDArray[np.int64], axes: Vector, q: Vector
) -> tuple[bool, Vector]:
    """Multilinear interpolation in ``table`` (Π counts, m), and whether ``q`` is on the grid.

    axes (4, k): lower, upper, turn and count of every one of the ``joints``.
    """
    result, place, inside = np.zeros(table.shape[1]), np.empty(joints.size), True
    for j in range(joints.size):
        place[j] = place_on_axis(q[joints[j]], axes[0, j], axes[1, j], axes[2, j], axes[3, j])
        inside = inside & (place[j] > -0.5)
    if not inside:
        return False, result
    for corner in range(1 << joints.size):
        weight, row = 1.0, 0
        for j in range(joints.size):
            cell = int(maximum(minimum(math.floor(place[j]), axes[3, j] - 2.0), 0.0))
            upper = (corner >> j) & 1
            weight *= place[j] - cell if upper else 1.0 - place[j] + cell
            row = row * int(axes[3, j]) + cell + upper
        result += weight * table[row]
    return True, result


@dataclass(frozen=True, eq=False)
class GainTable:
    """K (nv, 2 nv) on a grid over some joints of an arm; see ``build_gain_table`` and ``load``.

    ``key`` tells arm and weights; ``joints`` (k,) are columns of q, ``lower`` and ``upper`` (k,)
    the ends of their grids; ``turn`` (k,) is 2 π for a joint that turns without end, else inf.
    gains (n_1, ..., n_k, nv, 2 nv).
    """

    key: str
    joints: NDArray[np.int64]
    lower: Vector
    upper: Vector
    turn: Vector
    gains: Vector

    def at(self, q: Vector) -> Vector | None:
        """K (nv, 2 nv) interpolated at the pose ``q`` (nv,); None outside of the grid."""
        inside, gain = blended(self._rows, self.joints, self._axes, q)
        if not inside:
            return None
        gain.flags.writeable = False
        return gain.reshape(self.gains.shape[-2:])

    def made_for(self, arm: ArmModel, weights: Weights) -> bool:
        """Whether these are gains of that arm and those weights."""
        return self.key == table_key(arm, weights)

    def save(self, file: str | Path) -> None:
        """Write the table; raises ConfigError when that is impossible."""
        parts = {name: getattr(self, name) for name in self.__dataclass_fields__}
        with writing(file) as path, path.open("wb") as out:
            np.savez_compressed(out, **parts)

    @cached_property
    def _axes(self) -> Vector:
        counts = np.array(self.gains.shape[:-2], dtype=float)
        return np.stack([self.lower, self.upper, self.turn, counts])

    @cached_property
    def _rows(self) -> Vector:
        return self.gains.reshape(-1, self.gains.shape[-2] * self.gains.shape[-1])


def load(file: str | Path, arm: ArmModel, weights: Weights) -> GainTable:
    """The table that ``save`` wrote.

    Raises ConfigError for a file that is none or cannot be read, and for one of another arm
    (masses, lengths, friction, gravity and payload count) or of other weights.
    """
    try:
        with np.load(file, allow_pickle=False) as parts:
            values = {name: parts[name] for name in GainTable.__dataclass_fields__}
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise ConfigError(f"{file} is no gain table that can be read: {error}") from error
    table = GainTable(**{**values, "key": str(values["key"])})
    if not table.made_for(arm, weights):
        raise ConfigError(f"{file}: made for another arm than '{arm.name}', or other weights")
    return table


def table_key(arm: ArmModel, weights: Weights) -> str:
    """Hexadecimal digest of everything that gains depend on."""
    model = arm.model
    numbers = [model.armature, model.gravity.vector, viscous(arm), arm.effort_limit > 0]
    numbers += [inertia.toDynamicParameters() for inertia in model.inertias]
    numbers += [place.homogeneous.ravel() for place in model.jointPlacements]
    shown = [f"{x:.9e}" for x in np.round(np.concatenate(numbers), 10) + 0.0]
    costs = np.concatenate([weights.position, weights.velocity, weights.effort])
    shown += [f"{x:.9e}" for x in costs]
    return hashlib.sha256("\n".join([arm.urdf, *shown]).encode()).hexdigest()
