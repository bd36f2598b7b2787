"""Minimum closed loop of two rclpy processes: a JointState there, a JointState back.

No physics, no control, no checks; callbacks and executors as in the tutorials of rclpy.
``ros_loop.py`` runs ``python benchmarks/bare_rclpy.py`` as the second process.
"""

from __future__ import annotations

import time
from contextlib import suppress

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from sensor_msgs.msg import JointState

from arm_dynamics.core.timing import RoundTrip

NAMES = ["R1", "R2", "R3", "R4", "R5"]


class Echo(Node):
    """Node that replies to each state with a command of the same stamp."""

    def __init__(self) -> None:
        super().__init__("bare_echo")
        self._commands = self.create_publisher(JointState, "bare_commands", 10)
        self.create_subscription(JointState, "bare_states", self._answer, 10)

    def _answer(self, state: JointState) -> None:
        command = JointState(name=NAMES, effort=[0.0] * len(NAMES))
        command.header.stamp = state.header.stamp
        self._commands.publish(command)


class Source(Node):
    """Node that publishes states and counts those answered before the next one."""

    def __init__(self) -> None:
        super().__init__("bare_source")
        self.round_trip = RoundTrip()
        self._states = self.create_publisher(JointState, "bare_states", 10)
        self.create_subscription(JointState, "bare_commands", self._received, 10)

    def _received(self, command: JointState) -> None:
        stamp = command.header.stamp
        self.round_trip.receive(stamp.sec + stamp.nanosec * 1e-9, time.time())

    def run(self, rate: float, seconds: float) -> None:
        """Publish for ``seconds`` at ``rate`` [Hz], handling answers in between."""
        executor = SingleThreadedExecutor()
        executor.add_node(self)
        state = JointState(name=NAMES, position=[0.0] * 5, velocity=[0.0] * 5, effort=[0.0] * 5)
        due = time.monotonic()
        for k in range(round(rate * seconds)):
            state.header.stamp.sec, state.header.stamp.nanosec = divmod(
                round(k / rate * 1e9), 10**9
            )
            self.round_trip.send(k / rate, time.time())
            self._states.publish(state)
            due += 1 / rate
            while (left := due - time.monotonic()) > 0:
                executor.spin_once(timeout_sec=left)


def main() -> None:
    """Reply until the process ends."""
    rclpy.init()
    with suppress(KeyboardInterrupt, ExternalShutdownException):
        rclpy.spin(Echo())


if __name__ == "__main__":
    main()
