"""Tables of LQR gains over the configuration: built in parallel, stored, interpolated."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, as_completed
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from zipfile import ZipFile

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.control.lqr_design.lqr_gain import (
    LqrGains,
    LqrWeights,
    require_static_effort,
    viscous_damping,
)
from arm_dynamics.core.arrays import (
    FloatArray,
    IntArray,
    Matrix,
    Vector,
    as_readonly,
    check_float,
    check_int,
    check_vector,
)
from arm_dynamics.core.compiled_math import (
    INDICES,
    INF,
    MATRIX,
    VECTOR,
    Kind,
    compiled,
    compiled_for,
    direct_call,
    maximum,
    minimum,
    where,
)
from arm_dynamics.core.errors import ConfigError, InvalidValue
from arm_dynamics.core.files import output_file
from arm_dynamics.model.arm_argument import requires_arm
from arm_dynamics.model.arm_model import ArmModel

MAX_TABLE_SIZE = 1e8
"""Maximum numbers in a table, of 8 bytes each: building more exceeds 4 GB."""
PARTS = 64
"""Tasks of a build in parallel: each sends the arm to a process."""
_KINDS = {"U": "text", "i": "integers", "f": "numbers"}
CELL_TOLERANCE = 1e-9
"""Fraction of a cell by which rounding may move a configuration outside the grid."""
ROWS, GAIN = Kind("float64", 2, layout="C"), Kind("float64", 1, written=True, layout="C")
"""Kinds of a table and of an interpolated gain: contiguous numbers are added several at a time."""
Axis = tuple[float, float, int]
"""Minimum and maximum position [rad or m], and number of grid points."""
Progress = Callable[[int, int], None]
"""Called with the number of solved configurations, and with all."""


@compiled
def grid_coordinate(x: float, lower: float, upper: float, turn: float, count: float) -> float:
    """Return the position of ``x`` on an axis in cells from its start; -1 outside."""
    x = where(turn < INF, lower + (x - lower) % turn, x)
    place = (x - lower) / (upper - lower) * (count - 1.0)
    inside = (place >= -CELL_TOLERANCE) & (place <= count - 1.0 + CELL_TOLERANCE)
    return where(inside, place, -1.0)


@compiled_for(ROWS, INDICES, MATRIX, VECTOR, GAIN, direct=True)
def interpolate(table: Matrix, joints: IntArray, axes: Matrix, q: Vector, gain: Vector) -> bool:
    """Write the multilinear interpolation (m,) at ``q``; return whether q is on the grid.

    table (Π counts, m). The rows of axes (4, k) are lower, upper, turn and count of the ``joints``.
    """
    place = np.empty(joints.size)
    for j in range(joints.size):
        place[j] = grid_coordinate(q[joints[j]], axes[0, j], axes[1, j], axes[2, j], axes[3, j])
        if not place[j] > -0.5:
            return False
    for i in range(gain.size):
        gain[i] = 0.0
    for corner in range(1 << joints.size):
        weight, row = 1.0, 0
        for j in range(joints.size):
            cell = int(maximum(minimum(math.floor(place[j]), axes[3, j] - 2.0), 0.0))
            upper = (corner >> j) & 1
            weight *= place[j] - cell if upper else 1.0 - place[j] + cell
            row = row * int(axes[3, j]) + cell + upper
        for i in range(gain.size):
            gain[i] += weight * table[row, i]
    return True


@dataclass(frozen=True, eq=False)
class GainTable:
    """K (nv, 2 nv) on a grid over some joints of an arm.

    Create it with ``build_gain_table`` or ``load_gain_table``.

    Parameters
    ----------
    key : str
        Digest of arm and weights.
    joints : (k,) integer array
        Columns of q.
    lower, upper : (k,) arrays
        Ends of the grid [rad or m].
    turn : (k,) array
        2 π for a continuous joint, else inf.
    gains : (n_1, ..., n_k, nv, 2 nv) array
        K at every grid point.

    Raises
    ------
    InvalidValue
        For inconsistent parts: the compiled interpolation does not check indices.

    """

    key: str
    joints: IntArray
    lower: Vector
    upper: Vector
    turn: Vector
    gains: FloatArray

    def __post_init__(self) -> None:
        """Check every part, and make it read-only."""
        for name in ("lower", "upper", "turn", "gains"):
            array = np.ascontiguousarray(as_readonly(getattr(self, name)))
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        for name, dtype, shape in _layout(self.gains.shape):
            array = np.asarray(getattr(self, name))
            if array.dtype.kind != dtype or array.shape != shape:
                raise InvalidValue(
                    f"gain table: {name} = {array.dtype} {array.shape}; expected {_KINDS[dtype]}"
                    f" {shape}"
                )
        object.__setattr__(self, "joints", np.ascontiguousarray(self.joints, dtype=np.int64))
        nv, joints = self.gains.shape[-2], self.joints.tolist()
        if len(set(joints)) < len(joints) or not all(0 <= joint < nv for joint in joints):
            raise InvalidValue(
                f"gain table: joints = {joints}; expected different ones of 0 to {nv - 1}"
            )
        for name, valid, expected in (
            ("lower", np.isfinite(self.lower), "each finite"),
            ("upper", np.isfinite(self.upper) & (self.upper > self.lower), "finite, above lower"),
            ("turn", np.isin(self.turn, (2 * math.pi, np.inf)), "2 π or inf"),
        ):
            if not valid.all():
                values = getattr(self, name).tolist()
                raise InvalidValue(f"gain table: {name} = {values}; expected {expected}")
        if not np.isfinite(self.gains).all():
            count = int((~np.isfinite(self.gains)).sum())
            raise InvalidValue(f"gain table: {count} gains are not finite; build the table again")

    def at(self, q: Vector) -> Matrix | None:
        """Return K (nv, 2 nv) interpolated at ``q`` (nv,); None outside the grid.

        Raises
        ------
        InvalidValue
            For a q of another size.

        """
        if q.shape != self.gains.shape[-2:-1]:
            raise InvalidValue(f"q: shape = {q.shape}; expected {self.gains.shape[-2:-1]}")
        gain = np.empty(self._rows.shape[1])
        if not direct_call(interpolate)(self._rows, self.joints, self._axes, q, gain):
            return None
        gain.setflags(False)  # type: ignore[call-arg]
        return gain.reshape(q.size, -1)

    def matches(self, arm: ArmModel, weights: LqrWeights) -> bool:
        """Return whether the table was built for this arm and these weights."""
        return self.key == table_key(arm, weights)

    def save(self, file: str | Path) -> None:
        """Write the table; raises ConfigError if that fails."""
        parts = {name: getattr(self, name) for name in self.__dataclass_fields__}
        with output_file(file) as path, path.open("wb") as out:
            np.savez_compressed(out, **parts)

    @cached_property
    def _axes(self) -> Matrix:
        counts = np.array(self.gains.shape[:-2], dtype=float)
        return np.stack([self.lower, self.upper, self.turn, counts])

    @cached_property
    def _rows(self) -> Matrix:
        return self.gains.reshape(-1, self.gains.shape[-2] * self.gains.shape[-1])


@requires_arm
def build_gain_table(
    arm: ArmModel,
    weights: LqrWeights,
    grid: Mapping[str, Axis],
    configuration: ArrayLike | None = None,
    *,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> GainTable:
    """Return the LQR gains at every configuration of a grid.

    Parameters
    ----------
    arm : ArmModel
        Arm.
    weights : LqrWeights
        Weights of the cost.
    grid : Mapping[str, Axis]
        Joint → (lower, upper, count).
    configuration : (nv,) array, optional
        Positions of the other joints [rad or m]; default: the initial configuration. Correct for
        joints that rotate the arm about the vertical: gains do not depend on them.
    executor : Executor, optional
        Solves in parallel.
    progress : callable, optional
        Called with the number of solved configurations, and with all.

    Returns
    -------
    GainTable

    Raises
    ------
    UnknownName
        For an unknown joint.
    InvalidValue
        For an invalid axis, a grid of more than MAX_TABLE_SIZE numbers, and, with configuration
        and joint, if the gravity torque exceeds an effort limit or no gain stabilizes.

    """
    axes = _checked_axes(arm, grid)
    lower, upper, counts = map(list, zip(*axes.values(), strict=True))
    start = arm.configuration("initial")
    if configuration is not None:
        start = check_vector("configuration", configuration, arm.nv)
    points = list(itertools.product(*(np.linspace(*axis) for axis in axes.values())))
    count = len(points)
    configurations = np.tile(start, (count, 1))
    configurations[:, list(axes)] = points
    gains, done = np.empty((count, arm.nv, 2 * arm.nv)), 0
    for first, rows in _solved_parts(arm, weights, configurations, executor):
        gains[first : first + len(rows)] = rows
        done += len(rows)
        if progress is not None:
            progress(done, count)
    return GainTable(
        table_key(arm, weights),
        np.array(list(axes), dtype=np.int64),
        as_readonly(lower),
        as_readonly(upper),
        turns([arm.joints[j].kind for j in axes]),
        as_readonly(gains.reshape(*counts, arm.nv, 2 * arm.nv)),
    )


def _checked_axes(arm: ArmModel, grid: Mapping[str, Axis]) -> dict[int, Axis]:
    """Return the axes by index of their joint; raises InvalidValue for none and for a huge grid."""
    axes = {arm.index(name): _check_axis(name, axis) for name, axis in grid.items()}
    if not axes:
        raise InvalidValue(f"grid = {grid!r}; expected at least one joint of {arm.joint_names}")
    count = math.prod(count for _, _, count in axes.values())
    limit = int(MAX_TABLE_SIZE // (2 * arm.nv**2))
    if count > limit:
        raise InvalidValue(
            f"grid: {count} configurations; expected at most {limit}; use fewer per joint, or fewer"
            " joints"
        )
    return axes


def _check_axis(name: str, axis: Axis) -> Axis:
    where = f"grid of joint '{name}'"
    try:
        lower, upper, count = axis
    except (TypeError, ValueError):
        raise InvalidValue(f"{where} = {axis!r}; expected (lower, upper, count)") from None
    low = check_float(f"{where}: lower", lower)
    high = check_float(f"{where}: upper", upper, above=low)
    return low, high, check_int(f"{where}: count", count, lower=2)


def _solved_parts(
    arm: ArmModel, weights: LqrWeights, configurations: Matrix, executor: Executor | None
) -> Iterator[tuple[int, FloatArray]]:
    """Yield the index of the first configuration and the gains (m, nv, 2 nv) of every part."""
    size = -(-len(configurations) // PARTS)
    parts = [(k, configurations[k : k + size]) for k in range(0, len(configurations), size)]
    if executor is None:
        yield from ((k, _gains(arm, weights, rows)) for k, rows in parts)
        return
    tasks = {executor.submit(_gains, arm, weights, rows): k for k, rows in parts}
    try:
        for task in as_completed(tasks):
            yield tasks[task], task.result()
    finally:
        for task in tasks:
            task.cancel()


def _gains(arm: ArmModel, weights: LqrWeights, configurations: Matrix) -> FloatArray:
    for q in configurations:
        require_static_effort(arm, q)
    gains = LqrGains(arm, weights)
    return np.array([gains.at(q) for q in configurations])


def load_gain_table(file: str | Path, arm: ArmModel, weights: LqrWeights) -> GainTable:
    """Return the table that ``save`` wrote.

    Parameters
    ----------
    file : str or Path
        File of the table.
    arm : ArmModel
        Arm of the table.
    weights : LqrWeights
        Weights of the table.

    Raises
    ------
    ConfigError
        For a file that cannot be read, and for a table of another arm (masses, lengths, friction,
        gravity or payload) or of other weights.

    """
    try:
        with ZipFile(file) as parts:
            _check_headers(parts, arm.nv)
        with np.load(file, allow_pickle=False) as arrays:
            values = {name: arrays[name] for name in GainTable.__dataclass_fields__}
        table = GainTable(**{**values, "key": str(values["key"])})
    except Exception as error:  # numpy and zipfile raise any kind for damaged bytes
        message = f"{error}" or type(error).__name__
        raise ConfigError(f"{file}: not a readable gain table: {message}") from error
    if not table.matches(arm, weights):
        raise ConfigError(f"{file}: built for another arm than '{arm.name}', or other weights")
    kinds = [arm.joints[joint].kind for joint in table.joints]
    if not np.array_equal(table.turn, turns(kinds)):
        raise ConfigError(f"{file}: turn = {table.turn.tolist()}; expected {turns(kinds).tolist()}")
    return table


def turns(kinds: Sequence[str]) -> Vector:
    """Return the period of each joint's position [rad]: 2 π for a continuous one, else inf."""
    return as_readonly([2 * math.pi if kind == "continuous" else np.inf for kind in kinds])


