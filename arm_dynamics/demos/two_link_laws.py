"""The laws that the two-link arm was published with, in continuous time.

    tau = Kp e + Ki ∫e dt + Kd ė + g(q),  e = q̇_r - q̇,

with g of a model of its own. What asks for q̇_r is a reference: cubic in joint space, or of the
tool by damped least squares. Together with the arm: (M + Kd) q̈ = tau - Kd (q̈_r - q̈) + ...
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

from arm_dynamics.arrays import Vector, frozen, vector
from arm_dynamics.dynamics import gravity, mass_matrix, nle
from arm_dynamics.kinematics import jacobian, jacobian_derivative, pose
from arm_dynamics.model.arm_model import ArmModel

KP, KI, KD = np.array([100.0, 20.0]), np.array([200.0, 50.0]), np.array([0.5, 0.05])
"""Gains [N·m·s/rad], [N·m/rad], [N·m·s²/rad] of the two joints."""
DAMPING = 0.05
"""λ of J# = Jᵀ (J Jᵀ + λ² 1)⁻¹ [m]."""
FEEDBACK = 4.0
"""Rate [1/s] at which the tool's error is taken back in task space."""
PLANE = [0, 2]
"""x and z: the arm's vertical plane."""
TOLERANCE = 1e-12
"""Of the integration, relative."""

Asked = Callable[[float, Vector, Vector, Vector], tuple[Vector, Vector]]
"""(t, q, q̇, q_r) → q̇_r, q̈_r; q_r is the integral of q̇_r."""


@dataclass(frozen=True, eq=False)
class Cubic:
    """x(t) = start + (end - start) (3 s² - 2 s³), s = t / T up to 1."""

    start: Vector
    end: Vector
    duration: float

    @classmethod
    def between(cls, start: Sequence[float], end: Sequence[float], duration: float) -> Cubic:
        """From lists."""
        return cls(vector("start", start), vector("end", end), duration)

    def at(self, t: float) -> tuple[Vector, Vector, Vector]:
        """x, ẋ, ẍ at t [s]."""
        way, T = self.end - self.start, self.duration
        s = min(t / T, 1.0)
        if s == 1.0:
            return self.end, 0 * way, 0 * way
        slope, bend = (6 * s - 6 * s * s) / T, (6 - 12 * s) / T**2
        return self.start + way * (3 * s * s - 2 * s**3), way * slope, way * bend


@dataclass(frozen=True, eq=False)
class Motion:
    """time (k,), q and v (k, nv), integral of e (k, nv), tau (k, nv), tool (k, 2) in the plane."""

    arm: ArmModel
    time: Vector
    q: Vector
    v: Vector
    integral: Vector
    tau: Vector
    tool: Vector


def joint_space(way: Cubic) -> Asked:
    """A cubic of the joints."""

    def asked(t: float, q: Vector, v: Vector, q_r: Vector) -> tuple[Vector, Vector]:
        del q, v, q_r
        return way.at(t)[1:]

    return asked


def resolved_rate(arm: ArmModel, way: Cubic) -> Asked:
    """q̇_r = J#(q_r) ẋ_r: rates of the reference's own joints, without feedback of the tool."""

    def asked(t: float, q: Vector, v: Vector, q_r: Vector) -> tuple[Vector, Vector]:
        del q, v
        _, rate, bend = way.at(t)
        inverse, _ = _inverse(arm, q_r, np.zeros_like(q_r))
        v_r = inverse @ rate
        _, change = _inverse(arm, q_r, v_r)
        return v_r, change @ rate + inverse @ bend

    return asked


def task_space(arm: ArmModel, way: Cubic) -> Asked:
    """q̇_r = J#(q) (ẋ_r + k (x_r - x)), k = FEEDBACK."""

    def asked(t: float, q: Vector, v: Vector, q_r: Vector) -> tuple[Vector, Vector]:
        del q_r
        x, rate, bend = way.at(t)
        error = x - pose(arm, q)[0][PLANE]
        inverse, change = _inverse(arm, q, v)
        wanted = rate + FEEDBACK * error
        slope = bend + FEEDBACK * (rate - jacobian(arm, q)[PLANE] @ v)
        return inverse @ wanted, change @ wanted + inverse @ slope

    return asked


def run(
    arm: ArmModel,
    start: Sequence[float],
    asked: Asked,
    times: Vector,
    told: ArmModel | None = None,
    breaks: Sequence[float] = (),
    weightless: bool = True,
    tolerance: float = TOLERANCE,
) -> Motion:
    """The arm from rest at ``start`` under the law, at ``times`` [s] (increasing from 0).

    ``told`` is the model that the law compensates gravity by (default: the arm), ``weightless``
    False leaves that out. ``breaks`` are times at which the reference bends, ``tolerance`` is that
    of the integration, relative.
    """
    told = arm if told is None else told
    n, friction = arm.nv, np.array([joint.damping for joint in arm.joints])
    kp, ki, kd = KP, KI, KD

    def law(t: float, y: Vector) -> tuple[Vector, Vector, Vector]:
        """q̈, tau, q̇_r."""
        q, v, total, q_r = y[:n], y[n : 2 * n], y[2 * n : 3 * n], y[3 * n :]
        v_r, a_r = asked(t, q, v, q_r)
        lifted = gravity(told, q) if weightless else np.zeros(n)
        known = kp * (v_r - v) + ki * total + kd * a_r + lifted
        rest = known - nle(arm, q, v) - friction * v
        a = np.asarray(np.linalg.solve(mass_matrix(arm, q) + np.diag(kd), rest), float)
        return a, known - kd * a, v_r

    def rate(t: float, y: Vector) -> Vector:
        a, _, v_r = law(t, y)
        v = y[n : 2 * n]
        return np.concatenate([v, a, v_r - v, v_r])

    q = vector("start", start, n)
    found = _solved(rate, np.concatenate([q, np.zeros(2 * n), q]), times, breaks, tolerance)
    tau = np.array([law(t, y)[1] for t, y in zip(times.tolist(), found, strict=True)])
    tool = np.array([pose(arm, y[:n])[0][PLANE] for y in found])
    parts = (found[:, :n], found[:, n : 2 * n], found[:, 2 * n : 3 * n], tau, tool)
    return Motion(arm, frozen(times), *map(frozen, parts))


def _solved(
    rate: Callable[[float, Vector], Vector],
    y: Vector,
    times: Vector,
    breaks: Sequence[float],
    tolerance: float,
) -> Vector:
    """The solution at ``times`` (k, n), begun anew at each break."""
    rows, ends = [y], [*[b for b in breaks if b < times[-1]], float(times[-1])]
    start = 0.0
    for end in ends:
        inside = times[(times > start) & (times <= end)]
        points = inside if inside.size and inside[-1] == end else np.append(inside, end)
        solved = solve_ivp(
            rate, (start, end), y, "DOP853", points, rtol=tolerance, atol=0.1 * tolerance
        )
        rows.extend(solved.y.T[: inside.size])
        start, y = end, solved.y[:, -1]
    return np.array(rows)


def _inverse(arm: ArmModel, q: Vector, v: Vector) -> tuple[Vector, Vector]:
    """J# (nv, 2) and its rate of change along v."""
    J, slope = jacobian(arm, q)[PLANE], jacobian_derivative(arm, q, v)[PLANE]
    middle = np.linalg.inv(J @ J.T + DAMPING**2 * np.eye(len(PLANE)))
    inverse = J.T @ middle
    return inverse, slope.T @ middle - inverse @ (slope @ J.T + J @ slope.T) @ middle
