"""Transforms of a simulated arm that stands at its start, until its first state is published."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from threading import Event, Thread

from geometry_msgs.msg import TransformStamped
from rclpy.node import Node
from rclpy.time import Time

from arm_dynamics.arrays import Vector
from arm_dynamics.kinematics.frames import link_placements
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.quaternion import quaternion_of
from arm_dynamics.ros.frames import Frames

PERIOD = 0.2
"""Time [s] between two messages: RViz may subscribe at any moment."""


@contextmanager
def initial_transforms(node: Node, arm: ArmModel, frames: Frames, q: Vector) -> Iterator[None]:
    """Publish the transforms of the configuration ``q`` on /tf while the context lasts.

    A plant is compiled for seconds to a minute, in which robot_state_publisher has no state, and
    RViz no frame but the base. ``joint_states`` stays empty: no controller takes this for a state.
    Stamps count nanoseconds from 0, where simulated time begins: transforms of the same stamp
    would be repeated data to tf2. Without tf2_msgs, which comes with ROS, nothing is published.
    """
    try:
        kind = import_module("tf2_msgs.msg").TFMessage
    except ImportError:
        yield
        return
    publisher, ended = node.create_publisher(kind, "/tf", 10), Event()
    transforms = [_message(frames, *placement) for placement in link_placements(arm, q)]

    def publish() -> None:
        count = 0
        while not ended.wait(PERIOD):
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


def _message(
    frames: Frames, parent: str, child: str, position: Vector, rotation: Vector
) -> TransformStamped:
    message = TransformStamped()
    message.header.frame_id, message.child_frame_id = frames.prefix + parent, frames.prefix + child
    at, turned = message.transform.translation, message.transform.rotation
    at.x, at.y, at.z = position.tolist()
    turned.x, turned.y, turned.z, turned.w = quaternion_of(rotation).tolist()
    return message
