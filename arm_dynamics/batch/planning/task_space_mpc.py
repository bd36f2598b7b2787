"""The controller "task_space_mpc": predictive control of the tool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pinocchio as pin

from arm_dynamics.batch.planning.joint_mpc import PERIOD, PERIODS, JointMpc
from arm_dynamics.collision.scene import Scene
from arm_dynamics.control.controllers.controller import AXES, Gains
from arm_dynamics.control.controllers.friction_compensation import FRICTION_COMPENSATION
from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
from arm_dynamics.control.trajectories.transition_blend import to_task_reference
from arm_dynamics.core.arrays import FloatArray, Vector
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.state import Reference, State, TaskReference
from arm_dynamics.dynamics.kinematics.closed_loop_ik import ClosedLoopIk
from arm_dynamics.dynamics.kinematics.tool_motion import axis_weights
from arm_dynamics.model.arm_model import ArmModel

SINGULAR_RATE = 1.0
"""Largest tracking rate [1/s] of the solution ahead near singular configurations, where errors
turn the joints up to 40 times as fast: steps of 20 ms are stable below 100/s."""


class TaskSpaceMpc(TaskSpaceController):
    """``JointMpc`` along the CLIK solution, with a cost of the tool: τ = MPC(q_r) + Jᵀ w.

    Plans use the solution ahead, computed from the targets ahead. ``tool.<axis>.weight`` is by
    default what the position errors of the joints cost that move the tool along this axis alone.
    Objects and limits move the arm off the solution where that costs least.

    Parameters
    ----------
    arm : ArmModel
        Model of the predictions.
    gains : Gains, optional
        Weights by joint and axis, and those of the group "controller".

    """

    parameters: ClassVar[tuple[Parameter, ...]] = JointMpc.parameters
    axis_parameters: ClassVar[tuple[Parameter, ...]] = JointMpc.axis_parameters
    controller_parameters: ClassVar[tuple[Parameter, ...]] = (
        *TaskSpaceController.controller_parameters,
        *(p for p in JointMpc.controller_parameters if p is not FRICTION_COMPENSATION),
    )

    def __init__(self, arm: ArmModel, gains: Gains | None = None) -> None:
        self.mpc, self._ahead = JointMpc(arm), ClosedLoopIk(arm)
        self._now, self._rows = 0.0, np.empty((0, 3, arm.nv))
        super().__init__(arm, gains)
        self.follow_references(self._continued)

    def set_gains(self, gains: Gains) -> None:
        """Set weights; errors as in Controller."""
        super().set_gains(gains)
        groups = self.mpc.parameter_groups.items()
        self.mpc.set_gains(
            {group: {p.name: self.values[group][p.name] for p in row} for group, row in groups}
        )

    def set_model(self, arm: ArmModel) -> None:
        """Set the model of the predictions, which is compiled; errors as in Controller."""
        self.mpc.set_model(arm)
        super().set_model(arm)
        self._ahead = ClosedLoopIk(arm)

    def default_gains(self) -> Gains:
        """Return the weights of ``JointMpc``, and those of the controlled axes."""
        joints = self.mpc.default_gains()
        weights = axis_weights(self.arm, [row["position_weight"] for row in joints.values()])
        pairs = zip(AXES, weights.tolist(), strict=True)
        return {**joints, **{f"tool.{axis}": {"weight": weight} for axis, weight in pairs}}

    @property
    def diagnostics(self) -> Mapping[str, str]:
        """As ``Mpc``."""
        return self.mpc.diagnostics

    def follow_references(self, ahead: Callable[[float], Reference]) -> None:
        """Use the targets of later times in plans; without them they continue at their twist."""
        self.mpc.follow_references(lambda time: self._joints_at(time, ahead))

    def use_scene(self, scene: Scene) -> None:
        """Avoid the fixed objects of a scene from the next plan on."""
        self.mpc.use_scene(scene)

    def reset(self, state: State) -> None:
        """Start the CLIK solution at the measured state, without plans."""
        super().reset(state)
        self.mpc.reset(state)

    def track(self, effort: Vector, state: State, wrench: Vector, dt: float) -> None:
        """Write the effort (nv,) [N·m] of the plan along ``clik``; the inputs are valid."""
        self._now, self._rows = state.time, self._rows[:0]
        value = self.mpc.update(state, Reference(*self.clik.joints[:3].copy()), dt).value
        if wrench.any():
            value = value + self.tool.motion(state.q, state.v).jacobian.T @ wrench
        np.clip(value, -self._limit, self._limit, out=effort)

    def _joints_at(self, time: float, ahead: Callable[[float], Reference]) -> Reference:
        """Return the joints of the solution at a time [s] from the present cycle on."""
        if not len(self._rows):
            self._rows = self._solution(ahead)
        at = min(max((time - self._now) / PERIOD, 0.0), float(PERIODS))
        k = min(int(at), PERIODS - 1)
        return Reference(*(self._rows[k] + (at - k) * (self._rows[k + 1] - self._rows[k])))

    def _solution(self, ahead: Callable[[float], Reference]) -> FloatArray:
        """Return q, v, a of the CLIK solution after each period (PERIODS + 1, 3, nv)."""
        clik, rows, gains = self._ahead, [self.clik.joints[:3]], dict(self.controller_gains)
        clik.copy_state(self.clik)
        threshold = gains["singular_value_threshold"] * clik.reach
        slower = min(1.0, SINGULAR_RATE / gains["tracking_rate"])
        for k in range(1, PERIODS + 1):
            target = to_task_reference(self.arm, ahead(self._now + k * PERIOD))
            scale = slower if clik.min_singular_value < threshold else 1.0
            rates = {x: scale * gains[x] for x in ("tracking_rate", "nullspace_rate")}
            clik.advance(target, PERIOD, gains | rates)
            rows.append(clik.joints[:3])
        return np.array(rows)

    def _continued(self, time: float) -> TaskReference:
        """Return the present target, moved with its twist to a later time [s]."""
        task, after = self.clik.task, time - self._now
        assert task is not None
        moved, turned = after * task.twist[:3], pin.exp3(after * task.twist[3:])
        return replace(task, position=task.position + moved, rotation=turned @ task.rotation)
