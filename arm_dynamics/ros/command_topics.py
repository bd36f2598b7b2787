"""What an arm listens to, simulated or physical: joint_commands and voltage_commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from arm_dynamics.errors import CommandRefused, ConfigError
from arm_dynamics.ros import conversions, qos
from arm_dynamics.ros.mailbox import Mailbox
from arm_dynamics.ros.parameters import declare_fixed
from arm_dynamics.ros.wire import Joints, JointStateReader
from arm_dynamics.round_trip import RoundTrip
from arm_dynamics.state import Command


def declare_order(node: Node, names: Sequence[str]) -> list[str]:
    """The order in which voltage_commands names the joints, as the parameter joint_names says."""
    order = list(declare_fixed(node, "joint_names", list(names), "order of voltage_commands"))
    if sorted(order) != sorted(names):
        raise ConfigError(f"joint_names {order}: each of {list(names)} is expected once")
    return order


class CommandTopics:
    """Hands what comes to ``offer``, and the words on what cannot be read to ``refuse``."""

    def __init__(
        self,
        node: Node,
        names: tuple[str, ...],
        order: Sequence[str],
        round_trip: RoundTrip,
        *,
        offer: Callable[[Command], object],
        refuse: Callable[[str], object],
        now: Callable[[], float],
    ) -> None:
        """``order`` is that of voltage_commands, ``now`` the time [s] that they are stamped."""
        self._names, self._order = names, order
        self._round_trip = round_trip
        self._offer, self._refuse, self._now = offer, refuse, now
        self._stream = Mailbox(node, JointState, "joint_commands", qos.NEWEST, raw=True)
        self._voltages = Mailbox(node, Float64MultiArray, "voltage_commands", qos.NEWEST)
        self._reader = JointStateReader()

    def take_until_answered(self, left: Callable[[], float]) -> bool:
        """Offer what comes until the present state is answered or no time is ``left`` [s].

        An answer bears the state's stamp; a refused one is an answer too: time goes on, and
        the last good command decays. Returns whether there was one.
        """
        answered = False
        while not answered and self._stream.wait(left()):
            answered = self._take_command()
        self._take_voltage()
        return answered

    def _take_command(self) -> bool:
        """Offer the newest of joint_commands; whether it answers the present state."""
        data = self._stream.take()
        if data is None:
            return False
        message = self._reader.read(data)
        answers = self._round_trip.receive(message.time, self._stream.received)
        self._offer_command(message)
        return answers

    def _offer_command(self, message: Joints) -> None:
        try:
            command = conversions.read_command(self._names, message)
        except CommandRefused as error:
            self._refuse(str(error))
        else:
            self._offer(command)

    def _take_voltage(self) -> None:
        message = self._voltages.take()
        if message is None:
            return
        try:
            command = conversions.read_voltage(self._names, self._order, message, self._now())
        except CommandRefused as error:
            self._refuse(str(error))
        else:
            self._offer(command)
