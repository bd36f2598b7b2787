"""Two lines of the tool: A within the workspace, B through the hole in its middle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from arm_dynamics.control.closed_loop_simulation import simulate_closed_loop
from arm_dynamics.control.controllers.task_space import TaskSpace
from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
from arm_dynamics.control.trajectories.profiles import cubic
from arm_dynamics.core.arrays import Matrix, Vector, as_readonly
from arm_dynamics.core.state import State
from arm_dynamics.demos import two_link_controllers as published
from arm_dynamics.demos.planar import plane
from arm_dynamics.dynamics.kinematics.inverse_kinematics import inverse_kinematics
from arm_dynamics.model.load import load_arm
from arm_dynamics.simulation.trace import MotionRecord

DURATION, SECONDS, INTERVAL, DT = 4.0, 5.0, 2e-3, 2.5e-4
TOLERANCE = 1e-7
"""Tolerance of the integration of the published controllers."""
ELBOW = (-1.1, 1.8)
"""Initial guess of the first configuration [rad]."""
JOINT, TASK, OPERATIONAL = "joint space", "task space", "operational space"
Runs = dict[str, dict[str, MotionRecord]]


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
