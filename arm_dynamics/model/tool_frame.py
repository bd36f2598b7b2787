"""Which link is the tool: the one that the URDF names, else the deepest one."""

from __future__ import annotations

from arm_dynamics.model.audit.robot import Robot


def tool_frame(robot: Robot) -> str:
    """The link in ``<param name="tool_frame">``, else the last one of the longest chain.

    Joints of every type count; of chains of one length, the link written later in the file.
    The audit has seen that the named link exists and that the links form a tree.
    """
    for block in robot.root.every("ros2_control"):
        for hardware in block.every("hardware"):
            for param in hardware.every("param"):
                if param.get("name") == "tool_frame":
                    return param.text
    return _deepest(robot)


def _deepest(robot: Robot) -> str:
    waiting = [(name, 0) for name in robot.links if name not in robot.above]
    depths = dict(waiting)
    for name, depth in waiting:
        below = [(edge.child, depth + 1) for edge in robot.below.get(name, ())]
        depths.update(below)
        waiting += below
    return max(reversed(robot.links), key=depths.__getitem__)
