"""Which link is the tool: the one that the URDF names, else the deepest one."""

from __future__ import annotations

from xml.etree import ElementTree


def tool_frame(robot: ElementTree.Element) -> str:
    """The link in ``<param name="tool_frame">``, else the last one of the longest chain.

    Joints of every type count; of chains of one length, the link written later in the file.
    The audit has seen that the named link exists and that the links form a tree.
    """
    named = robot.findtext("ros2_control/hardware/param[@name='tool_frame']")
    return _deepest(robot) if named is None else named.strip()


def _deepest(robot: ElementTree.Element) -> str:
    above = {_end(joint, "child"): _end(joint, "parent") for joint in robot.iterfind("joint")}
    last, most = "", -1
    for link in robot.iterfind("link"):
        name = at = link.get("name", "")
        depth = 0
        while at in above:
            at, depth = above[at], depth + 1
        if depth >= most:
            last, most = name, depth
    return last


def _end(joint: ElementTree.Element, which: str) -> str:
    node = joint.find(which)
    return "" if node is None else node.get("link", "")
