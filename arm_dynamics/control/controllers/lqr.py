"""Linear-quadratic regulation about the reference."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from arm_dynamics.control.controllers.controller import Controller, Gains
from arm_dynamics.control.lqr_design.gain_table import GainTable
from arm_dynamics.control.lqr_design.lqr_gain import (
    LqrWeights,
    linear_dynamics,
    lqr_gain,
    viscous_damping,
)
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import CommandRejected, InvalidValue
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.dynamics.rigid_body import mass_matrix
from arm_dynamics.model.arm_model import ArmModel

BANDWIDTH = 30.0
"""Natural frequency [rad/s] of a joint by itself when no weights are given."""
MAX_RATE = 400.0
"""Highest rate [1/s] of these weights' loop, for control periods up to some 2 ms."""


class Lqr(Controller):
    """tau = tau* - K (x - x_ref),  x = (q, v),  tau* = M a_ref + C v_ref + g + b v_ref at x_ref.

    K makes ∫ Σ (position e² + velocity ė² + effort δtau²) dt least for the arm linearized, by
    analytical derivatives, about the reference's pose at rest: it depends on the pose alone. It
    is solved for when the pose changes, some 0.5 ms, or interpolated in a table (``set_gain_table``),
    some µs, where that reaches. Arm, gravity and friction are those of the law's own model.

    Without weights: those that give a joint by itself, of inertia m = M_ii at the initial pose,
    the stiffness w² m and the damping 1.6 w m, with w = BANDWIDTH, or less where coupled joints
    would make the fastest rate exceed FASTEST.
    Source: B. Anderson and J. Moore, Optimal Control: Linear Quadratic Methods (1990), section
    3.1.
    """

    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("position_weight", None, "1/rad²", "cost of a position error", above=0),
        Parameter(
            "velocity_weight", None, "s²/rad²", "cost of a velocity error", lower=0, order=-2
        ),
        Parameter("effort_weight", None, "1/(N·m)²", "cost of effort", above=0, order=-4),
    )

    def __init__(self, arm: ArmModel, gains: Gains | None = None) -> None:
        self._table: GainTable | None = None
        super().__init__(arm, gains)
        self.gain(arm.configuration("initial"))  # refused here, before time runs

    def set_gains(self, gains: Gains) -> None:
        """Take new weights; a table of others is put away. Errors as in Controller."""
        super().set_gains(gains)
        self._begin()

    def set_model(self, arm: ArmModel) -> None:
        """Tell the law another model; a table of another one is put away. Errors as there."""
        super().set_model(arm)
        self._begin()

    def set_gain_table(self, table: GainTable) -> None:
        """Interpolate K in ``table``; raises InvalidValue when it is another arm's or weights'."""
        if not table.matches(self.arm, self.weights):
            raise InvalidValue(
                f"the gain table is not of arm '{self.arm.name}' as the law knows it and of its"
                f" weights: build one with law.arm and law.weights"
            )
        self._table = table

    def _begin(self) -> None:
        self._viscous = viscous_damping(self.arm)
        self._last: tuple[Vector, Vector] | None = None
        if self._table is not None and not self._table.matches(self.arm, self.weights):
            self._table = None

    @property
    def weights(self) -> LqrWeights:
        """The weights in force."""
        position, velocity, effort = (self.gains[p.name] for p in self.parameters)
        return LqrWeights(position, velocity, effort)

    def gain(self, q: Vector) -> Vector:
        """K (nv, 2 nv) at the pose ``q``; raises CommandRefused where there is none."""
        looked_up = None if self._table is None else self._table.at(q)
        if looked_up is not None:
            return looked_up
        if self._last is None or not np.array_equal(self._last[0], q):
            try:
                self._last = q.copy(), lqr_gain(self.arm, q, self.weights)
            except InvalidValue as error:
                raise CommandRejected(str(error)) from error
        return self._last[1]

    def update(self, state: State, reference: Reference, dt: float) -> Command:
        """Effort command (nv,) [N·m] within the arm's effort limits.

        Raises CommandRefused at a reference that no gain stabilises.
        """
        state, reference = self.bounded_inputs(state, reference, dt)
        held = (
            self.dynamics.rnea(reference.q, reference.v, reference.a) + self._viscous * reference.v
        )
        error = np.concatenate([reference.q - state.q, reference.v - state.v])
        return self.effort_command(held + self.gain(reference.q) @ error, state)

    def default_gains(self) -> Gains:
        """Weights of equal bandwidth at the initial pose."""
        q = self.arm.configuration("initial")
        inertia = np.diag(mass_matrix(self.arm, q))
        weights = uniform_bandwidth_weights(inertia, BANDWIDTH)
        A, B = linear_dynamics(self.arm, q)
        rates = np.linalg.eigvals(A - B @ lqr_gain(self.arm, q, weights))
        weights = uniform_bandwidth_weights(
            inertia, BANDWIDTH * min(1.0, MAX_RATE / np.abs(rates).max())
        )
        table = np.stack([weights.position, weights.velocity, weights.effort], axis=1)
        names = [p.name for p in self.parameters]
        return {
            joint: dict(zip(names, row, strict=True))
            for joint, row in zip(self.arm.joint_names, table.tolist(), strict=True)
        }


def uniform_bandwidth_weights(inertia: Vector, w: float) -> LqrWeights:
    """Weights for stiffness w² m and damping 1.6 w m of joints by themselves.

    m ë = -k e - d ė is optimal for q/r = k² and v/r = d² - 2 m k.
    """
    one = np.ones_like(inertia)
    return LqrWeights(one, (1.6**2 - 2) / w**2 * one, 1 / (w**2 * inertia) ** 2)
