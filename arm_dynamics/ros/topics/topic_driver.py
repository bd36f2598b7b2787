"""Driver of an arm behind topics, which another node simulates or drives.

States come from joint_states; commands go to joint_commands, or as trajectories to another
controller.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from math import nan
from typing import Protocol

import numpy as np
from rclpy.node import Node
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.errors import ArmDynamicsError, ConfigError, DriverFault, InvalidValue
from arm_dynamics.core.state import Command, State
from arm_dynamics.core.timing import LoopTiming
from arm_dynamics.hardware.driver import Driver
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros.messages import conversions, qos
from arm_dynamics.ros.messages.conversions import to_double_array, to_duration
from arm_dynamics.ros.messages.mailbox import Mailbox
from arm_dynamics.ros.messages.serialization import JointStateReader, JointStateWriter
from arm_dynamics.ros.parameters.ros_parameters import declare_fixed
from arm_dynamics.ros.topics.capability_topics import Capabilities
from arm_dynamics.ros.topics.publisher_checks import OnePublisher
from arm_dynamics.safety.events import Events

STATE_TIMEOUT = 1.0
"""Time [s] without a state after which a physical arm has failed, and after which a canceled goal
no longer waits for the arm to stop."""


class CommandSink(Protocol):
    """Receiver of commands."""

    def publish(self, command: Command) -> None:
        """Publish one command."""


class StateSubscription:
    """States on ``joint_states`` of one publisher: two arms would have different states."""

    def __init__(
        self, node: Node, names: tuple[str, ...], report: Callable[[str, str], None]
    ) -> None:
        """``report`` receives kind and text of rejected states and publishers."""
        self._names, self._report = names, report
        self._mailbox = Mailbox(node, JointState, "joint_states", qos.INCOMING)
        self._reader = JointStateReader()
        self.publisher = OnePublisher(node, report, kind="state_publisher")

    def wait(self, timeout: float) -> bool:
        """Return whether a message is received within ``timeout`` [s]."""
        return self._mailbox.wait(timeout)

    def newest(self) -> State | None:
        """Return the newest state received since the last call, None without one."""
        newest = None
        for taken in self._mailbox.take():
            try:
                state = conversions.read_state(self._names, self._reader.read(taken.data))
            except (InvalidValue, DriverFault) as error:
                self._report("state_rejected", f"{self._mailbox.topic}: {error}")
            else:
                if self.publisher.accept(self._mailbox.topic, taken.publisher):
                    newest = state
        return newest


class TopicDriver(Driver):
    """Reads ``joint_states``, writes ``joint_commands``; joints are matched by name.

    The node of the arm publishes in ``capabilities`` whether it accepts positions.
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
        """``capabilities`` report whether the arm executes commands, and how its servos hold."""
        super().__init__(arm)
        self._capabilities = capabilities
        self._servos: tuple[str, Mapping[str, float]] | None = None
        self._activity_changes = 0
        self._held: Vector | None = None
        self._states = StateSubscription(node, arm.joint_names, events.report)
        self.publisher = self._states.publisher
        self._newest: State | None = None
        self._silence = 0.0  # time waited without a state [s]
        self._commands = output or CommandPublisher(node, arm)
        self._timing: LoopTiming | None = None

    @property
    def timing(self) -> LoopTiming | None:
        """Timing that the arm published and that the gains are fitted to; None before."""
        return self._timing

    def take_timing(self, timing: LoopTiming | None) -> str:
        """Fit the gains to a timing that the arm published; return why they are rejected, or "".

        A timing close to the last one changes nothing: the arm measures it at every activation. A
        publication without timing, that of a simulator, changes nothing either.
        """
        same = timing is None or (self._timing is not None and timing.resembles(self._timing))
        if same or self.check_gains is None:
            return ""
        self._timing = timing
        try:
            self.check_gains(np.full(self.arm.nv, np.nan))
        except ArmDynamicsError as error:
            return str(error)
        return ""

    @property
    def held(self) -> Vector | None:
        """Published goals that hold the position servos while no controller commands them."""
        return self._held

    @property
    def inactive(self) -> str:
        """Why the arm executes no commands, as it published."""
        return "" if self._capabilities is None else self._capabilities.inactive

    def wait(self, timeout: float) -> bool:
        """Return whether a new state was received within ``timeout`` [s]."""
        self.publisher.listen()
        started = time.monotonic()
        if self._newest is None and self._states.wait(timeout):
            self._newest = self._states.newest()
        # A process that did not run has waited for no longer than this.
        waited = min(time.monotonic() - started, timeout)
        self._silence = self._silence + waited if self._newest is None else 0.0
        return self._newest is not None

    @property
    def missing(self) -> str:
        """Why an active physical arm has failed: it publishes no states. "" if it does.

        A simulated arm publishes none while its time is paused.
        """
        failed = self._silence > STATE_TIMEOUT and not self.inactive
        physical = self._capabilities is not None and self._capabilities.physical
        return f"no joint states for {STATE_TIMEOUT:g} s" if failed and physical else ""

    def discard_state(self) -> None:
        """Discard a state."""
        self._newest = None

    def read(self) -> State:
        """Return the newest state; raise DriverFault without one."""
        newer, waiting = self._states.newest(), self._newest
        self._newest = None
        state = waiting if newer is None else newer
        if state is None:
            raise DriverFault("joint_states: new messages = 0; expected 1")
        if self._capabilities is not None:
            self._follow(self._capabilities)
        return state

    def _follow(self, capabilities: Capabilities) -> None:
        """Begin a new command epoch where the arm stops or begins to execute commands."""
        changes, servos = capabilities.activity_changes, capabilities.servos
        self.command_epoch += changes != self._activity_changes
        self._activity_changes = changes
        if servos is not None and servos is not self._servos:
            before, self._servos = self._servos, servos
            self.command_epoch += before is not None and servos[0] != before[0]
            goals = [servos[1].get(name, nan) for name in self.arm.joint_names]
            self._held = as_readonly(goals) if np.isfinite(goals).all() else None

    def write(self, command: Command) -> None:
        """Publish the command with the stamp of the state that it replies to."""
        self._held = None  # this command replaces the holding goals
        self._commands.publish(command)


