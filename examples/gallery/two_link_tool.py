"""Two lines of the tool: A within the workspace, B through the hole in its middle.

The lines are simulated with three controllers; figures show the workspace, the paths and the poses.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import two_link_controllers as published
from matplotlib.axes import Axes

from arm_dynamics.control.closed_loop_simulation import simulate_closed_loop
from arm_dynamics.control.controllers.task_space import TaskSpace
from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
from arm_dynamics.control.trajectories.feasibility import solve_along
from arm_dynamics.control.trajectories.profiles import cubic
from arm_dynamics.core.arrays import Matrix, Vector, as_readonly
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
from arm_dynamics.core.state import State
from arm_dynamics.demos.demo_result import DemoFigure
from arm_dynamics.demos.planar import plane, snapshots
from arm_dynamics.dynamics.kinematics.frames import joint_origins
from arm_dynamics.dynamics.kinematics.inverse_kinematics import inverse_kinematics
from arm_dynamics.dynamics.kinematics.workspace import reachable_points
from arm_dynamics.model.load import load_arm
from arm_dynamics.simulation.trace import MotionRecord

DURATION, SECONDS, INTERVAL, DT = 4.0, 5.0, 2e-3, 2.5e-4
TOLERANCE = 1e-7
"""Tolerance of the integration of the published controllers."""
ELBOW = (-1.1, 1.8)
"""Initial guess of the first configuration [rad]."""
JOINT, TASK, OPERATIONAL = "joint space", "task space", "operational space"
Runs = dict[str, dict[str, MotionRecord]]
COLORS = dict(zip((JOINT, TASK, OPERATIONAL), PALETTE, strict=False))
POSTURES = 2000
"""Number of random configurations of the workspace figure."""
EVERY = 0.5
"""Interval of the snapshots [s]."""
MIN_DISTANCE = 1e-3
"""Smallest distance [mm] of the figure."""
POSES = (("A", TASK), ("B", JOINT), ("B", TASK), ("B", OPERATIONAL))


@dataclass(frozen=True)
class ToolLine:
    """A straight line of the tool in the plane [m], with a cubic time scaling of 4 s, then rest."""

    arm: str
    start: tuple[float, float]
    end: tuple[float, float]
    title: str

    def at(self, times: Vector) -> Matrix:
        """Return the points (n, 2) [m] of the line at ``times`` (n,) [s]."""
        cubic_line = published.Cubic.between(self.start, self.end, DURATION)
        return as_readonly([cubic_line.at(t)[0] for t in times.tolist()])

    def trajectory(self) -> CartesianTrajectory:
        """Return the line as a trajectory from elbow up, without a check of its reachability."""
        arm = load_arm(self.arm)
        first = inverse_kinematics(arm, _spread(self.start), initial_guess=ELBOW)
        rest = CartesianTrajectory.from_configuration(arm, first.q)
        return rest.line(_spread(self.end), cubic(DURATION))


LINES = {
    "A": ToolLine("two_link", (1.2, -0.6), (0.5, 1.3), "line A, within reach"),
    "B": ToolLine("two_link_pb", (0.9, -0.5), (-0.9, 0.8), "line B, through the hole"),
}


def simulate_published_controller(line: ToolLine, name: str) -> MotionRecord:
    """Simulate the published controller JOINT or TASK in continuous time."""
    arm, start = load_arm(line.arm), line.trajectory().posture.tolist()
    reference = {JOINT: published.resolved_rate, TASK: published.task_space}[name]
    cubic_line = published.Cubic.between(line.start, line.end, DURATION)
    return published.run(
        arm, start, reference(arm, cubic_line),
        seconds=SECONDS, period=INTERVAL, duration=DURATION, tolerance=TOLERANCE,
    )  # fmt: skip


def simulate_package_controller(line: ToolLine) -> MotionRecord:
    """Simulate operational-space control of this package at 500 Hz."""
    arm, trajectory = load_arm(line.arm), line.trajectory()
    controller = TaskSpace(arm, {joint: {"ki": 0.0} for joint in arm.joint_names})
    return simulate_closed_loop(
        arm, controller, trajectory, State.of(trajectory.posture),
        seconds=SECONDS, period=INTERVAL, dt=DT, integrator="semi_implicit_euler",
    )  # fmt: skip


def simulate() -> Runs:
    """Simulate both lines with all controllers."""
    return {
        name: {
            JOINT: simulate_published_controller(line, JOINT),
            TASK: simulate_published_controller(line, TASK),
            OPERATIONAL: simulate_package_controller(line),
        }
        for name, line in LINES.items()
    }


def tool_error(line: ToolLine, trace: MotionRecord) -> Vector:
    """Return the distance (n,) [m] of the tool from its reference."""
    return as_readonly(np.linalg.norm(plane(trace)[:, -1] - line.at(trace.time), axis=1))


def key_figures(runs: Runs) -> tuple[tuple[str, str], ...]:
    """Return the final distance and the largest torques of each run."""
    rows = []
    for name, traces in runs.items():
        for controller, trace in traces.items():
            last, most = 1e3 * tool_error(LINES[name], trace)[-1], np.abs(trace.tau).max(axis=0)
            text = "{:.3f} mm, {:.0f}, {:.0f} N·m".format(last, *most)
            rows.append((f"line {name}, {controller}: final distance, largest torques", text))
    return tuple(rows)


def _spread(x: tuple[float, float]) -> tuple[float, float, float]:
    return x[0], 0.0, x[1]


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
def workspace_figure() -> DemoFigure:
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
def path_figure(runs: Runs) -> DemoFigure:
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
def snapshot_figure(runs: Runs) -> DemoFigure:
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
