"""Output injection: measured positions correct the states of rollouts, as in an observer.

q ← q + k₁ (y - q),   v ← v + k₂ (y - q)

y are positions measured at intervals of T. Both poles of the error of a free mass are e^(-T/τ):

k₁ = 1 - z²,   k₂ = (1 - z)² / T,   z = e^(-T/τ)

A rotor behind backlash receives the change of its joint: the gap and its rate remain.

References
----------
L. Ljung, System Identification (1999), section 4.3 (predictors of state-space models) and chapter
7 (prediction errors). H. Abarbanel et al., Dynamical state and parameter estimation, SIAM Journal
on Applied Dynamical Systems 8 (2009) (synchronization of chaotic models with data).

"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp

from arm_dynamics.core.arrays import Matrix


@dataclass(frozen=True, slots=True, eq=False)
class OutputInjection:
    """Positions ``measured`` (n, nv) [rad or m] after each ``periods`` control periods.

    ``k1`` [1] and ``k2`` [1/s] are the gains. ``rotors``: entry of the actuator states with the
    velocity of a rotor → its joint.
    """

    measured: Matrix
    periods: int
    k1: float
    k2: float
    rotors: Mapping[int, int]

    @classmethod
    def of(
        cls, measured: Matrix, periods: int, interval: float, time: float, rotors: Mapping[int, int]
    ) -> OutputInjection:
        """Return the injection with the time constant τ = ``time`` and T = ``interval`` [s]."""
        z = exp(-interval / time)
        return cls(measured, periods, 1 - z**2, (1 - z) ** 2 / interval, rotors)

    def corrected(self, k: int, q: Matrix, v: Matrix, act: Matrix) -> tuple[Matrix, Matrix, Matrix]:
        """Return q, v (batch, nv) and actuator states (batch, na) after the k-th correction."""
        error, act = self.measured[k] - q, act.copy()
        for column, joint in self.rotors.items():
            act[:, column] += self.k2 * error[:, joint]
        return q + self.k1 * error, v + self.k2 * error, act
