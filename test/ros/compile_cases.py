"""Run control cycles of controller nodes, change controllers and targets, report compilations.

    python compile_cases.py

The nodes run in this process with an arm at rest. The last line of output is JSON: what the loop
thread compiled, loaded or imported, and the controllers that sent commands.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from threading import Thread
from time import sleep

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import rclpy
from compile_watch import CompileWatch
from geometry_msgs.msg import PoseStamped
from rclpy.parameter import Parameter

from arm_dynamics import load_arm
from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Waypoint
from arm_dynamics.core.plugins import BUILT_IN, load_class
from arm_dynamics.core.rotations import quaternion_from_rotation
from arm_dynamics.core.state import State
from arm_dynamics.dynamics.kinematics.frames import pose
from arm_dynamics.hardware.driver import Driver
from arm_dynamics.ros.nodes.joint_controller import JointControllerNode
from arm_dynamics.ros.nodes.task_space_controller import TaskSpaceControllerNode

PERIOD = 2e-3
TICKS = 300
"""Cycles of one controller: more than a controller switch takes."""


class Still(Driver):
    """Driver of an arm that does not move."""

    extra_interfaces = ("position",)

    def __init__(self, arm):
        super().__init__(arm)
        self.time, self.commands = 0.0, 0

    def read(self):
        self.time += PERIOD
        return State.of(self.arm.configuration("initial"), time=self.time)

    def write(self, command):
        self.commands += 1


def joints(watch):
    """Switch the joint controller node through all its controllers."""
    driver = Still(load_arm("five_dof"))
    node = JointControllerNode(driver)
    kinds = {name: load_class("controllers", name) for name in BUILT_IN["controllers"]}
    names = [n for n, kind in kinds.items() if kind.interface == "effort"
             and not issubclass(kind, TaskSpaceController)]  # fmt: skip
    seen = set()
    watch.armed = True
    for name in names:
        request = Thread(target=node.set_parameters, args=([Parameter("controller", value=name)],))
        request.start()
        while request.is_alive():
            node.run_cycle()
            sleep(PERIOD)
        still = driver.arm.configuration("initial")
        point = Waypoint(driver.time + 0.1, still, 0 * still, 0 * still)
        node.loop.follow(JointTrajectory((point,)), effort_check=True)
        for _ in range(TICKS):
            node.run_cycle()
        seen.add(type(node.loop.controller).__name__)
    watch.armed = False
    assert driver.commands >= TICKS * len(names)
    node.destroy_node()
    return seen


def tool(watch):
    """Send a target to the task-space controller node."""
    node = TaskSpaceControllerNode()
    node.loop.driver = driver = Still(load_arm("five_dof"))
    position, rotation = pose(driver.arm, driver.arm.configuration("initial"))
    message = PoseStamped()
    message.header.frame_id = driver.arm.base_frame
    at, orientation = message.pose.position, message.pose.orientation
    at.x, at.y, at.z = (position - [0.0, 0.02, 0.0]).tolist()
    quaternion = quaternion_from_rotation(rotation).tolist()
    orientation.x, orientation.y, orientation.z, orientation.w = quaternion
    watch.armed = True
    for k in range(TICKS):
        node.run_cycle()
        if k == TICKS // 2:
            node._tool_topics.take_pose(message)
    watch.armed = False
    assert driver.commands >= TICKS - 1
    assert not node.loop.events.counts
    node.destroy_node()
    return {type(node.loop.controller).__name__}


def main():
    """Print the compilations in the loop thread."""
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "SYSTEM_DEFAULT")
    watch = CompileWatch()
    rclpy.init()
    seen = joints(watch) | tool(watch)
    rclpy.shutdown()
    found = [line for line in watch.found if line.endswith("MainThread")]
    print(json.dumps({"found": found, "seen": sorted(seen), "others": len(watch.found)}))


if __name__ == "__main__":
    main()
