"""The tool on two lines: A within reach, B through the hole in the middle of the workspace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from arm_dynamics.control.closed_loop_simulation import simulate_closed_loop
from arm_dynamics.control.controllers.task_space import TaskSpace
from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
from arm_dynamics.control.trajectories.profiles import cubic
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.state import State
from arm_dynamics.demos import two_link_controllers as laws
from arm_dynamics.demos.planar import plane
from arm_dynamics.dynamics.kinematics.inverse_kinematics import inverse_kinematics
from arm_dynamics.model.load import load_arm
from arm_dynamics.simulation.trace import MotionRecord

DURATION, SECONDS, INTERVAL, DT = 4.0, 5.0, 2e-3, 2.5e-4
TOLERANCE = 1e-7
"""Of the published laws' integration."""
ELBOW = (-1.1, 1.8)
"""Where the search for the first posture begins [rad]."""
JOINT, TASK, OWN = "joint space", "task space", "operational space"
Runs = dict[str, dict[str, MotionRecord]]


@dataclass(frozen=True)
class ToolLine:
    """A straight line of the tool in the plane [m], in 4 s with a cubic's pace, then rest."""

    arm: str
    start: tuple[float, float]
    end: tuple[float, float]
    title: str

    def at(self, times: Vector) -> Vector:
        """Points (n, 2) [m]."""
        way = laws.Cubic.between(self.start, self.end, DURATION)
        return as_readonly([way.at(t)[0] for t in times.tolist()])

    def planned(self) -> CartesianTrajectory:
        """As a trajectory from the elbow-up posture; what is out of reach may stay so."""
        arm = load_arm(self.arm)
        first = inverse_kinematics(arm, _spread(self.start), initial_guess=ELBOW)
        rest = CartesianTrajectory.from_configuration(arm, first.q)
        return rest.line(_spread(self.end), cubic(DURATION))


LINES = {
    "A": ToolLine("two_link", (1.2, -0.6), (0.5, 1.3), "line A, within reach"),
    "B": ToolLine("two_link_pb", (0.9, -0.5), (-0.9, 0.8), "line B, through the hole"),
}


def simulate_published_controller(way: ToolLine, law: str) -> MotionRecord:
    """The report's law in continuous time; ``law`` is JOINT or TASK."""
    arm, planned = load_arm(way.arm), way.planned()
    ask = {JOINT: laws.resolved_rate, TASK: laws.task_space}[law]
    line = laws.Cubic.between(way.start, way.end, DURATION)
    return laws.run(
        arm, planned.posture.tolist(), ask(arm, line),
        seconds=SECONDS, period=INTERVAL, duration=DURATION, tolerance=TOLERANCE,
    )  # fmt: skip


def simulate_package_controller(way: ToolLine) -> MotionRecord:
    """The package's operational-space law, in a loop of 500 Hz."""
    arm, planned = load_arm(way.arm), way.planned()
    start = State.of(planned.posture)
    return simulate_closed_loop(
        arm, TaskSpace(arm, {joint: {"ki": 0.0} for joint in arm.joint_names}), planned, start,
        seconds=SECONDS, period=INTERVAL, dt=DT, integrator="semi_implicit_euler",
    )  # fmt: skip


def simulate() -> Runs:
    """Both lines under all laws."""
    return {
        name: {
            JOINT: simulate_published_controller(way, JOINT),
            TASK: simulate_published_controller(way, TASK),
            OWN: simulate_package_controller(way),
        }
        for name, way in LINES.items()
    }


def tool_error(way: ToolLine, trace: MotionRecord) -> Vector:
    """Distance (n,) [m] of the tool from where it should be."""
    return as_readonly(np.linalg.norm(plane(trace)[:, -1] - way.at(trace.time), axis=1))


def key_figures(runs: Runs) -> tuple[tuple[str, str], ...]:
    """Distance at the end, and the largest torque, of every run."""
    rows = []
    for name, found in runs.items():
        for law, trace in found.items():
            last, most = 1e3 * tool_error(LINES[name], trace)[-1], np.abs(trace.tau).max(axis=0)
            said = "{:.3f} mm, {:.0f}, {:.0f} N·m".format(last, *most)
            rows.append((f"line {name}, {law}: missed at the end, largest torques", said))
    return tuple(rows)


def _spread(x: tuple[float, float]) -> tuple[float, float, float]:
    return x[0], 0.0, x[1]
