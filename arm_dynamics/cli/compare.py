"""Compare the efforts that a model predicts with those of a recording.

Without efforts, positions of servos are compared.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from arm_dynamics.cli.arm_options import add_arm, build_arm, path_argument, require_new_file
from arm_dynamics.cli.motion_options import (
    RECORDING,
    add_currents_option,
    add_cutoff_option,
    add_motion_options,
    add_servo_option,
    has_loads,
    read_motions,
)
from arm_dynamics.cli.terminal import print_table, waiting
from arm_dynamics.core.requirements import require_matplotlib
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.identification import compare, compare_servos
from arm_dynamics.identification.efforts.effort_prediction import Prediction
from arm_dynamics.identification.servos.servo_fit import PositionPrediction
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording.motions.motion_checks import effort_scale_warning

MAX_GAP = 0.1
"""Time [s] between samples above which a curve of the figure is interrupted."""


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of ``arm-dynamics compare``."""
    parser = SuggestingParser(prog="arm-dynamics compare", description=__doc__)
    add_arm(parser)
    parser.add_argument("recording", type=path_argument, metavar="RECORDING", help=RECORDING)
    add_motion_options(parser)
    add_currents_option(parser)
    add_cutoff_option(parser)
    add_servo_option(parser)
    text = "new .png, .pdf or .svg file of measured and predicted curves and their differences"
    parser.add_argument("--figure", type=path_argument, metavar="FILE", help=text)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Print the error of the predicted effort or position of each joint; return 0."""
    args = command_parser().parse_args(arguments)
    if args.figure is not None:
        require_new_file("--figure", args.figure)
        require_matplotlib("--figure")
    arm = build_arm(args)
    with waiting(f"reading {args.recording}"):
        (motion,) = read_motions(arm, args, [args.recording])
        prediction: Prediction | PositionPrediction
        quantity, scale, units = "efforts", 1.0, ("N·m", "N")
        if args.servo or not has_loads([motion]):
            quantity, scale, units = "positions", 1e3, ("mrad", "mm")
            prediction = compare_servos(arm, motion, servos=args.servo)
        else:
            prediction = compare(arm, motion, cutoff=args.cutoff)
    columns = {
        "RMS measured": scale * prediction.measured_rms,
        "RMS error": scale * prediction.rms,
    }
    percents = {"error": prediction.relative_error}
    if isinstance(prediction, Prediction):
        columns["offset"] = prediction.offset
        percents["error without offset"] = prediction.relative_error_without_offset
    rows = [
        (
            joint.name,
            units[joint.kind == "prismatic"],
            *(_cell(f"{values[i]:.4g}") for values in columns.values()),
            *(_cell(f"{100 * values[i]:.3g} %") for values in percents.values()),
        )
        for i, joint in enumerate(arm.joints)
    ]
    for note in motion.notes:
        print(note)
    heads = ("joint", "unit", *columns, *percents)
    print_table(f"{arm.name}: predicted {quantity} along {args.recording}", heads, rows)
    if isinstance(prediction, Prediction):
        warning = effort_scale_warning(arm.joint_names, prediction.measured, prediction.predicted)
        if warning:
            print(warning)
        absent = np.array(arm.joint_names)[~prediction.counted.any(axis=0)].tolist()
        if absent:
            print(f"joints {', '.join(absent)}: at rest or saturated in all samples; not compared")
    if args.figure is not None:
        title = f"{arm.name}: {quantity} along {args.recording.name} (left), difference (right)"
        _draw(arm, prediction, title, scale, units, args.figure)
    return 0


def _cell(number: str) -> str:
    return "-" if number.startswith("nan") else number


def _draw(
    arm: ArmModel,
    prediction: Prediction | PositionPrediction,
    title: str,
    scale: float,
    units: tuple[str, str],
    file: Path,
) -> None:
    """Draw one row of axes per joint: measured and predicted curve, and their difference."""
    from arm_dynamics.core import figure_style as style  # noqa: PLC0415 - matplotlib is optional

    figure, grid = style.figure(title, arm.nv, 2, 1.3 * arm.nv + 0.8, sharex=True)
    measured, predicted = scale * prediction.measured, scale * prediction.predicted
    gaps = np.flatnonzero(np.diff(prediction.time) > MAX_GAP) + 1  # NaN interrupts a curve there
    time = np.insert(prediction.time, gaps, np.nan)
    for i, (joint, (left, right)) in enumerate(zip(arm.joints, grid, strict=True)):
        one, other = (np.insert(x[:, i], gaps, np.nan) for x in (measured, predicted))
        left.plot(time, one, color=style.INK, label="measured", linewidth=2.2)
        left.plot(time, other, color=style.PALETTE[1], label="predicted", linewidth=1.0)
        right.plot(time, one - other, color=style.PALETTE[0], linewidth=1.0)
        unit = units[joint.kind == "prismatic"]
        style.label(left, "", unit)
        left.set_title(joint.name, loc="left", fontsize=9)
        rms = scale * prediction.rms[i]
        right.set_title(f"RMS {rms:.3g} {unit}", loc="right", fontsize=9)
    style.legend(grid[0, 0])
    for axes in grid[-1]:
        style.label(axes, "time [s]", axes.get_ylabel())
    style.save(figure, file)
