"""What a simulated arm listens to: joint_commands and voltage_commands."""

from __future__ import annotations

from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from arm_dynamics.errors import CommandRefused
from arm_dynamics.ros import conversions, qos
from arm_dynamics.ros.mailbox import Mailbox
from arm_dynamics.ros.wire import Joints, JointStateReader
from arm_dynamics.round_trip import SAME, RoundTrip
from arm_dynamics.simulation import Simulation


class CommandTopics:
    """Hands the newest command to the simulation."""

    def __init__(self, node: Node, simulation: Simulation, round_trip: RoundTrip) -> None:
        self._round_trip = round_trip
        self._simulation = simulation
        self._names = simulation.arm.joint_names
        self._efforts = Mailbox(node, JointState, "joint_commands", qos.NEWEST, raw=True)
        self._voltages = Mailbox(node, Float64MultiArray, "voltage_commands", qos.NEWEST)
        self._reader = JointStateReader()

    def take(self) -> None:
        """Offer what has come since the last call."""
        effort, voltage = self._efforts.newest(), self._voltages.newest()
        if effort is not None:
            self._offer_effort(self._reader.read(effort))
        if voltage is not None:
            self._offer_voltage(voltage)

    def wait_for_answer(self, timeout: float) -> bool:
        """Whether the present state was answered, by its stamp, within ``timeout`` [s].

        A refused answer is an answer: time goes on, and the last good command decays.
        """
        if not self._efforts.wait(timeout):
            return False
        message = self._efforts.newest()
        if message is None:
            return False
        answer = self._reader.read(message)
        if abs(answer.time - self._simulation.state.time) > SAME:
            return False
        self._offer_effort(answer)
        return True

    def _offer_effort(self, message: Joints) -> None:
        self._round_trip.receive(message.time, self._efforts.received)
        try:
            command = conversions.read_effort(self._names, message)
        except CommandRefused as error:
            self._simulation.watch.refuse(str(error))
        else:
            self._simulation.offer(command)

    def _offer_voltage(self, message: Float64MultiArray) -> None:
        try:
            command = conversions.read_voltage(self._names, message, self._simulation.state.time)
        except CommandRefused as error:
            self._simulation.watch.refuse(str(error))
        else:
            self._simulation.offer(command)
