"""The ``<ros2_control>`` block of an arm: the hardware component of topics, and its joints.

controller_manager loads the component, which writes commands to ``joint_commands`` and reads
``joint_states``: the topics of the simulator and of the node of a physical arm. The params of
actuators and motors, which these nodes read from the same block, stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from arm_dynamics.core.errors import UnknownName
from arm_dynamics.model.arm_model import ArmModel, Joint
from arm_dynamics.model.robot_description import with_fixed_joints, with_resolvable_uris
from arm_dynamics.model.urdf_text import Element, UrdfText, control_joints, element_text
from arm_dynamics.model.urdf_writer import (
    ROS2_CONTROL_PLUGIN,
    ROS2_CONTROL_TOPICS,
    format_number,
)
from arm_dynamics.model.xml_source import parse_xml

PLUGINS = (ROS2_CONTROL_PLUGIN, "topic_based_ros2_control/TopicBasedSystem")
"""Hardware components of topics: the present one and its predecessor."""
COMMANDS = ("effort", "position", "velocity")
"""Command interfaces of these components."""
STATES = ("position", "velocity", "effort")
"""State interfaces of every joint; the component compares a command with the state of its name."""


def with_ros2_control(arm: ArmModel, plugin: str, command: str) -> str:
    """Return the URDF of ``arm`` with one ``<ros2_control>`` block, that of its joints.

    Parameters
    ----------
    arm : ArmModel
        The arm; its locked joints become fixed, and mesh URIs absolute.
    plugin : str
        Hardware component, one of PLUGINS.
    command : str
        Command interface of every joint, one of COMMANDS.

    Returns
    -------
    str
        Text of the URDF. Params of actuators, motors and driver are those of the arm's own block;
        other blocks are removed.

    Raises
    ------
    UnknownName
        For another plugin or command interface.

    """
    for name, value, known in (("plugin", plugin, PLUGINS), ("interface", command, COMMANDS)):
        if value not in known:
            raise UnknownName(f"{name} of ros2_control", value, known)
    text = UrdfText(with_fixed_joints(arm))
    joints, blocks = control_joints(text), list(text.root.find_all("ros2_control"))
    params = {name: _params(text, joint) for name, joint in joints.items()}
    hardware = [element_text("plugin", {}, plugin)]
    own = [_params(text, node) for block in blocks for node in block.find_all("hardware")]
    settings = {**(own[0] if own else {}), **ROS2_CONTROL_TOPICS}
    hardware += [element_text("param", {"name": name}, given) for name, given in settings.items()]
    for block in blocks:
        text.remove(block)
    children = [
        element_text("hardware", {}, children=hardware),
        *(control_joint(j, command, params.get(j.name, {}), limited=True) for j in arm.joints),
    ]
    named = {"name": arm.name, "type": "system"}
    text.append(text.root, element_text("ros2_control", named, children=children))
    return with_resolvable_uris(text.text(), arm.source.parent if arm.source else None)


def control_joint(
    joint: Joint, command: str, params: Mapping[str, str], *, limited: bool = False
) -> str:
    """Return a joint of a ``<ros2_control>`` block.

    ``params`` are those of its actuator and motor. If ``limited``, the command interface has the
    limits of the joint that are finite.
    """
    bounds = {
        "position": (joint.lower, joint.upper),
        "velocity": (-joint.velocity, joint.velocity),
        "effort": (-joint.effort, joint.effort),
    }[command]
    limits = [
        element_text("param", {"name": name}, format_number(bound))
        for name, bound in zip(("min", "max"), bounds, strict=True)
        if limited and isfinite(bound)
    ]
    start = element_text("param", {"name": "initial_value"}, format_number(joint.initial))
    children = [
        element_text("command_interface", {"name": command}, children=limits),
        *(
            element_text("state_interface", {"name": name}, children=[start][: name == "position"])
            for name in STATES
        ),
        *(element_text("param", {"name": name}, text) for name, text in params.items()),
    ]
    return element_text("joint", {"name": joint.name}, children=children)


def _params(text: UrdfText, owner: Element) -> dict[str, str]:
    """Return the params of an element of ``text`` by name; of a repeated one the first."""
    source = text.data[owner.start : owner.end].decode("utf-8", "surrogatepass")
    params: dict[str, str] = {}
    for param in parse_xml(source).find_all("param"):
        params.setdefault(param.get("name") or "", param.text)
    return params
