"""Named configurations of an arm: its own, and the group states of an SRDF next to its URDF."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.audit.numbers import number_attribute
from arm_dynamics.model.xml_source import parse_xml, read_text


def named_configurations(arm: ArmModel) -> Mapping[str, Vector]:
    """Return the configurations (nv,) [rad or m] of an arm by name.

    Those of ``arm.configurations`` come first. A group state of its SRDF that moves at least one of
    its joints follows; other joints keep their initial position. States beyond a position limit are
    omitted. A file that cannot be read causes a warning.
    """
    found = dict(arm.configurations)
    file = srdf_file(arm)
    if file is None:
        return found
    try:
        root = parse_xml(read_text(file))
    except ArmDynamicsError as error:
        text = f"{file}: {error}; its group states are ignored"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
        return found
    if root.get("name") != arm.name:
        return found
    for state in root.find_all("group_state"):
        q, moves = np.array(arm.configuration("initial")), False
        for joint in state.children:
            name, value = joint.get("name") or "", number_attribute(joint, "value")
            if name in arm.joint_names and value is not None:
                q[arm.index(name)], moves = value, True
        if moves and ((arm.lower <= q) & (q <= arm.upper)).all():
            found.setdefault(state.get("name") or "state", as_readonly(q))
    return found


def srdf_file(arm: ArmModel) -> Path | None:
    """Return the SRDF of an arm: next to its URDF, or in ``config`` as in MoveIt packages."""
    if arm.source is None:
        return None
    folder, name = arm.source.parent, f"{arm.name}.srdf"
    places = (
        arm.source.with_suffix(".srdf"), folder / name, folder / "config" / name,
        folder.parent / "config" / name,
    )  # fmt: skip
    return next((place for place in places if place.is_file()), None)
