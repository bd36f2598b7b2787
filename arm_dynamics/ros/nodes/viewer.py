"""Node viewer: joint states and diagnostics on a browser page."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from threading import Thread
from typing import NamedTuple

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rcl_interfaces.msg import ParameterEvent
from rclpy.node import Node
from rclpy.qos import qos_profile_parameter_events
from std_srvs.srv import SetBool, Trigger

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.core.signals import ShutdownFlag
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.whole_turns import whole_turns
from arm_dynamics.ros.messages import qos
from arm_dynamics.ros.messages.serialization import listen
from arm_dynamics.ros.nodes.demo_motion import RemoteDemo
from arm_dynamics.ros.parameters.arm_parameters import declared_model
from arm_dynamics.ros.parameters.ros_parameters import declare_fixed
from arm_dynamics.ros.runtime.process import run_node
from arm_dynamics.ros.topics.controller_clients import JointTargets, TrackingSubscription
from arm_dynamics.ros.topics.diagnostics import (
    SUPPLY,
    TEMPERATURE,
    VOLTAGE,
    DiagnosticsSummary,
    Throttle,
)
from arm_dynamics.ros.topics.emergency_stop_interface import StopRequest
from arm_dynamics.ros.topics.services import Remote, RemoteParameters
from arm_dynamics.ros.topics.topic_driver import StateSubscription
from arm_dynamics.viewer.controls import ActionRow, Controls, Field, ParameterFields
from arm_dynamics.viewer.page import ArmPage
from arm_dynamics.viewer.show import PORT, open_page

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
            status = self._status.status_values()
            if state is None:
                self.page.show_status(status)
            else:
                effort, error = state.tau, self._tracking.error
                motors, names = self._status.motors, self._arm.joint_names
                try:
                    self.page.show(
                        state.q, state.v, effort if np.isfinite(effort).all() else None, status,
                        None if error is None else state.q + error, time=state.time,
                        voltage=motors(names, VOLTAGE, SUPPLY),
                        temperature=motors(names, TEMPERATURE),
                    )  # fmt: skip
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


SEARCH_PERIOD = 0.5
"""Time [s] between two searches for the simulator's services."""
FOLLOW_PERIOD = 0.15
"""Time [s] between two updates of the sliders from the reference."""
PAUSE, CONTINUE, RESET, PUSH = "Pause", "Continue", "Reset", "Push"
STOP_DEMO, START_DEMO = "Stop demo", "Start demo"


class SimulationControls:
    """Sliders, pause, reset, push, demo motion, payload, gains, and reset of the emergency stop.

    They are added to the page once a simulator is found in this namespace. A physical arm has no
    such services, and its page stays view-only. ``update`` is for the page's loop; requests wait
    for their responses in the page's threads.
    """

    def __init__(
        self, node: Node, arm: ArmModel, page: ArmPage, status: DiagnosticsSummary
    ) -> None:
        self._node, self._arm, self._page, self._status = node, arm, page, status
        self._pause = Remote(node, SetBool, "simulator/pause")
        self._reset = Remote(node, Trigger, "simulator/reset")
        self._release = Remote(node, Trigger, "simulator/reset_emergency_stop")
        self._demo = RemoteDemo(node)
        self._push = Remote(node, Trigger, "simulator/push")
        self._targets: JointTargets | None = None
        self._fields: RemoteFields | None = None
        self._row: ActionRow | None = None
        self._paused = False
        self._paused_until = 0  # first status update that is valid again
        self._next_search = self._next_follow = 0.0

    def update(self, reference: Vector | None) -> None:
        """Find the simulator, or update the controls; at every cycle of the page."""
        if self._row is None or self._targets is None or self._fields is None:
            self._find()
            return
        self._targets.update(reference)
        self._fields.update()
        if self._status.updates > self._paused_until:
            self._paused = self._status.values.get("paused") == "true"
        demo = {True: (STOP_DEMO,), False: (START_DEMO,), None: ()}[self._demo.running]
        self._row.offer(CONTINUE if self._paused else PAUSE, RESET, PUSH, *demo)
        now = time.monotonic()
        if reference is not None and now >= self._next_follow and not self._targets.under_way:
            self._next_follow = now + FOLLOW_PERIOD
            first_turn = reference + whole_turns(self._arm, reference, 0 * reference)
            self._page.add_controls().sliders.show(first_turn.tolist())

    def _find(self) -> None:
        """Add the controls once all services of the simulator exist."""
        if time.monotonic() < self._next_search:
            return
        self._next_search = time.monotonic() + SEARCH_PERIOD
        needed = (self._pause, self._reset, self._push, self._release)
        if not all(service.ready for service in needed):
            return
        controls = self._page.add_controls()
        sliders, feedback, end_demo = controls.sliders, controls.feedback, self._demo.end
        targets = JointTargets(
            self._node, self._arm, self._status, end_demo, feedback, sliders.send_again
        )
        sliders.on_target(targets.go)
        self._fields = RemoteFields(self._node, controls)
        self._row = controls.add_actions("Simulation", self._actions(targets), (PAUSE, RESET, PUSH))
        self._targets = targets
        if self._page.emergency is not None:
            self._page.emergency.allow_release(self._release.do)

    def _actions(self, targets: JointTargets) -> dict[str, Callable[[], str]]:
        """Return what each button does; a reset and the demo motion discard the targets."""

        def reset() -> str:
            targets.reset()
            return f"reset: {self._reset.do()}"

        def start_demo() -> str:
            targets.reset()
            return self._demo.set(True)

        return {
            PAUSE: lambda: self._set_paused(True),
            CONTINUE: lambda: self._set_paused(False),
            RESET: reset,
            PUSH: self._push.do,
            STOP_DEMO: lambda: self._demo.set(False),
            START_DEMO: start_demo,
        }

    def _set_paused(self, paused: bool) -> str:
        message = self._pause.do(SetBool.Request(data=paused))
        self._paused, self._paused_until = paused, self._status.updates + 1
        return message


