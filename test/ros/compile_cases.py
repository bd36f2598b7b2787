"""Ticks controller nodes while their controllers and targets change; what was compiled meanwhile.

    python compile_cases.py

Each node is in this process, on an arm that stands still. The last line is JSON: what the thread of
the loop compiled, loaded or imported, and the controllers that commanded.
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
from arm_dynamics.dynamics.kinematics import pose
from arm_dynamics.hardware.driver import Driver
from arm_dynamics.ros.joint_controller import JointControllerNode
from arm_dynamics.ros.task_space_controller import TaskSpaceControllerNode

PERIOD = 2e-3
TICKS = 300
"""Of one controller: more than one fades into the next for."""


class Still(Driver):
    """An arm that does not move."""

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
    """The node of the joints' controllers, from each to the next."""
    driver = Still(load_arm("five_dof"))
    node = JointControllerNode(driver)
    kinds = {name: load_class("controllers", name) for name in BUILT_IN["controllers"]}
    names = [n for n, kind in kinds.items() if kind.interface == "effort"
             and not issubclass(kind, TaskSpaceController)]  # fmt: skip
    seen = set()
    watch.armed = True
    for name in names:
        asked = Thread(target=node.set_parameters, args=([Parameter("controller", value=name)],))
        asked.start()
        while asked.is_alive():
            node.tick()
            sleep(PERIOD)
        still = driver.arm.configuration("initial")
        point = Waypoint(driver.time + 0.1, still, 0 * still, 0 * still)
        node.loop.follow(JointTrajectory((point,)), effort_check=True)
        for _ in range(TICKS):
            node.tick()
        seen.add(type(node.loop.controller).__name__)
    watch.armed = False
    assert driver.commands >= TICKS * len(names)
    node.destroy_node()
    return seen


def tool(watch):
    """The node of a controller of the tool, which gets a target."""
    node = TaskSpaceControllerNode()
    node.loop.driver = driver = Still(load_arm("five_dof"))
    place, turn = pose(driver.arm, driver.arm.configuration("initial"))
    message = PoseStamped()
    message.header.frame_id = driver.arm.base_frame
    at, way = message.pose.position, message.pose.orientation
    at.x, at.y, at.z = (place - [0.0, 0.02, 0.0]).tolist()
    way.x, way.y, way.z, way.w = quaternion_from_rotation(turn).tolist()
    watch.armed = True
    for k in range(TICKS):
        node.tick()
        if k == TICKS // 2:
            node._tool_topics._pose(message)
    watch.armed = False
    assert driver.commands >= TICKS - 1
    assert not node.loop.events.counts
    node.destroy_node()
    return {type(node.loop.controller).__name__}


def main():
    """Print what was found."""
    os.environ.setdefault("ROS_AUTOMATIC_DISCOVERY_RANGE", "SYSTEM_DEFAULT")
    watch = CompileWatch()
    rclpy.init()
    seen = joints(watch) | tool(watch)
    rclpy.shutdown()
    found = [line for line in watch.found if line.endswith("MainThread")]
    print(json.dumps({"found": found, "seen": sorted(seen), "others": len(watch.found)}))


if __name__ == "__main__":
    main()
