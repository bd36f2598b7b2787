"""Node viewer: joint states and diagnostics on a browser page."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from threading import Thread

from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.msg import ParameterEvent
from rclpy.node import Node
from rclpy.qos import qos_profile_parameter_events
from std_srvs.srv import SetBool, Trigger

from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.core.signals import ShutdownFlag
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros.messages import qos
from arm_dynamics.ros.messages.serialization import listen
from arm_dynamics.ros.nodes.demo_motion import RemoteDemo
from arm_dynamics.ros.parameters.arm_parameters import declared_model
from arm_dynamics.ros.parameters.ros_parameters import declare_fixed
from arm_dynamics.ros.runtime.process import run_node
from arm_dynamics.ros.topics.controller_clients import TrackingSubscription, TrajectoryPublisher
from arm_dynamics.ros.topics.diagnostics import DiagnosticsSummary, Throttle
from arm_dynamics.ros.topics.emergency_stop_interface import StopRequest
from arm_dynamics.ros.topics.services import Remote, RemoteParameters
from arm_dynamics.ros.topics.topic_driver import StateSubscription
from arm_dynamics.simulation.simulation_parameters import PAYLOAD
from arm_dynamics.viewer.controls import Controls
from arm_dynamics.viewer.show import PORT, open_page, show_state
from arm_dynamics.viewer.simulation_controls import (
    GAINS,
    LOADS,
    Setting,
    SettingFields,
    Settings,
    SimulationControls,
    load_settings,
)

PERIOD = 1 / 30


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
            SimulationControls(
                RemoteSimulation(self, self._arm), self._arm, self.page, self._status
            )
            if controls
            else None
        )
        self.get_logger().info(f"the arm is shown at {self.page.url}")

    def run(self, stop: ShutdownFlag) -> None:
        """Show the newest state at 30 Hz until ``stop`` is set."""
        while not stop.wait(PERIOD):
            self._emergency.repeat()
            self._states.publisher.listen()
            state, tracked = self._states.newest(), self._tracking.newest
            reference = None if tracked is None else tracked.reference
            if state is None:
                self.page.show_status(self._status.status_values())
            else:
                try:
                    show_state(self.page, state, self._tracking.error, self._status)
                except ArmDynamicsError as reason:
                    self._throttle.warn("not shown", str(reason))
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


class RemoteSimulation:
    """Simulator and joint controller of this namespace as a SimulatedArm.

    A physical arm has no such services, and its page stays view-only.
    """

    def __init__(self, node: Node, arm: ArmModel) -> None:
        self._node, self._arm = node, arm
        self._pause = Remote(node, SetBool, "simulator/pause")
        self._reset = Remote(node, Trigger, "simulator/reset")
        self._release = Remote(node, Trigger, "simulator/reset_emergency_stop")
        self._push = Remote(node, Trigger, "simulator/push")
        self._demo = RemoteDemo(node)

    @property
    def ready(self) -> bool:
        """Whether all services of the simulator exist."""
        return all(
            service.ready for service in (self._pause, self._reset, self._push, self._release)
        )

    @property
    def demo_running(self) -> bool | None:
        """Whether the demo motion runs; None without one."""
        return self._demo.running

    def output(self) -> TrajectoryPublisher:
        """Return the publisher of joint targets."""
        return TrajectoryPublisher(self._node, self._arm)

    def pause(self, paused: bool) -> str:
        """Pause or continue the simulation."""
        return self._pause.do(SetBool.Request(data=paused))

    def reset(self) -> str:
        """Set the arm to rest at its initial configuration."""
        return self._reset.do()

    def push(self) -> str:
        """Apply an impulse to the tool."""
        return self._push.do()

    def release(self) -> str:
        """Reset the emergency stop."""
        return self._release.do()

    def set_demo(self, running: bool) -> str:
        """Start or stop the demo motion."""
        return self._demo.set(running)

    def end_demo(self) -> bool:
        """Request the end of the demo motion; return whether it has ended."""
        return self._demo.end()

    def show_settings(self, controls: Controls) -> Callable[[], None]:
        """Add payload, push and gains; return the function that updates them."""
        return RemoteFields(self._node, controls).update


class RemoteFields:
    """Payload, push and gains; read again if a parameter of their nodes changes."""

    def __init__(self, node: Node, controls: Controls) -> None:
        self._simulator = RemoteParameters(node, "simulator")
        self._controller = RemoteParameters(node, "joint_controller")
        space = node.get_namespace().rstrip("/")
        self._nodes = {f"{space}/simulator", f"{space}/joint_controller"}
        self._folders = (
            SettingFields(controls, LOADS, self._loads),
            SettingFields(controls, GAINS, self._gains),
        )
        self._due, self._thread = True, Thread()
        profile = qos_profile_parameter_events
        listen(node, ParameterEvent, "/parameter_events", self._note, profile, lambda _: None)

    def update(self) -> None:
        """Read changed parameters, in a thread that may wait."""
        ready = self._simulator.ready and self._controller.ready
        if self._due and ready and not self._thread.is_alive():
            self._due = False
            self._thread = Thread(target=self._read, name="parameters", daemon=True)
            self._thread.start()

    def _read(self) -> None:
        try:
            for folder in self._folders:
                folder.read()
        except ArmDynamicsError:
            self._due = True  # a node is busy or ending: try again

    def _note(self, event: ParameterEvent) -> None:
        self._due = self._due or event.node in self._nodes

    def _loads(self) -> Settings:
        push = _settings(self._simulator, "push")
        payloads = (
            _settings(remote, PAYLOAD.name).get(PAYLOAD.name)
            for remote in (self._simulator, self._controller)
        )
        return load_settings({n.rpartition(".")[2]: s for n, s in push.items()}, *payloads)

    def _gains(self) -> Settings:
        parameters = {}
        for name, setting in _settings(self._controller, "gains").items():
            group, _, gain = name.removeprefix("gains.").rpartition(".")
            parameters[group, gain] = setting
        return parameters


def _settings(remote: RemoteParameters, prefix: str) -> dict[str, Setting]:
    """Return the numeric parameters under or equal to ``prefix``."""

    def apply(name: str, value: float) -> None:
        remote.set({name: value})

    numbers = remote.numbers(prefix).items()
    return {name: Setting(number, partial(apply, name)) for name, number in numbers}


def main() -> None:
    """Run the node until SIGINT or SIGTERM."""
    sys.exit(run_node(ViewerNode))


if __name__ == "__main__":
    main()