GAINS = "gains"
PUSH_GROUP = "push"
PAYLOAD = "payload_mass"


class RemoteNumber(NamedTuple):
    """Parameter of a remote node and its current number."""

    remote: RemoteParameters
    name: str
    number: float


RemoteNumbers = Mapping[Field, RemoteNumber]


class RemoteFields:
    """Payload, push and gains; read again if a parameter of their nodes changes."""

    def __init__(self, node: Node, controls: Controls) -> None:
        self._simulator = RemoteParameters(node, "simulator")
        self._controller = RemoteParameters(node, "joint_controller")
        space = node.get_namespace().rstrip("/")
        self._nodes = {f"{space}/simulator", f"{space}/joint_controller"}
        self._folders = (
            _Folder(controls, "Payload and push", self._loads),
            _Folder(controls, "Gains", self._gains),
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

    def _loads(self) -> RemoteNumbers:
        push = self._simulator.numbers(PUSH_GROUP)
        parameters = {
            (PUSH_GROUP, f"{name.rpartition('.')[2]} [N·s]"): RemoteNumber(
                self._simulator, name, number
            )
            for name, number in push.items()
        }
        owners = {"simulated arm": self._simulator, "controller's model": self._controller}
        for label, remote in owners.items():
            for name, number in remote.numbers(PAYLOAD).items():
                parameters["payload", f"{label} [kg]"] = RemoteNumber(remote, name, number)
        return dict(sorted(parameters.items()))

    def _gains(self) -> RemoteNumbers:
        parameters = {}
        for name, number in self._controller.numbers(GAINS).items():
            group, _, gain = name.removeprefix(f"{GAINS}.").rpartition(".")
            parameters[group, gain] = RemoteNumber(self._controller, name, number)
        return parameters


class _Folder:
    """Fields of the parameters that ``find`` returns; recreated if the set changes."""

    def __init__(self, controls: Controls, title: str, find: Callable[[], RemoteNumbers]) -> None:
        self._controls, self._title, self._find = controls, title, find
        self._numbers: RemoteNumbers = {}
        self._fields: ParameterFields | None = None

    def read(self) -> None:
        """Show the current numbers."""
        before, self._numbers = self._numbers, self._find()
        numbers: dict[str, dict[str, float]] = {}
        for (owner, label), parameter in self._numbers.items():
            numbers.setdefault(owner, {})[label] = parameter.number
        if self._fields is not None and self._numbers.keys() == before.keys():
            self._fields.show(numbers)
            return
        if self._fields is not None:
            self._fields.remove()
        add = self._controls.add_parameters
        self._fields = add(self._title, numbers, self._accept, folded=True) if numbers else None

    def _accept(self, owner: str, label: str, number: float) -> None:
        parameter = self._numbers[owner, label]
        parameter.remote.set({parameter.name: number})


def main() -> None:
    """Run the node until SIGINT or SIGTERM."""
    sys.exit(run_node(ViewerNode))


if __name__ == "__main__":
    main()
