"""What a model may have wrong, and what it says."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from arm_dynamics.batch.rollout.variation import rollout_arm
from arm_dynamics.core.arrays import Vector
from arm_dynamics.model.arm_model import ArmModel

UNCERTAIN = frozenset(
    {"link.mass", "link.inertia", "joint.damping", "joint.friction", "motor.kt", "motor.ke"}
    | {"motor.resistance", "motor.supply_voltage", "motor.rotor_inertia", "motor.current_limit"}
    | {"motor.viscous_friction", "motor.coulomb_friction", "motor.stiction"}
)
"""What a model may have wrong; geometry, stops and own states' constants are taken as known."""
SHARED = {"motor.stiction": "motor.coulomb_friction"}
"""Constants that vary together with another one, which they may not pass."""


def nominal_values(arm: ArmModel, name: str) -> Vector:
    """What ``arm`` has for a variation (nv,), or (1,) payload; zeros where it is no number."""
    kind, _, field = name.partition(".")
    if name == "payload":
        return np.array([arm.payload.mass])
    if kind == "joint":
        values = [getattr(joint, field) for joint in arm.joints]
    elif name == "link.mass":
        values = [arm.links.inertias[i + 1].mass for i in range(arm.nv)]
    elif name == "link.inertia":
        values = [1.0] * arm.nv
    else:
        values = [actuator.constants.get(field, 0.0) for actuator in arm.actuators]
    found = np.array(values, dtype=float)
    return found if np.isfinite(found).all() else np.zeros(arm.nv)


def arm_with_values(arm: ArmModel, values: Mapping[str, Vector]) -> ArmModel:
    """``arm`` with the ``values`` of its variations, name → (nv,) or (1,)."""
    return rollout_arm(arm, {name: row.tolist() for name, row in values.items()})
