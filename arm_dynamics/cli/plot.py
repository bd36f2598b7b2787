"""``arm-dynamics plot FOLDER``: a recording's positions, velocities, efforts and commands."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from arm_dynamics.cli.arm_options import path_argument
from arm_dynamics.cli.terminal import waiting
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import ConfigError, UnknownName
from arm_dynamics.core.files import output_file
from arm_dynamics.core.requirements import to_install
from arm_dynamics.recording import Recording

LABELS = {
    "position": "position [rad; m]",
    "velocity": "velocity [rad/s; m/s]",
    "effort": "effort [N·m; N]",
}
UNITS = {"effort": "N·m; N", "voltage": "V", "position": "rad; m", "velocity": "rad/s; m/s"}


def run(arguments: Sequence[str]) -> int:
    """Draw the joints' curves over time into one PNG, PDF or SVG file."""
    given = _parser().parse_args(arguments)
    file = given.output or given.folder.with_name(f"{given.folder.name}.png")
    if file.exists():
        raise ConfigError(f"{file}: exists already; name a new file with --output")
    with waiting(f"reading {given.folder}"):
        recording = Recording.load(given.folder)
        names = given.joint or list(recording.joint_names)
        for name in names:
            if name not in recording.joint_names:
                raise UnknownName("joint of the recording", name, recording.joint_names)
        _draw(recording, names, given.folder.name, file)
    print(f"{file}: {recording.time.size} states of {', '.join(names)}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="arm-dynamics plot", description=__doc__)
    parser.add_argument("folder", type=path_argument, metavar="FOLDER", help="a recording")
    text = "joint to draw; repeat the option for each joint (default: all)"
    parser.add_argument("--joint", action="append", default=[], metavar="JOINT", help=text)
    text = "new .png, .pdf or .svg file (default: FOLDER.png)"
    parser.add_argument("--output", type=path_argument, metavar="FILE", help=text)
    return parser


def _draw(recording: Recording, names: Sequence[str], title: str, file: Path) -> None:
    try:
        from arm_dynamics.core import figure_style as style  # noqa: PLC0415 - matplotlib is optional
    except ModuleNotFoundError as error:
        raise ConfigError(f"a plot needs matplotlib: {to_install('plot')}") from error
    columns, parts = recording.columns(), dict(LABELS)
    for name in recording.commands:
        parts[f"command.{name}"] = f"{name} command [{UNITS.get(name, 'per joint')}]"
    figure, grid = style.figure(title, len(parts), 1, 2.2 * len(parts), sharex=True)
    for axes, (part, text) in zip(grid.flat, parts.items(), strict=True):
        for i, name in enumerate(names):
            line = ("-", "--", ":")[i // len(style.PALETTE) % 3]
            colour = style.PALETTE[i % len(style.PALETTE)]
            _curve(axes, recording.time, columns[f"{part}.{name}"], line, colour, name)
        style.label(axes, "", text)
    style.legend(grid.flat[0])
    style.label(grid.flat[-1], "time [s]", grid.flat[-1].get_ylabel())
    try:
        with output_file(file) as place:
            figure.savefig(place)
    except ValueError as error:  # a format that matplotlib does not write
        raise ConfigError(f"--output {file}: {error}") from error


def _curve(axes: Any, time: Vector, values: Vector, line: str, colour: str, name: str) -> None:
    """One joint; where the arm restarted earlier in time, the curve is interrupted."""
    back = np.flatnonzero(np.diff(time) < 0) + 1
    axes.plot(
        np.insert(time, back, np.nan), np.insert(values, back, np.nan), line, color=colour,
        label=name,
    )  # fmt: skip
