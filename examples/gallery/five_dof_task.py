"""The tool of five_dof draws a square: empty, with a modeled and with an unmodeled payload."""

from __future__ import annotations

import numpy as np

from arm_dynamics.control.closed_loop_simulation import simulate_closed_loop
from arm_dynamics.control.controllers.controller import AXES
from arm_dynamics.control.controllers.task_space import TaskSpace
from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.figure_style import (
    INK,
    PALETTE,
    curves,
    figure,
    heading,
    label,
    legend,
    styled,
)
from arm_dynamics.core.state import State
from arm_dynamics.demos.demo_result import DemoFigure, DemoResult
from arm_dynamics.demos.square import upright_square
from arm_dynamics.model.load import load_arm
from arm_dynamics.simulation.trace import MotionRecord

START = (0.0, -0.9, 0.0, 0.0, 0.0)
SIDE, DURATION, SECONDS = 0.2, 1.5, 8.0
"""Side of the square [m], time of one side [s], simulated time [s]."""
PAYLOAD = 0.5
"""Payload at the tool [kg]."""
BANDWIDTH = 40.0
"""Natural frequency of the task-space loop [rad/s]."""
GAINS = {"p": BANDWIDTH**2, "d": 2 * BANDWIDTH}
MIN_DISTANCE = 1e-4
"""Smallest distance [mm] of the figure."""
PERIOD, DT, INTEGRATOR = 2e-3, 2e-4, "semi_implicit_euler"
RUNS = {
    "empty": (0.0, 0.0),
    "0.5 kg, modeled": (PAYLOAD, PAYLOAD),
    "0.5 kg, unmodeled": (PAYLOAD, 0.0),
}
"""Payload of the arm, and of the controller's model [kg]."""
Runs = dict[str, MotionRecord]


def square() -> CartesianTrajectory:
    """Return the square of five_dof."""
    return upright_square(load_arm("five_dof"), START, SIDE, DURATION)


def simulate(run: str) -> MotionRecord:
    """Simulate the square under operational-space control with efforts of the DC motors."""
    arm, (carried, modeled) = load_arm("five_dof"), RUNS[run]
    gains = {f"tool.{axis}": GAINS for axis in AXES} | {j: {"ki": 0.0} for j in arm.joint_names}
    controller = TaskSpace(arm.with_payload(modeled), gains)
    return simulate_closed_loop(
        arm.with_payload(carried), controller, square(), State.of(START),
        seconds=SECONDS, period=PERIOD, dt=DT, integrator=INTEGRATOR,
    )  # fmt: skip


def tool_error(trace: MotionRecord) -> Vector:
    """Return the distance (n,) [m] of the tool from its reference."""
    trajectory = square()
    desired = np.array([trajectory.at(t).position for t in trace.time.tolist()])
    return as_readonly(np.linalg.norm(trace.tool - desired, axis=1))


@styled
def show() -> DemoResult:
    """Draw the square, the tool error and the torques of all runs."""
    runs = {run: simulate(run) for run in RUNS}
    return DemoResult(
        "The tool draws a square", (square_figure(runs), torque_figure(runs)), key_figures(runs)
    )


def key_figures(runs: Runs) -> tuple[tuple[str, str], ...]:
    """Return the largest and the final distance of each run."""
    rows = []
    for run, trace in runs.items():
        error = 1e3 * tool_error(trace)
        rows.append((f"{run}: largest, final distance", f"{error.max():.2f}, {error[-1]:.3f} mm"))
    return tuple(rows)


@styled
def square_figure(runs: Runs) -> DemoFigure:
    """Draw the paths of the tool and its distances from the square."""
    drawn, ((path, distances),) = figure("A square by the tool of five_dof", 1, 2, 4.2)
    trajectory, time = square(), next(iter(runs.values())).time
    desired = np.array([trajectory.at(t).position for t in time.tolist()])
    path.plot(desired[:, 1], desired[:, 2], "--", color=INK, linewidth=1.0, label="square")
    for (run, trace), color in zip(runs.items(), PALETTE, strict=False):
        path.plot(*trace.tool[:, 1:].T, color=color, linewidth=1.3)
        distance = np.maximum(1e3 * tool_error(trace), MIN_DISTANCE)
        distances.semilogy(time, distance, color=color, label=run, linewidth=1.3)
    path.set_aspect("equal")
    legend(path)
    legend(distances)
    label(path, "y [m]", "z [m]")
    label(distances, "time [s]", "distance [mm]")
    caption = (
        "Operational-space control of 40 rad/s at 500 Hz, with efforts of the DC motors: sides of"
        " 0.2 m in 1.5 s each, from rest to rest. Empty, and with a modeled payload, an error of"
        " some micrometers remains, because a torque is constant for 2 ms. An unmodeled payload"
        " lowers the tool by its weight divided by the stiffness."
    )
    return DemoFigure("five_dof_task_square", caption, drawn)


@styled
def torque_figure(runs: Runs) -> DemoFigure:
    """Draw the torques of each run."""
    drawn, (row,) = figure("Torques of the joints along the square", 1, 3, 3.2, sharey=True)
    for axes, (run, trace) in zip(row, runs.items(), strict=True):
        curves(axes, trace.time, trace.tau, trace.arm.joint_names, linewidth=1.2)
        heading(axes, run)
        label(axes, "time [s]", "torque [N·m]")
        legend(axes)
    caption = "Commanded torques: empty, with the modeled and with the unmodeled payload."
    return DemoFigure("five_dof_task_torques", caption, drawn)
