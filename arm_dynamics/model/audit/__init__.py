"""Audit of a robot description: all faults in one report, each with its line and remedy.

URDF loaders accept many errors (negative masses, NaN text, two parents, a zero axis) and stop at
the first of the others. This audit reads the text only and reports every fault. The tables below
list its rules: a generator each, for the robot, a joint, a link, a driven body, a
``<ros2_control>`` block or a joint of such a block.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path

import numpy as np

from arm_dynamics.model.audit import (
    effort,
    files,
    inertia,
    joints,
    mimic_joints,
    numbers,
    proportion,
    ros2_control,
    structure,
)
from arm_dynamics.model.audit.fault import Fault, title
from arm_dynamics.model.audit.robot import Edge, Robot, mimicked
from arm_dynamics.model.xml_source import Node, XmlSyntaxError, parse_xml

ROBOT_RULES: tuple[Callable[[Robot], Iterator[Fault]], ...] = (
    structure.naming_faults,
    structure.markup_faults,
    structure.parent_faults,
    structure.root_faults,
    numbers.number_faults,
    inertia.kinematic_faults,
    inertia.root_inertia_faults,
    proportion.mass_unit_faults,
    proportion.gyration_faults,
    joints.mobility_faults,
    mimic_joints.mimic_range_faults,
    effort.effort_limit_faults,
    ros2_control.transmission_faults,
    ros2_control.joint_list_faults,
)
LINK_RULES: tuple[Callable[[Robot, Node], Iterator[Fault]], ...] = (
    inertia.mass_faults,
    inertia.tensor_faults,
    proportion.origin_unit_faults,
)
BODY_RULES: tuple[Callable[[Robot, Edge], Iterator[Fault]], ...] = (
    inertia.massless_body_faults,
    inertia.point_mass_faults,
    inertia.axis_inertia_faults,
)
JOINT_RULES: tuple[Callable[[Robot, Node], Iterator[Fault]], ...] = (
    structure.reference_faults,
    proportion.limit_unit_faults,
    proportion.origin_unit_faults,
    joints.joint_type_faults,
    mimic_joints.mimic_faults,
    joints.axis_faults,
    joints.limit_faults,
    joints.effort_and_velocity_faults,
    joints.friction_faults,
)
CONTROL_BLOCK_RULES: tuple[Callable[[Robot, Node], Iterator[Fault]], ...] = (
    ros2_control.plugin_faults,
    ros2_control.tool_frame_faults,
    ros2_control.bus_faults,
    ros2_control.motor_faults,
    ros2_control.repeated_id_faults,
)
CONTROL_JOINT_RULES: tuple[Callable[[Robot, Node], Iterator[Fault]], ...] = (
    ros2_control.repeated_param_faults,
    ros2_control.actuator_faults,
    ros2_control.interface_faults,
    ros2_control.initial_position_faults,
)


def audit_urdf(
    text: str, folder: Path | None = None, lock: Collection[str] = ()
) -> tuple[Fault, ...]:
    """Return all faults of a URDF, sorted by line.

    Parameters
    ----------
    text : str
        Text of the URDF. Text that is not XML is a fault; nothing is raised.
    folder : Path, optional
        Folder to which mesh paths are relative, and from which packages are searched.
    lock : collection of str
        Names of joints that will be locked; they count as fixed.

    Returns
    -------
    tuple of Fault
        Empty for a URDF without faults.

    """
    try:
        root = parse_xml(text)
    except XmlSyntaxError as error:
        return (Fault(error.line, "XML", "", error.problem, error.remedy),)
    if root.tag != "robot":
        problem = "is not a URDF's root element"
        return (Fault(root.line, title(root), root.tag, problem, 'write <robot name="…">'),)
    robot = Robot(root, frozenset(lock))
    blocks = root.find_all("ros2_control")
    driven = [e for e in robot.edges if robot.moves(e.joint) and mimicked(e.joint) is None]
    control_joints = [joint for block in blocks for joint in block.find_all("joint")]
    with np.errstate(all="ignore"):  # very large numbers may overflow
        found = [fault for rule in ROBOT_RULES for fault in rule(robot)]
        found += [f for edge in driven for rule in BODY_RULES for f in rule(robot, edge)]
        for rules, elements in (
            (LINK_RULES, robot.all_links),
            (JOINT_RULES, robot.all_joints),
            (CONTROL_BLOCK_RULES, blocks),
            (CONTROL_JOINT_RULES, control_joints),
        ):
            found += [f for node in elements for rule in rules for f in rule(robot, node)]
    found += [*files.file_faults(robot, folder), *structure.comment_faults(text)]
    return tuple(sorted(found, key=lambda fault: fault.line))
