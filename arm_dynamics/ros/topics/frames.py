"""Interfaces of robot_state_publisher: frame names, robot_description, transforms."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from threading import Event, Thread
from typing import Any

import numpy as np
from geometry_msgs.msg import TransformStamped
from rclpy.node import Node
from rclpy.time import Time
from std_msgs.msg import String

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.rotations import quaternion_from_rotation
from arm_dynamics.dynamics.kinematics.frames import (
    LinkPlacement,
    fixed_link_placements,
    link_placements,
)
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.robot_description import check_frame_prefix, robot_description
from arm_dynamics.ros.messages import qos
from arm_dynamics.ros.messages.conversions import Frames, header
from arm_dynamics.ros.parameters.ros_parameters import declare_fixed
from arm_dynamics.ros.topics.pacing import wall_timer

FRAME_PREFIX = "frame_prefix"


def declare_frames(node: Node, arm: ArmModel) -> Frames:
    """Declare the parameter ``frame_prefix``; return the arm's frames with that prefix.

    Raises InvalidValue for a prefix that is not valid in a frame.
    """
    text = "prefix of frame names, as of robot_state_publisher (left/)"
    prefix = check_frame_prefix(declare_fixed(node, FRAME_PREFIX, "", text))
    return Frames(prefix + arm.base_frame, prefix + arm.tool_frame, prefix)


PARAMETER = "publish_robot_description"
STATE_PUBLISHER = "robot_state_publisher"
TRANSFORM_PERIOD = 0.02
"""Time [s] between two messages on /tf."""
SEARCH_PERIOD = 1.0
"""Time [s] between two searches for robot_state_publisher."""


class RobotStateTopics:
    """Publishes robot_description, /tf_static and /tf, as robot_state_publisher does.

    If that node runs too, it alone publishes the transforms: equal ones of equal stamps
    are repeated data for tf2. /tf and /tf_static need tf2_msgs.
    """

    def __init__(self, node: Node, arm: ArmModel, frames: Frames) -> None:
        self._node, self._arm, self._frames = node, arm, frames
        self._description = node.create_publisher(String, "robot_description", qos.LATCHED)
        self._description.publish(String(data=robot_description(arm)))
        self._state: tuple[float, Vector] | None = None
        self._message = transform_message()
        if self._message is None:
            return
        self._static = node.create_publisher(self._message, "/tf_static", qos.LATCHED)
        self._static.publish(
            self._message(transforms=_transforms(frames, fixed_link_placements(arm)))
        )
        self._moving = node.create_publisher(self._message, "/tf", qos.TRANSFORMS)
        self._has_other, self._searched = False, 0.0
        self._timer = wall_timer(node, TRANSFORM_PERIOD, self._publish)

    def update(self, stamp: float, q: Vector) -> None:
        """Set the newest positions ``q`` (nv,), NaN where unknown, and their stamp [s]."""
        self._state = stamp, q

    def _publish(self) -> None:
        """Publish the transforms of a new state."""
        state, self._state = self._state, None
        if state is None or self._moving.get_subscription_count() == 0 or self._is_replaced():
            return
        stamp, q = state
        known = np.isfinite(q)
        placements = link_placements(self._arm, np.where(known, q, 0.0))
        known = self._arm.tree_velocities(known.astype(float)) != 0  # of all moving joints
        transforms = _transforms(self._frames, itertools.compress(placements, known), stamp)
        self._moving.publish(self._message(transforms=transforms))

    def _is_replaced(self) -> bool:
        """Return whether robot_state_publisher publishes in this namespace; searched at times."""
        now = time.monotonic()
        if now - self._searched > SEARCH_PERIOD:
            self._searched = now
            own = self._node.get_namespace()
            self._has_other = any(
                info.node_name == STATE_PUBLISHER and info.node_namespace == own
                for info in self._node.get_publishers_info_by_topic("/tf")
            )
        return self._has_other


def declare_robot_state(node: Node, arm: ArmModel, frames: Frames) -> RobotStateTopics | None:
    """Publish the description and transforms; return None if robot_state_publisher does it."""
    publishes = declare_fixed(
        node, PARAMETER, True, "publish robot_description; false if robot_state_publisher does"
    )
    return RobotStateTopics(node, arm, frames) if publishes else None


def transform_message() -> Any:
    """Return the type tf2_msgs/TFMessage; None if tf2_msgs is not installed."""
    try:
        return import_module("tf2_msgs.msg").TFMessage
    except ImportError:
        return None


def _transforms(
    frames: Frames, placements: Iterable[LinkPlacement], stamp: float = 0.0
) -> list[TransformStamped]:
    """Return the transform of each placed link from its parent."""
    messages = []
    for parent, child, position, rotation in placements:
        message = TransformStamped(child_frame_id=frames.prefix + child)
        message.header = header(frames.prefix + parent, stamp)
        translation, quaternion = message.transform.translation, message.transform.rotation
        translation.x, translation.y, translation.z = position.tolist()
        quaternion.x, quaternion.y, quaternion.z, quaternion.w = quaternion_from_rotation(
            rotation
        ).tolist()
        messages.append(message)
    return messages


INITIAL_PERIOD = 0.2
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
    kind = transform_message()
    if kind is None:
        yield
        return
    publisher, ended = node.create_publisher(kind, "/tf", qos.TRANSFORMS), Event()
    transforms = _transforms(frames, link_placements(arm, q))

    def publish() -> None:
        count = 0
        while not ended.wait(INITIAL_PERIOD):
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
