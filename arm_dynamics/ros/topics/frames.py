"""Interfaces to robot_state_publisher: frame names, robot_description, initial transforms."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from threading import Event, Thread

from geometry_msgs.msg import TransformStamped
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.time import Time
from std_msgs.msg import String

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.rotations import quaternion_from_rotation
from arm_dynamics.dynamics.kinematics.frames import link_placements
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.robot_description import check_frame_prefix, robot_description
from arm_dynamics.ros.messages import qos
from arm_dynamics.ros.messages.conversions import Frames
from arm_dynamics.ros.parameters.ros_parameters import declare_fixed

FRAME_PREFIX = "frame_prefix"


def declare_frames(node: Node, arm: ArmModel) -> Frames:
    """Declare the parameter ``frame_prefix``; return the arm's frames with that prefix.

    Raises InvalidValue for a prefix that is not valid in a frame.
    """
    text = "prefix of frame names, as of robot_state_publisher (left/)"
    prefix = check_frame_prefix(declare_fixed(node, FRAME_PREFIX, "", text))
    return Frames(prefix + arm.base_frame, prefix + arm.tool_frame, prefix)


PARAMETER = "publish_robot_description"


def publish_description(node: Node, arm: ArmModel) -> Publisher | None:
    """Publish the description once, latched; return None if robot_state_publisher does it."""
    publishes = declare_fixed(
        node, PARAMETER, True, "publish robot_description; false if robot_state_publisher does"
    )
    if not publishes:
        return None
    publisher = node.create_publisher(String, "robot_description", qos.LATCHED)
    publisher.publish(String(data=robot_description(arm)))
    return publisher


def _transforms(arm: ArmModel, frames: Frames, q: Vector) -> list[TransformStamped]:
    """Return the transform of every link from its parent at the configuration ``q`` (nv,)."""
    messages = []
    for parent, child, position, rotation in link_placements(arm, q):
        message = TransformStamped(child_frame_id=frames.prefix + child)
        message.header.frame_id = frames.prefix + parent
        translation, quaternion = message.transform.translation, message.transform.rotation
        translation.x, translation.y, translation.z = position.tolist()
        quaternion.x, quaternion.y, quaternion.z, quaternion.w = quaternion_from_rotation(
            rotation
        ).tolist()
        messages.append(message)
    return messages


TRANSFORM_PERIOD = 0.2
"""Time [s] between two messages: RViz may subscribe at any moment."""


@contextmanager
def initial_transforms(node: Node, arm: ArmModel, frames: Frames, q: Vector) -> Iterator[None]:
    """Publish the transforms of the configuration ``q`` on /tf while the context lasts.

    Compilation of a plant takes seconds to a minute, in which robot_state_publisher has no state
    and RViz only the base frame. ``joint_states`` stays empty, so that no controller mistakes this
    for a state. Stamps count nanoseconds from 0, the start of simulated time: tf2 rejects
    transforms of equal stamps as repeated data. Without tf2_msgs, a part of ROS, nothing is
    published.
    """
    try:
        kind = import_module("tf2_msgs.msg").TFMessage
    except ImportError:
        yield
        return
    publisher, ended = node.create_publisher(kind, "/tf", 10), Event()
    transforms = _transforms(arm, frames, q)

    def publish() -> None:
        count = 0
        while not ended.wait(TRANSFORM_PERIOD):
            count += 1
            for transform in transforms:
                transform.header.stamp = Time(nanoseconds=count).to_msg()
            publisher.publish(kind(transforms=transforms))

    thread = Thread(target=publish, name="initial transforms", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        node.destroy_publisher(publisher)
