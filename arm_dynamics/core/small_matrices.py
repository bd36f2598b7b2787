"""Compiled algebra of small matrices, without library calls: a control cycle solves several."""

from __future__ import annotations

import math

import numpy as np

from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.core.compiled_math import (
    MATRIX,
    compiled,
    compiled_for,
    compiled_without_inlining,
    is_finite,
)


@compiled_for(MATRIX)
def symmetric_from_upper(upper: Matrix) -> Matrix:
    """Return the symmetric matrix (n, n) with this upper triangle."""
    n = upper.shape[0]
    whole = np.empty((n, n))
    for i in range(n):
        for j in range(i, n):
            whole[i, j] = whole[j, i] = upper[i, j]
    return whole


@compiled
def factor_spd(A: Matrix) -> None:
    """Replace A (n, n), its lower triangle, by the factors of A = L Δ Lᵀ.

    L is unit lower triangular; the diagonal becomes Δ⁻¹, NaN if A is not positive.
    """
    for i in range(A.shape[0]):
        pivot = A[i, i]
        for j in range(i):
            for k in range(j):
                A[i, j] -= A[i, k] * A[j, k]
        for j in range(i):
            scaled = A[i, j]
            A[i, j] *= A[j, j]
            pivot -= scaled * A[i, j]
        A[i, i] = 1.0 / pivot if pivot > 0.0 else math.nan


@compiled
def solve_factored(factors: Matrix, x: Vector) -> None:
    """Replace x (n,) by A⁻¹ x with the ``factor_spd`` of A."""
    n = x.size
    for i in range(n):
        for k in range(i):
            x[i] -= factors[i, k] * x[k]
    for i in range(n - 1, -1, -1):
        x[i] *= factors[i, i]
        for k in range(i + 1, n):
            x[i] -= factors[k, i] * x[k]


@compiled
def invert_factored(factors: Matrix) -> None:
    """Replace the ``factor_spd`` of A (n, n) by A⁻¹ = L⁻ᵀ Δ⁻¹ L⁻¹."""
    n = factors.shape[0]
    for i in range(n):  # L⁻¹ row by row
        for j in range(i):
            total = factors[i, j]
            for k in range(j + 1, i):
                total += factors[i, k] * factors[k, j]
            factors[i, j] = -total
    for i in range(n):
        for j in range(n - 1, i - 1, -1):
            total = factors[j, j] * (factors[j, i] if j > i else 1.0)
            for k in range(j + 1, n):
                total += factors[k, i] * factors[k, k] * factors[k, j]
            factors[i, j] = total
        for j in range(i + 1, n):
            factors[j, i] = factors[i, j]


@compiled_without_inlining
def solve_spd(A: Matrix, B: Matrix) -> Matrix:
    """Return A⁻¹ B (n, m) by ``factor_spd``; A (n, n) and B do not change."""
    factors: Matrix = A.copy()
    X: Matrix = B.copy()
    factor_spd(factors)
    for c in range(X.shape[1]):
        solve_factored(factors, X[:, c])
    return X


@compiled_without_inlining
def damped_pseudoinverse(J: Matrix, weak: float) -> tuple[Matrix, float]:
    """Return J# with each singular value σ inverted as σ / (σ² + λ²), λ² = max(0, weak² - σ²).

    Parameters
    ----------
    J : Matrix
        Jacobian (k, nv).
    weak : float
        Singular value below which directions are damped.

    Returns
    -------
    tuple of Matrix and float
        J# (nv, k), and 1 / √tr (J Jᵀ)⁻¹, a lower bound of the minimum singular value.

    References
    ----------
    A. Maciejewski and C. Klein, Int. J. Robotics Research 4 (1985), 109.

    """
    k = J.shape[0]
    square = matmul_transposed(J, J)
    plain = solve_spd(square, np.eye(k))
    total = 0.0
    for i in range(k):
        total += plain[i, i]
    smallest = 1.0 / math.sqrt(total) if total > 0.0 else 0.0
    if smallest >= weak or not is_finite(square.ravel()):
        return matmul(J.T, plain), smallest
    squares, U = np.linalg.eigh(square)
    middle = np.zeros((k, k))
    for c in range(k):
        factor = max(squares[c], 0.0)
        factor = 1.0 / (factor + max(weak * weak - factor, 0.0))
        for i in range(k):
            for j in range(k):
                middle[i, j] += factor * U[i, c] * U[j, c]
    return matmul(J.T, middle), smallest


@compiled
def matmul(A: Matrix, B: Matrix) -> Matrix:
    """Return A B."""
    n, m = A.shape[0], B.shape[1]
    C = np.zeros((n, m))
    for i in range(n):
        for k in range(A.shape[1]):
            for j in range(m):
                C[i, j] += A[i, k] * B[k, j]
    return C


@compiled
def matmul_transposed(A: Matrix, B: Matrix) -> Matrix:
    """Return A Bᵀ."""
    return matmul(A, B.T)


@compiled
def matvec(A: Matrix, x: Vector) -> Vector:
    """Return A x (n,)."""
    y = np.zeros(A.shape[0])
    for i in range(A.shape[0]):
        for j in range(A.shape[1]):
            y[i] += A[i, j] * x[j]
    return y


@compiled
def dot(a: Vector, b: Vector) -> float:
    """Return aᵀ b of vectors (3,)."""
    return float(a[0] * b[0] + a[1] * b[1] + a[2] * b[2])


@compiled
def cross(a: Vector, b: Vector, out: Vector) -> None:
    """Write a × b of vectors (3,)."""
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        out[k] = a[i] * b[j] - a[j] * b[i]
