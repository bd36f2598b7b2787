"""Rigid-body dynamics for one caller that asks in every tick."""

from __future__ import annotations

import pinocchio as pin

from arm_dynamics.arrays import Vector
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.given_arm import given_arm
from arm_dynamics.positive import symmetric


class RigidBody:
    """``dynamics`` of one arm without its checks, with scratch memory of its own.

    q, v, a are (nv,), float64 and finite; the results are the caller's.
    """

    def __init__(self, arm: ArmModel) -> None:
        self._model = given_arm(arm).model
        self._data = self._model.createData()

    def mass_matrix(self, q: Vector) -> Vector:
        """M(q) (nv, nv) [kg·m²]."""
        return symmetric(pin.crba(self._model, self._data, q))

    def gravity(self, q: Vector) -> Vector:
        """g(q) (nv,) [N·m]."""
        found: Vector = pin.computeGeneralizedGravity(self._model, self._data, q).copy()
        return found

    def nle(self, q: Vector, v: Vector) -> Vector:
        """C(q, v) v + g(q) (nv,) [N·m]."""
        found: Vector = pin.nonLinearEffects(self._model, self._data, q, v).copy()
        return found

    def rnea(self, q: Vector, v: Vector, a: Vector) -> Vector:
        """M(q) a + C(q, v) v + g(q) (nv,) [N·m]."""
        found: Vector = pin.rnea(self._model, self._data, q, v, a).copy()
        return found
