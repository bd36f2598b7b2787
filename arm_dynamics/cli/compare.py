"""Compare the efforts that a model predicts with those of a recording.

Without efforts, positions of servos are compared.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from arm_dynamics.cli.arm_options import add_arm, path_argument
from arm_dynamics.cli.motion_options import (
    RECORDING,
    add_motion_options,
    add_servo_option,
    fits_positions,
    read_motions,
)
from arm_dynamics.cli.terminal import waiting
from arm_dynamics.identification import (
    PositionPrediction,
    Prediction,
    compare,
    compare_servos,
)
from arm_dynamics.model.load import load_arm


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of ``arm-dynamics compare``."""
    parser = argparse.ArgumentParser(prog="arm-dynamics compare", description=__doc__)
    add_arm(parser)
    parser.add_argument("recording", type=path_argument, metavar="RECORDING", help=RECORDING)
    add_motion_options(parser)
    add_servo_option(parser)
    return parser


def run(arguments: Sequence[str]) -> int:
    """Print the error of the predicted effort or position of each joint; return 0."""
    args = command_parser().parse_args(arguments)
    arm = load_arm(args.arm, args.lock)
    with waiting(f"reading {args.recording}"):
        (motion,) = read_motions(arm, args, [args.recording])
        prediction: Prediction | PositionPrediction
        quantity, scale, units = "efforts", 1.0, ("N·m", "N")
        if fits_positions(args, [motion]):
            quantity, scale, units = "positions", 1e3, ("mrad", "mm")
            prediction = compare_servos(arm, motion, servos=args.servo)
        else:
            prediction = compare(arm, motion, cutoff=args.cutoff)
    table = Table("joint", "unit", "RMS measured", "RMS error", "error", title_justify="left")
    table.title = f"{arm.name}: predicted {quantity} along {args.recording}"
    rows = zip(arm.joints, scale * prediction.rms, prediction.relative_error, strict=True)
    for joint, rms, relative in rows:
        unit = units[joint.kind == "prismatic"]
        table.add_row(
            joint.name, unit, f"{rms / max(relative, 1e-12):.4g}", f"{rms:.4g}",
            f"{100 * relative:.3g} %",
        )  # fmt: skip
    Console().print(table)
    return 0
