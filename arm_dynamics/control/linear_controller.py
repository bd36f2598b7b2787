"""Controllers and closed loops as linear systems in discrete time, for small errors."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, pi

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from arm_dynamics.control.controllers.computed_torque import ComputedTorque
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.controllers.gravity_compensation import GravityCompensation
from arm_dynamics.control.controllers.lqr import Lqr
from arm_dynamics.control.controllers.pid import Pid, PidGravity
from arm_dynamics.control.lqr_design.lqr_gain import linear_dynamics
from arm_dynamics.core.arrays import Matrix, Vector, as_readonly, check_vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import Reference, State
from arm_dynamics.dynamics.rigid_body import mass_matrix
from arm_dynamics.model.arm_model import ArmModel

DIFFERENCE_STEP = 1e-6
"""Step of the central differences through a controller [rad, rad/s]."""
NEUTRAL = 1e-6
"""Distance from 1 of eigenvalues that neither grow nor decay: joints without stiffness."""
ROUND_OFF = 1e-11
"""Growth in one period that counts as 0: undamped modes have |eigenvalue| = 1 exactly."""


@dataclass(frozen=True, eq=False)
class LinearController:
    """c⁺ = F c + G x,  u = H c + J x + K x at every update, x = (q, v).

    Parameters
    ----------
    interface : str
        Command interface.
    F, G, H, J : (nc, nc), (nc, 2 nv), (nv, nc), (nv, 2 nv) arrays
        Coefficients of the controller's memory c (nc,) and of the change u (nv,) of its command.
    K : (nv, 2 nv) array
        Jacobian of the feedforward, which no gain scales.

    """

    interface: str
    F: Matrix
    G: Matrix
    H: Matrix
    J: Matrix
    K: Matrix

    def scaled(self, factor: float) -> LinearController:
        """Return the controller with every gain multiplied by ``factor``."""
        H, J = factor * self.H, factor * self.J
        return LinearController(self.interface, self.F, self.G, H, J, self.K)


def voltage_pi_controller(arm: ArmModel, p: ArrayLike, i: ArrayLike = ()) -> LinearController:
    """Return u = -P q - I Σ q, with the plain sum over all updates including the present one.

    Parameters
    ----------
    arm : ArmModel
        Arm whose joints are controlled.
    p, i : (nv,) arrays
        Gains [V/rad]; i defaults to 0.

    References
    ----------
    The published gain search (``examples/reproductions``).

    """
    nv = arm.nv
    gain = check_vector("p", p, nv)
    summed = check_vector("i", i if np.size(i) else np.zeros(nv), nv)
    zero, one = np.zeros((nv, nv)), np.eye(nv)
    G, H = np.hstack([one, zero]), -np.diag(summed)
    J = np.hstack([-np.diag(gain) - np.diag(summed), zero])
    used = np.flatnonzero(summed)  # an unused sum would be a drifting mode
    parts = one[np.ix_(used, used)], G[used], H[:, used], J, np.zeros((nv, 2 * nv))
    return LinearController("voltage", *map(as_readonly, parts))


def linear_controller(controller: Controller, q: ArrayLike, period: float) -> LinearController:
    """Return the exact linear system of a PID-like controller about rest.

    As ``pid_efforts``: v_f⁺ = v_f + α (v - v_f) with α = T / (T + d_filter),
    u = -p q + I - d v_f⁺ + (∂g/∂q) q, then I⁺ = I - T i q. Clamps and limits do not act.
    LQR: u = -K x, with the gain at the configuration.

    Parameters
    ----------
    controller : Controller
        Pid, PidGravity, GravityCompensation or Lqr.
    q : (nv,) array
        Configuration [rad or m].
    period : float
        Control period T [s].

    Raises
    ------
    InvalidValue
        For another controller.

    """
    model, position = controller.arm, check_vector("configuration", q, controller.arm.nv)
    nv, g = model.nv, controller.gains
    gravity_jacobian = np.zeros((nv, 2 * nv))
    if isinstance(controller, PidGravity | GravityCompensation):
        data = model.tree.createData()
        gravity_jacobian[:, :nv] = model.reduced(
            pin.computeGeneralizedGravityDerivatives(
                model.tree, data, model.tree_positions(position)
            )
        )
    if isinstance(controller, Lqr):
        return _without_memory(-controller.gain(position), gravity_jacobian)
    if isinstance(controller, GravityCompensation):
        damping = np.hstack([np.zeros((nv, nv)), -np.diag(g["d"])])
        return _without_memory(damping, gravity_jacobian)
    if not isinstance(controller, Pid):
        raise InvalidValue(
            f"controller {type(controller).__name__}: no exact linear form; expected Pid,"
            " PidGravity, GravityCompensation or Lqr"
        )
    p, i, d = g["p"], g["i"], g["d"]
    alpha, zero = np.diag(period / (period + g["d_filter"])), np.zeros((nv, nv))
    keep = np.eye(nv) - alpha
    F = np.block([[np.eye(nv), zero], [zero, keep]])
    G = np.block([[-period * np.diag(i), zero], [zero, alpha]])
    H = np.hstack([np.eye(nv), -np.diag(d) @ keep])
    J = np.hstack([-np.diag(p), -np.diag(d) @ alpha])
    # without integrals that have no gain, and filters without delay
    used = np.flatnonzero(np.concatenate([i, d * g["d_filter"]]))
    parts = F[np.ix_(used, used)], G[used], H[:, used], J, gravity_jacobian
    return LinearController("effort", *map(as_readonly, parts))


def _without_memory(J: Matrix, K: Matrix) -> LinearController:
    """Return u = (J + K) x without memory."""
    nv = len(J)
    F, G, H = np.zeros((0, 0)), np.zeros((0, 2 * nv)), np.zeros((nv, 0))
    return LinearController("effort", F, G, H, as_readonly(J), K)


def linearized_controller(controller: Controller, q: Vector, period: float) -> LinearController:
    """Return ``linear_controller`` if exact; else linearize ``update`` at rest on the reference.

    The Jacobian ∂g/∂q of the model's gravity torque is the feedforward's K, not a gain. Integrals
    of joint gains "ki" are accelerations: u = M c, c⁺ = c - T ki q, where M includes what computed
    torque adds for viscous friction. Changes the controller's memory.

    Parameters
    ----------
    controller : Controller
        Any controller that commands effort.
    q : (nv,) array
        Configuration [rad or m].
    period : float
        Control period T [s].

    Raises
    ------
    CommandRejected
        If the controller has no command there.

    """
    try:
        return linear_controller(controller, q, period)
    except InvalidValue:
        pass
    nv, x = controller.arm.nv, np.concatenate([q, np.zeros_like(q)])
    rest = Reference.hold(q)
    controller.reset(State.of(q))
    J = np.empty((nv, 2 * nv))
    for k in range(2 * nv):
        ends = []
        for shift in (DIFFERENCE_STEP, -DIFFERENCE_STEP):
            shifted = x.copy()
            shifted[k] += shift
            ends.append(controller.update(State.of(shifted[:nv], shifted[nv:]), rest, 0.0).value)
        J[:, k] = (ends[0] - ends[1]) / (2 * DIFFERENCE_STEP)
    mass, gravity_jacobian = mass_matrix(controller.arm, q), np.zeros((nv, 2 * nv))
    inertia = controller.inertia(q) if isinstance(controller, ComputedTorque) else mass
    gravity_jacobian[:, :nv] = -mass @ linear_dynamics(controller.arm, q)[0][nv:, :nv]
    ki = controller.gains.get("ki", np.zeros(nv))
    G = np.hstack([-period * np.diag(ki), np.zeros((nv, nv))])
    return LinearController(
        "effort", np.eye(nv), G, inertia, J - gravity_jacobian, gravity_jacobian
    )


@dataclass(frozen=True)
class Mode:
    """A motion that is multiplied by ``eigenvalue`` in every control period.

    frequency [Hz] and growth [1/s]; ``joint`` has the largest part in it.
    """

    eigenvalue: complex
    joint: str
    frequency: float
    growth: float


def closed_loop_map(
    phi: Matrix, gamma: Matrix, controller: LinearController, steps: int = 1, delay: float = 0
) -> Matrix:
    """Return the map of (y, c, u_1, u_2, ...) over one control period.

    The command is held for a period (zero-order hold) and acts ``delay`` periods after its state,
    rounded to time steps: y⁺ = Φᵐ⁻ᵏ (Φᵏ y + Γ_k u_(d+1)) + Γ_(m-k) u_d, with k steps of the period
    left of the previous command. u_1 is the last command, u_0 = J x + K x + H c.

    Parameters
    ----------
    phi, gamma : (n, n) and (n, nv) arrays
        Φ and Γ of one time step; y = (q, v, z).
    controller : LinearController
        Controller with memory c.
    steps : int
        Time steps m of a control period.
    delay : float
        Delay [control periods].

    Returns
    -------
    (n + nc + nv d, n + nc + nv d) array
        Not finite if a period exceeds the range of floating-point numbers.

    """
    n, nv, nc = phi.shape[0], gamma.shape[1], controller.F.shape[0]
    periods, fraction = divmod(round(delay * steps), steps)
    early, early_input = _power(phi, gamma, fraction)
    rest, rest_input = _power(phi, gamma, steps - fraction)
    size = n + nc + nv * (periods + (fraction > 0))
    u0 = np.zeros((nv, size), np.result_type(controller.J, controller.K, controller.H))
    u0[:, : 2 * nv], u0[:, n : n + nc] = controller.J + controller.K, controller.H

    def u(k: int) -> Matrix:
        return u0 if k == 0 else np.eye(nv, size, n + nc + (k - 1) * nv)

    with np.errstate(over="ignore", invalid="ignore"):
        y = rest @ early @ np.eye(n, size) + rest_input @ u(periods)
        y = y + rest @ early_input @ u(periods + 1) if fraction else y
    c = np.zeros((nc, size), np.result_type(controller.G, controller.F))
    c[:, : 2 * nv], c[:, n : n + nc] = controller.G, controller.F
    return np.vstack([y, c, *[u(k) for k in range(periods + (fraction > 0))]])


def _power(phi: Matrix, gamma: Matrix, steps: int) -> tuple[Matrix, Matrix]:
    """Return Φᵐ and Σ Φᵏ Γ, k < m, of m ``steps``: the power of [[Φ, Γ], [0, 1]]."""
    n, nv = gamma.shape
    step = np.block([[phi, gamma], [np.zeros((nv, n)), np.eye(nv)]])
    with np.errstate(over="ignore", invalid="ignore"):
        power = np.linalg.matrix_power(step, steps)
    return power[:n, :n], power[:n, n:]


def modes(arm: ArmModel, closed: Matrix, period: float) -> tuple[Mode, ...]:
    """Return the modes of a closed-loop map over ``period`` [s], the fastest growing first.

    Neutral modes are omitted; a conjugate pair counts as one.
    """
    values, vectors = np.linalg.eig(closed)
    modes_of_map = []
    for k, value in enumerate(map(complex, values)):
        if value.imag < 0 or abs(value - 1) <= NEUTRAL:
            continue
        joint = arm.joint_names[int(np.argmax(np.abs(vectors[: arm.nv, k])))]
        growth = log(abs(value)) / period if value else -inf
        frequency = abs(float(np.angle(value))) / (2 * pi * period)
        modes_of_map.append(Mode(value, joint, frequency, growth))
    return tuple(sorted(modes_of_map, key=lambda mode: -mode.growth))


def is_stable(closed: Matrix) -> bool:
    """Return whether the spectral radius is at most 1, without round-off and neutral modes."""
    if not np.isfinite(closed).all():
        return False
    values = np.linalg.eigvals(closed)
    return bool(np.abs(values[np.abs(values - 1) > NEUTRAL]).max(initial=0.0) <= 1 + ROUND_OFF)
