"""A linear system of symbols, written out."""

from __future__ import annotations

from typing import Any

import casadi as ca

SX = Any


def solution(mass: SX, right: SX) -> SX:
    """M⁻¹ R by M = Lᵀ D L; joints on different branches, zeros of M, cost nothing.

    mass (n, n) symmetric positive, right (n, m). Source: R. Featherstone, Rigid Body Dynamics
    Algorithms (2008), section 6.5.
    """
    n = mass.shape[0]
    rest, lower, x = ca.SX(mass), ca.SX.zeros(n, n), ca.SX(right)
    inverse: list[SX] = [None] * n
    for k in reversed(range(n)):
        inverse[k] = 1 / rest[k, k]
        for i in [i for i in range(k) if not rest[k, i].is_zero()]:
            lower[k, i] = rest[k, i] * inverse[k]
            for j in range(i + 1):
                rest[i, j] -= lower[k, i] * rest[k, j]
            x[i, :] -= lower[k, i] * x[k, :]
    for k in range(n):
        x[k, :] *= inverse[k]
        for i in range(k):
            x[k, :] -= lower[k, i] * x[i, :]
    return x
