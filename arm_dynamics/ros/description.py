"""The topic robot_description, which one node of an arm publishes."""

from __future__ import annotations

from rclpy.node import Node
from rclpy.publisher import Publisher
from std_msgs.msg import String

from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.robot_description import robot_description
from arm_dynamics.ros import qos
from arm_dynamics.ros.ros_parameters import declare_fixed

PARAMETER = "publish_robot_description"


def publish_description(node: Node, arm: ArmModel) -> Publisher | None:
    """Publish the description once, latched; None where robot_state_publisher does it."""
    wanted = declare_fixed(
        node, PARAMETER, True, "publish robot_description; false where robot_state_publisher does"
    )
    if not wanted:
        return None
    publisher = node.create_publisher(String, "robot_description", qos.LATCHED)
    publisher.publish(String(data=robot_description(arm)))
    return publisher
