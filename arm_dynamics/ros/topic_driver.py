"""An arm behind topics: another node simulates it or moves its motors."""

from __future__ import annotations

from typing import Protocol

from rclpy.node import Node
from sensor_msgs.msg import JointState

from arm_dynamics.drivers.base import Driver
from arm_dynamics.errors import DriverFault, InvalidValue
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros import conversions, qos
from arm_dynamics.ros.command_publisher import CommandPublisher
from arm_dynamics.ros.mailbox import Mailbox
from arm_dynamics.ros.one_publisher import OnePublisher
from arm_dynamics.ros.wire import JointStateReader
from arm_dynamics.safety.events import Events
from arm_dynamics.state import Command, State


class Output(Protocol):
    """Where commands go."""

    def publish(self, command: Command) -> None:
        """Publish one command."""


class TopicDriver(Driver):
    """Reads ``joint_states``, writes ``joint_commands``; joints are matched by name.

    The states of one publisher count: of two arms none is where the other one is. Whether the arm
    takes positions is for whoever has its motors to say.
    """

    also: tuple[str, ...] = ("position",)

    def __init__(
        self, arm: ArmModel, node: Node, events: Events, output: Output | None = None
    ) -> None:
        super().__init__(arm)
        self._names = arm.joint_names
        self._events = events
        self._states = Mailbox(node, JointState, "joint_states", qos.INCOMING)
        self._reader = JointStateReader()
        self._newest: State | None = None
        self.publisher = OnePublisher(node, events.report, kind="state_publisher")
        self._commands = output or CommandPublisher(node, arm)

    def wait(self, timeout: float) -> bool:
        """Whether a new state came within ``timeout`` [s]."""
        if self._newest is None and self._states.wait(timeout):
            self._collect()
        return self._newest is not None

    def skip(self) -> None:
        """Let a state pass unread."""
        self._newest = None

    def read(self) -> State:
        """The newest state; raises DriverFault when none came."""
        self._collect()
        state, self._newest = self._newest, None
        if state is None:
            raise DriverFault("joint_states: nothing new")
        return state

    def _collect(self) -> None:
        """Take what came; what cannot be read is an event."""
        for taken in self._states.take():
            try:
                state = conversions.read_state(self._names, self._reader.read(taken.data))
            except (InvalidValue, DriverFault) as error:
                self._events.report("state_refused", f"{self._states.topic}: {error}")
            else:
                if self.publisher.accept(self._states.topic, taken.publisher):
                    self._newest = state

    def write(self, command: Command) -> None:
        """Publish the command under the stamp of the state that it answers."""
        self._commands.publish(command)
