"""A rotation that changes, as the rotation vector φ of E = exp([φ]×) and its derivatives.

Angular velocity Ω = J(φ) φ̇ with the left Jacobian J = 1 + A [φ]× + B [φ]×²,
A = (1 - cos θ) / θ², B = (θ - sin θ) / θ³, θ = |φ|; singular at θ = 2π.
Source: Sola, Deray, Atchuthan, A micro Lie theory (2018), eq. 145; the derivatives follow.
"""

from __future__ import annotations

from math import cos, sin, sqrt

import numpy as np
import pinocchio as pin

from arm_dynamics.arrays import Vector

SMALL = 1e-2
"""Angle [rad] below which series are exacter than the quotients."""
TINY = 1e-100
"""Angle [rad] that stands for none in a denominator."""


def turning(phi: Vector, rate: Vector, second: Vector) -> tuple[Vector, Vector, Vector]:
    """Rotation E (3, 3), angular velocity Ω [rad/s] and acceleration Ω̇ [rad/s²], from φ, φ̇, φ̈."""
    J = left_jacobian(phi)
    return pin.exp3(phi), J @ rate, J @ second + _drift(phi, rate)


def turning_speeds(phi: Vector, rate: Vector) -> Vector:
    """Ω (n, 3) = φ̇ + A φ × φ̇ + B φ × (φ × φ̇), for many φ and φ̇ (n, 3) at once."""
    t = np.linalg.norm(phi, axis=1)[:, None]
    once = np.cross(phi, rate)
    A, B = np.sinc(t / 2 / np.pi) ** 2 / 2, (1 - np.sinc(t / np.pi)) / np.maximum(t, TINY) ** 2
    found: Vector = rate + A * once + B * np.cross(phi, once)  # B's rounding falls with φ²
    return found


def turning_rates(phi: Vector, omega: Vector, alpha: Vector) -> tuple[Vector, Vector]:
    """φ̇ and φ̈ of a rotation φ that turns with Ω and Ω̇."""
    J = left_jacobian(phi)
    rate: Vector = np.linalg.inv(J) @ omega
    second: Vector = np.linalg.inv(J) @ (alpha - _drift(phi, rate))
    return rate, second


def left_jacobian(phi: Vector) -> Vector:
    """J(φ) (3, 3)."""
    A, B, _, _ = _factors(phi)
    cross = pin.skew(phi)
    found: Vector = np.eye(3) + A * cross + B * cross @ cross
    return found


def _drift(phi: Vector, rate: Vector) -> Vector:
    """J̇ φ̇ = Ȧ φ×φ̇ + Ḃ φ×(φ×φ̇) + B φ̇×(φ×φ̇)."""
    _, B, dA, dB = _factors(phi)
    cross = pin.skew(phi)
    turned = cross @ rate
    found: Vector = phi @ rate * (dA * turned + dB * cross @ turned) + B * pin.skew(rate) @ turned
    return found


def _factors(phi: Vector) -> tuple[float, float, float, float]:
    """A, B, and A' / θ, B' / θ, so that Ȧ = (A' / θ) φ·φ̇."""
    t = sqrt(phi @ phi)
    if t < SMALL:
        t2 = t * t
        return (
            1 / 2 - t2 / 24 + t2 * t2 / 720,
            1 / 6 - t2 / 120 + t2 * t2 / 5040,
            -1 / 12 + t2 / 180 - t2 * t2 / 6720,
            -1 / 60 + t2 / 1260 - t2 * t2 / 60480,
        )
    A, B = (1 - cos(t)) / t**2, (t - sin(t)) / t**3
    return A, B, (sin(t) / t - 2 * A) / t**2, (A - 3 * B) / t**2
