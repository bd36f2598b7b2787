"""Friction compensation: feedforward of the model's friction along the reference velocity."""

from __future__ import annotations

import numpy as np

from arm_dynamics.control.lqr_design.lqr_gain import coulomb, viscous_damping
from arm_dynamics.core.compiled_math import clip, compiled
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.model.arm_model import ArmModel

SLOW = 0.001
"""Velocity at which the whole dry friction is compensated [rad/s]: the dead band is linear."""
FRICTION_COMPENSATION = Parameter(
    "friction_compensation", 1.0, "1", "fraction of the model's friction compensated",
    lower=0, upper=1,
)  # fmt: skip


class FrictionCompensation:
    """Friction b v + f clip(v / SLOW, ±1) of a controller's model (``compensated_friction``).

    ``viscous`` and ``dry`` (nv,) are the compensated b and f.
    v is a velocity of the reference, not of the arm. Errors of b and f are then disturbances, not
    feedback: they cause neither oscillation nor a limit cycle, and stability does not depend on
    them. At rest the compensation is 0.

    Parameters
    ----------
    arm : ArmModel
        The controller's model.
    scale : float
        Compensated fraction.
    viscous_only : bool
        Compensate b also in joints without dry friction. False: there viscous friction stays
        damping, as in control laws without friction compensation.

    """

    def __init__(self, arm: ArmModel, scale: float = 1.0, *, viscous_only: bool = True) -> None:
        viscous, dry = viscous_damping(arm), coulomb(arm)
        if not viscous_only:
            viscous = np.where(dry > 0, viscous, 0.0)
        self.viscous, self.dry = scale * viscous, scale * dry


@compiled
def compensated_friction(viscous: float, dry: float, v: float, direction: float) -> float:
    """Return b v + f clip(direction / SLOW, ±1) [N·m] of one joint; velocities [rad/s]."""
    return viscous * v + dry * clip(direction / SLOW, -1.0, 1.0)
