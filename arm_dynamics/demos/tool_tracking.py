"""The tool of five_dof follows a moving target: MPC with motor voltages, and computed torque."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.batch.kernels.cost import Cost
from arm_dynamics.batch.planning.horizon import Horizon
from arm_dynamics.batch.planning.ilqr import Ilqr
from arm_dynamics.batch.planning.mpc import Mpc
from arm_dynamics.batch.planning.planner import Planner
from arm_dynamics.control.closed_loop_simulation import simulate_closed_loop
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
from arm_dynamics.control.trajectories.feasibility import solve_along
from arm_dynamics.control.trajectories.joint_splines import spline_trajectory
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.core.arrays import Matrix, Vector, as_readonly
from arm_dynamics.core.compiled_math import squared
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.demos.demo_result import Animation
from arm_dynamics.demos.planar import View, animate
from arm_dynamics.model.load import load_arm
from arm_dynamics.simulation.trace import MotionRecord

START = (0.0, -0.9, 0.0, 0.0, 0.0)
"""Configuration at the start [rad]."""
FRONT = View((1, 2), (-0.18, 0.18, 0.05, 0.41))
"""View of the tool from the front."""
PERIOD, DT, REST = 5e-3, 5e-4, 0.3
"""Control period, time step of the plant, and simulated time after the motion [s]."""
PLAN_PERIOD, PERIODS = 0.01, 20
"""Time between two plans [s], and their number of periods."""
POSTURE_WEIGHT = 100.0
"""Cost of joint errors, which hold the orientation of the tool."""


@dataclass(frozen=True, eq=False)
class ToolTarget:
    """A path of the tool over time, and the joint motion of inverse kinematics along it."""

    path: CartesianTrajectory
    joints: JointTrajectory

    @classmethod
    def along(cls, path: CartesianTrajectory) -> ToolTarget:
        """Return the target along a path, which may exceed velocity limits."""
        found = solve_along(path.arm, path, period=PERIOD)
        return cls(path, spline_trajectory(list(found.q), found.times))

    def positions(self, times: Vector) -> Matrix:
        """Return the target (n, 3) [m] at ``times`` (n,) [s]."""
        return as_readonly([self.path.at(time).position for time in times.tolist()])

    def postures(self, times: Vector) -> Matrix:
        """Return the joint motion (n, nv) [rad] at ``times`` (n,) [s]."""
        return as_readonly([self.joints.at(time).q for time in times.tolist()])

    def distance(self, trace: MotionRecord) -> Vector:
        """Return the distances (n,) [mm] of the tool from the target."""
        return as_readonly(1e3 * np.linalg.norm(trace.tool - self.positions(trace.time), axis=1))


def tracking(s: Any, p: Any) -> Any:
    """Return the cost of a stage: distance of the tool, joint errors, voltages."""
    d = s.q - p.posture
    distance = sum(squared(x) for x in s.tool_position - p.target)
    return p.weight * (d @ d) + 1e4 * distance + 1e-5 * (s.command @ s.command)


class TrackingMpc(Mpc):
    """MPC with the target of the whole horizon, and with ``delay`` [s] in the prediction."""

    def __init__(
        self, target: ToolTarget, weight: float = POSTURE_WEIGHT, delay: float = 0.0
    ) -> None:
        nothing: dict[str, ArrayLike] = {
            "target": np.zeros(3),
            "posture": np.zeros(5),
            "weight": weight,
        }
        horizon = Horizon(PERIODS, PLAN_PERIOD, 20, delay=round(delay / PLAN_PERIOD))
        planner = Planner(
            load_arm("five_dof"), Cost(tracking, None, nothing), Ilqr(), horizon,
            interface="voltage",
        )  # fmt: skip
        self._target = target
        super().__init__(planner)

    def cost_parameters(self, state: State, reference: Reference) -> Mapping[str, ArrayLike]:
        """Return the target over the horizon."""
        del reference
        times, target = state.time + self.times, self._target
        return {"target": target.positions(times), "posture": target.postures(times)}


class Delayed(Controller):
    """A controller whose commands act ``delay`` [s] late; before the first one 0 acts."""

    def __init__(self, controller: Controller, delay: float) -> None:
        self.interface = controller.interface  # type: ignore[misc]
        self._controller, self._periods = controller, round(delay / PERIOD)
        super().__init__(controller.arm)

    def reset(self, state: State) -> None:
        """Forget all commands."""
        self._controller.reset(state)
        self._sent = deque([np.zeros(self.arm.nv)] * self._periods)

    def update(self, state: State, reference: Reference, dt: float) -> Command:
        """Return the command (nv,) of the time before the delay."""
        self._sent.append(self._controller.update(state, reference, dt).value)
        return Command(self.interface, self._sent.popleft(), state.time)


def follow(
    target: ToolTarget, controller: Controller, delay: float = 0.0, payload: float = 0.0
) -> MotionRecord:
    """Simulate the arm with a payload [kg] under a controller whose commands act late [s]."""
    arm = load_arm("five_dof").with_payload(payload)
    return simulate_closed_loop(
        arm, Delayed(controller, delay), target.joints, State.of(START),
        seconds=target.path.end + REST, period=PERIOD, dt=DT, integrator="semi_implicit_euler",
    )  # fmt: skip


def animate_front(
    name: str, title: str, runs: Mapping[str, MotionRecord], target: ToolTarget
) -> Animation:
    """Return an animation of runs (by title), seen from the front of the arm."""
    caption = "Arm, target (dot) and last second of the tool's path from the front, in real time."
    traces = tuple(runs.values())
    positions = target.positions(traces[0].time)
    return animate(name, caption, title, traces, tuple(runs), FRONT, (positions,))
