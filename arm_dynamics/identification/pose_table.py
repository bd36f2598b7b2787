"""Static poses as a CSV file: position.J1 …, effort.J1 …, approached.J1 … for each joint."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from arm_dynamics.core.errors import RecordingError
from arm_dynamics.core.files import output_file
from arm_dynamics.identification.gravity_calibration import StaticPose
from arm_dynamics.identification.motion_tables import read_csv
from arm_dynamics.model.arm_model import ArmModel

COLUMNS = ("position", "effort", "approached")


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


def read_poses(arm: ArmModel, path: Path) -> list[StaticPose]:
    """Return the static poses that ``write_poses`` wrote; raises RecordingError, InvalidValue."""
    table = read_csv(path)
    names = [[f"{part}.{joint}" for joint in arm.joint_names] for part in COLUMNS]
    missing = [name for part in names for name in part if name not in table.names]
    if missing:
        raise RecordingError(
            f"{path}: columns = {', '.join(table.names)}; expected also {', '.join(missing)};"
            " pass the arm whose poses were measured"
        )
    q, effort, side = (np.stack([table.column(n) for n in part], axis=1) for part in names)
    return [StaticPose(*row) for row in zip(q, effort, side, strict=True)]
