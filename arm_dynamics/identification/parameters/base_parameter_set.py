"""Base parameters: the combinations of dynamic parameters that joint efforts determine.

W π = W_b β,  β = π_b + K π_d

with independent columns W_b of W, found by a QR decomposition with column pivoting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from arm_dynamics.core.arrays import IntArray, Matrix, Vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.identification.parameters.dynamic_parameters import regressor
from arm_dynamics.model.arm_argument import requires_arm
from arm_dynamics.model.arm_model import ArmModel

RANK_TOLERANCE = 1e-3
"""Diagonal entry of R relative to the largest below which a column is dependent. Axes that
are parallel or perpendicular but for rounded angles (1.57 in a URDF) give entries up to 8e-4; those
of independent columns are above 0.1 on the bundled arms."""
UNSEEN = 1e-8
"""Size of a column relative to the largest below which it does not change any effort."""
MIN_FACTOR = 1e-9
"""Entry of K below which it is a rounding error."""
MIN_SHOWN = 1e-5
"""Entry of K below which ``describe`` omits it."""


@dataclass(frozen=True, slots=True, eq=False)
class BaseParameters:
    """Minimal set of combinations that determine the efforts of a motion.

    ``independent`` (nb,) are the columns of the base parameters among all p parameters;
    ``combinations`` (nb, p) is [1 K]: β = combinations @ π. ``unseen`` are the columns that do not
    change any effort.
    """

    names: tuple[str, ...]
    independent: IntArray
    combinations: Matrix
    unseen: IntArray

    @property
    def size(self) -> int:
        """Number of base parameters."""
        return int(self.independent.size)

    def values(self, parameters: Vector) -> Vector:
        """Return β (nb,) of all parameters (p,)."""
        values: Vector = self.combinations @ parameters
        return values

    def describe(self, i: int) -> str:
        """Return base parameter i in words: "J2.mx + 0.4 J3.m - J3.mz"."""
        text = ""
        for j in sorted(
            np.flatnonzero(self.combinations[i]), key=lambda j: j != self.independent[i]
        ):
            factor = float(self.combinations[i, j])
            if abs(factor) < MIN_SHOWN:
                continue
            sign = ("- " if factor < 0 else "+ ") if text else ("-" if factor < 0 else "")
            size = "" if abs(abs(factor) - 1) < 1e-6 else f"{abs(factor):.4g} "
            text += f"{' ' if text else ''}{sign}{size}{self.names[j]}"
        return text


def base_parameters(rows: Matrix, names: Sequence[str]) -> BaseParameters:
    """Return the base parameters of stacked regressor rows (m, p).

    Columns that come first are preferred as independent ones only by their size: pivoting takes
    the largest remaining column.

    Parameters
    ----------
    rows : Matrix
        Regressor (m, p), m >= p, without noise: of random states, or of a planned motion.
    names : Sequence[str]
        Names (p,) of the columns.

    Returns
    -------
    BaseParameters
        The independent columns and the combinations.

    Raises
    ------
    InvalidValue
        If no column differs from zero.

    References
    ----------
    M. Gautier, Numerical calculation of the base inertial parameters of robots, J. Robotic Systems
    8 (1991), section 3.

    """
    scale = np.linalg.norm(rows, axis=0)
    seen = np.flatnonzero(scale > UNSEEN * scale.max(initial=0.0))
    if not seen.size:
        raise InvalidValue("base parameters: regressor = 0; expected a motion or a gravity field")
    r, pivots = scipy.linalg.qr(rows[:, seen] / scale[seen], mode="r", pivoting=True)
    diagonal = np.abs(np.diag(r))
    rank = int(np.sum(diagonal > RANK_TOLERANCE * diagonal[0]))
    factors = scipy.linalg.solve_triangular(r[:rank, :rank], r[:rank, rank:])
    independent, dependent = seen[pivots[:rank]], seen[pivots[rank:]]
    factors *= scale[dependent] / scale[independent][:, None]
    order = np.argsort(independent)
    combinations = np.zeros((rank, rows.shape[1]))
    combinations[np.arange(rank), independent] = 1.0
    factors[np.abs(factors) < MIN_FACTOR] = 0.0
    combinations[:, dependent] = factors
    unseen = np.setdiff1d(np.arange(rows.shape[1]), seen)
    return BaseParameters(tuple(names), independent[order], combinations[order], unseen)


@requires_arm
def structural_rows(arm: ArmModel, count: int = 0, seed: int = 0) -> Matrix:
    """Return regressor rows (count nv, 14 nv) of random states within the limits of the arm.

    By default ``count`` gives three times as many rows as parameters.
    """
    count = count or 42
    random = np.random.default_rng(seed)
    lower, upper = np.maximum(arm.lower, -np.pi), np.minimum(arm.upper, np.pi)
    q = random.uniform(lower, upper, (count, arm.nv))
    v, a = random.uniform(-1, 1, (2, count, arm.nv))
    return regressor(arm, q, v, a).reshape(count * arm.nv, -1)
