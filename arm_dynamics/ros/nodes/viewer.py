"""Node viewer: joint states and diagnostics on a browser page."""

from __future__ import annotations

import sys
from functools import partial

from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Vector3, WrenchStamped
from rcl_interfaces.msg import ParameterEvent
from rclpy.node import Node
from rclpy.qos import qos_profile_parameter_events
from std_msgs.msg import Header
from std_srvs.srv import SetBool, Trigger

from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core import plugins
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.core.loop_requests import LoopRequests
from arm_dynamics.core.signals import ShutdownFlag
from arm_dynamics.core.state import State
from arm_dynamics.identification.page.workbench import Workbench
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros.messages import qos
from arm_dynamics.ros.messages.serialization import listen
from arm_dynamics.ros.nodes.demo_motion import RemoteDemo
from arm_dynamics.ros.nodes.followed_topics import FollowedTopics, RemoteRecorder
from arm_dynamics.ros.parameters.arm_parameters import declared_model
from arm_dynamics.ros.parameters.ros_parameters import declare_fixed
from arm_dynamics.ros.runtime.process import run_node
from arm_dynamics.ros.topics.controller_clients import TrackingSubscription, TrajectoryPublisher
from arm_dynamics.ros.topics.diagnostics import DiagnosticsSummary, Throttle
from arm_dynamics.ros.topics.emergency_stop_interface import StopRequest
from arm_dynamics.ros.topics.scene_topics import SceneSubscription
from arm_dynamics.ros.topics.services import Remote, RemoteParameters
from arm_dynamics.ros.topics.topic_driver import StateSubscription
from arm_dynamics.safety.events import Events
from arm_dynamics.simulation.simulation_parameters import FACTOR, PAYLOAD
from arm_dynamics.viewer.show import PORT, open_page, show_state
from arm_dynamics.viewer.simulation_controls import (
    Setting,
    Settings,
    SimulationControls,
    load_settings,
)

PERIOD = 1 / 30


class ViewerNode(Node):
    """Shows ``joint_states`` on a page bound to 127.0.0.1.

    The page is view-only except for an emergency stop button, which publishes ``emergency_stop``.
    The parameter ``controls`` adds the ``SimulationControls`` of a simulated arm; the address then
    contains a token.
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
        self.page = open_page(
            self._arm,
            port,
            control=controls,
            control_hint="for a simulated arm, start the viewer with controls:=true",
            on_emergency=self.stop_arm,
        )
        show = self.page.show_scene
        scene = SceneSubscription(self, show, partial(self._throttle.warn, "scene"))
        show(scene.initial)
        self._requests = LoopRequests()
        self._controls: SimulationControls | None = None
        self._workbench: Workbench | None = None
        if controls:
            self._simulation = RemoteSimulation(self, self._arm)
            self._controls = SimulationControls(
                self._simulation,
                self._arm,
                self.page,
                self._status,
                lambda: self._stop_workbench("another target", halt=False),
            )
            self._followed = FollowedTopics(
                self._arm,
                TrajectoryPublisher(self, self._arm),
                self._tracking,
                self._status,
                Events(lambda _kind, _text: None),  # the node of the controller logs them
            )
            self._recorder = RemoteRecorder(self._simulation.simulator)
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
            self._requests.serve()
            if self._controls is not None:
                self._controls.update(reference, None if state is None else state.q)
                self._update_workbench(self._controls, state)
        if self._workbench is not None:
            self._recorder.close()
            self._workbench.close()
        self.page.close()

    def _update_workbench(self, controls: SimulationControls, state: State | None) -> None:
        """Add the steps of an identification with the other controls, and continue them."""
        if self._workbench is None and controls.ready:
            self._workbench = Workbench(
                self.page, self._followed, self._recorder, self._requests, controls.end_motions
            )
        if self._workbench is None:
            return
        if self._status.stopped:
            self._stop_workbench("emergency stop")
        if state is not None:
            self._followed.update(state)
            self._workbench.advance()
        self._workbench.update()

    def _stop_workbench(self, reason: str, *, halt: bool = True) -> None:
        """Request the end of a motion that the page started, from any thread."""
        if self._workbench is not None:
            self._workbench.stop(reason, halt=halt)

    def stop_arm(self) -> None:
        """Request an emergency stop until the arm's node reports it; from any thread."""
        self._emergency.press()
        self._stop_workbench("emergency stop")
        self.page.feedback.note("emergency stop pressed on a page")
        self.get_logger().error("emergency stop pressed on a page")


