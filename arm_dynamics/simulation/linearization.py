"""Linearization of an arm with its motors, and equilibria."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, log2

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.core.arrays import Vector, as_readonly, check_float, check_vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import Command, State, check_command, require_state
from arm_dynamics.dynamics.rigid_body import aba_derivatives, gravity
from arm_dynamics.model.arm_argument import requires_masses
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.equations_of_motion import EquationsOfMotion
from arm_dynamics.simulation.friction import viscous_effort

STEP = 2.0**-17
"""Relative step of the central differences of motor equations. These are piecewise smooth
functions of one joint's numbers, most of them linear; the error is about 1e-10."""


@dataclass(frozen=True, eq=False)
class Linearization:
    """δẏ = A δy + B δu, y = (q, v, z); with ``dt`` δy⁺ = A δy + B δu instead.

    A (n, n) and B (n, nv), n = 2 nv + na; ``decay`` (na,) is λ of the actuator states [1/s].
    """

    arm: ArmModel
    A: Vector
    B: Vector
    decay: Vector
    dt: float | None = None


@requires_masses
def linearize(
    arm: ArmModel, state: State, command: Command, dt: float | None = None
) -> Linearization:
    """Return A = ∂f/∂y and B = ∂f/∂u of ẏ = f(y, u) without dry friction and end stops.

    v̇ = ABA(q, v, τ(v, z, u)):  ∂v̇/∂x = ∂ABA/∂x + M⁻¹ ∂τ/∂x, x any of q, v, z, u. The first term
    is analytical; the derivatives of the motors are central differences.

    Parameters
    ----------
    arm : ArmModel
        The arm.
    state : State
        State (q, v, act); without act the actuator states at rest.
    command : Command
        Constant command.
    dt : float, optional
        With dt [s] the exact step under a constant command, exp([A B; 0 0] dt).

    Returns
    -------
    Linearization
        A (n, n) and B (n, nv), n = 2 nv + na.

    Raises
    ------
    InvalidValue
        For an arm with prescribed motion, a state or command of a wrong size or with a non-finite
        entry, and a dt that is not positive.
    UnknownName
        For an interface that a joint does not accept.

    References
    ----------
    J. Carpentier and N. Mansard, RSS XIV (2018), for the derivatives of ABA; C. Van Loan, IEEE
    Trans. Automatic Control 23 (1978), for the step.

    """
    motion = smooth_dynamics(arm)
    command, state = check_command(command, arm.nv), require_state(state)
    motion.set_command(command)
    q, v = check_vector("state q", state.q, arm.nv), check_vector("state v", state.v, arm.nv)
    act = check_vector("state act", state.act if state.act.size else arm.initial_act, arm.na)
    dt = None if dt is None else check_float("dt [s]", dt, above=0)
    nv, n = arm.nv, 2 * arm.nv + act.size
    parts = zip(arm.joints, arm.actuators, strict=True)
    viscous = [joint.damping + actuator.viscous_friction for joint, actuator in parts]
    effort, act_dot = actuator_jacobians(motion, q, v, act, command)
    effort[:, nv : 2 * nv] += np.diag([viscous_effort(1.0, b) for b in viscous])  # linear in v
    tau = motion.effort + [viscous_effort(x, b) for x, b in zip(v.tolist(), viscous, strict=True)]
    by_q, by_v, inverse = aba_derivatives(arm, q, v, tau)
    A, B = np.zeros((n, n)), np.zeros((n, nv))  # rows: q̇ = v, then v̇, then ż
    A[:nv, nv : 2 * nv] = np.eye(nv)
    A[nv : 2 * nv] = inverse @ effort[:, :n]
    A[nv : 2 * nv, :nv] += by_q
    A[nv : 2 * nv, nv : 2 * nv] += by_v
    A[2 * nv :] = act_dot[:, :n]
    B[nv : 2 * nv], B[2 * nv :] = inverse @ effort[:, n:], act_dot[:, n:]
    decay = motion.act_dot_terms(q, v, act)[0] if arm.na else np.zeros(0)
    if dt is not None:
        A, B = zero_order_hold(A, B, dt)
    if not (np.isfinite(A).all() and np.isfinite(B).all()):
        raise InvalidValue("linearization: A or B is not finite; reduce the state or dt")
    return Linearization(arm, as_readonly(A), as_readonly(B), as_readonly(decay), dt)


def zero_order_hold(A: Vector, B: Vector, dt: float) -> tuple[Vector, Vector]:
    """Return e^(A dt) and ∫ e^(A s) ds B: the exact step of ẏ = A y + B u with u constant."""
    n, m = B.shape
    both = np.zeros((n + m, n + m))
    both[:n, :n], both[:n, n:] = A * dt, B * dt
    step = _exponential(both)
    return step[:n, :n].copy(), step[:n, n:].copy()


