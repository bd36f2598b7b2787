"""What an arm listens to, simulated or physical: joint_commands and voltage_commands."""

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
    """The order in which voltage_commands names the joints, as the parameter joint_names says."""
    order = list(declare_fixed(node, "joint_names", list(names), "order of voltage_commands"))
    if sorted(order) != sorted(names):
        raise ConfigError(f"joint_names {order}: each of {list(names)} is expected once")
    return order


class CommandTopics:
    """Hands the commands of one publisher to ``submit``; what is refused becomes an event.

    ``publisher`` says whose commands count.
    """

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
        """``order`` is that of voltage_commands, ``now`` the time [s] that they are stamped.

        ``restart`` is called when a publisher counts whose commands were rejected before.
        """
        self._names, self._order = names, order
        self._round_trip, self._events = round_trip, events
        self._offer, self._now = submit, now
        self._stream = Mailbox(node, JointState, "joint_commands", qos.INCOMING)
        self._voltages = Mailbox(node, Float64MultiArray, "voltage_commands", qos.INCOMING)
        self._reader, self._sent = JointStateReader(), 0
        self.publisher = OnePublisher(node, events.report, restart, kind="commander")

    def read_until_reply(self, left: Callable[[], float]) -> bool:
        """Offer what comes until the present state is answered or no time is ``left`` [s].

        An answer bears the state's stamp; a refused one is an answer too: time goes on, and
        the last good command decays. Returns whether there was one.
        """
        if self._sent != self._round_trip.sent:
            self._sent = self._round_trip.sent
            self.publisher.listen()
        answered = False
        while not answered and self._stream.wait(left()):
            for taken in self._stream.take():
                answered |= self._refusing("joint_commands", self._take_command, taken)
            if left() <= 0.0:
                break  # whoever sends faster than this takes would keep the cycle for ever
        for taken in self._voltages.take():
            self._refusing("voltage_commands", self._take_voltage, taken)
        return answered

    def _refusing(self, topic: str, take: Callable[[Taken], bool], taken: Taken) -> bool:
        """What ``take`` returns; False for bytes that cannot be read."""
        try:
            return take(taken)
        except InvalidValue as error:
            self._events.report("command_refused", f"{topic}: {error}")
            return False

    def _take_command(self, taken: Taken) -> bool:
        """Offer one of joint_commands; whether it answers the present state."""
        message = self._reader.read(taken.data)
        if not self.publisher.accept(self._stream.topic, taken.publisher):
            return False
        answers = self._round_trip.receive(message.time, taken.received)
        try:
            command = conversions.read_command(self._names, message)
        except CommandRejected as error:
            self._events.report("command_refused", str(error))
        else:
            self._offer(command)
        return answers

    def _take_voltage(self, taken: Taken) -> bool:
        message = decode(taken.data, Float64MultiArray)
        if self.publisher.accept(self._voltages.topic, taken.publisher):
            self._offer(conversions.read_voltage(self._names, self._order, message, self._now()))
        return False
