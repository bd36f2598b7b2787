"""LeRobot datasets: one episode as a table, and its positions in rad or m.

LeRobot normalizes the positions of a motor by the range of its calibration, b ≤ p ≤ e: to degrees
from the middle (b + e) / 2, to -100 … 100, or, for a gripper, to 0 … 100 of the range. A dataset
names its robot, but neither the unit nor the calibration. The ranges of the URDF therefore stand
for those of the calibration. Source: ``MotorsBus._normalize`` and the classes of the robots in
LeRobot 0.3 and later.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import MALFORMED, InvalidValue, RecordingError
from arm_dynamics.model.arm_model import ArmModel, Joint
from arm_dynamics.recording.motions.motion_columns import WORDS, listed, unit_scale, words_of
from arm_dynamics.recording.motions.motion_tables import (
    DATASET_STATE,
    Table,
    parquet_libraries,
    reason,
)

VERSIONS = ("v2.", "v3.")
"""Layouts of LeRobot datasets: one Parquet file per episode, or several episodes per file."""
EFFORT_FEATURES = ("observation.effort", "observation.torque")
TARGET_FEATURE = "action"
QUANTITY = {DATASET_STATE: "position", TARGET_FEATURE: "target"}
MOTORS = ("shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper")
FULL_TURN = {
    **dict.fromkeys(
        ("so_follower", "so100_follower", "so101_follower", "bi_so_follower", "bi_so100_follower",
         "lekiwi", "lekiwi_client", "arm_dynamics"),
        ("wrist_roll",),
    ),
    "koch_follower": ("shoulder_pan", "wrist_roll"),
}  # fmt: skip
"""Robot with ``MOTORS`` → motors whose range in the calibration is a full turn."""
EARLIER = {"shoulder_lift": (-1.0, 90.0), "elbow_flex": (1.0, -90.0)}
"""Motor → sign and zero [deg] of calibrations before June 2025, to those of later ones.

