"""An arm behind topics: another node simulates it or moves its motors."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from typing import Protocol

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState

from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.errors import ArmDynamicsError, DriverFault, InvalidValue
from arm_dynamics.core.state import Command, State
from arm_dynamics.core.timing import LoopTiming
from arm_dynamics.hardware.driver import Driver
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros import conversions, qos
from arm_dynamics.ros.capability_topics import Capabilities
from arm_dynamics.ros.command_output import CommandPublisher
from arm_dynamics.ros.joint_state_serialization import JointStateReader
from arm_dynamics.ros.mailbox import Mailbox
from arm_dynamics.ros.publisher_checks import OnePublisher
from arm_dynamics.safety.events import Events


class CommandSink(Protocol):
    """Where commands go."""

    def publish(self, command: Command) -> None:
        """Publish one command."""


class TopicDriver(Driver):
    """Reads ``joint_states``, writes ``joint_commands``; joints are matched by name.

    The states of one publisher count: of two arms none is where the other one is. Whether the arm
    takes positions is for whoever has its motors to say.
    """

    extra_interfaces: tuple[str, ...] = ("position",)

    def __init__(
        self,
        arm: ArmModel,
        node: Node,
        events: Events,
        output: CommandSink | None = None,
        capabilities: Capabilities | None = None,
    ) -> None:
        """``capabilities`` say when position servos were taken up, and what holds them."""
        super().__init__(arm)
        self._capabilities = capabilities
        self._servos: tuple[str, Mapping[str, float]] | None = None
        self._held: Vector | None = None
        self._names = arm.joint_names
        self._events = events
        self._states = Mailbox(node, JointState, "joint_states", qos.INCOMING)
        self._reader = JointStateReader()
        self._newest: State | None = None
        self.publisher = OnePublisher(node, events.report, kind="state_publisher")
        self._commands = output or CommandPublisher(node, arm)
        self._timing: LoopTiming | None = None

    @property
    def timing(self) -> LoopTiming | None:
        """What the arm published, of which the gains are; None before."""
        return self._timing

    def take_timing(self, timing: LoopTiming | None) -> str:
        """Fit the gains to a timing that the arm published; why they are rejected, or "".

        One that hardly differs from the last one changes nothing: it is measured anew at every
        activation. Neither does a publication without timing: a simulator's.
        """
        same = timing is None or (self._timing is not None and timing.resembles(self._timing))
        if same or self.fit is None:
            return ""
        self._timing = timing
        try:
            self.fit(np.full(self.arm.nv, np.nan))
        except ArmDynamicsError as error:
            return str(error)
        return ""

    @property
    def held(self) -> Vector | None:
        """The goals that hold the arm's servos, as the arm said while nobody commanded them."""
        return self._held

    def wait(self, timeout: float) -> bool:
        """Whether a new state came within ``timeout`` [s]."""
        self.publisher.listen()
        if self._newest is None and self._states.wait(timeout):
            self._collect()
        return self._newest is not None

    def discard_state(self) -> None:
        """Let a state pass unread."""
        self._newest = None

    def read(self) -> State:
        """The newest state; raises DriverFault when none came."""
        self._collect()
        state, self._newest = self._newest, None
        if state is None:
            raise DriverFault("joint_states: nothing new")
        if self._capabilities is not None and self._capabilities.servos is not self._servos:
            self._note_servos(self._capabilities.servos)
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
        self._held = None  # from now on that is for this command to say
        self._commands.publish(command)

    def _note_servos(self, servos: tuple[str, Mapping[str, float]] | None) -> None:
        """The arm was taken up again, or is held without a command, or is commanded again."""
        before, self._servos = self._servos, servos
        if before is not None and servos is not None and servos[0] != before[0]:
            self.command_epoch += 1
        goals = [] if servos is None else [servos[1].get(name, nan) for name in self._names]
        self._held = as_readonly(goals) if goals and np.isfinite(goals).all() else None
