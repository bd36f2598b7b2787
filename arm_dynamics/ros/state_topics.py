"""What an arm shows of itself: joint_states, /clock where simulated."""

from __future__ import annotations

import time

import numpy as np
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros import qos
from arm_dynamics.ros.clock_pacer import TimeSource
from arm_dynamics.ros.frames import Frames
from arm_dynamics.ros.wire import FIELDS, JointStateWriter, clock
from arm_dynamics.round_trip import RoundTrip
from arm_dynamics.state import State


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
