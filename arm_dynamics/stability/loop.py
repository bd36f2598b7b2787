"""The closed loop over one control period as one matrix, and its modes."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log, pi

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.stability.law import Law

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


def closed_loop_map(phi: Vector, gamma: Vector, law: Law, steps: int = 1, delay: int = 0) -> Vector:
    """The map of (y, c, u) over one control period of ``steps`` time steps, u held over it.

    delay 0: the command computed from a state acts from that state on. delay 1: one period
    later, when the next command is computed. Φ (n, n), Γ (n, nv) of one time step; y = (q, v, z).
    Not finite where a period multiplies more than numbers reach.
    """
    n, nv, nc = phi.shape[0], gamma.shape[1], law.F.shape[0]
    whole, pushed = _held(phi, gamma, steps)
    see = np.zeros((2 * nv, n))
    see[:, : 2 * nv] = np.eye(2 * nv)
    answer = (law.J + law.K) @ see
    if delay == 0:
        return np.block([[whole + pushed @ answer, pushed @ law.H], [law.G @ see, law.F]])
    return np.block(
        [
            [whole, np.zeros((n, nc)), pushed],
            [law.G @ see, law.F, np.zeros((nc, nv))],
            [answer, law.H, np.zeros((nv, nv))],
        ]
    )


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
