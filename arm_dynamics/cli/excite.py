"""Compute an excitation trajectory for the dynamic parameters of an arm, within its limits."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from arm_dynamics.cli.arm_options import (
    add_arm,
    add_options,
    add_scene,
    build_arm,
    path_argument,
    require_new_file,
    scene_of,
)
from arm_dynamics.cli.terminal import progress_bar
from arm_dynamics.core.number_option import Number, seed
from arm_dynamics.core.requirements import require_matplotlib
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.identification.excitation.excitation import (
    MAX_DURATION,
    MAX_HARMONICS,
    Excitation,
)
from arm_dynamics.identification.excitation.excitation_information import (
    excitation_quality,
    planned_effort,
)
from arm_dynamics.identification.excitation.excitation_limits import extreme_values
from arm_dynamics.identification.excitation.excitation_search import (
    CLEARANCE,
    HARMONICS,
    MIN_DURATION,
    excite,
)
from arm_dynamics.model.arm_model import ArmModel

FIGURE_SAMPLES = 2000
ROW = "{:<20} {:>18} {:>18} {:>15} {:>15}"
SHOWN = 12
"""Parameters in the list of unidentifiable ones."""


def run(arguments: Sequence[str]) -> int:
    """Search the trajectory, write it and print what is not identifiable from it."""
    args = command_parser().parse_args(arguments)
    require_new_file("--output", args.output)
    if args.figure is not None:
        require_new_file("--figure", args.figure)
        require_matplotlib("--figure")
    arm, scene = build_arm(args), scene_of(args)
    with progress_bar("motions") as progress:
        found = excite(
            arm,
            args.seconds,
            harmonics=int(args.harmonics),
            seed=int(args.seed),
            clearance=args.clearance / 1000,
            scene=scene,
            acceleration_limit=args.acceleration,
            progress=progress,
        )
    found.save(args.output)
    if args.figure is not None:
        _draw(arm, found, args.figure)
    _print_report(arm, found, args.output)
    if args.scene is None:
        print("not checked: the floor and objects around the arm (--scene)")
    return 0


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = SuggestingParser(prog="arm-dynamics excite", description=__doc__)
    add = parser.add_argument
    add_arm(parser)
    text = "new YAML file of the trajectory"
    add("--output", type=path_argument, required=True, metavar="FILE", help=text)
    number = Number("--seconds", MIN_DURATION, MAX_DURATION, "s")
    add("--seconds", type=number, default=40.0, metavar="S", help="duration [s] (default: 40)")
    number = Number("--harmonics", 1, MAX_HARMONICS, whole=True)
    text = f"harmonics of the Fourier series (default: {HARMONICS})"
    add("--harmonics", type=number, default=HARMONICS, metavar="N", help=text)
    text = "seed of the random numbers (default: 0)"
    add("--seed", type=seed("--seed"), default=0, metavar="N", help=text)
    number = Number("--clearance", 0.1, 1000, "mm")
    add_scene(parser)
    text = f"distance between links, and to objects [mm] (default: {CLEARANCE * 1000:g})"
    add("--clearance", type=number, default=CLEARANCE * 1000, metavar="MM", help=text)
    number = Number("--acceleration", 1e-3, 1e6, "rad/s²")
    text = "acceleration limit of every joint [rad/s²; m/s²] (default: none)"
    add("--acceleration", type=number, metavar="A", help=text)
    text = "new .png, .pdf or .svg file of positions, velocities and efforts with their limits"
    add("--figure", type=path_argument, metavar="FILE", help=text)
    add_options(parser, ("lock", "configuration"))
    return parser


def _print_report(arm: ArmModel, found: Excitation, file: Path) -> None:
    """Print the extremes of each joint, the condition number and what is not identifiable."""
    q, v, _ = extreme_values(found)
    times = np.linspace(0, found.duration, FIGURE_SAMPLES)
    effort = np.abs(planned_effort(arm, *found.sample(times))).max(axis=0)
    print(ROW.format("joint", "position [rad; m]", "limits", "velocity", "effort").rstrip())
    for i, joint in enumerate(arm.joints):
        fractions = np.abs(v[:, i]).max() / joint.velocity, effort[i] / joint.effort
        print(
            ROW.format(
                joint.name,
                f"{q[0, i]:.3f} to {q[1, i]:.3f}",
                f"{joint.lower:.3f} to {joint.upper:.3f}",
                *(f"{x:.0%} of limit" for x in fractions),
            )
        )
    quality = excitation_quality(arm, found)
    print(
        f"{file}: {found.duration:g} s, {found.periods} periods of {1 / found.frequency:.3g} s,"
        f" {found.harmonics} harmonics; condition number {quality.condition:.3g} of"
        f" {quality.base.size} base parameters"
    )
    hidden = quality.unidentifiable
    if hidden:
        count = f"{len(hidden)} of {quality.base.size} base parameters"
        print(f"not identifiable from this trajectory: {count}")
        print(*(f"  {text}" for text in hidden[:SHOWN]), sep="\n")
        if len(hidden) > SHOWN:
            print(f"  ... {len(hidden) - SHOWN} more")
    else:
        print("all base parameters are identifiable from this trajectory")


def _draw(arm: ArmModel, found: Excitation, file: Path) -> None:
    """Draw one row of axes per joint: position, velocity and effort with their limits."""
    from arm_dynamics.core import figure_style as style  # noqa: PLC0415 - matplotlib is optional

    times = np.linspace(0, found.duration, FIGURE_SAMPLES)
    q, v, a = found.sample(times)
    title = f"Excitation of {arm.name}: {found.duration:g} s"
    figure, grid = style.figure(title, arm.nv, 3, 1.5 * arm.nv + 0.8, sharex=True)
    effort = planned_effort(arm, q, v, a)
    for i, (joint, row) in enumerate(zip(arm.joints, grid, strict=True)):
        limits = (
            (joint.lower, joint.upper),
            (-joint.velocity, joint.velocity),
            (-joint.effort, joint.effort),
        )
        for axes, values, ends in zip(row, (q, v, effort), limits, strict=True):
            axes.plot(times, values[:, i], color=style.PALETTE[0])
            for limit in filter(np.isfinite, ends):
                axes.axhline(limit, color=style.PALETTE[1], linestyle="--", linewidth=1.0)
        style.label(row[0], "", joint.name)
    headings = "position [rad; m]", "velocity [rad/s; m/s]", "effort [N·m; N]"
    for axes, heading in zip(grid[0], headings, strict=True):
        style.heading(axes, heading)
    for axes in grid[-1]:
        style.label(axes, "time [s]", axes.get_ylabel())
    style.save(figure, file)
