"""What an arm shows of itself: joint_states, /clock where simulated.

Transforms of a simulated arm that stands at its start, until its first state is published.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from threading import Event, Thread

import numpy as np
from geometry_msgs.msg import TransformStamped
from rclpy.node import Node
from rclpy.time import Time
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.rotations import quaternion_from_rotation
from arm_dynamics.core.state import State
from arm_dynamics.core.timing import RoundTrip
from arm_dynamics.dynamics.kinematics.frames import link_placements
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros import qos
from arm_dynamics.ros.frames import Frames
from arm_dynamics.ros.joint_state_serialization import FIELDS, JointStateWriter, clock
from arm_dynamics.ros.pacing import TimeSource


class StateTopics:
    """Publishes every state, and /clock where this node is its source.

    A joint of unknown position or velocity (NaN) is left out of the message.
    """

    def __init__(
        self,
        node: Node,
        arm: ArmModel,
        frames: Frames,
        round_trip: RoundTrip,
        source: TimeSource | None = None,
    ) -> None:
        """``source`` is that of simulated time; None: stamps are the node's time."""
        self._round_trip = round_trip
        self._simulated = source is not None and source.is_simulated
        self._now = node.get_clock().now
        publishes = source is not None and source.publishes_clock
        self._ticks = node.create_publisher(Clock, "/clock", qos.STREAM) if publishes else None
        self._states = node.create_publisher(JointState, "joint_states", qos.STREAM)
        self._names, self._frame = arm.joint_names, frames.base
        self._writer = JointStateWriter(arm.joint_names, FIELDS, frames.base)
        self.stamp = 0.0
        """Stamp of the newest state [s]."""

    def publish(self, state: State) -> None:
        """Publish one instant."""
        stamp = state.time if self._simulated else self._now().nanoseconds * 1e-9
        if self._ticks is not None and self._ticks.get_subscription_count():
            self._ticks.publish(clock(stamp))
        self.stamp = stamp
        if np.isfinite(state.q + state.v).all():
            self._round_trip.send(stamp, time.time())  # no controller answers a part of the joints
            self._states.publish(self._writer.write(stamp, state.q, state.v, state.tau))
        else:
            self._publish_known(stamp, state)

    def _publish_known(self, stamp: float, state: State) -> None:
        known = np.flatnonzero(np.isfinite(state.q + state.v))
        if known.size:
            names = tuple(self._names[i] for i in known)
            writer = JointStateWriter(names, FIELDS, self._frame)
            self._states.publish(
                writer.write(stamp, state.q[known], state.v[known], state.tau[known])
            )


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
    turned.x, turned.y, turned.z, turned.w = quaternion_from_rotation(rotation).tolist()
    return message
