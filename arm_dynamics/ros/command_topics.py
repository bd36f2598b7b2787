"""What a simulated arm listens to: joint_commands and voltage_commands."""

from __future__ import annotations

from rclpy.node import Node
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from arm_dynamics.errors import CommandRefused
from arm_dynamics.pacer import Rate
from arm_dynamics.ros import conversions, qos
from arm_dynamics.ros.mailbox import Mailbox
from arm_dynamics.simulation import Simulation


class CommandTopics:
    """Hands the newest command to the simulation; counts those accepted."""

    def __init__(self, node: Node, simulation: Simulation) -> None:
        self._simulation = simulation
        self._efforts = Mailbox(node, JointState, "joint_commands", qos.NEWEST)
        self._voltages = Mailbox(node, Float64MultiArray, "voltage_commands", qos.NEWEST)
        self.accepted = Rate()

    def take(self) -> None:
        """Offer what has come since the last call."""
        effort, voltage = self._efforts.newest(), self._voltages.newest()
        if effort is not None:
            self._offer_effort(effort)
        if voltage is not None:
            self._offer_voltage(voltage)

    def wait_for_answer(self, timeout: float) -> bool:
        """Whether the present state was answered, by its stamp, within ``timeout`` [s].

        A refused answer is an answer: time goes on, and the last good command decays.
        """
        stamp = conversions.to_time(self._simulation.state.time)
        if not self._efforts.wait(timeout):
            return False
        message = self._efforts.newest()
        if message is None or message.header.stamp != stamp:
            return False
        self._offer_effort(message)
        return True

    def _offer_effort(self, message: JointState) -> None:
        names = self._simulation.arm.joint_names
        try:
            command = conversions.read_effort(names, message)
        except CommandRefused as error:
            self._simulation.watch.refuse(str(error))
        else:
            self.accepted.count += self._simulation.offer(command)

    def _offer_voltage(self, message: Float64MultiArray) -> None:
        names, now = self._simulation.arm.joint_names, self._simulation.state.time
        try:
            command = conversions.read_voltage(names, message, now)
        except CommandRefused as error:
            self._simulation.watch.refuse(str(error))
        else:
            self.accepted.count += self._simulation.offer(command)
