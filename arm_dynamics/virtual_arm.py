"""An arm without mass that follows the tool's reference as far as its joints reach."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from arm_dynamics.arrays import Vector
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.rotation import rotation_vector
from arm_dynamics.scalar import compiled
from arm_dynamics.state import TaskReference
from arm_dynamics.tool_motion import Tool, ToolMotion, controlled_axes, reach

FASTEST = 100.0
"""Speed [rad/s or m/s] of joints without a velocity limit."""


class VirtualArm:
    """q̇ = J# (ẋ_ref + rate e) + (1 - J# J) posture_rate (q_ref - q), within the arm's limits.

    Its acceleration is limited too, and what it catches up with is slow enough to be braked.

    Its tool is where the real one can go: beyond the workspace it comes to rest where J's remaining
    directions no longer lead nearer. J# filters directions weaker than ``weak`` of the arm's
    reach: each of its singular values σ acts as σ / (σ² + λ²), λ² = σ0² - σ² below σ0.
    Source: A. Maciejewski and C. Klein, Int. J. Robotics Research 4 (1985), 109; B. Siciliano et
    al., Robotics (2009), section 3.7 (closed-loop inverse kinematics).
    """

    def __init__(self, arm: ArmModel) -> None:
        self._tool, self.scale = Tool(arm), np.array([1.0] * 3 + [reach(arm)] * 3)
        self.axes: NDArray[np.intp] = np.flatnonzero(controlled_axes(arm))
        self._lower, self._upper = arm.lower, arm.upper
        self._fastest = np.minimum(arm.velocity_limit, FASTEST)
        self.reach = float(self.scale[3])
        self.q = self.v = self.a = np.zeros(arm.nv)
        self.weakest = np.inf
        """Smallest singular value of J [m], rotations times reach."""
        self.distance = 0.0
        """How far its tool is from what it follows [m]; rotations times reach."""

    def place(self, q: Vector) -> None:
        """Stand at ``q``."""
        self.q, self.v, self.a = q.copy(), np.zeros(q.size), np.zeros(q.size)
        self.distance = 0.0

    def follow(self, task: TaskReference, dt: float, law: Mapping[str, float]) -> TaskReference:
        """Move on by dt [s]; its joints and its tool, as a reference that lies within reach.

        ``law`` has rate, posture_rate, weak and acceleration as ``TaskController`` describes them.
        """
        self.q = self._within(self.q + dt * self.v + 0.5 * dt * dt * self.a)
        at = self._tool.motion(self.q, self.v)
        error = self.scale * task_error(at, task)
        self.distance = float(np.linalg.norm(error[self.axes]))
        J = (self.scale[:, None] * at.jacobian)[self.axes]
        inverse, self.weakest = filtered_inverse(J, law["weak"] * self.reach)
        most = law["acceleration"]
        inner = law["posture_rate"] * (task.q - self.q)
        caught = inner + inverse @ (law["rate"] * error[self.axes] - J @ inner)
        asked = inverse @ (self.scale * task.twist)[self.axes]
        wanted = within(asked + within(caught, most / law["rate"]), self._fastest)
        self.v = self.v + np.clip(wanted - self.v, -most * dt, most * dt)
        self.a = within(inverse @ (self.scale * (task.acceleration - at.drift))[self.axes], most)
        twist, acceleration = at.jacobian @ self.v, at.jacobian @ self.a + at.drift
        return TaskReference(
            self.q, self.v, self.a, at.position, at.rotation, twist, acceleration, task.wrench
        )

    def _within(self, q: Vector) -> Vector:
        return np.minimum(np.maximum(q, self._lower), self._upper)


def within(rates: Vector, most: Vector | float) -> Vector:
    """``rates`` in their direction, as large as ``most`` of each allows."""
    excess = float(np.max(np.abs(rates) / most))
    return rates if excess <= 1.0 else rates / excess


def task_error(at: ToolMotion, task: TaskReference) -> Vector:
    """(p_ref - p, log(R_ref Rᵀ)) (6,) [m, rad], in the base's axes."""
    error = np.empty(6)
    error[:3] = task.position - at.position
    error[3:] = rotation_vector(at.rotation, task.rotation)
    return error


@compiled
def filtered_inverse(J: Vector, weak: float) -> tuple[Vector, float]:
    """J# (nv, k) of J (k, nv), and the smallest singular value of J."""
    squares, U = np.linalg.eigh(J @ J.T)
    middle = np.zeros_like(U)
    for i in range(squares.size):
        square = max(squares[i], 0.0)
        damping = max(weak * weak - square, 0.0)
        gain = 1.0 / (square + damping) if square + damping > 0.0 else 0.0
        for j in range(squares.size):
            middle[j, i] = U[j, i] * gain
    return J.T @ (middle @ U.T), np.sqrt(max(squares[0], 0.0))
