"""Commands to an arm, simulated or physical: joint_commands and voltage_commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from arm_dynamics.core.errors import CommandRejected, ConfigError, InvalidValue
from arm_dynamics.core.state import Command
from arm_dynamics.core.timing import RoundTrip
from arm_dynamics.ros import conversions, qos
from arm_dynamics.ros.decode import decode
from arm_dynamics.ros.joint_state_serialization import JointStateReader
from arm_dynamics.ros.mailbox import Mailbox, Taken
from arm_dynamics.ros.publisher_checks import OnePublisher
from arm_dynamics.ros.ros_parameters import declare_fixed
from arm_dynamics.safety.events import Events


def declare_voltage_order(node: Node, names: Sequence[str]) -> list[str]:
    """Return the joint order of voltage_commands: the parameter voltage_joint_order."""
    order = list(
        declare_fixed(node, "voltage_joint_order", list(names), "joint order of voltage_commands")
    )
    if sorted(order) != sorted(names):
        raise ConfigError(f"voltage_joint_order = {order}; expected each of {list(names)} once")
    return order


class CommandTopics:
    """Passes the commands of one publisher to the arm; each rejected command is an event."""

    def __init__(
        self,
        node: Node,
        names: tuple[str, ...],
        order: Sequence[str],
        round_trip: RoundTrip,
        events: Events,
        *,
        submit: Callable[[Command], object],
        restart: Callable[[], None],
        now: Callable[[], float],
    ) -> None:
        """``order`` is the joint order of voltage_commands, ``now`` returns their stamp [s].

        ``restart`` is called when a publisher is accepted whose commands were rejected before.
        """
        self._names, self._order = names, order
        self._round_trip, self._events = round_trip, events
        self._offer, self._now = submit, now
        self._stream = Mailbox(node, JointState, "joint_commands", qos.INCOMING)
        self._voltages = Mailbox(node, Float64MultiArray, "voltage_commands", qos.INCOMING)
        self._reader, self._sent = JointStateReader(), 0
        self.publisher = OnePublisher(node, events.report, restart, kind="commander")

    def read_until_reply(self, left: Callable[[], float]) -> bool:
        """Read commands until one replies to the current state or no time is ``left`` [s].

        A reply has the state's stamp. A rejected command is a reply too: time continues, and the
        last valid command expires. Return whether there was a reply.
        """
        if self._sent != self._round_trip.sent:
            self._sent = self._round_trip.sent
            self.publisher.listen()
        answered = False
        while not answered and self._stream.wait(left()):
            for taken in self._stream.take():
                answered |= self._refusing("joint_commands", self._take_command, taken)
            if left() <= 0.0:
                break  # a publisher faster than this loop would block the cycle
        for taken in self._voltages.take():
            self._refusing("voltage_commands", self._take_voltage, taken)
        return answered

    def _refusing(self, topic: str, take: Callable[[Taken], bool], taken: Taken) -> bool:
        """Return the result of ``take``; False for invalid bytes."""
        try:
            return take(taken)
        except InvalidValue as error:
            self._events.report("command_rejected", f"{topic}: {error}")
            return False

    def _take_command(self, taken: Taken) -> bool:
        """Submit one message of joint_commands; return whether it replies to the current state."""
        message = self._reader.read(taken.data)
        if not self.publisher.accept(self._stream.topic, taken.publisher):
            return False
        answers = self._round_trip.receive(message.time, taken.received)
        try:
            command = conversions.read_command(self._names, message)
        except CommandRejected as error:
            self._events.report("command_rejected", str(error))
        else:
            self._offer(command)
        return answers

    def _take_voltage(self, taken: Taken) -> bool:
        message = decode(taken.data, Float64MultiArray)
        if self.publisher.accept(self._voltages.topic, taken.publisher):
            self._offer(conversions.read_voltage(self._names, self._order, message, self._now()))
        return False
