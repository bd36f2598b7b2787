"""Plot positions, velocities, efforts and commands of a recording."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from arm_dynamics.cli.arm_options import path_argument, require_new_file
from arm_dynamics.cli.terminal import waiting
from arm_dynamics.core.errors import UnknownName
from arm_dynamics.core.requirements import require_matplotlib
from arm_dynamics.recording import Recording

LABELS = {
    "position": "position [rad; m]",
    "velocity": "velocity [rad/s; m/s]",
    "effort": "effort [N·m; N]",
}
UNITS = {"effort": "N·m; N", "voltage": "V", "position": "rad; m", "velocity": "rad/s; m/s"}


def run(arguments: Sequence[str]) -> int:
    """Plot the joints over time into one PNG, PDF or SVG file."""
    parser = argparse.ArgumentParser(prog="arm-dynamics plot", description=__doc__)
    parser.add_argument("folder", type=path_argument, metavar="FOLDER", help="recording")
    text = "joint to plot; repeat the option for each joint (default: all)"
    parser.add_argument("--joint", action="append", default=[], metavar="JOINT", help=text)
    text = "new .png, .pdf or .svg file (default: FOLDER.png)"
    parser.add_argument("--output", type=path_argument, metavar="FILE", help=text)
    args = parser.parse_args(arguments)
    file = args.output or args.folder.with_name(f"{args.folder.name}.png")
    require_new_file("--output", file)
    require_matplotlib("plot")
    with waiting(f"reading {args.folder}"):
        recording = Recording.load(args.folder)
        names = args.joint or list(recording.joint_names)
        for name in names:
            if name not in recording.joint_names:
                raise UnknownName("joint of the recording", name, recording.joint_names)
        _plot(recording, names, args.folder.name, file)
    print(f"{file}: {recording.time.size} states of {', '.join(names)}")
    return 0


def _plot(recording: Recording, names: Sequence[str], title: str, file: Path) -> None:
    """Draw one row of axes per quantity and one curve per joint; write ``file``."""
    from arm_dynamics.core import figure_style as style  # noqa: PLC0415 - matplotlib is optional

    columns, parts = recording.columns(), dict(LABELS)
    for name in recording.commands:
        parts[f"command.{name}"] = f"{name} command [{UNITS.get(name, 'per joint')}]"
    figure, grid = style.figure(title, len(parts), 1, 2.2 * len(parts), sharex=True)
    restarts = np.flatnonzero(np.diff(recording.time) < 0) + 1  # NaN interrupts a curve there
    time = np.insert(recording.time, restarts, np.nan)
    for axes, (part, text) in zip(grid.flat, parts.items(), strict=True):
        for i, name in enumerate(names):
            line = ("-", "--", ":")[i // len(style.PALETTE) % 3]
            color = style.PALETTE[i % len(style.PALETTE)]
            values = np.insert(columns[f"{part}.{name}"], restarts, np.nan)
            axes.plot(time, values, line, color=color, label=name)
        style.label(axes, "", text)
    style.legend(grid.flat[0])
    style.label(grid.flat[-1], "time [s]", grid.flat[-1].get_ylabel())
    style.save(figure, file)
