"""What a simulated arm shows of itself: joint_states, /clock, robot_description."""

from __future__ import annotations

from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros import conversions, qos
from arm_dynamics.state import State


class StateTopics:
    """Publishes every state; stamps are simulated time where /clock is published too."""

    def __init__(self, node: Node, arm: ArmModel, *, clock: bool) -> None:
        self._clock = node.get_clock()
        self._ticks = node.create_publisher(Clock, "/clock", qos.STREAM) if clock else None
        self._states = node.create_publisher(JointState, "joint_states", qos.STREAM)
        self._message = JointState(name=list(arm.joint_names))
        self._message.header.frame_id = arm.base_frame
        self._description = node.create_publisher(String, "robot_description", qos.LATCHED)
        self._description.publish(String(data=arm.urdf))

    def publish(self, state: State) -> None:
        """Publish one instant."""
        if self._ticks is None:
            stamp = self._clock.now().nanoseconds * 1e-9
        else:
            stamp = state.time
            self._ticks.publish(Clock(clock=conversions.to_time(stamp)))
        self._states.publish(conversions.write_state(self._message, state, stamp))
