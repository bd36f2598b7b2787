"""Exact steps of ż = n - λ z, however fast it decays."""

from __future__ import annotations

import numpy as np

from arm_dynamics.arrays import Vector


def phi1(x: Vector) -> Vector:
    """φ₁(-x) = (1 - e^-x) / x, 1 at x = 0; x (n,) >= 0.

    Source: M. Hochbruck and A. Ostermann, Exponential integrators, Acta Numerica 19 (2010), 2.
    """
    safe = np.where(x > 0, x, 1.0)
    return np.where(x > 0, -np.expm1(-safe) / safe, 1.0)


def relaxed(z: Vector, decay: Vector, source: Vector, dt: float) -> Vector:
    """z(dt) = e^(-λ dt) z + dt φ₁(-λ dt) n: exact for constant λ [1/s] and n, (na,) each."""
    x = decay * dt
    return np.exp(-x) * z + dt * phi1(x) * source
