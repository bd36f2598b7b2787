"""Exponential steps of ż = n - λ z, with the order of the integrator for any λ."""

from __future__ import annotations

import math

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.compiled_math import compiled
from arm_dynamics.simulation.integrators.integrator import System

TERMS = 18
"""Number of series terms up to x = 1; the first neglected term is below 1e-19."""


@compiled
def phi_functions_at(x: float) -> tuple[float, float, float]:
    """Return φ₁, φ₂, φ₃ at -x, for x >= 0 up to infinity.

    φ₁(-x) = (1 - e^-x) / x,  φ₂(-x) = (1 - φ₁) / x,  φ₃(-x) = (1/2 - φ₂) / x;
    1, 1/2, 1/6 at x = 0. These divisions lose digits for small x: there φ₃ comes from its
    series Σ (-x)^j / (j + 3)!, and the others from φ₃.
    Source: M. Hochbruck and A. Ostermann, Exponential integrators, Acta Numerica 19 (2010), 2.1.
    """
    if x < 1.0:
        third = 0.0
        for j in range(TERMS, 3, -1):
            third = (1.0 - x * third) / j
        third = (1.0 - x * third) / 6.0
        second = 0.5 - x * third
        return 1.0 - x * second, second, third
    first = -math.expm1(-x) / x
    second = (1.0 - first) / x
    return first, second, (0.5 - second) / x


@compiled
def phi_functions(x: Vector) -> Vector:
    """Return ``phi_functions_at`` of each entry of x (n,), shape (3, n)."""
    values = np.empty((3, x.size))
    for i in range(x.size):
        values[0, i], values[1, i], values[2, i] = phi_functions_at(x[i])
    return values


@compiled
def exponential_state(z: float, decay: float, source: float, dt: float) -> float:
    """Return z⁺ = e^(-λ dt) z + dt φ₁(-λ dt) n, see ``exponential_step``."""
    x = decay * dt
    return math.exp(-x) * z + dt * phi_functions_at(x)[0] * source


def exponential_step(z: Vector, decay: Vector, source: Vector, dt: float) -> Vector:
    """Return e^(-λ dt) z + dt φ₁(-λ dt) n: exact for constant λ [1/s] and n, (na,) each."""
    x = decay * dt
    after: Vector = np.exp(-x) * z + dt * phi_functions(x)[0] * source
    return after


def step_actuator_states(system: System, q: Vector, v: Vector, z: Vector, dt: float) -> None:
    """Advance z by dt at the given q and v, group after group; in place, first order."""
    for group in system.groups:
        decay, source = system.act_dot_terms(q, v, z)
        z[group] = exponential_step(z[group], decay[group], source[group], dt)


def frozen_source(system: System, q: Vector, v: Vector, z: Vector, decay: Vector) -> Vector:
    """Return N = n - (λ - λ₀) z (na,), the source for a constant λ₀ ``decay``."""
    now, source = system.act_dot_terms(q, v, z)
    return source - (now - decay) * z
