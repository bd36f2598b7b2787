"""The tool of five_dof draws a square: empty, and with a payload that the law knows or does not."""

from __future__ import annotations

import numpy as np

from arm_dynamics.control.closed_loop_simulation import simulate_closed_loop
from arm_dynamics.control.controllers.controller import AXES
from arm_dynamics.control.controllers.task_space import TaskSpace
from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
from arm_dynamics.control.trajectories.profiles import quintic
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
from arm_dynamics.model.load import load_arm
from arm_dynamics.simulation.trace import MotionRecord

START = (0.0, -0.9, 0.0, 0.0, 0.0)
SIDE, DURATION, SECONDS = 0.2, 1.5, 8.0
"""Of the square [m], of one of its sides [s], and of the whole [s]."""
PAYLOAD = 0.5
"""At the tool [kg]."""
BANDWIDTH = 40.0
"""Natural frequency of the tool's loop [rad/s]."""
GAINS = {"p": BANDWIDTH**2, "d": 2 * BANDWIDTH}
MIN_DISTANCE = 1e-4
"""Distance [mm] below which the figure ends."""
PERIOD, DT, METHOD = 2e-3, 2e-4, "semi_implicit_euler"
RUNS = {
    "empty": (0.0, 0.0),
    "0.5 kg, known": (PAYLOAD, PAYLOAD),
    "0.5 kg, unknown": (PAYLOAD, 0.0),
}
"""Payload of the arm, and that of the law's model [kg]."""
Runs = dict[str, MotionRecord]


def square() -> CartesianTrajectory:
    """Upright, across the arm's front: from the middle of its upper side, clockwise."""
    arm = load_arm("five_dof")
    way = CartesianTrajectory.from_configuration(arm, START)
    top = way.position
    across, down = np.array([0, SIDE / 2, 0]), np.array([0, 0, -SIDE])
    for k, corner in enumerate([across, across + down, down - across, -across, 0 * across]):
        way = way.line(top + corner, quintic(DURATION if 0 < k < 4 else DURATION / 2))
    return way


def simulate(run: str) -> MotionRecord:
    """The square under operational-space control, efforts through the DC motors."""
    arm, (carried, known) = load_arm("five_dof"), RUNS[run]
    gains = {f"tool.{axis}": GAINS for axis in AXES} | {j: {"ki": 0.0} for j in arm.joint_names}
    law = TaskSpace(arm.with_payload(known), gains)
    return simulate_closed_loop(
        arm.with_payload(carried), law, square(), State.of(START),
        seconds=SECONDS, period=PERIOD, dt=DT, integrator=METHOD,
    )  # fmt: skip


def tool_error(trace: MotionRecord) -> Vector:
    """Distance (n,) [m] of the tool from where it should be."""
    way = square()
    wanted = np.array([way.at(t).position for t in trace.time.tolist()])
    return as_readonly(np.linalg.norm(trace.tool - wanted, axis=1))


@styled
def show() -> DemoResult:
    """The square, how far the tool is from it, and the torques."""
    runs = {run: simulate(run) for run in RUNS}
    return DemoResult("The tool draws a square", (_square(runs), _torques(runs)), _numbers(runs))


def _numbers(runs: Runs) -> tuple[tuple[str, str], ...]:
    said = []
    for run, trace in runs.items():
        away = 1e3 * tool_error(trace)
        said.append(
            (f"{run}: largest distance, at the end", f"{away.max():.2f}, {away[-1]:.3f} mm")
        )
    return tuple(said)


def _square(runs: Runs) -> DemoFigure:
    drawn, ((path, away),) = figure("A square by the tool of five_dof", 1, 2, 4.2)
    way, time = square(), next(iter(runs.values())).time
    wanted = np.array([way.at(t).position for t in time.tolist()])
    path.plot(wanted[:, 1], wanted[:, 2], "--", color=INK, linewidth=1.0, label="square")
    for (run, trace), colour in zip(runs.items(), PALETTE, strict=False):
        path.plot(*trace.tool[:, 1:].T, color=colour, linewidth=1.3)
        distance = np.maximum(1e3 * tool_error(trace), MIN_DISTANCE)
        away.semilogy(time, distance, color=colour, label=run, linewidth=1.3)
    path.set_aspect("equal")
    legend(path)
    legend(away)
    label(path, "y [m]", "z [m]")
    label(away, "time [s]", "distance [mm]")
    caption = (
        "Operational-space law of 40 rad/s, 500 Hz, whose efforts pass through the DC motors:"
        " sides of 0.2 m in 1.5 s each, from rest to rest. Empty, and with a payload that the law"
        " was told of, some micrometres remain, as a torque is held for 2 ms. A payload that it"
        " does not know pulls the tool down, by its weight over the stiffness."
    )
    return DemoFigure("five_dof_task_square", caption, drawn)


def _torques(runs: Runs) -> DemoFigure:
    drawn, (row,) = figure("Torques of the joints along the square", 1, 3, 3.2, sharey=True)
    for axes, (run, trace) in zip(row, runs.items(), strict=True):
        curves(axes, trace.time, trace.tau, trace.arm.joint_names, linewidth=1.2)
        heading(axes, run)
        label(axes, "time [s]", "torque [N·m]")
        legend(axes)
    caption = "What the law asks of the motors, empty and with the payload, known and unknown."
    return DemoFigure("five_dof_task_torques", caption, drawn)
