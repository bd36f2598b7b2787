"""Gravity compensation: the arm can be guided by hand."""

from __future__ import annotations

from typing import ClassVar

from arm_dynamics.control.controllers.controller import (
    REFERENCE,
    STATE,
    CompiledController,
    Gains,
    are_bounded,
)
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.compiled_math import (
    NUMBER,
    VECTOR,
    VECTOR_OUT,
    clip,
    compiled_for,
    direct_call,
)
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.core.state import Reference, State
from arm_dynamics.model.arm_model import ArmModel


class GravityCompensation(CompiledController):
    """tau = g(q) - d v, with the gravity torque g of the controller's model.

    The reference is ignored.

    References
    ----------
    Siciliano et al., Robotics (2009), section 8.5.1.

    """

    tracks_reference: ClassVar[bool] = False
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("d", 0.0, "N·m·s/rad", "added damping", lower=0, upper=1e6),
    )

    def __init__(self, arm: ArmModel, gains: Gains | None = None) -> None:
        super().__init__(arm, gains)
        self._efforts = direct_call(damped_gravity)

    def compute(self, effort: Vector, state: State, reference: Reference, dt: float) -> bool:
        """Write the effort (nv,) [N·m]; return whether inputs are valid."""
        return self._efforts(
            self.dynamics.gravity(state.q), self.gains["d"],
            (reference.q, reference.v, reference.a), (state.q, state.v), dt, self._limit, effort,
        )  # fmt: skip


@compiled_for(VECTOR, VECTOR, REFERENCE, STATE, NUMBER, VECTOR, VECTOR_OUT, direct=True)
def damped_gravity(
    gravity: Vector,
    damping: Vector,
    reference: tuple[Vector, Vector, Vector],
    state: tuple[Vector, Vector],
    dt: float,
    limit: Vector,
    effort: Vector,
) -> bool:
    """Write g - d v within ±limit (nv,) [N·m]; return whether all inputs are valid."""
    if not are_bounded(reference, state, dt, effort.size):
        return False
    for j in range(effort.size):
        effort[j] = clip(gravity[j] - damping[j] * state[1][j], -limit[j], limit[j])
    return True
