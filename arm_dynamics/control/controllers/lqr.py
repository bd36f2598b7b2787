"""Linear-quadratic regulator (LQR) about the reference."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from arm_dynamics.control.controllers.controller import (
    REFERENCE,
    STATE,
    CompiledController,
    Gains,
    are_bounded,
)
from arm_dynamics.control.controllers.friction_compensation import (
    FRICTION_COMPENSATION,
    FrictionCompensation,
    compensated_friction,
)
from arm_dynamics.control.lqr_design.gain_table import GainTable
from arm_dynamics.control.lqr_design.lqr_gain import (
    LqrGains,
    LqrWeights,
    linear_dynamics,
    lqr_gain,
)
from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.core.compiled_math import (
    MATRIX,
    NUMBER,
    VECTOR,
    VECTOR_OUT,
    clip,
    compiled_for,
    direct_call,
)
from arm_dynamics.core.errors import CommandRejected, InvalidValue
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.state import Reference, State
from arm_dynamics.dynamics.rigid_body import mass_matrix
from arm_dynamics.model.arm_model import ArmModel

BANDWIDTH = 30.0
"""Natural frequency of a single joint without given weights [rad/s]."""
MAX_RATE = 400.0
"""Maximum rate of the loop with these weights [1/s], for control periods up to about 2 ms."""

WEIGHTS = (
    Parameter("position_weight", None, "1/rad²", "cost of a position error", above=0),
    Parameter("velocity_weight", None, "s²/rad²", "cost of a velocity error", lower=0, order=-2),
    Parameter("effort_weight", None, "1/(N·m)²", "cost of effort", above=0, order=-4),
)
"""Weights of a joint."""


@compiled_for(
    VECTOR, MATRIX, (VECTOR, VECTOR), REFERENCE, STATE, NUMBER, VECTOR, VECTOR_OUT, direct=True
)
def lqr_efforts(
    along: Vector,
    gain: Matrix,
    friction: tuple[Vector, Vector],
    reference: tuple[Vector, Vector, Vector],
    state: tuple[Vector, Vector],
    dt: float,
    limit: Vector,
    effort: Vector,
) -> bool:
    """Write ``along`` + F(v_ref) + K (x_ref - x) within ±limit (nv,) [N·m].

    Return whether all inputs are valid (``are_bounded``). ``gain`` is K (nv, 2 nv), ``friction``
    viscous and dry friction, (nv,) each.
    """
    if not are_bounded(reference, state, dt, effort.size):
        return False
    (q_ref, v_ref, _), (q, v), n = reference, state, effort.size
    viscous, dry = friction
    for i in range(n):
        desired = along[i] + compensated_friction(viscous[i], dry[i], v_ref[i], v_ref[i])
        for j in range(n):
            desired += gain[i, j] * (q_ref[j] - q[j]) + gain[i, n + j] * (v_ref[j] - v[j])
        effort[i] = clip(desired, -limit[i], limit[i])
    return True


class Lqr(CompiledController):
    """tau = tau* - K (x - x_ref),  x = (q, v),  tau* = M a_ref + C v_ref + g + F(v_ref) at x_ref.

    F is the friction compensation (``FrictionCompensation``).

    K minimizes ∫ Σ (position e² + velocity ė² + effort δtau²) dt for the arm linearized, by
    analytical derivatives, about the reference configuration at rest. It is solved for when the
    configuration changes, 0.1 to 0.2 ms, or interpolated in a gain table (``set_gain_table``),
    some µs, within the table's range. Arm, gravity and friction are those of the controller's
    model.

    Without weights, a single joint of inertia m = M_ii at the initial configuration gets the
    stiffness w² m and the damping 1.6 w m with w = BANDWIDTH. w is less if, with coupled joints,
    the fastest rate would exceed MAX_RATE.

    References
    ----------
    B. Anderson and J. Moore, Optimal Control: Linear Quadratic Methods (1990), section 3.1.

    """

    parameters: ClassVar[tuple[Parameter, ...]] = WEIGHTS
    controller_parameters: ClassVar[tuple[Parameter, ...]] = (FRICTION_COMPENSATION,)

    def __init__(self, arm: ArmModel, gains: Gains | None = None) -> None:
        self._table: GainTable | None = None
        super().__init__(arm, gains)
        self._efforts = direct_call(lqr_efforts)
        self.gain(arm.configuration("initial"))  # raises here, before the loop runs

    def set_gains(self, gains: Gains) -> None:
        """Set weights; a gain table of other weights is discarded. Errors as in Controller."""
        super().set_gains(gains)
        self._update_model()

    def set_model(self, arm: ArmModel) -> None:
        """Set the controller's model; a gain table of another model is discarded.

        Errors as in Controller.
        """
        super().set_model(arm)
        self._update_model()

    def set_gain_table(self, table: GainTable) -> None:
        """Interpolate K in a gain table.

        Raises
        ------
        InvalidValue
            If it was computed for another model or other weights.

        """
        if not table.matches(self.arm, self.weights):
            raise InvalidValue(
                f"gain table: computed for another model or other weights; expected those of the"
                f" controller for arm '{self.arm.name}'; build it with controller.arm and"
                " controller.weights"
            )
        self._table = table

    def _update_model(self) -> None:
        friction = FrictionCompensation(self.arm, self.controller_gains["friction_compensation"])
        self._friction = friction.viscous, friction.dry
        self._gains = LqrGains(self.arm, self.weights)
        self._last: tuple[Vector, Matrix] | None = None
        if self._table is not None and not self._table.matches(self.arm, self.weights):
            self._table = None

    @property
    def weights(self) -> LqrWeights:
        """The active weights."""
        position, velocity, effort = (self.gains[p.name] for p in self.parameters)
        return LqrWeights(position, velocity, effort)

    def gain(self, q: Vector) -> Matrix:
        """Return K (nv, 2 nv) at the configuration ``q``; raises CommandRejected without one."""
        interpolated = None if self._table is None else self._table.at(q)
        if interpolated is not None:
            return interpolated
        if self._last is None or not np.array_equal(self._last[0], q):
            try:
                self._last = q.copy(), self._gains.at(q)
            except InvalidValue as error:
                raise CommandRejected(str(error)) from error
        return self._last[1]

    def compute(self, effort: Vector, state: State, reference: Reference, dt: float) -> bool:
        """Write the effort (nv,) [N·m]; return whether inputs are valid.

        Raises
        ------
        CommandRejected
            At a reference that no gain stabilizes.

        """
        q, v, a = reference.q, reference.v, reference.a
        along = self.dynamics.rnea(q, v, a)
        return self._efforts(
            along, self.gain(q), self._friction, (q, v, a), (state.q, state.v), dt, self._limit,
            effort,
        )  # fmt: skip

    def default_gains(self) -> Gains:
        """Return weights of uniform bandwidth at the initial configuration."""
        return default_weights(self.arm)


def default_weights(arm: ArmModel) -> Gains:
    """Return weights of uniform bandwidth at the initial configuration, by joint."""
    q = arm.configuration("initial")
    inertia = np.diag(mass_matrix(arm, q))
    weights = uniform_bandwidth_weights(inertia, BANDWIDTH)
    A, B = linear_dynamics(arm, q)
    rates = np.linalg.eigvals(A - B @ lqr_gain(arm, q, weights))
    w = BANDWIDTH * min(1.0, MAX_RATE / np.abs(rates).max())
    weights = uniform_bandwidth_weights(inertia, w)
    table = np.stack([weights.position, weights.velocity, weights.effort], axis=1)
    names = [p.name for p in WEIGHTS]
    return {
        joint: dict(zip(names, row, strict=True))
        for joint, row in zip(arm.joint_names, table.tolist(), strict=True)
    }


def uniform_bandwidth_weights(inertia: Vector, w: float) -> LqrWeights:
    """Return weights for stiffness w² m and damping 1.6 w m of single joints of inertia m.

    m ë = -k e - d ė is optimal for q/r = k² and v/r = d² - 2 m k.
    """
    one = np.ones_like(inertia)
    return LqrWeights(one, (1.6**2 - 2) / w**2 * one, 1 / (w**2 * inertia) ** 2)
