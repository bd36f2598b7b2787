"""Options of commands that read recorded motion."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from arm_dynamics.cli.arm_options import named_values
from arm_dynamics.core.number_option import Number
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording import MotionData, load_motion
from arm_dynamics.recording.motions.motion_checks import check_units

RECORDING = (
    "recorded motion: folder of a recording, rosbag2 or LeRobot dataset, or .mcap, .csv or"
    " .parquet file; DATASET:N is episode N of a dataset"
)


def add_motion_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of recorded motion, from --lock to --episode."""
    add = parser.add_argument
    text = "movable joint to lock; repeat the option for each joint"
    add("--lock", action="append", default=[], metavar="JOINT", help=text)
    text = "column of a file: time=t, position.J1=angle_1, effort.J1=torque_1, target.J1=goal_1,"
    text += " current.J1=amps_1, voltage.J1=volts_1; repeat for each"
    add("--column", action="append", default=[], metavar="NAME=COLUMN", help=text)
    text = "positions of revolute joints are in degrees (default: rad)"
    add("--degrees", action="store_true", help=text)
    text = "positions of a LeRobot dataset are -100 to 100 of the range of each joint"
    add("--normalized", action="store_true", help=text)
    text = "topic of a rosbag2 (default: the one named joint_states)"
    add("--topic", metavar="TOPIC", help=text)
    text = "episode of the LeRobot datasets that have no :N"
    add("--episode", type=Number("--episode", 0, 1e6, whole=True), metavar="N", help=text)


def add_currents_option(parser: argparse._ActionsContainer) -> None:
    """Add --currents."""
    text = "efforts of the recordings are motor currents [A]"
    parser.add_argument("--currents", action="store_true", help=text)


def add_cutoff_option(parser: argparse.ArgumentParser) -> None:
    """Add --cutoff."""
    text = "cut-off frequency of the filter [Hz] (default: from the spectrum of the positions)"
    number = Number("--cutoff", 0.01, 1e4, "Hz")
    parser.add_argument("--cutoff", type=number, metavar="HZ", help=text)


def add_servo_option(parser: argparse.ArgumentParser) -> None:
    """Add --servo."""
    text = "position servos, for example sts3215 or J1=xl430; repeat for each joint: use positions"
    text += " and target positions instead of efforts (default for recordings without efforts and"
    text += " currents, with the motors that the URDF names)"
    parser.add_argument("--servo", action="append", default=[], metavar="[JOINT=]NAME", help=text)


def has_loads(motions: Sequence[MotionData]) -> bool:
    """Return whether any motion has joint efforts or motor currents."""
    return any(motion.effort is not None or motion.current is not None for motion in motions)


def read_motions(
    arm: ArmModel, args: argparse.Namespace, paths: Sequence[Path]
) -> list[MotionData]:
    """Return the motions of ``paths``; print warnings of ``check_units``."""
    columns = named_values("--column", args.column, "NAME=COLUMN, for example time=t")
    motions = []
    for path_text in paths:
        path, episode = _path_and_episode(path_text, args.episode)
        motion = load_motion(
            arm, path, columns=columns or None, degrees=args.degrees,
            normalized=args.normalized, topic=args.topic, episode=episode,
        )  # fmt: skip
        if getattr(args, "currents", False) and motion.effort is not None:
            motion = replace(motion, effort=None, current=motion.effort)
        for warning in check_units(arm, motion):
            print(f"warning: {warning}", file=sys.stderr)
        motions.append(motion)
    return motions


def _path_and_episode(path: Path, episode: int | None) -> tuple[Path, int | None]:
    """Return the folder and the episode of "DATASET:N", else the path and ``episode``."""
    name, separator, number = path.name.rpartition(":")
    if separator and number.isdecimal() and not path.exists():
        return path.with_name(name), int(number)
    return path, episode