def _exponential(X: Vector) -> Vector:
    """Return e^X = (e^(X / 2^s))^(2^s), with 14 terms of the series at a norm below 1/4.

    A search for a stability limit evaluates it hundreds of times: for small matrices this is
    accurate and fast.
    Source: C. Moler and C. Van Loan, SIAM Review 45 (2003), methods 1 and 3.
    """
    squarings = max(0, ceil(log2(np.abs(X).sum(axis=0).max() + 1e-300)) + 2)
    small: Vector = X / 2.0**squarings
    power, result = np.eye(X.shape[0]), np.eye(X.shape[0])
    for k in range(1, 15):
        power = power @ small / k
        result += power
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(squarings):
            result = result @ result
    return result


@requires_masses
def smooth_dynamics(arm: ArmModel) -> EquationsOfMotion:
    """Return the equations with inactive end stops; raises InvalidValue for prescribed motion."""
    motion = EquationsOfMotion(arm)
    if motion.prescribed:
        name = arm.joint_names[motion.prescribed[0]]
        raise InvalidValue(f"joint '{name}': its actuator prescribes motion; expected an effort")
    motion.set_end_stops(np.full(arm.nv, -np.inf), np.full(arm.nv, np.inf))
    return motion


def actuator_jacobians(
    motion: EquationsOfMotion, q: Vector, v: Vector, act: Vector, command: Command
) -> tuple[Vector, Vector]:
    """Return ∂τ/∂x (nv, m) and ∂ż/∂x (na, m) of the actuators, x = (q, v, z, u) (m,)."""
    nv, x = q.size, np.concatenate([q, v, act, command.value])
    jacobian = np.empty((nv + act.size, x.size))

    def response(k: int, shift: float) -> Vector:
        shifted = x.copy()
        shifted[k] += shift
        return actuator_response(motion, shifted, act.size, command.interface)

    for k in range(x.size):
        h = STEP * max(1.0, abs(x[k]))
        jacobian[:, k] = (response(k, h) - response(k, -h)) / (2 * h)
    motion.set_command(command)
    motion.acceleration(q, v, act)
    return jacobian[:nv], jacobian[nv:]


def actuator_response(motion: EquationsOfMotion, x: Vector, na: int, interface: str) -> Vector:
    """Return the effort of the actuators and ż at x = (q, v, z, u)."""
    nv = motion.arm.nv
    q, v, act, u = np.split(x, [nv, 2 * nv, 2 * nv + na])
    motion.set_command(Command(interface, u))
    motion.acceleration(q, v, act)
    if not na:
        return motion.effort
    effort = motion.effort
    decay, source = motion.act_dot_terms(q, v, act)
    return np.concatenate([effort, source - decay * act])


ITERATIONS = 30
MAX_RESIDUAL = 1e-9
"""Largest residual of an equilibrium, as a fraction of the largest gravity torque."""


@requires_masses
def find_equilibrium(
    arm: ArmModel, q: ArrayLike, interface: str = "effort"
) -> tuple[State, Command]:
    """Return the state at rest at ``q`` (nv,) and the command of its equilibrium.

    Raises InvalidValue if no command of the actuators holds the configuration, for example beyond
    the supply voltage, or with backlash, where the joint is loose.
    """
    position, motion = arm.check_position("configuration", q), smooth_dynamics(arm)
    g, nv, act = gravity(arm, position), arm.nv, arm.initial_act.copy()
    x, v = np.concatenate([np.zeros(nv), act]), np.zeros(nv)
    scale = np.abs(g).max() + 1.0
    for _ in range(ITERATIONS):
        residual, jacobian = _residual(motion, interface, position, x, g)
        if np.abs(residual).max() <= MAX_RESIDUAL * scale:
            break
        x -= np.linalg.lstsq(jacobian, residual, rcond=None)[0]
    else:
        worst = int(np.argmax(np.abs(residual))) % nv
        raise InvalidValue(
            f"no {interface} command holds arm '{arm.name}' in this configuration: joint"
            f" '{arm.joint_names[worst]}' carries {g[worst]:.4g} N·m; choose another configuration"
        )
    command = Command.checked(interface, x[:nv], nv)
    return State.of(position, v, g, act=x[nv:]), command


def _residual(
    motion: EquationsOfMotion, interface: str, q: Vector, x: Vector, g: Vector
) -> tuple[Vector, Vector]:
    """Return the residual of τ = g and ż = 0 at x = (u, z), and its derivative."""
    nv = q.size
    u, act, v = x[:nv], x[nv:], np.zeros(nv)
    command = Command(interface, u)
    effort, act_dot = actuator_jacobians(motion, q, v, act, command)
    order = np.r_[2 * nv + act.size : 3 * nv + act.size, 2 * nv : 2 * nv + act.size]
    jacobian = np.concatenate([effort, act_dot])[:, order]
    value = actuator_response(motion, np.concatenate([q, v, act, u]), act.size, interface)
    value[:nv] -= g
    return value, jacobian
