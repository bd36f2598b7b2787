"""Node joint_sliders: sliders on a browser page set the joint states, without dynamics."""

from __future__ import annotations

import sys

from rclpy.node import Node
from sensor_msgs.msg import JointState

from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.signals import ShutdownFlag
from arm_dynamics.ros.messages import conversions, qos
from arm_dynamics.ros.parameters.arm_parameters import declared_model
from arm_dynamics.ros.parameters.ros_parameters import declare_fixed
from arm_dynamics.ros.runtime.process import run_node
from arm_dynamics.ros.topics.frames import declare_frames, declare_robot_state
from arm_dynamics.viewer.show import PORT, open_page

PERIOD = 1 / 30


class JointSlidersNode(Node):
    """Publishes ``joint_states`` from the sliders, and ``robot_description``."""

    def __init__(self) -> None:
        super().__init__("joint_sliders")
        self._arm = declared_model(self)
        port = declare_fixed(self, "port", PORT, "port of the page; the next free one if in use")
        self._q: Vector = self._arm.configuration("initial")
        self._states = self.create_publisher(JointState, "joint_states", qos.STREAM)
        self._message = JointState(name=list(self._arm.joint_names))
        frames = declare_frames(self, self._arm)
        self._message.header.frame_id = frames.base
        self._robot_state = declare_robot_state(self, self._arm, frames)
        self._page = open_page(self._arm, port, interactive=True)

        def move(target: tuple[float, ...]) -> None:
            self._q = as_readonly(target)

        self._page.on_target(move)
        self.get_logger().info(f"the sliders are at {self._page.url}")

    def run(self, stop: ShutdownFlag) -> None:
        """Publish at 30 Hz until ``stop`` is set."""
        while not stop.wait(PERIOD):
            self._page.show(self._q)
            now = self.get_clock().now()
            self._message.header.stamp = now.to_msg()
            if self._robot_state is not None:
                self._robot_state.update(now.nanoseconds * 1e-9, self._q)
            self._message.position = conversions.to_double_array(self._q)
            self._states.publish(self._message)
        self._page.close()


def main() -> None:
    """Run the node until SIGINT or SIGTERM."""
    sys.exit(run_node(JointSlidersNode))


if __name__ == "__main__":
    main()
