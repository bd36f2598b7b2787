"""Topics of an arm's node: joint_states, /clock and tool_trace out, commands in."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

import numpy as np
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path
from rclpy.node import Node
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import Command, State
from arm_dynamics.core.timing import RoundTrip
from arm_dynamics.dynamics.kinematics.frames import tool_position
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros.messages import conversions, qos
from arm_dynamics.ros.messages.conversions import Frames, header
from arm_dynamics.ros.messages.mailbox import Mailbox, Taken
from arm_dynamics.ros.messages.serialization import (
    FIELDS,
    JointStateReader,
    JointStateWriter,
    clock,
    decode,
)
from arm_dynamics.ros.parameters.arm_parameters import declare_voltage_order
from arm_dynamics.ros.topics.frames import RobotStateTopics
from arm_dynamics.ros.topics.pacing import TimeSource, wall_timer
from arm_dynamics.ros.topics.publisher_checks import OnePublisher
from arm_dynamics.safety.events import Events
from arm_dynamics.simulation.simulation import Simulation

CLOCK_PERIOD = 0.1
"""Wall-clock time [s] between two messages on /clock while simulated time is stopped."""


class StateTopics:
    """Publishes every state, and /clock if this node is its source.

    The message omits joints of unknown position or velocity (NaN).
    """

    def __init__(
        self,
        node: Node,
        arm: ArmModel,
        frames: Frames,
        source: TimeSource | None = None,
        robot_state: RobotStateTopics | None = None,
    ) -> None:
        """``source`` is that of simulated time; None: the node's clock stamps the states.

        ``robot_state`` publishes the transforms; None: robot_state_publisher does.
        """
        self._robot_state = robot_state
        self.round_trip = RoundTrip()
        """Times from the states to the commands that reply to them."""
        self._simulated = source is not None and source.is_simulated
        self._now = node.get_clock().now
        publishes = source is not None and source.publishes_clock
        self._clock = node.create_publisher(Clock, "/clock", qos.STREAM) if publishes else None
        self._states = node.create_publisher(JointState, "joint_states", qos.STREAM)
        self._names, self._frame = arm.joint_names, frames.base
        self._writer = JointStateWriter(arm.joint_names, FIELDS, frames.base)
        self.stamp = 0.0
        """Stamp of the newest state [s]."""
        self._clock_published = 0.0

    def repeat_clock(self) -> None:
        """Publish the time of the newest state again, at most once in CLOCK_PERIOD."""
        now = time.monotonic()
        if self._clock is not None and now - self._clock_published >= CLOCK_PERIOD:
            self._clock_published = now
            self._clock.publish(clock(self.stamp))

    def publish(self, state: State) -> None:
        """Publish a state."""
        stamp = state.time if self._simulated else self._now().nanoseconds * 1e-9
        if self._clock is not None and self._clock.get_subscription_count():
            self._clock.publish(clock(stamp))
        self.stamp = stamp
        if self._robot_state is not None:
            self._robot_state.update(stamp, state.q)
        if np.isfinite(state.q + state.v).all():
            self.round_trip.send(stamp, time.time())  # no reply to a partial state
            self._states.publish(self._writer.write(stamp, state.q, state.v, state.tau))
            return
        finite = np.flatnonzero(np.isfinite(state.q + state.v))
        if finite.size:
            names = tuple(self._names[i] for i in finite)
            writer = JointStateWriter(names, FIELDS, self._frame)
            self._states.publish(
                writer.write(stamp, state.q[finite], state.v[finite], state.tau[finite])
            )


class CommandTopics:
    """Passes the commands of one publisher to the arm; each rejected command is an event."""

    def __init__(
        self,
        node: Node,
        names: tuple[str, ...],
        states: StateTopics,
        events: Events,
        *,
        submit: Callable[[Command], object],
        restart: Callable[[], None],
        max_age: Callable[[], float],
    ) -> None:
        """``states`` are those that the commands reply to.

        A command with a stamp more than ``max_age()`` [s] before that of the newest state is
        rejected; one without a stamp is not.
        ``restart`` is called when a publisher is accepted whose commands were rejected before.
        """
        self._names, self._voltage_order = names, declare_voltage_order(node, names)
        self._states, self._round_trip, self._events = states, states.round_trip, events
        self._submit, self._max_age = submit, max_age
        self._stream = Mailbox(node, JointState, "joint_commands", qos.INCOMING)
        self._voltages = Mailbox(node, Float64MultiArray, "voltage_commands", qos.INCOMING)
        self._reader, self._sent = JointStateReader(), 0
        self.publisher = OnePublisher(node, events.report, restart, kind="commander")

    def read_until_reply(self, time_left: Callable[[], float]) -> bool:
        """Read commands until one replies to the current state or no time is ``time_left`` [s].

        A reply has the state's stamp. A rejected command is a reply too: time continues, and the
        last valid command expires. Return whether there was a reply.
        """
        if self._sent != self._round_trip.sent:
            self._sent = self._round_trip.sent
            self.publisher.listen()
        replied = False
        while not replied and self._stream.wait(time_left()):
            for taken in self._stream.take():
                replied |= self._take_command(taken)
            if time_left() <= 0.0:
                break  # a publisher faster than this loop would block the cycle
        for taken in self._voltages.take():
            try:
                voltages = decode(taken.data, Float64MultiArray)
                if self.publisher.accept(self._voltages.topic, taken.publisher):
                    self._submit(
                        conversions.read_voltage(
                            self._names, self._voltage_order, voltages, self._states.stamp
                        )
                    )
            except InvalidValue as error:
                self._events.report("command_rejected", f"voltage_commands: {error}")
        return replied

    def _take_command(self, taken: Taken) -> bool:
        """Submit one message of joint_commands; return whether it replies to the current state."""
        is_reply = False
        try:
            message = self._reader.read(taken.data)
            if self.publisher.accept(self._stream.topic, taken.publisher):
                is_reply = self._round_trip.receive(message.time, taken.received)
                command = conversions.read_command(self._names, message)
                self._require_recent(command.stamp)
                self._submit(command)
        except InvalidValue as error:
            self._events.report("command_rejected", f"joint_commands: {error}")
        return is_reply

    def _require_recent(self, stamp: float) -> None:
        age, limit = self._states.stamp - stamp, self._max_age()
        if stamp and age > limit:
            raise InvalidValue(
                f"command age = {age:.3f} s; expected at most {limit:g} s; synchronize the clocks,"
                " or stamp 0 for no stamp"
            )


REPLY_TIMEOUT = 5.0
"""Wall-clock time [s] without a reply from which a simulator in lockstep reports its wait."""


class LockstepWait:
    """Reports that simulated time waits for a reply, after REPLY_TIMEOUT and at each doubling."""

    def __init__(self, node: Node, events: Events) -> None:
        self._logger, self._events = node.get_logger(), events
        self._topic = node.resolve_topic_name("joint_commands")
        self._waited, self._next = 0.0, REPLY_TIMEOUT

    @property
    def trouble(self) -> str:
        """What simulated time waits for; "" while commands arrive."""
        if self._waited < REPLY_TIMEOUT:
            return ""
        return (
            f"{self._topic}: time without a command = {self._waited:.0f} s; expected one with the"
            " stamp of the newest state; simulated time waits for it (lockstep): start or restart"
            " the controller, which compiles at its first start"
        )

    def elapse(self, duration: float) -> None:
        """Add ``duration`` [s] of wall-clock time without a reply, while time is not paused."""
        self._waited += duration
        if self._waited >= self._next:
            self._next *= 2
            self._events.report("command_missing", self.trouble)

    def end(self) -> None:
        """Record a reply."""
        if self._waited >= REPLY_TIMEOUT:
            self._logger.info(f"{self._topic}: commands continue after {self._waited:.0f} s")
        self._waited, self._next = 0.0, REPLY_TIMEOUT


PATH_CAPACITY = 200
PATH_PERIOD = 0.1


class ToolTrace:
    """Publishes the last PATH_CAPACITY tool positions every PATH_PERIOD [s], if subscribed."""

    def __init__(
        self,
        node: Node,
        arm: ArmModel,
        frames: Frames,
        state: Callable[[], State],
        stamp: Callable[[], float],
    ) -> None:
        self._arm, self._frame, self._state, self._stamp = arm, frames.base, state, stamp
        self._publisher = node.create_publisher(Path, "tool_trace", 1)
        self._poses: deque[PoseStamped] = deque(maxlen=PATH_CAPACITY)
        self._timer = wall_timer(node, PATH_PERIOD, self.publish)

    def publish(self) -> None:
        """Append the tool position and publish the path, if subscribed."""
        if self._publisher.get_subscription_count() == 0:
            return
        message = Path(header=header(self._frame, self._stamp()))
        pose = PoseStamped(header=message.header)
        position = pose.pose.position
        position.x, position.y, position.z = tool_position(self._arm, self._state().q).tolist()
        self._poses.append(pose)
        message.poses = list(self._poses)
        self._publisher.publish(message)


FAST_FACTOR = 1.1
"""Real-time factor above which simulated time waits for replies."""


POLL_PERIOD = 0.005
"""Time [s] between two polls for commands that are not replies: voltages, or independent stamps."""


class ReplyWait:
    """Gives the controller ``command_timeout`` of wall-clock time, not only of simulated time.

    Simulated time stops while a controller that replied to the last state has not replied to this
    one, or while its command is about to time out. It stops at most ``command_timeout`` [s] by the
    wall clock after the last command. A command thus expires only after both clocks have passed
    that time.
    """

    def __init__(self, simulation: Simulation, commands: CommandTopics) -> None:
        self._simulation, self._commands = simulation, commands
        self._accepted, self._since, self._replied = 0, 0.0, False

    def wait(self, factor: float, replied: bool) -> None:
        """Wait for the reply to the current state at the real-time ``factor``, if one is due.

        ``replied`` is True if it has already been received.
        """
        simulation, watchdog = self._simulation, self._simulation.watchdog
        until = 0.0

        def time_left() -> float:
            return max(0.0, until - time.monotonic())

        self._record_command()
        while factor > FAST_FACTOR and not replied and watchdog.commanded:
            # The controller may still reply, and did before or is about to time out.
            age = watchdog.age(simulation.state.time) + simulation.period
            allowed = time.monotonic() - self._since < watchdog.timeout
            if not (allowed and (self._replied or age > watchdog.timeout)):
                break
            until = time.monotonic() + POLL_PERIOD
            replied = self._commands.read_until_reply(time_left)
            self._record_command()
        self._replied = replied

    def _record_command(self) -> None:
        """Record the wall-clock time of a new command."""
        accepted = self._simulation.watchdog.accepted
        if accepted != self._accepted:
            self._accepted, self._since = accepted, time.monotonic()
