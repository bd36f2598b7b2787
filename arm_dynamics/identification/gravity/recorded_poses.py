"""Static poses: detection in a recorded motion, and their CSV file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.interpolate
import scipy.ndimage
from numpy.typing import ArrayLike

from arm_dynamics.core.arrays import BoolArray, Matrix, check_float
from arm_dynamics.core.errors import InvalidValue, RecordingError
from arm_dynamics.core.files import output_file
from arm_dynamics.identification.efforts.drive_gain_fit import required_gains, with_efforts
from arm_dynamics.identification.gravity.gravity_calibration import StaticPose, joint_stiffness
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording.motions.motion_checks import MAX_EFFORT, MAX_VALUE
from arm_dynamics.recording.motions.motion_columns import listed
from arm_dynamics.recording.motions.motion_data import MotionData
from arm_dynamics.recording.motions.motion_tables import read_csv

SMOOTHING_TIME = 0.1
"""Length of the average [s] that removes the noise of positions."""
REST_SPEED = 0.02
"""Speed [rad/s or m/s] of the average below which a joint is at rest."""
SETTLING_TIME = 0.25
"""Time [s] at the start of a rest that does not count, at most half of it."""
MIN_APPROACH = 2e-3
"""Displacement [rad or m] before rest that states a direction."""
APPROACH_TIME = 0.5
"""Time [s] before rest in which the displacement counts."""
MAX_EXCESS = 0.25
"""Distance from the position limits, over the range, beyond which a pose is impossible."""
COLUMNS = ("position", "effort", "approached")
"""Columns of a pose table for each joint: position.J1 …, effort.J1 …, approached.J1 …."""


def static_poses(
    motion: MotionData, rest: float = 0.5, *, stiffness: ArrayLike | None = None
) -> tuple[StaticPose, ...]:
    """Return the poses at which all joints of a recording rest.

    Position and effort of a pose are the averages over its rest without the first 0.25 s. A joint
    approached it in the direction of its displacement just before, else since the pose before; a
    joint that did not move keeps its direction.

    Parameters
    ----------
    motion : MotionData
        Recorded positions and efforts.
    rest : float
        Shortest time at rest [s].
    stiffness : ArrayLike, optional
        Stiffness (nv,) of position servos without an integral term [N·m/rad or N/m]; efforts are
        then stiffness (target position - position). Default: recorded efforts.

    Returns
    -------
    tuple of StaticPose
        Poses in the order of time.

    Raises
    ------
    InvalidValue
        For a recording without efforts or target positions, and if the arm never rests.

    """
    rest = check_float("rest [s]", rest, above=0)
    if stiffness is not None:
        motion = _with_servo_efforts(motion, stiffness)
    if motion.effort is None:
        raise InvalidValue(
            f"{motion.source}: no joint efforts in the recording, and positions at rest"
            " determine no mass; record efforts, or the target positions of position servos and"
            " set their stiffness (--stiffness)"
        )
    period = float(np.median(np.diff(motion.time)))
    time = np.arange(motion.time[0], motion.time[-1], period)
    interpolate = scipy.interpolate.make_interp_spline
    q, effort = (interpolate(motion.time, x, 1)(time) for x in (motion.q, motion.effort))
    smooth = scipy.ndimage.uniform_filter1d(q, max(1, round(SMOOTHING_TIME / period)), axis=0)
    direction, poses = np.zeros(q.shape[1]), list[StaticPose]()
    for first, still in _rests(smooth, period, rest):
        pose = q[still].mean(axis=0)
        before = poses[-1].q if poses else pose
        for start in (before, smooth[max(0, first - round(APPROACH_TIME / period))]):
            moved = pose - start
            direction = np.where(np.abs(moved) > MIN_APPROACH, np.sign(moved), direction)
        poses.append(StaticPose(pose, effort[still].mean(axis=0), direction.copy()))
    if not poses:
        raise InvalidValue(
            f"{motion.source}: poses at rest for {rest:g} s = 0; expected ten or more; hold the arm"
            " still at each pose"
        )
    return tuple(poses)


def _rests(q: Matrix, period: float, duration: float) -> list[tuple[int, slice]]:
    """Return the first sample of each rest of at least ``duration`` [s], and those that count."""
    speed: Matrix = np.abs(np.gradient(q, period, axis=0))
    quiet = np.asarray((speed < REST_SPEED).all(axis=1))
    edges = np.flatnonzero(np.diff(np.concatenate(([0], quiet.astype(int), [0]))))
    settled = round(SETTLING_TIME / period)
    return [
        (first, slice(min(first + settled, (first + last) // 2), last))
        for first, last in edges.reshape(-1, 2).tolist()
        if (last - first) * period >= duration
    ]


def recorded_poses(
    arm: ArmModel, motion: MotionData, *, stiffness: ArrayLike | None = None
) -> tuple[StaticPose, ...]:
    """Return ``static_poses``; efforts of currents follow from the torque constants of the arm."""
    if stiffness is None and motion.effort is None and motion.current is not None:
        motion = with_efforts(motion, required_gains(arm, motion.source))
    return static_poses(motion, stiffness=stiffness)


def different_poses(groups: Sequence[tuple[str, Sequence[StaticPose]]]) -> list[StaticPose]:
    """Return the poses of all sources; raises InvalidValue for a measurement in two of them."""
    earlier: dict[bytes, str] = {}  # positions and efforts of a pose
    for source, poses in groups:
        keys = [pose.q.tobytes() + pose.effort.tobytes() for pose in poses]
        repeated = [earlier[key] for key in keys if key in earlier]
        if repeated:
            raise InvalidValue(
                f"{source}: {len(repeated)} poses are identical to those of {repeated[0]};"
                " repeated measurements would count twice; omit one of the files"
            )
        earlier |= dict.fromkeys(keys, source)
    return [pose for _, poses in groups for pose in poses]


def write_poses(arm: ArmModel, poses: Sequence[StaticPose], path: Path) -> Path:
    """Write static poses: positions [rad or m], efforts [N·m or N] and directions of approach."""
    heads = [f"{part}.{joint}" for part in COLUMNS for joint in arm.joint_names]
    rows = [np.concatenate((pose.q, pose.effort, pose.direction)).tolist() for pose in poses]
    lines = [",".join(heads), *(",".join(map(repr, row)) for row in rows)]
    with output_file(path) as file:
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def is_pose_table(path: Path) -> bool:
    """Return whether a file begins with the names of ``write_poses``."""
    if path.suffix != ".csv" or not path.is_file():
        return False
    with path.open(encoding="utf-8", errors="replace") as file:
        heads = file.readline().split(",")
    return heads[0].startswith("position.") and heads[-1].startswith("approached.")


def read_poses(
    arm: ArmModel, path: Path, *, currents: bool = False, stiffness: ArrayLike | None = None
) -> list[StaticPose]:
    """Return the static poses of a file with the columns of ``write_poses``.

    Parameters
    ----------
    arm : ArmModel
        Arm whose joints the columns name.
    path : Path
        CSV file: position.J1 …, effort.J1 …, approached.J1 …. Instead of efforts it may have
        currents [A] (current.J1 …) or target positions [rad or m] (target.J1 …).
    currents : bool
        The efforts are motor currents [A]. Torque constants of the arm give the efforts.
    stiffness : ArrayLike, optional
        Stiffness (nv,) of position servos [N·m/rad or N/m], for target positions.

    Raises
    ------
    RecordingError
        For a file without these columns.
    InvalidValue
        For values that are not finite or impossible for the arm, with their row, and for currents
        of joints without a torque constant.

    """
    table = read_csv(path)
    has = {name.partition(".")[0] for name in table.names}
    load = "target" if stiffness is not None else "effort"
    if load == "effort" and "effort" not in has and "current" in has:
        load, currents = "current", True
    parts = ("position", load, "approached")
    names = [[f"{part}.{joint}" for joint in arm.joint_names] for part in parts]
    if missing := [name for part in names for name in part if name not in table.names]:
        raise RecordingError(
            f"{path}: columns = {listed(table.names)}; expected also {', '.join(missing)};"
            " pass the arm whose poses were measured"
        )
    q, loads, side = (np.stack([table.column(n) for n in part], axis=1) for part in names)
    _check_rows(arm, str(path), "position", q)
    if not np.isin(side, (-1, 0, 1)).all():
        k = int(np.flatnonzero(~np.isin(side, (-1, 0, 1)).all(axis=1))[0])
        raise InvalidValue(f"{path}: row {k + 1}: approached = {side[k]}; expected -1, 0 or 1")
    if stiffness is not None:
        _check_rows(arm, str(path), "target", loads)
        return [
            StaticPose.of_servo(own, target, stiffness, last)
            for own, target, last in zip(q, loads, side, strict=True)
        ]
    _check_rows(arm, str(path), "current" if currents else "effort", loads)
    efforts = loads * required_gains(arm, str(path)) if currents else loads
    _check_rows(arm, str(path), "effort", efforts)
    return [StaticPose(*row) for row in zip(q, efforts, side, strict=True)]


def _check_rows(arm: ArmModel, path: str, quantity: str, values: Matrix) -> None:
    """Raise InvalidValue for values (n, nv) that are not finite, or impossible for the arm.

    These are positions farther beyond their limits than MAX_EXCESS of the range, and efforts
    beyond MAX_EFFORT times their limit.
    """
    margin = MAX_EXCESS * (arm.upper - arm.lower)
    limit = np.where(arm.effort_limit > 0, MAX_EFFORT * arm.effort_limit, np.inf)
    lower, upper = {
        "position": (arm.lower - margin, arm.upper + margin),
        "target": (arm.lower - margin, arm.upper + margin),
        "effort": (-limit, limit),
    }.get(quantity, (-np.inf, np.inf))
    lower, upper = np.maximum(lower, -MAX_VALUE), np.minimum(upper, MAX_VALUE)
    impossible = ~((values >= lower) & (values <= upper))
    if not impossible.any():
        return
    k, i = (int(x) for x in np.argwhere(impossible)[0])
    units = {"current": "A", "effort": "N·m" if arm.joints[i].unit == "rad" else "N"}
    unit = units.get(quantity, arm.joints[i].unit)
    least, most = (np.broadcast_to(x, arm.nv)[i] for x in (lower, upper))
    raise InvalidValue(
        f"{path}: row {k + 1}: {quantity} of joint '{arm.joint_names[i]}' = {values[k, i]:.4g}"
        f" {unit}; expected {least:.4g} to {most:.4g} {unit}; correct or delete the row"
    )


def _with_servo_efforts(motion: MotionData, stiffness: ArrayLike) -> MotionData:
    """Return the samples with target positions, and efforts from their position errors."""
    recorded = motion.command_position
    targets = np.full_like(motion.q, np.nan) if recorded is None else recorded
    known: BoolArray = np.asarray(np.isfinite(targets).all(axis=1))
    if np.count_nonzero(known) < 2:
        raise InvalidValue(
            f"{motion.source}: no target positions in the recording, and the"
            " efforts of position servos are stiffness times target minus position; record target"
            " positions (columns target.JOINT)"
        )
    gains = joint_stiffness(stiffness, targets.shape[1])
    found = replace(motion, effort=gains * np.where(known[:, None], targets - motion.q, 0.0))
    return found.part(known)
