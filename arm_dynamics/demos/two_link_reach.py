"""Where the tool of the two-link arms can be, and pictures of its lines A and B."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from arm_dynamics.control.trajectories.feasibility import solve_along
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.figure_style import (
    FAINT,
    INK,
    PALETTE,
    figure,
    heading,
    label,
    legend,
    styled,
)
from arm_dynamics.demos.demo_result import DemoFigure
from arm_dynamics.demos.planar import plane, snapshots
from arm_dynamics.demos.two_link_tool import JOINT, LINES, OWN, TASK, Runs, ToolLine, tool_error
from arm_dynamics.dynamics.kinematics import joint_origins
from arm_dynamics.dynamics.kinematics.workspace import reachable_points
from arm_dynamics.model.load import load_arm

COLOURS = dict(zip((JOINT, TASK, OWN), PALETTE, strict=False))
POSTURES = 2000
"""Dots of the workspace."""
EVERY = 0.5
"""Pose snapshots [s]."""
MIN_DISTANCE = 1e-3
"""Distance [mm] below which the figure ends."""
POSES = (("A", TASK), ("B", JOINT), ("B", TASK), ("B", OWN))


def workspace_radii(arm: str) -> Vector:
    """|l1 - l2| and l1 + l2 (2,) [m], between which the tool of a two-link arm can be."""
    points = joint_origins(load_arm(arm), np.zeros(2))
    first, second = np.linalg.norm(np.diff(points, axis=0), axis=1)
    return as_readonly([abs(first - second), first + second])


def out_of_reach(way: ToolLine) -> list[tuple[float, float]]:
    """From when to when [s] the arm can not follow a line, found before it moves."""
    faults = solve_along(load_arm(way.arm), way.planned()).faults
    return [(part.begin, part.end) for part in faults]


@styled
def workspace() -> DemoFigure:
    """Postures' tools, the rims of the reach, and the lines."""
    drawn, (row,) = figure("Reachable workspace", 1, 2, 4.9, sharex=True, sharey=True)
    for axes, (name, way) in zip(row, LINES.items(), strict=True):
        dots = reachable_points(load_arm(way.arm), POSTURES).points
        axes.plot(dots[:, 0], dots[:, 2], ".", color=PALETTE[5], markersize=1.5, alpha=0.6)
        _rims(axes, way.arm, label="|l₁ ± l₂|")
        line = np.array([way.start, way.end])
        axes.plot(*line.T, color=PALETTE[1], label=f"line {name}", linewidth=2.0)
        for times in out_of_reach(way):
            axes.plot(*way.at(np.array(times)).T, color=INK, linewidth=3.5, label="out of reach")
        heading(axes, f"{way.arm}, {way.title}")
        _plane(axes)
    caption = (
        f"Tools of {POSTURES} random postures, and the two rims |l₁ - l₂| and l₁ + l₂. Rods of one"
        " length reach everything within 2 m; a shorter second rod leaves a hole round the base,"
        " and line B leads through it. The part that the arm can not follow is found, to a"
        " millisecond, before anything moves."
    )
    return DemoFigure("two_link_workspace", caption, drawn)


@styled
def paths(runs: Runs) -> DemoFigure:
    """Paths, distance from the line's moving point, torque of the first joint."""
    drawn, grid = figure("Straight lines of the tool under three laws", 3, 2, 9.0)
    for (path, away, torque), (name, found) in zip(grid.T, runs.items(), strict=True):
        way = LINES[name]
        time = next(iter(found.values())).time
        path.plot(*way.at(time).T, "--", color=INK, linewidth=1.0, label="line")
        if name == "B":
            _rims(path, way.arm, label="rim")
        for law, trace in found.items():
            options: Any = {"color": COLOURS[law], "linewidth": 1.4}
            path.plot(*plane(trace)[:, -1].T, **options)
            options["label"] = law.removesuffix(" space")
            away.semilogy(time, np.maximum(1e3 * tool_error(way, trace), MIN_DISTANCE), **options)
            torque.plot(time, trace.tau[:, 0], **options)
        heading(path, way.title)
        _plane(path)
        path.set(xlim=(-1.2, 1.8), ylim=(-0.8, 1.5))
        label(away, "", "distance [mm]")
        label(torque, "time [s]", "torque of J1 [N·m]")
        legend(away)
    drawn.align_ylabels()
    caption = (
        "A line at a cubic's pace for 4 s, then rest. Joint space: the report's resolved rates,"
        " q̇_r = J# ẋ_r, integrated without looking at the tool; what is lost is lost for good."
        " Task space: the report's q̇_r = J#(q) (ẋ_r + k e), which comes back. Operational space:"
        " the law task_space of this package, 500 Hz, which follows the point of its reach that it"
        " can get to. Line B enters the hole after 1.4 s and leaves it after 2.4 s; there"
        " no law can be near it, but the last one needs half of the torque and ends within a"
        " micrometre."
    )
    return DemoFigure("two_link_paths", caption, drawn)


@styled
def poses(runs: Runs) -> DemoFigure:
    """Arms every 0.5 s."""
    drawn, grid = figure("Poses along the lines", 2, 2, 7.6)
    for axes, (name, law) in zip(grid.flat, POSES, strict=True):
        trace = runs[name][law]
        snapshots(axes, trace, EVERY, float(trace.time[-1]))
        line = np.array([LINES[name].start, LINES[name].end])
        axes.plot(*line.T, "--", color=INK, linewidth=1.0)
        heading(axes, f"line {name}, {law}")
        axes.set(xlim=(-1.3, 1.5), ylim=(-1.15, 1.5))
    caption = (
        "Pose every 0.5 s, darker with time, and the path of the tool; dashed the line. On line B"
        " the law in joint space ends beside the target, the other two at it."
    )
    return DemoFigure("two_link_tool_poses", caption, drawn)


def _rims(axes: Axes, arm: str, **options: Any) -> None:
    angle = np.linspace(0, 2 * np.pi, 241)
    for k, radius in enumerate(workspace_radii(arm)):
        if radius > 0:
            x, z = radius * np.cos(angle), radius * np.sin(angle)
            axes.plot(x, z, ":", color=FAINT, **(options if k else {}))


def _plane(axes: Axes) -> None:
    label(axes, "x [m]", "z [m]")
    axes.set_aspect("equal")
    legend(axes)
