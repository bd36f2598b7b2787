"""SRDF of an arm: the file next to its URDF."""

from __future__ import annotations

import warnings
from pathlib import Path

from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.xml_source import Node, parse_xml, read_text


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


def srdf_elements(arm: ArmModel, tag: str) -> tuple[Node, ...]:
    """Return the elements of an arm's SRDF; none without a file of this robot.

    A file that cannot be read causes a warning.
    """
    file = srdf_file(arm)
    try:
        root = None if file is None else parse_xml(read_text(file))
    except ArmDynamicsError as error:
        warnings.warn(
            f"{file}: {error}; its disabled pairs and group states are ignored",
            RuntimeWarning,
            stacklevel=3,
        )
        return ()
    return () if root is None or root.get("name") != arm.name else root.find_all(tag)


def disabled_pairs(arm: ArmModel) -> dict[frozenset[str], str]:
    """Return the pairs of links in ``disable_collisions`` of an arm's SRDF, with the reasons."""
    return {
        frozenset((node.get("link1") or "", node.get("link2") or "")): node.get("reason") or "User"
        for node in srdf_elements(arm, "disable_collisions")
    }