class RemoteSimulation:
    """Simulator and joint controller of this namespace as a SimulatedArm.

    A physical arm has no such services, and its page stays view-only.
    """

    def __init__(self, node: Node, arm: ArmModel) -> None:
        self._node, self._arm = node, arm
        self._pause = Remote(node, SetBool, "simulator/pause")
        self._step = Remote(node, Trigger, "simulator/step")
        self._reset = Remote(node, Trigger, "simulator/reset")
        self._release = Remote(node, Trigger, "simulator/reset_emergency_stop")
        self._push = Remote(node, Trigger, "simulator/push")
        self._wrench = node.create_publisher(WrenchStamped, "simulator/link_wrench", 1)
        self._demo = RemoteDemo(node)
        self.simulator = RemoteParameters(node, "simulator")
        """Parameters of the simulator."""
        self._controller = RemoteParameters(node, "joint_controller")
        space = node.get_namespace().rstrip("/")
        self._nodes = {f"{space}/simulator", f"{space}/joint_controller"}
        self.changes = 0
        profile = qos_profile_parameter_events
        listen(node, ParameterEvent, "/parameter_events", self._note, profile, lambda _: None)

    def _note(self, event: ParameterEvent) -> None:
        self.changes += event.node in self._nodes

    @property
    def ready(self) -> bool:
        """Whether all services of the simulator and the parameters of the controller exist."""
        services = (self._pause, self._step, self._reset, self._push, self._release)
        remotes: tuple[Remote | RemoteParameters, ...] = (
            *services,
            self.simulator,
            self._controller,
        )
        return all(remote.ready for remote in remotes)

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

    def step(self, duration: float) -> str:
        """Simulate ``duration`` [s], at least one control period, while paused."""
        self.simulator.set({"step_count": max(1, round(duration / self._period()))})
        return self._step.do()

    def reset(self) -> str:
        """Set the arm to rest at its initial configuration."""
        return self._reset.do()

    def push(self) -> str:
        """Apply an impulse to the tool."""
        return self._push.do()

    def pull(self, link: str, wrench: Vector) -> None:
        """Publish a wrench on a link."""
        message = WrenchStamped(header=Header(frame_id=link))
        for part, values in (("force", wrench[:3]), ("torque", wrench[3:])):
            x, y, z = values.tolist()
            setattr(message.wrench, part, Vector3(x=x, y=y, z=z))
        self._wrench.publish(message)

    def release(self) -> str:
        """Reset the emergency stop."""
        return self._release.do()

    def set_demo(self, running: bool) -> str:
        """Start or stop the demo motion."""
        return self._demo.set(running)

    def end_demo(self) -> bool:
        """Request the end of the demo motion; return whether it has ended."""
        return self._demo.end()

    def speed(self) -> Setting:
        """Return the real-time factor."""
        return _settings(self.simulator, FACTOR.name)[FACTOR.name]

    def controller(self) -> tuple[Controller, ArmModel, float]:
        """Return the controller with its gains, the simulated arm, and the control period [s]."""
        name = str(self._controller.value("controller"))
        masses = (_payload(self._controller), _payload(self.simulator))
        model, simulated = (self._arm.with_payload(m.number if m else 0.0) for m in masses)
        with plugins.guarded("controllers", name):
            controller: Controller = plugins.load_class("controllers", name)(self._arm)
        gains: dict[str, dict[str, float]] = {}
        for (group, label), setting in self.gains().items():
            gains.setdefault(group, {})[label] = setting.number
        controller.set_gains(gains)
        controller.set_model(model)
        return controller, simulated, self._period()

    def set_controller(self, name: str) -> str:
        """Switch to another controller."""
        self._controller.set({"controller": name})
        return f"controller: {name}"

    def loads(self) -> Settings:
        """Return payload and push."""
        push = _settings(self.simulator, "push")
        payloads = _payload(self.simulator), _payload(self._controller)
        return load_settings({n.rpartition(".")[2]: s for n, s in push.items()}, *payloads)

    def gains(self) -> Settings:
        """Return the gains of the active controller."""
        parameters = {}
        for name, setting in _settings(self._controller, "gains").items():
            group, _, gain = name.removeprefix("gains.").rpartition(".")
            parameters[group, gain] = setting
        return parameters

    def _period(self) -> float:
        """Return the control period [s]."""
        return 1 / float(self.simulator.value("update_rate"))


def _payload(remote: RemoteParameters) -> Setting | None:
    """Return the payload of the simulated arm or of the controller's model."""
    return _settings(remote, PAYLOAD.name).get(PAYLOAD.name)


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
