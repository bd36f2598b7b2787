"""Control laws as linear systems in discrete time: what they do for small errors.

The closed loop over one control period as one matrix, and its modes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, pi

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.controllers.gravity_compensation import GravityCompensation
from arm_dynamics.control.controllers.pid import Pid
from arm_dynamics.control.controllers.pid_gravity import PidGravity
from arm_dynamics.core.arrays import Vector, as_readonly, check_vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.model.arm_model import ArmModel


@dataclass(frozen=True, eq=False)
class LinearController:
    """c⁺ = F c + G x,  u = H c + J x + K x at every call, x = (q, v); matrices.

    c (nc,) is the law's memory, u (nv,) the change of the command on ``interface``. K is the
    feedforward's slope, which no gain scales.
    """

    interface: str
    F: Vector
    G: Vector
    H: Vector
    J: Vector
    K: Vector

    def scaled(self, factor: float) -> LinearController:
        """The same law with every gain ``factor`` times as large."""
        return LinearController(
            self.interface, self.F, self.G, factor * self.H, factor * self.J, self.K
        )


def voltage_pi_controller(arm: ArmModel, p: ArrayLike, i: ArrayLike = ()) -> LinearController:
    """u = -P q - I Σ q, the plain sum over the calls with the present one in it; as published.

    p, i (nv,) [V/rad]; i defaults to none. Raises InvalidValue for a wrong size.
    """
    nv = arm.nv
    gain, summed = (
        check_vector("p", p, nv),
        check_vector("i", i if np.size(i) else np.zeros(nv), nv),
    )
    return _memorized("voltage", gain, summed, np.eye(nv), np.eye(nv), np.zeros((nv, 2 * nv)))


def _memorized(
    interface: str, p: Vector, i: Vector, keep: Vector, take: Vector, feedforward: Vector
) -> LinearController:
    nv = p.size
    nothing = np.zeros((nv, nv))
    G = np.hstack([take, nothing])
    H, J = -np.diag(i) @ keep, np.hstack([-np.diag(p) - np.diag(i) @ take, nothing])
    used = np.flatnonzero(i)  # a sum that nothing uses would be a mode that only drifts
    return LinearController(
        interface,
        *map(as_readonly, (keep[np.ix_(used, used)], G[used], H[:, used], J, feedforward)),
    )


def linear_controller(controller: Controller, q: ArrayLike, period: float) -> LinearController:
    """The linear law of a controller about rest at ``q``, called every ``period`` [s].

    As ``pid_efforts`` does it: v_f⁺ = v_f + α (v - v_f) with α = T / (T + d_filter),
    u = -p q + I - d v_f⁺ + (∂g/∂q) q, then I⁺ = I - T i q. Clamps and limits do not act.
    Raises InvalidValue for a controller whose law is not known here.
    """
    model, position = controller.arm, check_vector("pose", q, controller.arm.nv)
    nv, g = model.nv, controller.gains
    slope = np.zeros((nv, 2 * nv))
    if isinstance(controller, PidGravity | GravityCompensation):
        data = model.model.createData()
        slope[:, :nv] = pin.computeGeneralizedGravityDerivatives(model.model, data, position)
    if isinstance(controller, GravityCompensation):
        J = np.hstack([np.zeros((nv, nv)), -np.diag(g["d"])])
        none = np.zeros((0, 0))
        return LinearController(
            "effort", none, np.zeros((0, 2 * nv)), np.zeros((nv, 0)), as_readonly(J), slope
        )
    if not isinstance(controller, Pid):
        raise InvalidValue(
            f"controller {type(controller).__name__}: only pid, pid_gravity and"
            " gravity_compensation are linear laws known here"
        )
    return _pid(g["p"], g["i"], g["d"], g["d_filter"], period, slope)


def _pid(
    p: Vector, i: Vector, d: Vector, d_filter: Vector, period: float, slope: Vector
) -> LinearController:
    """Memory (I, v_f), less what nothing uses: integrals without gain, filters without delay."""
    nv = p.size
    alpha, zero = np.diag(period / (period + d_filter)), np.zeros((nv, nv))
    keep = np.eye(nv) - alpha
    F = np.block([[np.eye(nv), zero], [zero, keep]])
    G = np.block([[-period * np.diag(i), zero], [zero, alpha]])
    H = np.hstack([np.eye(nv), -np.diag(d) @ keep])
    J = np.hstack([-np.diag(p), -np.diag(d) @ alpha])
    used = np.flatnonzero(np.concatenate([i, d * d_filter]))
    return LinearController(
        "effort", *map(as_readonly, (F[np.ix_(used, used)], G[used], H[:, used], J, slope))
    )


NEUTRAL = 1e-6
"""Distance from 1 of eigenvalues that neither grow nor decay: joints that nothing holds."""
ROUND_OFF = 1e-11
"""Growth in one period that counts as none: undamped modes have |eigenvalue| = 1 exactly."""


@dataclass(frozen=True)
class Mode:
    """A motion that multiplies itself by ``eigenvalue`` every control period.

    frequency [Hz] and growth [1/s]; ``joint`` takes the largest part in it.
    """

    eigenvalue: complex
    joint: str
    frequency: float
    growth: float


def closed_loop_map(
    phi: Vector, gamma: Vector, law: LinearController, steps: int = 1, delay: float = 0
) -> Vector:
    """The map of (y, c, u_1, u_2, ...) over one control period of ``steps`` time steps.

    A command is held for a period; it acts ``delay`` periods after the state that it is computed
    from, rounded to time steps: y⁺ = Φᵐ⁻ᵏ (Φᵏ y + Γ_k u_(d+1)) + Γ_(m-k) u_d, k steps of the
    period being left of the command before. u_1 is the last command, u_0 = J x + K x + H c.
    Φ (n, n), Γ (n, nv) of one time step; y = (q, v, z). Not finite where a period multiplies more
    than numbers reach.
    """
    n, nv, nc = phi.shape[0], gamma.shape[1], law.F.shape[0]
    late, part = divmod(round(delay * steps), steps)
    early, pushed_early = _held(phi, gamma, part)
    rest, pushed = _held(phi, gamma, steps - part)
    size = n + nc + nv * (late + (part > 0))
    u0 = np.zeros((nv, size), np.result_type(law.J, law.K, law.H))
    u0[:, : 2 * nv], u0[:, n : n + nc] = law.J + law.K, law.H

    def u(k: int) -> Vector:
        return u0 if k == 0 else np.eye(nv, size, n + nc + (k - 1) * nv)

    with np.errstate(over="ignore", invalid="ignore"):
        y = rest @ early @ np.eye(n, size) + pushed @ u(late)
        y = y + rest @ pushed_early @ u(late + 1) if part else y
    c = np.zeros((nc, size), np.result_type(law.G, law.F))
    c[:, : 2 * nv], c[:, n : n + nc] = law.G, law.F
    return np.vstack([y, c, *[u(k) for k in range(late + (part > 0))]])


def _held(phi: Vector, gamma: Vector, steps: int) -> tuple[Vector, Vector]:
    """Φᵐ and Σ Φᵏ Γ, k < m, of m ``steps``: the power of [[Φ, Γ], [0, 1]]."""
    n, nv = gamma.shape
    step = np.block([[phi, gamma], [np.zeros((nv, n)), np.eye(nv)]])
    with np.errstate(over="ignore", invalid="ignore"):
        power = np.linalg.matrix_power(step, steps)
    return power[:n, :n], power[:n, n:]


def modes(arm: ArmModel, closed: Vector, period: float) -> tuple[Mode, ...]:
    """Modes of a closed-loop map over ``period`` [s], the fastest growing first; no neutral ones.

    Two of a conjugate pair count as one.
    """
    values, vectors = np.linalg.eig(closed)
    found = [
        _mode(arm, complex(value), vectors[:, k], period)
        for k, value in enumerate(values)
        if value.imag >= 0 and abs(value - 1) > NEUTRAL
    ]
    return tuple(sorted(found, key=lambda mode: -mode.growth))


def is_stable(closed: Vector) -> bool:
    """Whether no mode grows: spectral radius at most 1, up to round-off, neutral modes apart."""
    if not np.isfinite(closed).all():
        return False
    values = np.linalg.eigvals(closed)
    return bool(np.abs(values[np.abs(values - 1) > NEUTRAL]).max(initial=0.0) <= 1 + ROUND_OFF)


def _mode(arm: ArmModel, value: complex, vector: Vector, period: float) -> Mode:
    joint = arm.joint_names[int(np.argmax(np.abs(vector[: arm.nv])))]
    growth = log(abs(value)) / period if value else -inf
    return Mode(value, joint, abs(float(np.angle(value))) / (2 * pi * period), growth)