def _check_headers(parts: ZipFile, nv: int) -> None:
    """Check kinds and shapes before any array is read: a small file may unpack to a huge one."""
    headers: dict[str, tuple[str, tuple[int, ...]]] = {}
    for member in parts.namelist():
        with parts.open(member) as file:
            version = np.lib.format.read_magic(file)
            if version != (1, 0):
                raise InvalidValue(f"{member}: format = {version}; expected (1, 0)")
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
            headers[member.removesuffix(".npy")] = dtype.kind, shape
    fields = set(GainTable.__dataclass_fields__)
    if set(headers) != fields:
        raise InvalidValue(f"parts = {sorted(headers)}; expected {sorted(fields)}")
    gains = headers["gains"][1]
    if gains[-2:] != (nv, 2 * nv):
        raise InvalidValue(f"gains = {gains}; expected (..., {nv}, {2 * nv}) for this arm")
    if math.prod(gains) > MAX_TABLE_SIZE:
        raise InvalidValue(
            f"gains = {gains}, {math.prod(gains)} numbers; expected at most {MAX_TABLE_SIZE:g}"
        )
    for name, kind, expected in (("key", "U", ()), *_layout(gains)):
        if headers[name] != (kind, expected):
            raise InvalidValue(f"{name} = {headers[name]}; expected {_KINDS[kind]} {expected}")


