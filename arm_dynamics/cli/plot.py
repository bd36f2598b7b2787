"""Plot positions, tracking errors, velocities, efforts and commands of a recording."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path

import numpy as np

from arm_dynamics.cli.arm_options import path_argument, require_new_file
from arm_dynamics.cli.terminal import waiting
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import UnknownName
from arm_dynamics.core.requirements import require_matplotlib
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.model.arm_model import Joint
from arm_dynamics.recording import Recording

UNITS = {"position": "rad", "velocity": "rad/s", "effort": "N·m", "voltage": "V"}
PRISMATIC_UNITS = {"position": "m", "velocity": "m/s", "effort": "N"}
LINES = ("-", "--", ":")
"""Lines of the joints, each for one palette of colors."""
MAX_GAP = 0.25
"""Time [s] without values that interrupts a curve; references of other processes come at 50 Hz."""
NEAR_LIMIT = 0.2
"""Distance of a curve from a limit, as a fraction of the range, at which the limit is shown."""


def run(arguments: Sequence[str]) -> int:
    """Plot the joints over time into one PNG, PDF or SVG file."""
    parser = SuggestingParser(prog="arm-dynamics plot", description=__doc__)
    parser.add_argument("folder", type=path_argument, metavar="FOLDER", help="recording")
    text = "joint to plot; repeat the option for each joint (default: all)"
    parser.add_argument("--joint", action="append", default=[], metavar="JOINT", help=text)
    text = "new .png, .pdf or .svg file (default: FOLDER.png)"
    parser.add_argument("--output", type=path_argument, metavar="FILE", help=text)
    text = "show the limits of every joint; otherwise only those near its curve"
    parser.add_argument("--limits", action="store_true", help=text)
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
        _plot(recording, names, args.folder.name, file, all_limits=args.limits)
    print(f"{file}: {recording.time.size} states of {', '.join(names)}")
    error = recording.position_error
    if error is None:
        print("tracking error: not shown, the recording has no references")
        return 0
    columns = error[:, [recording.joint_names.index(name) for name in names]]
    finite = columns[np.isfinite(columns).all(axis=1)]
    for name, values in zip(names, finite.T, strict=True):
        unit = _unit("position", _joints(recording, [name]))
        rms, largest = np.sqrt(np.mean(values**2)), np.abs(values).max(initial=0.0)
        print(f"{name}: position error {rms:.3g} {unit} RMS, {largest:.3g} {unit} at most")
    return 0


def _joints(recording: Recording, names: Sequence[str]) -> list[Joint]:
    """Return the recorded joints of these names; empty if the recording does not describe them."""
    arm = recording.arm
    if arm is None or not set(names) <= set(arm.joint_names):
        return []
    return [arm.joints[arm.joint_names.index(name)] for name in names]


def _unit(quantity: str, joints: Sequence[Joint]) -> str:
    """Return the unit of a quantity: of both kinds of joints if they are not described."""
    revolute, prismatic = UNITS.get(quantity), PRISMATIC_UNITS.get(quantity)
    if revolute is None:
        return "per joint"
    kinds = [joint.kind == "prismatic" for joint in joints] or [True, False]
    shown = (revolute,) * (not all(kinds)) + (prismatic or revolute,) * any(kinds)
    return "; ".join(dict.fromkeys(shown))


def _limits(part: str, joint: Joint) -> tuple[float, ...]:
    """Return the finite limits of one kind of axes."""
    limits = {
        "position": (joint.lower, joint.upper),
        "velocity": (-joint.velocity, joint.velocity),
        "effort": (-joint.effort, joint.effort),
    }
    return tuple(x for x in limits.get(part.removeprefix("command."), ()) if isfinite(x))


def _plot(
    recording: Recording, names: Sequence[str], title: str, file: Path, *, all_limits: bool
) -> None:
    """Draw one row of axes per quantity and one curve per joint; write ``file``.

    References are dashed, limits dotted. Limits far from a joint's curve are omitted unless
    ``all_limits``, because they would flatten the curves.
    """
    from arm_dynamics.core import figure_style as style  # noqa: PLC0415 - matplotlib is optional

    def color(i: int) -> str:
        return style.PALETTE[i % len(style.PALETTE)]

    columns, joints = recording.columns(), _joints(recording, names)
    parts = {part: part for part in ("position", "velocity", "effort")}
    if recording.position_error is not None:
        parts = {"position": "position", "error": "position error"} | parts
        for name, values in zip(recording.joint_names, recording.position_error.T, strict=True):
            columns[f"error.{name}"] = values
    parts |= {f"command.{name}": f"{name} command" for name in recording.commands}
    figure, grid = style.figure(title, len(parts), 1, 2.2 * len(parts), sharex=True)
    has_limits = False
    for axes, (part, text) in zip(grid.flat, parts.items(), strict=True):
        for i, name in enumerate(names):
            curve = _curve(recording.time, columns[f"{part}.{name}"])
            axes.plot(*curve, LINES[i // len(style.PALETTE) % 3], color=color(i), label=name)
            reference = columns.get(f"reference.{part}.{name}")
            if reference is not None:
                curve = _curve(recording.time, reference)
                axes.plot(*curve, "--", color=style.INK, linewidth=0.9, zorder=3)
        for i, joint in enumerate(joints):
            limits, values = _limits(part, joint), columns[f"{part}.{joint.name}"]
            near = NEAR_LIMIT * np.ptp(limits) if limits else 0.0
            for limit in limits:
                if all_limits or (np.abs(values - limit) <= near).any():
                    axes.axhline(limit, color=color(i), linestyle=":", linewidth=1.2)
                    has_limits = True
        quantity = {"error": "position"}.get(part, part.removeprefix("command."))
        style.label(axes, "", f"{text} [{_unit(quantity, joints)}]")
    if recording.references:
        grid.flat[0].plot([], [], "--", color=style.INK, linewidth=0.9, label="reference")
    if has_limits:
        grid.flat[0].plot([], [], ":", color=style.INK, linewidth=1.2, label="limit")
    style.legend(grid.flat[0])
    style.label(grid.flat[-1], "time [s]", grid.flat[-1].get_ylabel())
    style.save(figure, file)


def _curve(time: Vector, values: Vector) -> tuple[Vector, Vector]:
    """Return times and values of a curve; NaN interrupts it in a gap and where time steps back."""
    known = np.flatnonzero(np.isfinite(values))
    steps = np.diff(time[known])
    longest = max(MAX_GAP, 2 * float(np.median(np.diff(time)))) if time.size > 1 else MAX_GAP
    breaks = np.flatnonzero((steps < 0) | (steps > longest)) + 1
    return np.insert(time[known], breaks, np.nan), np.insert(values[known], breaks, np.nan)
