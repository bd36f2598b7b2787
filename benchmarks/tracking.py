"""Tracking errors of the bundled arms on trajectories at their limits: table of docs/tracking.md.

``python benchmarks/tracking.py [ARM ...]`` prints a row for each arm, controller and payload.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from arm_dynamics import ControlLoop, Simulation, load_arm
from arm_dynamics.control.config import build_controller
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.trajectories.effort_check import check_effort
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.control.trajectories.trajectory_parsing import parse_trajectory
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import TrajectoryRejected
from arm_dynamics.hardware.simulation_driver import SimulationDriver
from arm_dynamics.model.arm_model import ArmModel

EFFORT_FRACTION = 0.9
"""Fraction of the limits of velocity, effort and supply voltage with which moves are planned."""
SHORT, LONG = 0.5, 2.0
"""Distances of a move [rad], reduced to the joint limits."""
SPACING = 0.01
"""Time [s] between two waypoints."""
PERIOD = 2e-3
AFTER = 0.5
"""Time [s] after the trajectory in which errors count; the last column is the error at its end."""
RATED = {
    "five_dof": 0.5,
    "four_joint": 0.3,
    "puma560": 2.3,
    "seven_dof_can": 0.5,
    "so101": 0.2,
    "three_link": 0.5,
    "two_link": 0.5,
    "two_link_pb": 0.3,
}
"""Payload [kg] for which the gains in config/ are designed."""
PROFILES = ("cubic", "quintic", "trapezoidal")


@dataclass(frozen=True)
class Move:
    """Move from the initial configuration by ``distance`` (nv,) [rad] along a profile."""

    label: str
    distance: Vector
    profile: str


def profile(kind: str, count: int) -> tuple[Vector, Vector, Vector, Vector]:
    """Return s, the path p(s) from 0 to 1 and two derivatives at ``count`` even times of [0, 1].

    The trapezoidal profile accelerates for a third of its duration.
    """
    s = np.linspace(0, 1, count)
    if kind == "cubic":
        return s, 3 * s**2 - 2 * s**3, 6 * s - 6 * s**2, 6 - 12 * s
    if kind == "quintic":
        p = 10 * s**3 - 15 * s**4 + 6 * s**5
        return s, p, 30 * s**2 * (1 - s) ** 2, 60 * s - 180 * s**2 + 120 * s**3
    ends = np.minimum(s, 1 - s)
    p = np.where(ends < 1 / 3, 2.25 * ends**2, 1.5 * ends - 0.25)
    v = np.where(ends < 1 / 3, 4.5 * ends, 1.5)
    return s, np.where(s < 0.5, p, 1 - p), v, np.zeros(count)


def planned(arm: ArmModel, move: Move, start: float) -> JointTrajectory:
    """Return the shortest move, in steps of 5 %, within EFFORT_FRACTION of the limits of ``arm``.

    Waypoints are those of MoveIt: positions and velocities, for quintics also accelerations.
    """
    peak = float(profile(move.profile, 301)[2].max())
    duration = float(np.max(np.abs(move.distance) * peak / (EFFORT_FRACTION * arm.velocity_limit)))
    weak = arm
    for joint, actuator in zip(arm.joint_names, arm.actuators, strict=True):
        supply = actuator.constants.get("supply_voltage", np.inf)
        if np.isfinite(supply):
            weak = weak.with_motor(joint, supply_voltage=EFFORT_FRACTION * supply)
    for _ in range(200):
        trajectory = _trajectory(arm, move, duration, start)
        try:
            check_effort(weak, trajectory, EFFORT_FRACTION * arm.effort_limit)
        except TrajectoryRejected:
            duration *= 1.05
        else:
            return trajectory
    raise SystemExit(f"{arm.name}, {move.label}: no duration satisfies the limits")


def _trajectory(arm: ArmModel, move: Move, duration: float, start: float) -> JointTrajectory:
    count = 3 * max(2, round(duration / SPACING / 3)) + 1
    s, p, v, a = profile(move.profile, count)
    rows = (
        arm.configuration("initial") + np.outer(p, move.distance),
        np.outer(v, move.distance) / duration,
    )
    if move.profile == "quintic":
        rows = (*rows, np.outer(a, move.distance) / duration**2)
    return parse_trajectory(arm, arm.joint_names, (s * duration).tolist(), *rows, start=start)


def moves(arm: ArmModel) -> Iterator[Move]:
    """Yield moves of each joint and of all joints, short and long, with each profile."""
    start = arm.configuration("initial")
    up, down = arm.upper - start, start - arm.lower
    for length in (SHORT, LONG):
        distance = np.where(up >= np.minimum(length, down), np.minimum(length, up), 0.0)
        distance = np.where(distance > 0, distance, -np.minimum(length, down))
        each = [*np.diag(distance), distance]
        for name, row in zip((*arm.joint_names, "all"), each, strict=True):
            for kind in PROFILES:
                yield Move(f"{name}, {length:g} rad, {kind}", row, kind)


def errors(arm: ArmModel, controller: str, payload: float, known: float, move: Move) -> Vector:
    """Return |q_ref - q| (periods, nv) [rad] of a move with ``payload`` [kg].

    The controller's model contains ``known`` [kg] of it. The move is planned for the payload.
    """
    loaded = arm.with_payload(payload)
    used = build_controller(arm, controller)
    used.set_model(arm.with_payload(known))
    loop = ControlLoop(SimulationDriver(arm, Simulation(loaded, nominal=arm, dt=1e-4)), used)
    for _ in range(10 if known == payload else 1500):
        loop.step()
    trajectory = planned(loaded, move, loop.state.time + 2 * PERIOD)
    loop.follow(trajectory)
    found = []
    while loop.state.time < trajectory.end + AFTER:
        loop.step()
        found.append(np.abs(loop.reference.q - loop.state.q))
    return np.array(found)


def row(name: str, controller: str, payload: float, known: float) -> str:
    """Return a row of the table: the maximum error of all moves and that at their ends."""
    arm = load_arm(name)
    worst, at, end = 0.0, "", 0.0
    for move in moves(arm):
        found = errors(arm, controller, payload, known, move)
        end = max(end, float(found[-1].max()))
        if found.max() > worst:
            joint = arm.joint_names[int(found.max(axis=0).argmax())]
            worst, at = float(found.max()), f"{joint} ({move.label})"
    suffix = "" if payload == known else ", unmodeled"
    figures = f"{1e3 * worst:.1f} | {at} | {1e3 * end:.2f}"
    return f"| {name} | {controller} | {payload:g}{suffix} | {figures} |"


def main(names: Sequence[str]) -> None:
    """Print the rows of the named arms, or of all."""
    warnings.simplefilter("ignore", RuntimeWarning)  # small margins of pid_gravity
    print("| arm | controller | payload [kg] | max error [mrad] | joint (move) ", end="")
    print("| at the end [mrad] |")
    print("|---|---|---|---|---|---|")
    for name in names or RATED:
        rated = RATED[name]
        usual = plugin_name(build_controller(load_arm(name)))
        for controller in dict.fromkeys((usual, "pid_gravity")):
            for payload, known in ((0.0, 0.0), (rated, rated), (rated, 0.0)):
                if controller == usual or known == payload:
                    print(row(name, controller, payload, known), flush=True)


def plugin_name(controller: Controller) -> str:
    """Return the registered name of a controller of the package."""
    return type(controller).__module__.rpartition(".")[2]


if __name__ == "__main__":
    main(sys.argv[1:])