class CommandPublisher:
    """Publishes joint_commands with the stamp of the state that they reply to."""

    def __init__(self, node: Node, arm: ArmModel) -> None:
        self._publisher = node.create_publisher(JointState, "joint_commands", qos.STREAM)
        self._writers = {
            interface: JointStateWriter(arm.joint_names, (interface,))
            for interface in ("effort", "position")
        }

    def publish(self, command: Command) -> None:
        """Publish one command."""
        writer = self._writers[command.interface]
        self._publisher.publish(writer.write(command.stamp, command.value))


MAX_COMMAND_GAP = 0.25
"""Time [s] between two commands above which the second one is treated as the first of a motion."""


class TrajectoryPublisher:
    """Publishes position commands as one-point trajectories that end one period later.

    q = the command, v = (q - q_before) / period, time_from_start = period: the time between the
    two states that the commands reply to. The first command has no period and is not sent.
    """

    def __init__(self, node: Node, arm: ArmModel, topic: str) -> None:
        self._publisher = node.create_publisher(JointTrajectory, topic, qos.STREAM)
        self._names = list(arm.joint_names)
        self._last: Command | None = None

    def publish(self, command: Command) -> None:
        """Publish one position command."""
        last, self._last = self._last, command
        period = 0.0 if last is None else command.stamp - last.stamp
        if last is not None and 0 < period <= MAX_COMMAND_GAP:
            point = JointTrajectoryPoint(
                positions=to_double_array(command.value),
                velocities=to_double_array((command.value - last.value) / period),
                time_from_start=to_duration(period),
            )
            self._publisher.publish(JointTrajectory(joint_names=self._names, points=[point]))


OUTPUTS = ("joint_commands", "joint_trajectory")
DEFAULT_OUTPUT_TOPIC = "joint_trajectory_controller/joint_trajectory"


def declare_output(
    node: Node, arm: ArmModel, controller: Controller
) -> CommandPublisher | TrajectoryPublisher:
    """Return the publisher that the parameters ``output`` and ``output_topic`` define.

    Raise ConfigError for an unknown output, and for trajectories of a controller that does not
    command positions.
    """
    output = declare_fixed(node, "output", OUTPUTS[0], f"one of {', '.join(OUTPUTS)}")
    topic = declare_fixed(
        node, "output_topic", DEFAULT_OUTPUT_TOPIC, "topic of output joint_trajectory"
    )
    if output not in OUTPUTS:
        raise ConfigError(f"output = '{output}'; expected one of {', '.join(OUTPUTS)}")
    if output == OUTPUTS[0]:
        return CommandPublisher(node, arm)
    if controller.interface != "position":
        raise ConfigError(
            f"output joint_trajectory: command interface = {controller.interface};"
            " expected position; use controller position, or output joint_commands"
        )
    return TrajectoryPublisher(node, arm, topic)
