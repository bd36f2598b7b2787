"""Readers of recorded motion: recordings, rosbag2, CSV, Parquet, LeRobot datasets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from arm_dynamics.core.arrays import FloatArray, IntArray, Matrix, Vector
from arm_dynamics.core.errors import ConfigError, InvalidValue, RecordingError
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording import bag
from arm_dynamics.recording.motions.lerobot_datasets import position_scale, read_dataset
from arm_dynamics.recording.motions.motion_checks import (
    MIN_SAMPLES,
    check_positions,
    check_single_sequence,
    check_sizes,
    increasing_rows,
    require_samples,
)
from arm_dynamics.recording.motions.motion_columns import (
    MotionColumns,
    find_columns,
    listed,
    other_efforts,
    unit_scale,
)
from arm_dynamics.recording.motions.motion_data import MotionData
from arm_dynamics.recording.motions.motion_tables import Table, read_csv, read_parquet
from arm_dynamics.recording.table import Recording

JOINT_STATE = "sensor_msgs/msg/JointState"
NOT_MEASURED = ("command", "commands", "target", "desired", "reference", "goal")
"""Last words of topics with commands."""
READABLE = (
    "a rosbag2 folder, a .mcap file, a .csv or .parquet file, or the folder of a LeRobot dataset"
)
TEXT = (".csv", ".tsv", ".txt")
MIN_PERIOD = 3e-4
"""Period [s]; the time is in the unit in which its median is from this to 1000 times this."""
MAX_REPEATED = 0.01
"""Fraction of samples with the stamp of the one before, above which a note states it."""
MIN_LOOP_PERIOD = 2e-5
"""Period [s] from which stamps are in s as well: no other unit makes it longer."""
AMBIGUOUS = (0.3, 0.9)
"""Median period without a unit that is plausible in s (slow poses) and in ms (1.1 to 3.3 kHz)."""
TOGETHER = 0.5
"""Fraction of the values of a column that are in rows with all columns, below which the columns
are those of different topics.
"""
MAX_DISTANCE = 1.5
"""Distance to the nearest message of a joint, in its median periods, up to which it counts."""


def load_motion(
    arm: ArmModel,
    path: str | Path,
    *,
    columns: Mapping[str, str] | None = None,
    degrees: bool = False,
    normalized: bool = False,
    topic: str | None = None,
    episode: int | None = None,
) -> MotionData:
    """Read a recorded motion of an arm.

    Joints are found by their names; other joints of the file are ignored. Columns of CSV, Parquet
    and LeRobot follow the rules of ``motion_columns``. Without a unit in its name, time is in s,
    ms, µs or ns, whichever gives a median period from 0.3 to 300 ms; in s also from 0.02 ms. Values
    with a median period from 0.3 to 0.9 may be s or ms: they need a unit. Rows with the stamp
    of the row before, and rows without positions, are dropped. Gaps of the stamps separate the
    segments of the motion (``MotionData.segments``). Columns of different topics, whose rows hold
    only some of them, are interpolated linearly; target positions and voltages are held.

    Datasets of the SO-100, SO-101, Koch and LeKiwi robots need ``degrees`` or ``normalized``. Their
    gripper is 0 to 100 of its range. Degrees count from the middle of the calibrated range; the
    ranges of the URDF stand for those of the calibration.

    Parameters
    ----------
    arm : ArmModel
        The arm.
    path : str or Path
        Recording of this package, any rosbag2 folder or MCAP file with sensor_msgs/JointState,
        .csv (.tsv, .txt) with a line of names, .parquet, or folder of a LeRobot dataset (v2, v3).
    columns : Mapping[str, str], optional
        Columns by ``"time"``, ``"position.JOINT"``, ``"effort.JOINT"``, ``"target.JOINT"``,
        ``"current.JOINT"`` or ``"voltage.JOINT"`` where the rules fail.
    degrees : bool, optional
        Whether positions of revolute joints are in degrees; else in rad. A unit in a column's name
        has priority.
    normalized : bool, optional
        Whether positions of a LeRobot dataset are -100 to 100 of the range of each joint.
    topic : str, optional
        Topic of a rosbag2 (default: the one named ``joint_states`` that has the arm's joints).
    episode : int, optional
        Episode of a LeRobot dataset; required if it has several.

    Returns
    -------
    MotionData
        ``time`` (n,) [s] from the first sample, ``q`` (n, nv) [rad or m], ``effort`` (n, nv)
        [N·m or N], ``command_position``, ``current`` [A] and ``voltage`` [V] (n, nv), or None if
        the file has none.
        ``source`` names the unit of the time if it was not s, and the topic or episode. ``notes``
        state choices of the reader: units, zeros, integer stamps, columns, interpolation.

    Raises
    ------
    RecordingError
        If the file cannot be read, or lacks the time or a joint.
    InvalidValue
        For stamps that decrease, rows of two sequences, a period that is plausible in s and in ms,
        too few samples, positions in degrees or mm, and implausible values.
    ConfigError
        For an option that does not belong to the file, two units, and without an optional library.

    """
    path = Path(path)
    if not path.exists():
        raise RecordingError(f"recording {path} = missing; expected {READABLE}")
    is_dataset = (path / "meta" / "info.json").is_file()
    is_table = is_dataset or path.suffix in (*TEXT, ".parquet")
    for option, value, fits in (
        ("columns", columns, is_table),
        ("topic", topic, not is_table),
        ("episode", episode, is_dataset),
        ("normalized", normalized or None, is_dataset),
    ):
        if value is not None and not fits:
            raise ConfigError(f"{path}: {option} = {value}; expected no {option} for this file")
    if degrees and normalized:
        raise ConfigError(f"{path}: positions = degrees and normalized; expected one of them")
    if is_dataset:
        return _of_table(arm, read_dataset(path, episode), columns, degrees, normalized)
    if is_table:
        table = read_csv(path) if path.suffix in TEXT else read_parquet(path)
        return _of_table(arm, table, columns, degrees)
    if path.suffix == ".db3":
        path = path.parent
    elif path.suffix == ".bag":
        raise RecordingError(
            f"{path}: format = ROS 1; expected a rosbag2; convert it with rosbags-convert"
        )
    elif path.is_file() and path.suffix != ".mcap":
        raise RecordingError(f"{path}: ending = '{path.suffix}'; expected {READABLE}")
    topics = bag.topic_types(path)
    if topic is None and topics.get(bag.DESCRIPTION) == bag.TYPES[bag.DESCRIPTION]:
        return _of_recording(arm, path, degrees)
    return _of_bag(arm, path, topics, topic, degrees)


def _of_recording(arm: ArmModel, path: Path, degrees: bool) -> MotionData:
    recording = Recording.load(path)
    at = _indices(arm, recording.joint_names, str(path))
    more = {} if degrees else {"v": recording.v}
    known = {"position": "command_position", "effort": "command_effort", "voltage": "voltage"}
    more |= {known[name]: x for name, x in recording.commands.items() if name in known}
    currents = [f"{joint}.current" for joint in recording.joint_names]
    if set(currents) <= set(recording.act_names):
        more["current"] = recording.act[:, [recording.act_names.index(n) for n in currents]]
    return _checked(
        arm, str(path), recording.time, recording.q[:, at], recording.tau[:, at], degrees,
        {name: x[:, at] for name, x in more.items()},
    )  # fmt: skip


def _of_bag(
    arm: ArmModel, path: Path, topics: Mapping[str, str], topic: str | None, degrees: bool
) -> MotionData:
    """Return the motion on one topic of a rosbag2."""
    found = [t for t, kind in topics.items() if kind == JOINT_STATE]
    if topic is not None and topic not in found:
        raise ConfigError(f"{path}: topic = {topic}; expected one of {listed(found)}")
    chosen = [topic] if topic else [t for t in found if not t.endswith(NOT_MEASURED)]
    if not chosen:
        raise RecordingError(f"{path}: no topic of {JOINT_STATE}; topics = {listed(topics)}")
    rows: dict[str, list[tuple[int, int, Matrix]]] = {}
    names: dict[str, None] = {}
    orders: dict[tuple[str, frozenset[str]], tuple[str, ...]] = {}
    fields = "position", "effort", "velocity"
    for name, time, message in bag.messages(path, dict.fromkeys(chosen, JOINT_STATE)):
        given = tuple(message.name)
        names |= dict.fromkeys(given)
        if not set(given) & set(arm.joint_names) or len(message.position) != len(given):
            continue
        order = orders.setdefault((name, frozenset(given)), given)
        if order != given:
            raise RecordingError(
                f"{path}: {name}: orders of the joints in messages = {listed(order)} and"
                f" {listed(given)}; expected one; these are messages of two publishers on one"
                " topic; record one of them (ros2 topic info -v lists the publishers)"
            )
        values = joint_values(arm.joint_names, given, [getattr(message, f) for f in fields])
        stamp = message.header.stamp
        rows.setdefault(name, []).append((stamp.sec * 10**9 + stamp.nanosec, time, values))
    rows = {t: found for t, found in rows.items() if has_all_joints([x[2] for x in found])}
    if not rows:
        _indices(arm, tuple(names), f"{path}: {', '.join(chosen)}")
        raise RecordingError(
            f"{path}: {', '.join(chosen)}: no messages with positions of all"
            f" joints {', '.join(arm.joint_names)} on one topic"
        )
    named = [t for t in rows if t.endswith("joint_states")] or list(rows)
    if len(named) > 1:
        raise RecordingError(
            f"{path}: topics with the joints of '{arm.name}' = {', '.join(named)}; expected one;"
            f" pass --topic {named[0]} (topic='{named[0]}')"
        )
    columns = list(zip(*rows[named[0]], strict=True))
    stamps = np.array(columns[0] if min(columns[0]) > 0 else columns[1], dtype=np.int64)
    source = str(path) if named[0] == bag.STATES else f"{path} ({named[0]})"
    joined, parts = combined((stamps - stamps[0]) * 1e-9, np.array(columns[2]), source)
    more = {} if degrees else {"v": parts[2]}
    at = stamps[0] + np.round(joined * 1e9).astype(np.int64)
    targets = _bag_targets(arm, path, topics, at, by_header=min(columns[0]) > 0)
    if targets is not None and not degrees:
        more["command_position"] = targets
    return _checked(arm, source, joined, parts[0], parts[1], degrees, more)


def _bag_targets(
    arm: ArmModel, path: Path, topics: Mapping[str, str], at: IntArray, *, by_header: bool
) -> Matrix | None:
    """Return the target positions (n, nv) before stamps (n,) [ns]; None without such a topic."""
    found = [t for t, kind in topics.items() if kind == JOINT_STATE and t.endswith(NOT_MEASURED)]
    if not found:
        return None
    rows: dict[str, list[tuple[int, Matrix]]] = {}
    for name, time, message in bag.messages(path, dict.fromkeys(found, JOINT_STATE)):
        values = joint_values(arm.joint_names, tuple(message.name), [message.position])[0]
        if np.isfinite(values).all():
            stamp = message.header.stamp
            rows.setdefault(name, []).append(
                (stamp.sec * 10**9 + stamp.nanosec if by_header else time, values)
            )
    if len(rows) != 1:
        return None
    stamps, values = (np.array(column) for column in zip(*next(iter(rows.values())), strict=True))
    latest = np.searchsorted(stamps, at, side="left") - 1
    targets: Matrix = np.where(latest[:, None] < 0, np.nan, values[latest])
    return targets


def _indices(arm: ArmModel, names: tuple[str, ...], source: str) -> list[int]:
    """Return where the joints of the arm are in ``names``; raises RecordingError."""
    missing = [joint for joint in arm.joint_names if joint not in names]
    if missing:
        raise RecordingError(
            f"{source}: joints = {listed(names)}; expected"
            f" {', '.join(arm.joint_names)}; missing: {', '.join(missing)}; rename or lock them"
        )
    return [names.index(joint) for joint in arm.joint_names]


def _of_table(
    arm: ArmModel,
    table: Table,
    columns: Mapping[str, str] | None,
    degrees: bool,
    normalized: bool = False,
) -> MotionData:
    """Return the motion in the columns of a table."""
    found = find_columns(arm.joint_names, table.names, table.source, columns)
    unit = position_scale(arm, table, found.position, degrees=degrees, normalized=normalized)

    def scaled(quantity: str, names: tuple[str, ...]) -> Matrix:
        values = []
        is_position = quantity in ("position", "target")
        for name, scale, zero in zip(names, unit.scale, unit.zero, strict=True):
            own = unit_scale(quantity, name)
            value = np.asarray(table.column(name), dtype=float)
            is_stated = own is not None or not is_position
            values.append(value * (own or 1.0) if is_stated else zero + value * scale)
        return np.stack(values, axis=1)

    time, source, notes = _table_time(table, found)
    notes = [*unit.notes, *notes, *_column_notes(table, found)]
    q = scaled("position", found.position)
    effort = None if found.effort is None else scaled("effort", found.effort)
    more = {
        name: scaled(quantity, names)
        for name, quantity, names in (
            ("command_position", "target", found.target),
            ("current", "current", found.current),
            ("voltage", "voltage", found.voltage),
        )
        if names is not None
    }
    load = effort if effort is not None else more.get("current")
    at = time
    given = q if load is None else np.concatenate((q, load), axis=1)
    if _are_separate(given):
        whole = int(np.isfinite(given).all(axis=1).sum())
        increasing_rows(time, source)
        at, joined = combined(time, given[:, None], source)
        q, load = joined[0][:, : arm.nv], None if load is None else joined[0][:, arm.nv :]
        what = "positions" if load is None else "positions and efforts"
        notes.append(
            f"{table.source}: rows with {what} of all joints = {whole} of {len(time)}; columns of"
            f" different topics are interpolated linearly to {len(at)} stamps"
        )
    for name, x in more.items():
        if effort is None and load is not None and name == "current":
            more[name] = load
        elif at is not time or _are_separate(np.concatenate((q, x), axis=1)):
            more[name] = _held(time, x, at)
    return _checked(arm, source, at, q, None if effort is None else load, more=more, notes=notes)


def _are_separate(values: Matrix) -> bool:
    """Return whether few rows hold all columns of ``values`` (n, k), each of which has some."""
    has = np.isfinite(values)
    counts = has.sum(axis=0)
    return bool(counts.min() > 1 and has.all(axis=1).sum() < TOGETHER * counts.min())


def _held(time: Vector, values: Matrix, at: Vector) -> Matrix:
    """Return the last value (m, nv) of each column until the stamps ``at`` (m,), else NaN."""
    held = np.full((len(at), values.shape[1]), np.nan)
    for i, column in enumerate(values.T):
        known = np.isfinite(column)
        latest = np.searchsorted(time[known], at, side="right") - 1
        held[latest >= 0, i] = column[known][latest[latest >= 0]]
    return held


def _table_time(table: Table, found: MotionColumns) -> tuple[Vector, str, list[str]]:
    """Return the stamps (n,) [s], the source with their unit, and notes about it."""
    raw = table.column(found.time)
    is_whole = raw.dtype.kind in "iu"
    raw = raw - raw[0] if len(raw) else raw  # integer stamps keep their last digits
    scale = unit_scale("time", found.time)
    if found.nanoseconds is not None:
        raw, scale = raw * 10**9 + table.column(found.nanoseconds), 1e-9
        raw = raw - raw[0] if len(raw) else raw
    if scale is not None:
        return raw * scale, table.source, []
    scale = _time_unit(np.asarray(raw, dtype=float), table.source, found.time)
    unit = {1.0: "s", 1e-3: "ms", 1e-6: "µs", 1e-9: "ns"}[scale]
    if scale == 1.0 and not is_whole:
        return raw * scale, table.source, []
    whole = "integers or dates" if scale == 1e-9 else "integers"
    kind = whole if is_whole else "numbers"
    steps = np.diff(raw)
    period = float(np.median(steps[steps > 0])) if (steps > 0).any() else np.nan
    note = (
        f"{table.source}: stamps in column '{found.time}' = {kind} without a unit, read as {unit}"
        f" (median period {period * scale:.4g} s)"
    )
    read_as = "" if scale == 1.0 else f" (column '{found.time}' read as {unit})"
    return raw * scale, f"{table.source}{read_as}", [note]


def _column_notes(table: Table, found: MotionColumns) -> list[str]:
    """Return a sentence about the columns of efforts if the table has others."""
    used = {x for part in (found.position, found.effort, found.current) if part for x in part}
    others = other_efforts(table.names, used)
    if not others or found.effort is None:
        return []
    return [
        f"{table.source}: efforts = columns {listed(found.effort)}; not used:"
        f" {listed(others)}; --column effort.JOINT=COLUMN selects others"
    ]


def _time_unit(time: Vector, source: str, name: str) -> float:
    """Return the factor to s of stamps (n,) by the plausibility of their median period."""
    steps = np.diff(time)
    steps = steps[steps > 0]
    if not steps.size:
        return 1.0
    period = float(np.median(steps))
    if AMBIGUOUS[0] <= period < AMBIGUOUS[1]:
        raise InvalidValue(
            f"{source}: median period of column '{name}' = {period:.3g}, plausible in s and"
            f" in ms; expected a unit in the name, as in '{name} [s]' or '{name} [ms]'"
        )
    for scale in (1.0, 1e-3, 1e-6, 1e-9):
        least = MIN_LOOP_PERIOD if scale == 1.0 else MIN_PERIOD
        if least <= period * scale < 1000 * MIN_PERIOD:
            return scale
    raise InvalidValue(
        f"{source}: median period of column '{name}' = {period:.3g}; expected 0.02 to 300 ms in s"
        f" or 0.3 to 300 ms in ms, µs or ns; put the unit into the name, as in '{name} [s]'"
    )


def _checked(
    arm: ArmModel,
    source: str,
    time: Vector,
    q: Matrix,
    effort: FloatArray | None,
    degrees: bool = False,
    more: Mapping[str, Matrix] = MappingProxyType({}),
    notes: Sequence[str] = (),
) -> MotionData:
    """Return the motion with increasing stamps, finite positions and efforts, from time 0."""
    if not len(time):
        raise RecordingError(f"{source}: samples = 0; expected a recorded motion")
    rows = increasing_rows(time - time[0], source)
    check_sizes({"position": q, "effort": effort, **more}, arm.joint_names, source)
    known: Any = np.isfinite(q).all(axis=1)
    to_rad = [np.pi / 180 if degrees and joint.unit == "rad" else 1.0 for joint in arm.joints]
    check_single_sequence(arm, time[known], q[known] * to_rad, source)
    if len(time) - len(rows) > MAX_REPEATED * len(time):
        repeated = f"{source}: stamps = {len(rows)} different of {len(time)}"
        if len(rows) < MIN_SAMPLES <= len(time):
            raise InvalidValue(
                f"{repeated}; expected a different one for each sample; write stamps with more"
                " digits"
            )
        notes = [*notes, f"{repeated}; samples with the stamp of the one before are dropped"]
    known = np.isfinite(q[rows]).any(axis=0)
    if not known.all():
        names = [name for name, x in zip(arm.joint_names, known, strict=True) if not x]
        raise RecordingError(
            f"{source}: positions of joints {', '.join(names)} = not a number in all samples;"
            " expected those of all joints; lock these joints"
        )
    rows = rows[np.isfinite(q[rows]).all(axis=1)]
    if effort is not None:
        measured: Any = np.isfinite(effort[rows])
        if not measured.any():
            effort = None
        elif not measured.any(axis=0).all():
            names = [n for n, x in zip(arm.joint_names, measured.any(axis=0), strict=True) if not x]
            raise RecordingError(
                f"{source}: no efforts of joints {', '.join(names)}; expected efforts of all"
                " joints or of none; lock these joints"
            )
        else:
            rows = rows[measured.all(axis=1)]
    time = time[rows] - (time[rows][0] if len(rows) else 0.0)
    require_samples(time, source)
    q = q[rows] * to_rad
    check_positions(arm, q, source)
    kept: dict[str, Any] = {name: x[rows] for name, x in more.items() if np.isfinite(x[rows]).any()}
    data = MotionData(arm.joint_names, time, q, None if effort is None else effort[rows], source)
    return replace(data, notes=tuple(notes), **kept)


def joint_values(
    joints: Sequence[str], names: Sequence[str], fields: Sequence[Sequence[float]]
) -> Matrix:
    """Return the values (fields, joints) of a message; NaN where it contains none."""
    joint_values = np.full((len(fields), len(joints)), np.nan)
    at = [(i, names.index(joint)) for i, joint in enumerate(joints) if joint in names]
    for row, values in zip(joint_values, fields, strict=True):
        if len(values) == len(names):
            for i, k in at:
                row[i] = values[k]
    return joint_values


def has_all_joints(rows: Sequence[Matrix]) -> bool:
    """Return whether messages (fields, joints) together contain positions of all joints."""
    found = np.zeros(rows[0].shape[1], dtype=bool)
    for row in rows:
        found |= np.isfinite(row[0])
        if found.all():
            return True
    return False


def combined(time: Vector, values: FloatArray, source: str) -> tuple[Vector, FloatArray]:
    """Return the values of all joints at common stamps.

    If messages contain all joints, the others are dropped, unless these are few. Otherwise joints
    are interpolated linearly to the stamps of the joint with the fewest messages. Values are NaN
    before the first and after the last message of their joint, and more than MAX_DISTANCE
    periods from any.

    Parameters
    ----------
    time : Vector
        Stamps (n,) [s] of the messages.
    values : FloatArray
        Values (n, fields, joints) with positions first; NaN where a message contains none.
    source : str
        File in messages.

    Returns
    -------
    tuple[Vector, FloatArray]
        Stamps (m,) [s] and values (fields, m, joints).

    Raises
    ------
    InvalidValue
        For stamps of a joint that decrease.

    """
    has = np.isfinite(values[:, 0])
    complete = has.all(axis=1)
    if complete.sum() >= TOGETHER * has.sum(axis=0).min():
        return time[complete], np.moveaxis(values[complete], 1, 0)
    for known in has.T:
        increasing_rows(time[known], source)
    order = np.argsort(time, kind="stable")  # messages of different publishers
    time, values, has = time[order], values[order], has[order]
    common = np.unique(time[has[:, np.argmin(has.sum(axis=0))]])
    found = np.full((values.shape[1], common.size, values.shape[2]), np.nan)
    for field, row in enumerate(found):
        for i in range(values.shape[2]):
            known = np.isfinite(values[:, field, i])
            if known.sum() > 1:
                own = time[known]
                row[:, i] = np.interp(common, own, values[known, field, i], np.nan, np.nan)
                after = np.clip(np.searchsorted(own, common), 1, own.size - 1)
                distance = np.minimum(np.abs(common - own[after - 1]), np.abs(own[after] - common))
                row[distance > MAX_DISTANCE * np.median(np.diff(own)), i] = np.nan
    return common, found
