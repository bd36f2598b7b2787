"""Workspace of the two-link arms, and figures of the lines A and B of the tool."""

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
from arm_dynamics.demos.two_link_tool import (
    JOINT,
    LINES,
    OPERATIONAL,
    TASK,
    Runs,
    ToolLine,
    tool_error,
)
from arm_dynamics.dynamics.kinematics import joint_origins
from arm_dynamics.dynamics.kinematics.workspace import reachable_points
from arm_dynamics.model.load import load_arm

COLORS = dict(zip((JOINT, TASK, OPERATIONAL), PALETTE, strict=False))
POSTURES = 2000
"""Number of random configurations of the workspace figure."""
EVERY = 0.5
"""Interval of the snapshots [s]."""
MIN_DISTANCE = 1e-3
"""Smallest distance [mm] of the figure."""
POSES = (("A", TASK), ("B", JOINT), ("B", TASK), ("B", OPERATIONAL))


def workspace_radii(arm: str) -> Vector:
    """Return the workspace radii |l1 - l2| and l1 + l2 of a two-link arm, shape (2,) [m]."""
    points = joint_origins(load_arm(arm), np.zeros(2))
    first, second = np.linalg.norm(np.diff(points, axis=0), axis=1)
    return as_readonly([abs(first - second), first + second])


def out_of_reach(line: ToolLine) -> list[tuple[float, float]]:
    """Return begin and end [s] of each unreachable part of a line, without simulation."""
    faults = solve_along(load_arm(line.arm), line.trajectory()).faults
    return [(part.begin, part.end) for part in faults]


@styled
def workspace() -> DemoFigure:
    """Draw tool positions of random configurations, the workspace boundary and the lines."""
    drawn, (row,) = figure("Reachable workspace", 1, 2, 4.9, sharex=True, sharey=True)
    for axes, (name, line) in zip(row, LINES.items(), strict=True):
        dots = reachable_points(load_arm(line.arm), POSTURES).points
        axes.plot(dots[:, 0], dots[:, 2], ".", color=PALETTE[5], markersize=1.5, alpha=0.6)
        _draw_boundary(axes, line.arm, label="|l₁ ± l₂|")
        ends = np.array([line.start, line.end])
        axes.plot(*ends.T, color=PALETTE[1], label=f"line {name}", linewidth=2.0)
        for times in out_of_reach(line):
            axes.plot(*line.at(np.array(times)).T, color=INK, linewidth=3.5, label="out of reach")
        heading(axes, f"{line.arm}, {line.title}")
        _plane(axes)
    caption = (
        f"Tool positions of {POSTURES} random configurations, and the workspace boundary |l₁ - l₂|,"
        " l₁ + l₂. Rods of equal length reach every point within 2 m. A shorter second rod leaves a"
        " hole around the base, and line B crosses it. The unreachable part of the line is computed"
        " to a millisecond before the motion starts."
    )
    return DemoFigure("two_link_workspace", caption, drawn)


@styled
def paths(runs: Runs) -> DemoFigure:
    """Draw paths, distances from the reference and torques of the first joint."""
    drawn, grid = figure("Straight lines of the tool with three controllers", 3, 2, 9.0)
    for (path, distance, torque), (name, traces) in zip(grid.T, runs.items(), strict=True):
        line = LINES[name]
        time = next(iter(traces.values())).time
        path.plot(*line.at(time).T, "--", color=INK, linewidth=1.0, label="line")
        if name == "B":
            _draw_boundary(path, line.arm, label="boundary")
        for controller, trace in traces.items():
            options: Any = {"color": COLORS[controller], "linewidth": 1.4}
            path.plot(*plane(trace)[:, -1].T, **options)
            options["label"] = controller.removesuffix(" space")
            error = np.maximum(1e3 * tool_error(line, trace), MIN_DISTANCE)
            distance.semilogy(time, error, **options)
            torque.plot(time, trace.tau[:, 0], **options)
        heading(path, line.title)
        _plane(path)
        path.set(xlim=(-1.2, 1.8), ylim=(-0.8, 1.5))
        label(distance, "", "distance [mm]")
        label(torque, "time [s]", "torque of J1 [N·m]")
        legend(distance)
    drawn.align_ylabels()
    caption = (
        "A line with a cubic time scaling for 4 s, then rest. Joint space: the published resolved"
        " rates, q̇_r = J# ẋ_r, integrated without feedback of the tool, so an error remains. Task"
        " space: the published q̇_r = J#(q) (ẋ_r + k e), which corrects the error. Operational"
        " space: the controller task_space of this package at 500 Hz, which tracks the nearest"
        " reachable point. Line B enters the hole after 1.4 s and leaves it after 2.4 s. No"
        " controller can track the line there, but the last one needs half of the torque and ends"
        " within a micrometer of the target."
    )
    return DemoFigure("two_link_paths", caption, drawn)


@styled
def poses(runs: Runs) -> DemoFigure:
    """Draw the arm every 0.5 s."""
    drawn, grid = figure("Snapshots along the lines", 2, 2, 7.6)
    for axes, (name, controller) in zip(grid.flat, POSES, strict=True):
        trace = runs[name][controller]
        snapshots(axes, trace, EVERY, float(trace.time[-1]))
        line = np.array([LINES[name].start, LINES[name].end])
        axes.plot(*line.T, "--", color=INK, linewidth=1.0)
        heading(axes, f"line {name}, {controller}")
        axes.set(xlim=(-1.3, 1.5), ylim=(-1.15, 1.5))
    caption = (
        "The arm every 0.5 s, darker with time, and the path of the tool; dashed: the line. On line"
        " B the joint-space controller does not reach the target; the other two do."
    )
    return DemoFigure("two_link_tool_poses", caption, drawn)


def _draw_boundary(axes: Axes, arm: str, **options: Any) -> None:
    angle = np.linspace(0, 2 * np.pi, 241)
    for k, radius in enumerate(workspace_radii(arm)):
        if radius > 0:
            x, z = radius * np.cos(angle), radius * np.sin(angle)
            axes.plot(x, z, ":", color=FAINT, **(options if k else {}))


def _plane(axes: Axes) -> None:
    label(axes, "x [m]", "z [m]")
    axes.set_aspect("equal")
    legend(axes)
