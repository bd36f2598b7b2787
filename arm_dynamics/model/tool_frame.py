"""Tool frame of a URDF: the named link, else a link at the end of the arm.

Fingers and cameras often are the last links of the longest chain. They are no tool frames: neither
links behind gripper joints, nor sensors fixed to the arm and the links fixed to them.
"""

from __future__ import annotations

import re

from arm_dynamics.core.errors import UnknownName
from arm_dynamics.model.audit.robot import ONE_COORDINATE, Edge, Robot

TOOL_NAMES = (
    {"flange", "tool", "grasp", "grasping", "grasptarget"},
    {"ee", "eef", "effector", "endeffector"},
    {"tool0", "tcp"},
)
"""Words in the names of tool frames, the most specific last."""
SENSOR = re.compile(
    r"cam\d*|camera\d*|webcam\d*|optical|imu|gyro\w*|accel\w*|lidar|laser|depth|rgbd?|color"
    r"|infra\w*|realsense|[dlt]\d{3}i?|zed\w*|oakd?"
)
"""Word in the name of a sensor link."""
GRIPPER = re.compile("gripper|finger|thumb|knuckle|jaw|claw")
FINGER = re.compile("finger|thumb|knuckle|jaw|claw")
WRIST = re.compile("wrist|roll|pitch|yaw|rotat")
"""Parts of the names of gripper joints, of their links, and of a wrist that carries a gripper."""
WORD = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+[a-z]*")


def tool_frames(robot: Robot, given: str | None = None) -> tuple[str, ...]:
    """Return the tool frame of an audited robot, then equally good ones of its other arms.

    The order of preference: the given link; that of ``<param name="tool_frame">``; a link named
    as a tool center point or end effector; the last link behind the most joints, and there one
    named as a flange. Of chains of one length, the more specific name counts, then the link written
    later in the file. Locked joints do not count.

    Raises UnknownName for a given link that does not exist.
    """
    if given is not None:
        if given not in robot.links:
            raise UnknownName("tool frame", given, tuple(robot.links))
        return (given,)
    for block in robot.root.find_all("ros2_control"):
        for hardware in block.find_all("hardware"):
            for param in hardware.find_all("param"):
                if param.get("name") == "tool_frame":
                    return (param.text,)
    order = [name for name in robot.links if name not in robot.parent_joint]
    for link in order:
        order += [edge.child for edge in robot.child_joints.get(link, ())]
    return _best(robot, order, _fingers(robot, order)) or _best(robot, order, set())


def _best(robot: Robot, order: list[str], fingers: set[str]) -> tuple[str, ...]:
    """Return the best link of each best arm, the best one first; () if no joint moves a link.

    ``order`` has parents before children; links behind ``fingers`` are omitted.
    """
    written = {name: number for number, name in enumerate(robot.links)}
    joints, depth, body = dict[str, int](), dict[str, int](), dict[str, str]()
    sensors, found = set[str](), dict[str, tuple[tuple[int, ...], str]]()
    for link in order:
        edge = robot.parent_joint.get(link)
        if edge is None:
            joints[link], depth[link], body[link] = 0, 0, link
            continue
        if link in fingers or edge.parent not in joints:
            continue
        moves = robot.moves(edge.joint)
        joints[link], depth[link] = joints[edge.parent] + moves, depth[edge.parent] + 1
        body[link] = link if moves else body[edge.parent]
        words = {word.lower() for word in WORD.findall(link)}
        rank = max((i for i, names in enumerate(TOOL_NAMES, 1) if names & words), default=0)
        if not moves:
            named = any(SENSOR.fullmatch(word) for word in words)
            if named or (edge.parent in sensors and not rank):
                sensors.add(link)
                continue
        if joints[link]:
            key = rank > 1, joints[link], rank > 0, depth[link], rank, written[link]
            found[body[link]] = max(found.get(body[link], (key, link)), (key, link))
    arms = sorted(found.values(), reverse=True)
    return tuple(link for key, link in arms if key[:2] == arms[0][0][:2])


def _fingers(robot: Robot, order: list[str]) -> set[str]:
    """Return the links that gripper joints move, locked or not.

    These have the names of grippers. A moving body with such a joint has other gripper joints only,
    and so has one with several joints and no other joint behind them.
    """
    edges = {e.child: e for e in robot.edges if e.joint.get("type") in ONE_COORDINATE}
    fingers = {link for link, edge in edges.items() if _is_gripper_joint(edge)}
    jointed, body, branches = set[str](), dict[str, str](), dict[str, list[str]]()
    for link in reversed(order):
        if link in robot.parent_joint and (link in jointed or link in edges.keys() - fingers):
            jointed.add(robot.parent_joint[link].parent)
    for link in order:
        edge = robot.parent_joint.get(link)
        body[link] = link if edge is None or link in edges else body[edge.parent]
        if edge and link in edges:
            branches.setdefault(body[edge.parent], []).append(link)
    for base, links in branches.items():
        ends = len(links) > 1 and not jointed.intersection(links)
        if base in edges and (ends or fingers.intersection(links)):
            fingers.update(links)
    return fingers


def _is_gripper_joint(edge: Edge) -> bool:
    name = (edge.joint.get("name") or "").lower()
    named = GRIPPER.search(name) or FINGER.search(edge.child.lower())
    return named is not None and WRIST.search(name) is None