Source: LeRobot, examples/backward_compatibility/replay.py.
"""
EARLIER_ROBOTS = ("so100", "so101")
"""Robots of these calibrations; degrees, and 0 … 100 for the gripper."""
GRIPPERS = {"gripper", "grip", "jaw", "finger", "claw"}
"""Words of joints whose values from 0 to 100 may be percent."""
CLIPPED = 1e-4
"""Distance from 100 at which a normalized position is clipped at the end of its range."""


# Tables ----------------------------------------------------------------------------------------


def read_dataset(folder: Path, episode: int | None = None) -> Table:
    """Read one episode of a LeRobot dataset, of layout v2 or v3.

    Columns are ``timestamp`` [s] and the names of the feature observation.state, as positions
    unless a name has another word; observation.effort or observation.torque adds efforts.

    Raises
    ------
    RecordingError
        For a folder that is not such a dataset.
    InvalidValue
        If the episode does not exist, or is not given where there are several.
    ConfigError
        Without pyarrow.

    """
    try:
        info = json.loads((folder / "meta" / "info.json").read_text("utf-8"))
        version, count = str(info["codebase_version"]), int(info["total_episodes"])
        features: Mapping[str, Any] = dict(info["features"])
        robot = str(info.get("robot_type") or "")
    except (OSError, *MALFORMED) as error:
        raise RecordingError(
            f"{folder}/meta/info.json: {reason(error)}; expected codebase_version, total_episodes"
            " and features"
        ) from error
    if not version.startswith(VERSIONS):
        raise RecordingError(
            f"{folder}: codebase_version = {version}; expected v2.0 to v3.x; convert the dataset"
            " with LeRobot"
        )
    if DATASET_STATE not in features:
        raise RecordingError(
            f"{folder}: features = {listed(features)}; expected {DATASET_STATE} with joint"
            " positions"
        )
    if episode is None and count == 1:
        episode = 0
    if episode is None or not 0 <= episode < count:
        raise InvalidValue(
            f"{folder}: episode = {episode}; expected 0 to {count - 1}; pass --episode 0"
            " (episode=0) or another"
        )
    arrow, parquet = parquet_libraries()
    vectors = [DATASET_STATE, *(f for f in (*EFFORT_FEATURES, TARGET_FEATURE) if f in features)]
    pieces = []
    for file in sorted(folder.glob("data/**/*.parquet")):
        try:
            piece = parquet.read_table(
                file,
                columns=["timestamp", *vectors],
                filters=[("episode_index", "=", episode)],
            )
        except (OSError, arrow.ArrowException, KeyError) as error:
            raise RecordingError(
                f"{file}: {reason(error)}; expected a file of a LeRobot dataset with timestamp,"
                f" episode_index and {DATASET_STATE}"
            ) from error
        if piece.num_rows:
            pieces.append(piece)
        elif pieces:
            break
    if not pieces:
        raise RecordingError(
            f"{folder}/data: rows of episode {episode} = 0; expected its Parquet file; download it"
        )
    columns = _dataset_columns(folder, features, vectors, pieces)
    return Table(
        f"{folder} (episode {episode})", tuple(columns), columns.__getitem__, robot_type=robot
    )


def _dataset_columns(
    folder: Path, features: Mapping[str, Any], vectors: Sequence[str], pieces: Sequence[Any]
) -> dict[str, Vector]:
    """Return the stamps and the entries of the vectors of an episode, by name."""
    columns: dict[str, Vector] = {}
    for feature in ("timestamp", *vectors):
        try:
            rows = [row for p in pieces for row in p.column(feature).to_pylist()]
            values = np.array(rows, float).reshape(len(rows), -1)
            names = _feature_names(features.get(feature, {}), values.shape[1])
        except MALFORMED as error:
            raise RecordingError(
                f"{folder}: {feature} = {reason(error)}; expected vectors of numbers with names in"
                " meta/info.json"
            ) from error
        if feature == "timestamp":
            columns["timestamp [s]"] = values[:, 0]
            continue
        if len(names) != values.shape[1]:
            raise RecordingError(
                f"{folder}: {feature} = {values.shape[1]} values; expected {len(names)} as in its"
                " names in meta/info.json"
            )
        quantity = QUANTITY.get(feature, "effort")
        columns |= {_with_word(n, quantity): values[:, i] for i, n in enumerate(names)}
    return columns


def _feature_names(feature: Mapping[str, Any], size: int) -> list[str]:
    """Return the names of a feature: a list, a list in a dict, or numbers if it has none."""
    names = feature.get("names")
    if isinstance(names, dict):
        names = [name for part in names.values() for name in part]
    return [str(name) for name in names] if names else [str(i) for i in range(size)]


def _with_word(name: str, quantity: str) -> str:
    """Return a name with the word of its quantity, added in front if it has no such word."""
    known = {*WORDS["position"], *WORDS["effort"], *WORDS["current"], *WORDS["voltage"]}
    known = (known | {"vel", "velocity", "speed"}) - {"q", "i"}
    if quantity == "target":
        known = WORDS["target"]
    return name if known & set(words_of(name)) else f"{quantity}.{name}"


# Units -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class PositionScale:
    """Positions [rad or m] = ``zero`` + ``scale`` × values of a table, each (nv,).

    ``notes``: sentences for the user.
    """

    scale: Vector
    zero: Vector
    notes: tuple[str, ...] = ()


def position_scale(
    arm: ArmModel, table: Table, columns: Sequence[str], *, degrees: bool, normalized: bool
) -> PositionScale:
    """Return the unit of the positions of a table.

    Columns with a unit in their name are not converted; that unit has priority.

    Parameters
    ----------
    arm : ArmModel
        The arm; its ranges stand for those of the calibration.
    table : Table
        Table of values; ``robot_type`` is that of a dataset.
    columns : Sequence[str]
        Columns (nv,) of the positions.
    degrees, normalized : bool
        Whether revolute joints are in degrees, or all joints of a dataset from -100 to 100.

    Raises
    ------
    InvalidValue
        For a dataset of a robot of LeRobot without either unit, and for values that contradict
        their unit.
    RecordingError
        For a gripper from 0 to 100 of an unknown robot, and a joint that the robot does not have.

    """
    scale, zero = np.ones(arm.nv), np.zeros(arm.nv)
    joints = [
        (i, joint, name, np.asarray(table.column(name), dtype=float))
        for i, (joint, name) in enumerate(zip(arm.joints, columns, strict=True))
        if unit_scale("position", name) is None
    ]
    robot = table.robot_type
    is_known = robot in FULL_TURN or robot in EARLIER_ROBOTS
    if normalized and robot not in FULL_TURN:
        remedy = "pass --degrees (degrees=True)" if is_known else "convert the positions to rad"
        raise InvalidValue(
            f"{table.source}: robot_type = {robot or 'none'}; expected one of"
            f" {', '.join(FULL_TURN)} for positions from -100 to 100; {remedy}"
        )
    if not is_known:
        notes: list[str] = []
        if degrees:
            scale = np.array([np.pi / 180 if x.unit == "rad" else 1.0 for x in arm.joints])
            for _, joint, name, values in joints:
                notes += _percent_notes(table, joint, name, values)
        if degrees and robot is not None:
            _reject_clipped(table, joints, "convert them to rad")
            zeros = "degrees count from the zero of the calibration, read as that of the URDF"
            notes.append(f"{table.source}: {zeros}")
        return PositionScale(scale, zero, tuple(notes))
    assert robot is not None
    named = [(i, joint, _motor(table, joint, name), values) for i, joint, name, values in joints]
    body = [(i, joint, motor, x) for i, joint, motor, x in named if motor != "gripper"]
    _check_stated_unit(table, body, degrees=degrees, normalized=normalized)
    for i, joint, motor, _ in named:
        middle, half = _range(joint, motor, robot)
        if not np.isfinite(half) and (motor == "gripper" or normalized):
            raise RecordingError(
                f"{table.source}: position of joint '{joint.name}' = a part of its range; expected"
                f" position limits in the URDF; add them, or pass --lock {joint.name}"
            )
        if motor == "gripper":
            scale[i], zero[i] = half / 50, middle - half
        elif normalized:
            scale[i], zero[i] = half / 100, middle
        else:
            sign, first = EARLIER.get(motor, (1.0, 0.0)) if robot in EARLIER_ROBOTS else (1.0, 0.0)
            scale[i], zero[i] = sign * np.pi / 180, middle + np.radians(first)
    return PositionScale(scale, zero, tuple(_unit_notes(table, named, normalized=normalized)))


def _motor(table: Table, joint: Joint, column: str) -> str:
    """Return the motor of LeRobot in the name of a column or joint; raises RecordingError."""
    for words in (words_of(column), words_of(joint.name)):
        for motor in MOTORS:
            own = words_of(motor)
            if any(words[k : k + len(own)] == own for k in range(len(words))):
                return motor
    raise RecordingError(
        f"{table.source}: joint '{joint.name}', column '{column}' = not a motor of"
        f" {table.robot_type}; expected {', '.join(MOTORS)}; its unit is unknown; pass --lock"
        f" {joint.name}"
    )


def _range(joint: Joint, motor: str, robot: str) -> tuple[float, float]:
    """Return middle and half [rad or m] of the range that stands for the calibrated one."""
    is_finite = np.isfinite([joint.lower, joint.upper]).all()
    middle = (joint.lower + joint.upper) / 2 if is_finite else 0.0
    if motor in FULL_TURN.get(robot, ()):
        return middle, np.pi
    return middle, (joint.upper - joint.lower) / 2


def _check_stated_unit(
    table: Table, body: Sequence[tuple[int, Joint, str, Vector]], *, degrees: bool, normalized: bool
) -> None:
    """Raise InvalidValue without a unit, or if positions of joints ``body`` contradict it."""
    robot = table.robot_type
    largest = {joint.name: _size(x) for _, joint, _, x in body}
    beyond = [name for name, size in largest.items() if size > 100 + CLIPPED]
    if normalized and beyond:
        raise InvalidValue(
            f"{table.source}: position of joint '{beyond[0]}' = up to {largest[beyond[0]]:.4g};"
            " expected -100 to 100; pass --degrees (degrees=True) instead of --normalized"
        )
    if degrees and robot in FULL_TURN:
        remedy = "pass --normalized (normalized=True) instead of --degrees"
        _reject_clipped(table, body, remedy)
    if normalized or degrees or not body:
        return
    is_degrees = beyond or robot in EARLIER_ROBOTS
    remedy = "pass --degrees (degrees=True)"
    if not is_degrees:
        remedy += " if LeRobot recorded with use_degrees=true (its default since February 2026),"
        remedy += " else --normalized (normalized=True); values in rad need it in their names, as"
        remedy += " in 'shoulder_pan.pos [rad]'"
    unit = "degrees" if is_degrees else "degrees, or -100 to 100 of each range"
    raise InvalidValue(f"{table.source}: positions of {robot} = {unit}; expected rad; {remedy}")


def _size(values: Vector) -> float:
    """Return the largest finite absolute value, 0 without any."""
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0))


def _reject_clipped(
    table: Table, joints: Sequence[tuple[int, Joint, str, Vector]], remedy: str
) -> None:
    """Raise InvalidValue for positions that end at exactly -100 or 100."""
    largest = [(_size(x), joint.name) for _, joint, _, x in joints]
    size, name = max(largest, default=(0.0, ""))
    if abs(size - 100) <= CLIPPED:
        raise InvalidValue(
            f"{table.source}: position of joint '{name}' = {size:.4g} at most, as of all joints;"
            f" expected degrees, which do not end there; -100 to 100 are normalized; {remedy}"
        )


def _percent_notes(table: Table, joint: Joint, column: str, values: Vector) -> list[str]:
    """Return a sentence about a gripper whose values may be 0 to 100 of its range.

    Raises RecordingError in a dataset, whose grippers usually are.
    """
    known = values[np.isfinite(values)]
    is_percent = known.size and known.min() >= 0 and known.max() <= 100 + CLIPPED
    if not is_percent or joint.unit != "rad" or not GRIPPERS & set(words_of(joint.name)):
        return []
    found = (
        f"{table.source}: position of joint '{joint.name}' = {known.min():.4g} to {known.max():.4g}"
    )
    if table.robot_type is None:
        return [f"{found}, read as degrees; 0 to 100 of its range is also possible"]
    raise RecordingError(
        f"{found}, degrees or 0 to 100 of its range; expected a robot_type with known units in"
        f" meta/info.json, not '{table.robot_type}', or a unit in its name, as in '{column} [deg]';"
        f" pass --lock {joint.name} otherwise"
    )


def _unit_notes(
    table: Table, named: Sequence[tuple[int, Joint, str, Vector]], *, normalized: bool
) -> list[str]:
    """Return sentences about the unit and the zero of the positions."""
    robot, notes = table.robot_type, []
    body = [(joint, motor, values) for _, joint, motor, values in named if motor != "gripper"]
    if body and normalized:
        turns = [joint.name for joint, motor, _ in body if motor in FULL_TURN[str(robot)]]
        whole = f"; {', '.join(turns)}: 360°" if turns else ""
        notes.append(
            f"{table.source}: positions of {robot} = -100 to 100 of the calibrated range, read as"
            f" the range in the URDF{whole}"
        )
    elif body:
        notes.append(
            f"{table.source}: degrees of {robot} count from the middle of the calibrated range,"
            " read as the middle of the range in the URDF"
        )
        if robot in EARLIER_ROBOTS:
            notes[-1] += "; converted from a calibration before June 2025"
        elif all(_size(values) < 100 for _, _, values in body):
            notes[-1] += (
                "; all are within -100 to 100: pass --normalized instead of --degrees if LeRobot"
                " recorded with use_degrees=false"
            )
    notes += [
        f"{table.source}: position of joint '{joint.name}' = 0 to 100 of its range, read as"
        f" {joint.lower:.4g} to {joint.upper:.4g} {joint.unit}"
        for _, joint, motor, _ in named
        if motor == "gripper"
    ]
    return notes
