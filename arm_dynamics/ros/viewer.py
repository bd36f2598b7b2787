"""Node viewer: joint states and diagnostics on a browser page."""

from __future__ import annotations

import sys
from functools import partial
from math import isfinite

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.node import Node

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.core.state import State
from arm_dynamics.ros import qos
from arm_dynamics.ros.arm_parameters import declared_model
from arm_dynamics.ros.controller_clients import TrackingSubscription
from arm_dynamics.ros.diagnostics import SUPPLY, TEMPERATURE, VOLTAGE, DiagnosticsSummary, Throttle
from arm_dynamics.ros.emergency_stop_interface import StopRequest
from arm_dynamics.ros.process import run_node
from arm_dynamics.ros.ros_parameters import declare_fixed
from arm_dynamics.ros.serialization import listen
from arm_dynamics.ros.shutdown_flag import ShutdownFlag
from arm_dynamics.ros.simulation_controls import SimulationControls
from arm_dynamics.ros.topic_driver import StateSubscription
from arm_dynamics.viewer.show import PORT, open_page

PERIOD = 1 / 30


def known_efforts(effort: Vector) -> Vector | None:
    """Return the efforts, or None if the arm does not measure them."""
    return effort if all(map(isfinite, effort)) else None


class ViewerNode(Node):
    """Shows ``joint_states`` on a page bound to 127.0.0.1.

    The page is view-only except for an emergency stop button, which publishes ``emergency_stop``.
    The parameter ``controls`` adds the ``SimulationControls`` of a simulated arm.
    """

    def __init__(self) -> None:
        super().__init__("viewer")
        self._arm = declared_model(self)
        port = declare_fixed(self, "port", PORT, "port of the page; the next free one if in use")
        controls = declare_fixed(self, "controls", False, "allow the page to move a simulated arm")
        self._throttle = Throttle(self.get_logger())
        self._states = StateSubscription(self, self._arm.joint_names, self._throttle.warn)
        self._status = DiagnosticsSummary(self.get_namespace())
        self._tracking = TrackingSubscription(self, self._arm)
        reject = partial(self._throttle.warn, "/diagnostics")
        listen(self, DiagnosticArray, "/diagnostics", self._status.read, qos.STREAM, reject)
        self._emergency = StopRequest(self, self._status)
        self.page = open_page(self._arm, port, on_emergency=self.stop_arm)
        self._controls = (
            SimulationControls(self, self._arm, self.page, self._status) if controls else None
        )
        self.get_logger().info(f"the arm is shown at {self.page.url}")

    def run(self, stop: ShutdownFlag) -> None:
        """Show the newest state at 30 Hz until ``stop`` is set."""
        while not stop.wait(PERIOD):
            self._emergency.repeat()
            self._states.publisher.listen()
            state, tracked = self._states.newest(), self._tracking.newest
            reference = None if tracked is None else tracked.reference
            if state is not None:
                self._show(state, reference)
            if self.page.emergency is not None:
                self.page.emergency.show(self._status.emergency)
            if self._controls is not None:
                self._controls.update(reference)
        self.page.close()

    def stop_arm(self) -> None:
        """Request an emergency stop until the arm's node reports it; from any thread."""
        self._emergency.press()
        self.page.feedback.note("emergency stop pressed on a page")
        self.get_logger().error("emergency stop pressed on a page")

    def _show(self, state: State, reference: Vector | None) -> None:
        try:
            status, effort = self._status.status_values(), known_efforts(state.tau)
            motors, names = self._status.motors, self._arm.joint_names
            self.page.show(
                state.q, state.v, effort, status, reference, time=state.time,
                voltage=motors(names, VOLTAGE, SUPPLY), temperature=motors(names, TEMPERATURE),
            )  # fmt: skip
        except ArmDynamicsError as error:
            self._throttle.warn("not shown", str(error))


def main() -> None:
    """Run the node until SIGINT or SIGTERM."""
    sys.exit(run_node(ViewerNode))


if __name__ == "__main__":
    main()
