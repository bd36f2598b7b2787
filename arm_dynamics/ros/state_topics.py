"""What an arm shows of itself: joint_states, /clock where simulated, robot_description."""

from __future__ import annotations

import time

import numpy as np
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros import qos
from arm_dynamics.ros.description import publish_description
from arm_dynamics.ros.wire import FIELDS, JointStateWriter, clock
from arm_dynamics.round_trip import RoundTrip
from arm_dynamics.state import State


class StateTopics:
    """Publishes every state; stamps are simulated time where /clock is published too.

    A joint of unknown position or velocity (NaN) is left out of the message.
    """

    def __init__(
        self, node: Node, arm: ArmModel, round_trip: RoundTrip, *, publish_clock: bool
    ) -> None:
        self._round_trip = round_trip
        self._now = node.get_clock().now
        self._ticks = node.create_publisher(Clock, "/clock", qos.STREAM) if publish_clock else None
        self._states = node.create_publisher(JointState, "joint_states", qos.STREAM)
        self._names, self._frame = arm.joint_names, arm.base_frame
        self._writer = JointStateWriter(arm.joint_names, FIELDS, arm.base_frame)
        self._description = publish_description(node, arm)
        self.stamp = 0.0
        """Stamp of the newest state [s]."""

    def publish(self, state: State) -> None:
        """Publish one instant."""
        if self._ticks is None:
            stamp = self._now().nanoseconds * 1e-9
        else:
            stamp = state.time
            if self._ticks.get_subscription_count():
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
