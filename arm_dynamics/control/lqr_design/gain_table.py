"""Regulator gains over the configuration: stored, loaded, interpolated."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from zipfile import ZipFile

import numpy as np
from numpy.typing import NDArray

from arm_dynamics.control.lqr_design.lqr_gain import LqrWeights, viscous_damping
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.compiled_math import (
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
from arm_dynamics.core.errors import ConfigError, InvalidValue
from arm_dynamics.core.files import output_file
from arm_dynamics.model.arm_model import ArmModel

MAX_TABLE_SIZE = 1e8
"""Numbers in a table, of 8 bytes each: more do not fit beside their making in 4 GB."""
_KINDS = {"U": "text", "i": "whole numbers", "f": "numbers"}
EDGE = 1e-9
"""Share of a cell by which rounding may put a pose beyond the grid."""


@compiled
def grid_coordinate(x: float, lower: float, upper: float, turn: float, count: float) -> float:
    """Where ``x`` is on an axis, counted in cells from its start; -1 where it is not on it."""
    x = where(turn < INF, lower + (x - lower) % turn, x)
    place = (x - lower) / (upper - lower) * (count - 1.0)
    return where((place >= -EDGE) & (place <= count - 1.0 + EDGE), place, -1.0)


@compiled_for(MATRIX, INDICES, MATRIX, VECTOR)
def interpolate(
    table: Vector, joints: NDArray[np.int64], axes: Vector, q: Vector
) -> tuple[bool, Vector]:
    """Multilinear interpolation in ``table`` (Π counts, m), and whether ``q`` is on the grid.

    axes (4, k): lower, upper, turn and count of every one of the ``joints``.
    """
    result, place, inside = np.zeros(table.shape[1]), np.empty(joints.size), True
    for j in range(joints.size):
        place[j] = grid_coordinate(q[joints[j]], axes[0, j], axes[1, j], axes[2, j], axes[3, j])
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
    """K (nv, 2 nv) on a grid over some joints of an arm; see ``build_gain_table`` and ``load_gain_table``.

    ``key`` tells arm and weights; ``joints`` (k,) are columns of q, ``lower`` and ``upper`` (k,)
    the ends of their grids; ``turn`` (k,) is 2 π for a joint that turns without end, else inf.
    gains (n_1, ..., n_k, nv, 2 nv). Raises InvalidValue for parts that do not fit together: the
    compiled interpolation indexes them unchecked.
    """

    key: str
    joints: NDArray[np.int64]
    lower: Vector
    upper: Vector
    turn: Vector
    gains: Vector

    def __post_init__(self) -> None:
        """Check every part, and keep it read-only."""
        for name in ("lower", "upper", "turn", "gains"):
            part = np.ascontiguousarray(as_readonly(getattr(self, name)))
            part.flags.writeable = False
            object.__setattr__(self, name, part)
        for name, dtype, shape in _layout(self.gains.shape):
            part = np.asarray(getattr(self, name))
            if part.dtype.kind != dtype or part.shape != shape:
                said = f"gain table: {name} = {part.dtype} {part.shape}"
                raise InvalidValue(f"{said}; expected {_KINDS[dtype]} {shape}")
        object.__setattr__(self, "joints", np.ascontiguousarray(self.joints, dtype=np.int64))
        nv, joints = self.gains.shape[-2], self.joints.tolist()
        if len(set(joints)) < len(joints) or not all(0 <= joint < nv for joint in joints):
            raise InvalidValue(
                f"gain table: joints = {joints}; expected different ones of 0 to {nv - 1}"
            )
        for name, valid, expected in (
            ("lower", np.isfinite(self.lower), "finite numbers"),
            ("upper", np.isfinite(self.upper) & (self.upper > self.lower), "finite, above lower"),
            ("turn", np.isin(self.turn, (2 * math.pi, np.inf)), "2 π or inf"),
        ):
            if not valid.all():
                said = f"gain table: {name} = {getattr(self, name).tolist()}; expected {expected}"
                raise InvalidValue(said)
        if not np.isfinite(self.gains).all():
            count = int((~np.isfinite(self.gains)).sum())
            raise InvalidValue(f"gain table: {count} gains are not finite; build the table again")

    def at(self, q: Vector) -> Vector | None:
        """K (nv, 2 nv) interpolated at the pose ``q`` (nv,); None outside of the grid.

        Raises InvalidValue for a q of another size.
        """
        if q.shape != self.gains.shape[-2:-1]:
            raise InvalidValue(f"q: shape {q.shape}; expected {self.gains.shape[-2:-1]}")
        inside, gain = interpolate(self._rows, self.joints, self._axes, q)
        if not inside:
            return None
        gain.flags.writeable = False
        return gain.reshape(self.gains.shape[-2:])

    def matches(self, arm: ArmModel, weights: LqrWeights) -> bool:
        """Whether these are gains of that arm and those weights."""
        return self.key == table_key(arm, weights)

    def save(self, file: str | Path) -> None:
        """Write the table; raises ConfigError when that is impossible."""
        parts = {name: getattr(self, name) for name in self.__dataclass_fields__}
        with output_file(file) as path, path.open("wb") as out:
            np.savez_compressed(out, **parts)

    @cached_property
    def _axes(self) -> Vector:
        counts = np.array(self.gains.shape[:-2], dtype=float)
        return np.stack([self.lower, self.upper, self.turn, counts])

    @cached_property
    def _rows(self) -> Vector:
        return self.gains.reshape(-1, self.gains.shape[-2] * self.gains.shape[-1])


def load_gain_table(file: str | Path, arm: ArmModel, weights: LqrWeights) -> GainTable:
    """The table that ``save`` wrote.

    Raises ConfigError for a file that is none or cannot be read, and for one of another arm
    (masses, lengths, friction, gravity and payload count) or of other weights.
    """
    try:
        with ZipFile(file) as parts:
            _check_headers(parts, arm.nv)
        with np.load(file, allow_pickle=False) as arrays:
            values = {name: arrays[name] for name in GainTable.__dataclass_fields__}
        table = GainTable(**{**values, "key": str(values["key"])})
    except Exception as error:  # numpy and zipfile raise any kind for damaged bytes
        said = f"{error}" or type(error).__name__
        raise ConfigError(f"{file} is not a gain table that can be read: {said}") from error
    if not table.matches(arm, weights):
        raise ConfigError(f"{file}: made for another arm than '{arm.name}', or other weights")
    kinds = [arm.joints[joint].kind for joint in table.joints]
    if not np.array_equal(table.turn, turns(kinds)):
        raise ConfigError(f"{file}: turn = {table.turn.tolist()}; expected {turns(kinds).tolist()}")
    return table


def turns(kinds: Sequence[str]) -> Vector:
    """Period [rad] of each joint's positions: 2 π for a continuous one, else inf."""
    return as_readonly([2 * math.pi if kind == "continuous" else np.inf for kind in kinds])


