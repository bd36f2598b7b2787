"""Nearest physically consistent inertia tensors, in the text of a URDF.

A body's tensor I belongs to its second moments of mass Σ = ½ tr(I) 1 - I, which are positive
semidefinite. The nearest physically consistent tensor has Σ without its negative eigenvalues:
I = tr(Σ₊) 1 - Σ₊.
"""

from __future__ import annotations

import numpy as np

from arm_dynamics.core.arrays import Matrix
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.model.audit.inertia import TENSOR, tensor_faults, tensor_of
from arm_dynamics.model.audit.robot import Robot
from arm_dynamics.model.urdf_text import UrdfText, comment_text, element_text
from arm_dynamics.model.urdf_writer import format_number
from arm_dynamics.model.xml_source import parse_xml

THICKNESS = 1e-6
"""Smallest second moment of mass over the largest: the margin for rounding."""


def nearest_tensor(tensor: Matrix) -> Matrix:
    """Return the nearest physically consistent tensor (3, 3) [kg·m²].

    Raises InvalidValue for a tensor without a positive second moment of mass.
    """
    values, axes = np.linalg.eigh(np.trace(tensor) / 2 * np.eye(3) - tensor)
    if values[-1] <= 0:
        raise InvalidValue(
            f"inertia tensor: second moments of mass = {values} kg·m²; expected one above 0;"
            " compute the tensor about the center of mass"
        )
    second = (axes * np.maximum(values, THICKNESS * values[-1])) @ axes.T
    return np.array(np.trace(second) * np.eye(3) - second)


def with_consistent_inertia(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a URDF with physically consistent inertia tensors, and the names of changed links.

    Masses and centers of mass do not change. A comment states the old principal moments.

    Parameters
    ----------
    text : str
        Text of the URDF.

    Returns
    -------
    str
        The text; everything but the tensors of the changed links is preserved.
    tuple of str
        Names of the changed links.

    Raises
    ------
    InvalidValue
        For a tensor without a positive second moment of mass.

    """
    robot, edited, changed = Robot(parse_xml(text)), UrdfText(text), []
    for node, link in zip(robot.all_links, edited.root.find_all("link"), strict=True):
        faults = [fault.severity for fault in tensor_faults(robot, node)]
        inertial, element = node.find("inertial"), link.find("inertial")
        inertia = element.find("inertia") if element else None
        old = tensor_of(inertial.find("inertia")) if inertial else None
        if "error" not in faults or old is None or inertia is None:
            continue
        new = nearest_tensor(old)
        given = {name: format_number(float(new[at])) for name, at in TENSOR.items()}
        moments = " ".join(f"{x:.6g}" for x in np.linalg.eigvalsh(old).tolist())
        comment = comment_text(
            f"nearest physically consistent tensor; principal moments were {moments}"
        )
        edited.insert_before(inertia, comment)
        edited.replace(inertia, element_text("inertia", given))
        changed.append(link.name)
    return edited.text(), tuple(changed)
