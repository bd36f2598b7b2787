"""Linear-quadratic regulation of an arm about a pose at rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.core.arrays import Vector, as_readonly, check_vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.dynamics.rigid_body import aba_derivatives, gravity
from arm_dynamics.model.arm_argument import requires_arm
from arm_dynamics.model.arm_model import ArmModel

REACHED = 1e-9
"""Share of A's and B's size below which a singular value counts as zero."""
STEADY = 1.0
"""Speed [rad/s] beyond that of stiction."""


@dataclass(frozen=True, eq=False)
class LqrWeights:
    """∫ Σ (q_j e_j² + v_j ė_j² + r_j δu_j²) dt is to be small; each (nv,)."""

    position: Vector
    velocity: Vector
    effort: Vector


@requires_arm
def viscous_damping(arm: ArmModel) -> Vector:
    """b (nv,) [N·m·s/rad]: what joints and actuators rub in proportion to speed."""
    parts = zip(arm.joints, arm.actuators, strict=True)
    return as_readonly([joint.damping + actuator.viscous_friction for joint, actuator in parts])


def coulomb(arm: ArmModel) -> Vector:
    """f (nv,) [N·m]: dry friction of joints and actuators in steady motion without load."""
    parts = zip(arm.joints, arm.actuators, strict=True)
    return as_readonly(
        [joint.friction + actuator.dry_friction_bounds(STEADY, 0.0)[0] for joint, actuator in parts]
    )


@requires_arm
def linear_dynamics(arm: ArmModel, q: ArrayLike) -> tuple[Vector, Vector]:
    """A (2 nv, 2 nv) and B (2 nv, nv) of ẋ = A x + B u about (q, 0) under tau* = g(q).

    x = (δq, δv), u = δtau:  A = [0 1; ∂a/∂q, ∂a/∂v - M⁻¹ diag(b)], B = [0; M⁻¹], exact. A joint
    whose effort limit is 0 has no column in B but zeros. Raises InvalidValue for a bad q.
    """
    q, nv = check_vector("q", q, arm.nv), arm.nv
    by_q, by_v, inverse = aba_derivatives(arm, q, np.zeros(nv), gravity(arm, q))
    A, B = np.zeros((2 * nv, 2 * nv)), np.zeros((2 * nv, nv))
    A[:nv, nv:] = np.eye(nv)
    A[nv:, :nv], A[nv:, nv:] = by_q, by_v - inverse * viscous_damping(arm)
    B[nv:] = inverse * (arm.effort_limit > 0)
    return A, B


@requires_arm
def lqr_gain(arm: ArmModel, q: ArrayLike, weights: LqrWeights) -> Vector:
    """K (nv, 2 nv) of u = -K x that makes the weighted integral least: K = R⁻¹ Bᵀ P.

    Aᵀ P + P A - P B R⁻¹ Bᵀ P + Q = 0. Source: B. Anderson and J. Moore, Optimal Control: Linear
    Quadratic Methods (1990), section 3.1. Raises InvalidValue naming the joint where no gain
    stabilises the pose, and where the equation has no solution in floating-point numbers.
    """
    A, B = linear_dynamics(arm, q)
    _require_stabilisable(arm, A, B)
    Q = np.diag(np.concatenate([weights.position, weights.velocity]))
    try:
        P = solve_riccati(A, B / weights.effort @ B.T, Q)
    except (np.linalg.LinAlgError, ValueError) as error:
        raise InvalidValue(f"{_place(arm, q)}: no regulator ({error}); choose another") from error
    return as_readonly(B.T @ P / weights.effort[:, None])


def solve_riccati(A: Vector, G: Vector, Q: Vector) -> Vector:
    """P (n, n) of Aᵀ P + P A - P G P + Q = 0 for which A - G P is stable.

    The columns of [1; P] span the stable subspace of [A, -G; -Q, -Aᵀ], here scaled to blocks of
    like size. Raises LinAlgError where that subspace has not n dimensions, or is no graph.
    Source: A. Laub, IEEE Trans. Automatic Control 24 (1979).
    """
    from scipy.linalg import schur  # noqa: PLC0415 - half a second of a node's start

    n, scale = len(A), np.sqrt(np.abs(Q).max() / np.abs(G).max())
    _, U, stable = schur(np.block([[A, -scale * G], [-Q / scale, -A.T]]), sort="lhp")
    if stable != n:
        raise np.linalg.LinAlgError(f"{stable} of {n} rates are stable")
    P = scale * np.linalg.solve(U[:n, :n].T, U[n:, :n].T)
    return np.array((P + P.T) / 2)


@requires_arm
def require_static_effort(arm: ArmModel, q: ArrayLike) -> None:
    """Raises InvalidValue naming the joint whose weight at ``q`` is beyond its effort limit."""
    weight = gravity(arm, q)
    for j in np.flatnonzero(np.abs(weight) > arm.effort_limit + 1e-9):
        raise InvalidValue(
            f"{_place(arm, q)} is no equilibrium: joint '{arm.joint_names[j]}' carries"
            f" {weight[j]:.4g} N·m, its effort limit is {arm.effort_limit[j]:g}; choose another"
        )


def _require_stabilisable(arm: ArmModel, A: Vector, B: Vector) -> None:
    """Every mode that does not decay must be reached: rank [A - λ 1, B] = 2 nv for Re λ ≥ 0.

    An arm with effort in every joint always is: M⁻¹ has full rank. Source: M. Hautus,
    Indagationes Mathematicae 31 (1969).
    """
    if (arm.effort_limit > 0).all():
        return
    scale = np.abs(A).max() + np.abs(B).max()
    for rate in np.linalg.eigvals(A):
        if rate.real < -REACHED * scale:
            continue
        left, sizes, _ = np.linalg.svd(np.hstack([A - rate * np.eye(len(A)), B]))
        if sizes[-1] < REACHED * scale:
            share = np.abs(left[:, -1]).reshape(2, arm.nv).max(axis=0)
            raise InvalidValue(
                f"arm '{arm.name}' can not be stabilised at this pose: no effort reaches how joint"
                f" '{arm.joint_names[int(np.argmax(share))]}' moves (λ = {rate:.4g} 1/s); choose"
                f" another pose, or effort limits above 0"
            )


def _place(arm: ArmModel, q: ArrayLike) -> str:
    angles = ", ".join(f"{angle:.4g}" for angle in np.asarray(q, dtype=float))
    return f"pose ({angles}) of arm '{arm.name}'"
