"""An arm behind topics: another node simulates it or moves its motors."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState

from arm_dynamics.drivers.base import Driver
from arm_dynamics.errors import ArmDynamicsError, DriverFault
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros import conversions, qos
from arm_dynamics.ros.command_publisher import CommandPublisher
from arm_dynamics.ros.mailbox import Mailbox
from arm_dynamics.ros.wire import JointStateReader
from arm_dynamics.state import Command, State
from arm_dynamics.timing import LoopTiming


class Output(Protocol):
    """Where commands go."""

    def publish(self, command: Command) -> None:
        """Publish one command."""


class TopicDriver(Driver):
    """Reads ``joint_states``, writes ``joint_commands``; joints are matched by name.

    Whether the arm takes positions is for whoever has its motors to say.
    """

    also: tuple[str, ...] = ("position",)

    def __init__(self, arm: ArmModel, node: Node, output: Output | None = None) -> None:
        super().__init__(arm)
        self._names = arm.joint_names
        self._states = Mailbox(node, JointState, "joint_states", qos.NEWEST, raw=True)
        self._reader = JointStateReader()
        self._commands = output or CommandPublisher(node, arm)
        self._timing: LoopTiming | None = None

    @property
    def timing(self) -> LoopTiming | None:
        """What the arm published last."""
        return self._timing

    def take_timing(self, timing: LoopTiming | None) -> str:
        """Fit the gains to a timing that the arm published; why they are rejected, or ""."""
        self._timing = timing
        if timing is None or self.fit is None:
            return ""
        try:
            self.fit(np.full(self.arm.nv, np.nan))
        except ArmDynamicsError as error:
            return str(error)
        return ""

    def wait(self, timeout: float) -> bool:
        """Whether a new state came within ``timeout`` [s]."""
        return self._states.wait(timeout)

    def skip(self) -> None:
        """Let a state pass unread."""
        self._states.take()

    def read(self) -> State:
        """The newest state; raises DriverFault when none came or it cannot be read."""
        message = self._states.take()
        if message is None:
            raise DriverFault("joint_states: nothing new")
        return conversions.read_state(self._names, self._reader.read(message))

    def write(self, command: Command) -> None:
        """Publish the command under the stamp of the state that it answers."""
        self._commands.publish(command)
