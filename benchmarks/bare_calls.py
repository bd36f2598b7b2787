"""Minimum Pinocchio calls of each controller, from Python."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pinocchio as pin
from scipy.linalg import solve_continuous_are

from arm_dynamics import State
from arm_dynamics.model.arm_model import ArmModel

NEEDS = {
    "pid": "", "gravity_compensation": "g", "pid_gravity": "r", "velocity_pid": "gr",
    "computed_torque": "r", "lqr": "rc", "lqr, gain table": "r", "resolved_rate": "kr",
    "task_space": "kkMn", "impedance": "kkn",
}  # fmt: skip
"""Calls of each controller: g(q), r: RNEA, M(q), n: C v + g, k: pose, Jacobian and J̇ v of the tool,
c: derivatives at rest, and the Riccati equation by scipy.

Task-space controllers also need the last for their closed-loop inverse kinematics.
"""


def bare(arm: ArmModel, needs: str) -> Callable[[State], None]:
    """Return a function that makes the Pinocchio calls ``needs`` for one state."""
    model, data, zero = arm.model, arm.model.createData(), np.zeros(arm.nv)
    nv, cost = arm.nv, np.eye(2 * arm.nv)
    A, B = np.eye(2 * nv, k=nv), np.zeros((2 * nv, nv))
    frame, axes = model.getFrameId(arm.tool_frame, pin.BODY), pin.LOCAL_WORLD_ALIGNED

    def tool(q: np.ndarray, v: np.ndarray) -> None:
        pin.forwardKinematics(model, data, q, v, zero)
        pin.updateFramePlacement(model, data, frame)
        pin.computeJointJacobians(model, data)
        pin.getFrameJacobian(model, data, frame, axes)
        pin.getFrameVelocity(model, data, frame, axes)
        pin.getFrameClassicalAcceleration(model, data, frame, axes)

    def riccati(q: np.ndarray, v: np.ndarray) -> None:
        tau = pin.computeGeneralizedGravity(model, data, q)
        A[nv:, :nv], A[nv:, nv:], B[nv:] = pin.computeABADerivatives(model, data, q, zero, tau)
        solve_continuous_are(A, B, cost, cost[:nv, :nv])

    calls = {
        "c": riccati,
        "g": lambda q, v: pin.computeGeneralizedGravity(model, data, q),
        "r": lambda q, v: pin.rnea(model, data, q, v, zero),
        "M": lambda q, v: pin.crba(model, data, q),
        "n": lambda q, v: pin.nonLinearEffects(model, data, q, v),
        "k": tool,
    }
    chosen = [calls[letter] for letter in needs]

    def call(state: State) -> None:
        for one in chosen:
            one(state.q, state.v)

    return call
