"""Reaching in closed loop: cost, targets and plant that all planners of a comparison have."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol

import numpy as np
import pinocchio as pin

from arm_dynamics import Command, Plant, State
from arm_dynamics.batch.kernels.cost import CostGeometry
from arm_dynamics.core.arrays import Vector
from arm_dynamics.dynamics import tool_pose
from arm_dynamics.model.arm_model import ArmModel

SAMPLES, PERIODS, PERIOD, KNOTS = 512, 30, 0.02, 5
DT, STEPS, SECONDS, TARGETS = 0.002, 5, 2.0, 10
RANGE = 0.6
"""Targets are tool positions of configurations at most this far from the start [rad]."""
POSITION, VELOCITY, EFFORT, EXCESS = 100.0, 0.02, 1e-5, 50.0
LAST_POSITION, LAST_VELOCITY = 1000.0, 1.0
Efforts = Callable[[State], Vector]
"""Efforts (nv,) of a plan at a state."""


def running(s: Any, p: Any) -> Any:
    """Cost of a stage."""
    e = s.tool_position - p.target
    cost = POSITION * (e @ e) + VELOCITY * (s.v @ s.v) + EFFORT * (s.command @ s.command)
    return cost + EXCESS * (s.position_excess @ s.position_excess)


def last(s: Any, p: Any) -> Any:
    """Cost of the last stage in addition."""
    e = s.tool_position - p.target
    return LAST_POSITION * (e @ e) + LAST_VELOCITY * (s.v @ s.v)


def batch_cost(e: Any, v: Any, inputs: Any, excess: Any) -> Any:
    """Return the cost (samples,) of arrays (samples, periods, n) of numpy or torch.

    e are distances of the tool from the target, ``inputs`` efforts or what replaces them.
    """
    terms = (POSITION, e), (VELOCITY, v), (EFFORT, inputs), (EXCESS, excess)
    final = (LAST_POSITION, e[:, -1]), (LAST_VELOCITY, v[:, -1])
    total = sum(weight * (x**2).sum((1, 2)) for weight, x in terms)
    return total + sum(weight * (x**2).sum(1) for weight, x in final)


class Program(Protocol):
    """A planner of the task."""

    def aim(self, target: Vector) -> None:
        """Start again, with another target (3,) [m]."""

    def plan(self, state: State) -> Efforts:
        """Return the plan from a state."""


class Motion(NamedTuple):
    """Sum of the running cost, final distance [m] and processor times of the plans [s]."""

    cost: float
    distance: float
    times: list[float]


class Task:
    """Motions of an arm from rest at q to random targets."""

    def __init__(self, arm: ArmModel, q: Vector) -> None:
        self.arm, self.q, self.plant, self.geometry = arm, q, Plant(arm), CostGeometry(arm)
        self.data = arm.model.createData()
        self.limits = np.array([joint.effort for joint in arm.joints])
        near = q + np.random.default_rng(1).uniform(-RANGE, RANGE, (TARGETS, arm.nv))
        self.targets = [tool_pose(arm, one)[0] for one in np.clip(near, arm.lower, arm.upper)]

    def reach(self, program: Program, target: Vector, late: float = 0.0) -> Motion:
        """Return a motion in which a plan made at t acts from t + ``late`` [s] on."""
        state, total, times, each = State.of(self.q), 0.0, list[float](), round(PERIOD / DT)
        follow, made, act = self._hold, self._hold, 0
        program.aim(target)
        for k in range(round(SECONDS / DT)):
            if k % each == 0 and k >= act:
                begin = time.process_time()
                made, act = program.plan(state), k + int(np.ceil(late / DT))
                times.append(time.process_time() - begin)
            if k == act:
                follow = made
            effort = np.clip(follow(state), -self.limits, self.limits)
            command = Command.checked("effort", effort, self.arm.nv)
            state = self.plant.step(state, command, DT / STEPS, STEPS)
            if k % each == each - 1:
                stage = self.geometry.stage(state, effort)
                total += float(running(stage, SimpleNamespace(target=target)))
        distance = np.linalg.norm(tool_pose(self.arm, state.q)[0] - target)
        return Motion(total, float(distance), times)

    def _hold(self, state: State) -> Vector:
        g: Vector = pin.computeGeneralizedGravity(self.arm.model, self.data, state.q)
        return g
