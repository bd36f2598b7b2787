"""Named configurations of an arm: its own, and the group states of an SRDF next to its URDF."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.audit.numbers import number_attribute
from arm_dynamics.model.srdf import srdf_elements


def named_configurations(arm: ArmModel) -> Mapping[str, Vector]:
    """Return the configurations (nv,) [rad or m] of an arm by name.

    Those of ``arm.configurations`` come first. A group state of its SRDF that moves at least one of
    its joints follows; other joints keep their initial position. States beyond a position limit are
    omitted. A file that cannot be read causes a warning.
    """
    found = dict(arm.configurations)
    for state in srdf_elements(arm, "group_state"):
        q, moves = np.array(arm.configuration("initial")), False
        for joint in state.children:
            name, value = joint.get("name") or "", number_attribute(joint, "value")
            if name in arm.joint_names and value is not None:
                q[arm.index(name)], moves = value, True
        if moves and ((arm.lower <= q) & (q <= arm.upper)).all():
            found.setdefault(state.get("name") or "state", as_readonly(q))
    return found
