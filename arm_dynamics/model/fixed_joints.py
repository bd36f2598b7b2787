"""Locked joints as fixed joints of a URDF: programs that read it expect no states of them."""

from __future__ import annotations

from xml.etree import ElementTree

import pinocchio as pin

from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.urdf_writer import numbers, rpy

KEPT = {"parent", "child"}
"""Elements of a joint that a fixed one has too, besides its origin."""


def with_fixed_joints(arm: ArmModel) -> str:
    """Return the URDF of ``arm`` with its locked joints fixed at their positions.

    Parameters
    ----------
    arm : ArmModel
        Arm whose locked joints become fixed.

    Returns
    -------
    str
        The arm's own text if it has no locked joints. Otherwise the same links at the same
        placements, without the locked joints in ``<ros2_control>``, and without comments.

    """
    if not arm.locked:
        return arm.urdf
    robot = ElementTree.fromstring(arm.urdf)
    for joint in robot.findall("joint"):
        if joint.get("name") in arm.locked:
            _fix(arm, joint)
    for block in robot.iter("ros2_control"):
        for joint in block.findall("joint"):
            if joint.get("name") in arm.locked:
                block.remove(joint)
    return ElementTree.tostring(robot, encoding="unicode")


def _fix(arm: ArmModel, joint: ElementTree.Element) -> None:
    """Make the joint fixed; its origin becomes the placement of its child link in its parent."""
    parent, child = (
        arm.links.frames[arm.links.getFrameId(node.get("link"), pin.BODY)].placement
        for node in (joint.find("parent"), joint.find("child"))
        if node is not None
    )
    placement = parent.actInv(child)
    joint.set("type", "fixed")
    for node in [node for node in joint if node.tag not in KEPT]:
        joint.remove(node)
    at = {"xyz": numbers(placement.translation), "rpy": numbers(rpy(placement.rotation))}
    joint.insert(0, ElementTree.Element("origin", at))
