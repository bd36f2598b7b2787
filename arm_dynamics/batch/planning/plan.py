"""Plan of a horizon: the predicted motion, with its inputs and feedback gains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from arm_dynamics.core.arrays import FloatArray, Matrix, Vector
from arm_dynamics.core.errors import InvalidValue

Motion = tuple[Matrix, Matrix, FloatArray]
"""Inputs (periods, nv), states (periods + 1, 2 nv) and gains (periods, nv, 2 nv)."""


class NoPlan(InvalidValue):
    """Every predicted motion diverges or has no finite cost."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Predicted motion of a horizon, with its inputs and feedback gains.

    Attributes
    ----------
    time : float
        Time at which the first input acts [s].
    period : float
        Time from one input to the next [s].
    inputs : Matrix
        Inputs of the policy (periods, nv).
    states : Matrix
        Predicted q and v at the start of each period and at the end (periods + 1, 2 nv).
    gains : FloatArray
        Feedback gains of q and v (periods, nv, 2 nv), 0 without feedback.
    cost : float
        Predicted cost.
    reference : tuple of arrays, optional
        ``Planner.reference`` of its time.

    """

    time: float
    period: float
    inputs: Matrix
    states: Matrix
    gains: FloatArray
    cost: float
    reference: Motion | None = None

    @property
    def end(self) -> float:
        """Time after the last period [s]."""
        return self.time + len(self.inputs) * self.period

    def state(self, time: float) -> Vector:
        """Return the predicted (q, v) (2 nv,) at a time [s], between the ends of the horizon."""
        k, fraction = self.period_at(time)
        x: Vector = (1.0 - fraction) * self.states[k] + fraction * self.states[k + 1]
        return x

    def input(self, time: float, q: Vector, v: Vector) -> Vector:
        """Return u_k + K_k (x(t) - (q, v)) (nv,), k the period of ``time``, in the end the last."""
        k, _ = self.period_at(time)
        error = self.state(time) - np.concatenate([q, v])
        u: Vector = self.inputs[k] + self.gains[k] @ error
        return u

    def period_at(self, time: float) -> tuple[int, float]:
        """Return the period of a time [s], in the end the last, and the part of it that is over."""
        at = min(max((time - self.time) / self.period, 0.0), float(len(self.inputs)))
        k = min(int(at + 1e-9), len(self.inputs) - 1)
        return k, at - k
