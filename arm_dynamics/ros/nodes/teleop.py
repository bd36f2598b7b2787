"""``arm-dynamics teleop`` with arms of other nodes: leader by joint_states, follower by streams."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from threading import Event, Thread

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from arm_dynamics.cli import teleop
from arm_dynamics.control.control_loop import MAX_STATE_GAP
from arm_dynamics.core.errors import DriverFault
from arm_dynamics.core.state import Command, State
from arm_dynamics.hardware.driver import Driver
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros.runtime.process import start_ros
from arm_dynamics.ros.topics.capability_topics import Capabilities
from arm_dynamics.ros.topics.controller_clients import TRAJECTORY
from arm_dynamics.ros.topics.topic_driver import (
    StateSubscription,
    TopicDriver,
    TrajectoryPublisher,
)
from arm_dynamics.safety.events import Events

START_TIMEOUT = 10.0
"""Maximum time [s] to the first state of an arm, and to the discovery of a controller."""
POLL = 0.02
"""Time [s] between two attempts."""


def run(arguments: Sequence[str]) -> int:
    """Teleoperate, as the command without ROS; return its exit code."""
    start_ros([])
    remote = RemoteArms()
    try:
        return teleop.run(arguments, remote)
    finally:
        remote.close()
        rclpy.try_shutdown()


class RemoteArms:
    """Arms in namespaces of ROS; a thread serves their callbacks."""

    def __init__(self) -> None:
        self._executor, self._nodes = SingleThreadedExecutor(), list[Node]()
        self._ending = Event()
        self._thread = Thread(target=self._spin, name="teleop callbacks", daemon=True)
        self._thread.start()

    def leader(self, arm: ArmModel, namespace: str, events: Events) -> Driver:
        """Return a driver that reads joint_states; raise DriverFault without any."""
        driver = StateReader(arm, self._node("teleop_leader", namespace), events)
        _wait(driver.has_state, f"{namespace}/joint_states: messages = 0; expected an arm's node")
        return driver

    def follower(self, arm: ArmModel, namespace: str, events: Events) -> tuple[Driver, bool]:
        """Return a driver that streams positions to joint_controller, and whether it has motors.

        Raises DriverFault without states or controller.
        """
        node = self._node("teleop_follower", namespace)
        capabilities = Capabilities(node, events)
        output = TrajectoryPublisher(node, arm, TRAJECTORY)
        driver = StreamedArm(arm, node, events, output, capabilities)
        _wait(
            partial(driver.wait, 0.0),
            f"{namespace}/joint_states: messages = 0; expected an arm's node",
        )
        topic = node.resolve_topic_name(TRAJECTORY)
        _wait(
            lambda: node.count_subscribers(topic) > 0,
            f"{topic}: subscribers = 0; expected a joint_controller",
        )
        _wait(lambda: not capabilities.awaited, f"{namespace}: capabilities = none; expected some")
        return driver, capabilities.physical

    def close(self) -> None:
        """End the thread and the nodes."""
        self._ending.set()
        self._thread.join()
        self._executor.shutdown()
        for node in self._nodes:
            node.destroy_node()

    def _node(self, name: str, namespace: str) -> Node:
        node = Node(name, namespace=namespace, start_parameter_services=False)
        self._nodes.append(node)
        self._executor.add_node(node)
        return node

    def _spin(self) -> None:
        while not self._ending.is_set():
            self._executor.spin_once(timeout_sec=POLL)


class StateReader(Driver):
    """Measured states of an arm of another node, which is not commanded."""

    def __init__(self, arm: ArmModel, node: Node, events: Events) -> None:
        super().__init__(arm)
        self._states = StateSubscription(node, arm.joint_names, events.report)
        self._first: State | None = None

    def has_state(self) -> bool:
        """Return whether a state was received."""
        self._states.publisher.listen()
        self._first = self._first or self._states.newest()
        return self._first is not None

    def read(self) -> State:
        """Return the newest state; raise DriverFault without a new one."""
        self._states.publisher.listen()
        state = self._states.newest()
        if state is None:
            raise DriverFault("joint_states: new messages = 0; expected 1")
        return state

    def write(self, command: Command) -> None:
        """Reject the command: this arm is only read."""
        raise DriverFault(f"{command.interface} command of a leader; expected none")


class StreamedArm(TopicDriver):
    """Arm of another node; between two of its states the last one is valid for MAX_STATE_GAP."""

    _last: State | None = None
    _received = 0.0

    def read(self) -> State:
        """Return the newest state; raise DriverFault if it is older than MAX_STATE_GAP."""
        self.publisher.listen()
        with suppress(DriverFault):
            self._last, self._received = super().read(), time.monotonic()
        if self._last is None or time.monotonic() - self._received > MAX_STATE_GAP:
            raise DriverFault(f"joint_states: no message for {MAX_STATE_GAP:g} s")
        return self._last


def _wait(ready: Callable[[], bool], otherwise: str) -> None:
    """Wait until ``ready``; raise DriverFault after START_TIMEOUT."""
    end = time.monotonic() + START_TIMEOUT
    while not ready():
        if time.monotonic() > end:
            raise DriverFault(f"{otherwise} within {START_TIMEOUT:g} s")
        time.sleep(POLL)
