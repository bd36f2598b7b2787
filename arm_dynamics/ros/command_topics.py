"""What a simulated arm listens to: joint_commands and voltage_commands."""

from __future__ import annotations

from collections.abc import Callable

from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from arm_dynamics.errors import CommandRefused
from arm_dynamics.ros import conversions, qos
from arm_dynamics.ros.mailbox import Mailbox
from arm_dynamics.ros.wire import Joints, JointStateReader
from arm_dynamics.round_trip import RoundTrip
from arm_dynamics.simulation import Simulation


class CommandTopics:
    """Hands the newest command to the simulation."""

    def __init__(
        self, node: Node, simulation: Simulation, round_trip: RoundTrip, order: list[str]
    ) -> None:
        """``order`` names the joints as voltage_commands does."""
        self._order = order
        self._round_trip = round_trip
        self._simulation = simulation
        self._names = simulation.arm.joint_names
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

    def _take_voltage(self) -> None:
        voltage = self._voltages.take()
        if voltage is not None:
            self._offer_voltage(voltage)

    def _offer_command(self, message: Joints) -> None:
        try:
            command = conversions.read_command(self._names, message)
        except CommandRefused as error:
            self._simulation.watch.refuse(str(error))
        else:
            self._simulation.offer(command)

    def _offer_voltage(self, message: Float64MultiArray) -> None:
        try:
            command = conversions.read_voltage(
                self._names, self._order, message, self._simulation.state.time
            )
        except CommandRefused as error:
            self._simulation.watch.refuse(str(error))
        else:
            self._simulation.offer(command)