def _check_headers(parts: ZipFile, nv: int) -> None:
    """Check kinds and shapes before any array is read: a small file may unpack to a huge one."""
    headers: dict[str, tuple[str, tuple[int, ...]]] = {}
    for member in parts.namelist():
        with parts.open(member) as part:
            version = np.lib.format.read_magic(part)
            if version != (1, 0):
                raise InvalidValue(f"{member}: format {version}; expected (1, 0)")
            shape, _, dtype = np.lib.format.read_array_header_1_0(part)
            headers[member.removesuffix(".npy")] = dtype.kind, shape
    fields = set(GainTable.__dataclass_fields__)
    if set(headers) != fields:
        raise InvalidValue(f"parts = {sorted(headers)}; expected {sorted(fields)}")
    gains = headers["gains"][1]
    if gains[-2:] != (nv, 2 * nv):
        raise InvalidValue(f"gains = {gains}; expected (..., {nv}, {2 * nv}) for this arm")
    if math.prod(gains) > MAX_TABLE_SIZE:
        raise InvalidValue(
            f"gains = {gains}: {math.prod(gains)} numbers; at most {MAX_TABLE_SIZE:g}"
        )
    for name, kind, expected in (("key", "U", ()), *_layout(gains)):
        if headers[name] != (kind, expected):
            said = f"{_KINDS[kind]} {expected}"
            raise InvalidValue(f"{name} = {headers[name]}; expected {said}")


def _layout(gains: tuple[int, ...]) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
    """Name, kind and shape of every array that goes with gains of a shape, themselves included."""
    *counts, nv, width = gains if len(gains) > 2 else (0, 0, 0)
    if min(*counts, nv + 1) < 2 or width != 2 * nv:
        raise InvalidValue(f"gain table: gains = {gains}; expected (n_1 >= 2, ..., nv, 2 nv)")
    axes = (len(counts),)
    numbers = [(name, "f", axes) for name in ("lower", "upper", "turn")]
    return ("joints", "i", axes), *numbers, ("gains", "f", gains)


def table_key(arm: ArmModel, weights: LqrWeights) -> str:
    """Hexadecimal digest of everything that gains depend on."""
    model = arm.model
    numbers = [model.armature, model.gravity.vector, viscous_damping(arm), arm.effort_limit > 0]
    numbers += [inertia.toDynamicParameters() for inertia in model.inertias]
    numbers += [place.homogeneous.ravel() for place in model.jointPlacements]
    shown = [f"{x:.9e}" for x in np.round(np.concatenate(numbers), 10) + 0.0]
    costs = np.concatenate([weights.position, weights.velocity, weights.effort])
    shown += [f"{x:.9e}" for x in costs]
    return hashlib.sha256("\n".join([arm.urdf, *shown]).encode()).hexdigest()
