"""Reaching by ``pytorch-mppi``, which has no dynamics of arms, with torch on the CPU.

The model is a double integrator of joint accelerations with forward kinematics by
``pytorch-kinematics``; inverse dynamics makes efforts of the accelerations. Accelerations replace
the efforts of the cost. Samples are splines of control points (``KMPPI``) in float32, kinematics
and cost of all states one call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pinocchio as pin
import torch
from pytorch_kinematics import build_serial_chain_from_urdf
from pytorch_mppi import KMPPI
from pytorch_mppi.mppi import RBFKernel
from reaching_task import KNOTS, PERIOD, PERIODS, SAMPLES, Efforts, batch_cost

from arm_dynamics import State
from arm_dynamics.core.arrays import Vector
from arm_dynamics.model.arm_model import ArmModel

WIDTH = 2.0
"""Deviation of the interpolation kernel [periods]."""


class PytorchMppi:
    """Planner of pytorch-mppi."""

    def __init__(self, arm: ArmModel, noise: float, temperature: float, threads: int) -> None:
        assert arm.source is not None
        self.arm, self.data, n = arm, arm.model.createData(), arm.nv
        self.threads = threads
        self.chain = build_serial_chain_from_urdf(arm.source.read_bytes(), arm.tool_frame)
        self.lower, self.upper = (torch.tensor(x).float() for x in (arm.lower, arm.upper))
        self.target, self.time = torch.zeros(3), 0.0
        self.method = KMPPI(
            self._step, lambda x, a: x.new_zeros(len(x)), 2 * n, noise**2 * torch.eye(n),
            num_samples=SAMPLES, horizon=PERIODS, lambda_=temperature, num_support_pts=KNOTS,
            terminal_state_cost=self._cost, kernel=RBFKernel(WIDTH),
        )  # fmt: skip

    def _step(self, x: Any, a: Any) -> Any:
        q, v = x.chunk(2, dim=1)
        v = v + PERIOD * a
        return torch.cat([q + PERIOD * v, v], dim=1)

    def _cost(self, x: Any, a: Any) -> Any:
        q, v = x[0].chunk(2, dim=2)
        pose = self.chain.forward_kinematics(q.reshape(-1, q.shape[2])).get_matrix()
        e = pose[:, :3, 3].reshape(*q.shape[:2], 3) - self.target
        return batch_cost(e, v, a[0], q - q.clip(self.lower, self.upper))

    def aim(self, target: Vector) -> None:
        """Start again, with another target (3,) [m]."""
        self.target, self.time = torch.tensor(target).float(), 0.0
        self.method.reset()
        self.method.U.zero_()

    def plan(self, state: State) -> Efforts:
        """Return the plan from a state."""
        torch.set_num_threads(self.threads)
        for _ in range(round((state.time - self.time) / PERIOD)):
            self.method.shift_nominal_trajectory()
        start, self.time = np.concatenate([state.q, state.v]), state.time
        self.method.command(torch.tensor(start).float(), shift_nominal_trajectory=False)
        a, begin, model = self.method.U.numpy().astype(float), state.time, self.arm.model

        def efforts(s: State) -> Vector:
            k = min(int((s.time - begin) / PERIOD + 1e-9), len(a) - 1)
            effort: Vector = pin.rnea(model, self.data, s.q, s.v, a[k])
            return effort

        return efforts
