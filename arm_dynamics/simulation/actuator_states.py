"""Layout of the actuator states: in the vector z, in compiled code, in the order of a step."""

from __future__ import annotations

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.model.arm_model import ArmModel


def actuator_state_slices(arm: ArmModel) -> list[slice]:
    """Return the slice of z with the actuator states of each joint."""
    ends = np.cumsum([len(actuator.states) for actuator in arm.actuators]).tolist()
    return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]


def compiled_state_entries(arm: ArmModel) -> tuple[Vector, tuple[Vector, Vector]]:
    """Return the entries of z that compiled code holds, with the slot and the joint of each."""
    own = actuator_state_slices(arm)
    found = [
        (k, slot, i)
        for i, actuator in enumerate(arm.actuators)
        for k, slot in zip(range(own[i].start, own[i].stop), actuator.kernel_slots, strict=False)
    ]
    kept, slots, joints = np.array(found, dtype=int).reshape(-1, 3).T
    return kept, (slots, joints)


def update_groups(arm: ArmModel) -> tuple[Vector, ...]:
    """Return the entries of z by group, in order; without those of prescribed joints."""
    every = [(s.group, a.prescribes_motion) for a in arm.actuators for s in a.states]
    numbers = sorted({group for group, prescribed in every if not prescribed})
    return tuple(np.array([k for k, e in enumerate(every) if e == (n, False)]) for n in numbers)