def _layout(gains: tuple[int, ...]) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
    """Return name, kind and shape of every array that belongs to gains of a shape."""
    *counts, nv, width = gains if len(gains) > 2 else (0, 0, 0)
    if min(*counts, nv + 1) < 2 or width != 2 * nv:
        raise InvalidValue(f"gain table: gains = {gains}; expected (n_1 >= 2, ..., nv, 2 nv)")
    axes = (len(counts),)
    numbers = [(name, "f", axes) for name in ("lower", "upper", "turn")]
    return ("joints", "i", axes), *numbers, ("gains", "f", gains)


def table_key(arm: ArmModel, weights: LqrWeights) -> str:
    """Return the hexadecimal digest of all that gains depend on."""
    model = arm.model
    numbers = [model.armature, model.gravity.vector, viscous_damping(arm), arm.effort_limit > 0]
    numbers += [inertia.toDynamicParameters() for inertia in model.inertias]
    numbers += [place.homogeneous.ravel() for place in model.jointPlacements]
    rounded = [f"{x:.9e}" for x in np.round(np.concatenate(numbers), 10) + 0.0]
    costs = np.concatenate([weights.position, weights.velocity, weights.effort])
    rounded += [f"{x:.9e}" for x in costs]
    return hashlib.sha256("\n".join([arm.urdf, *rounded]).encode()).hexdigest()
