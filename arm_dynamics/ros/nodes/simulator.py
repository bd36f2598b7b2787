"""Node simulator: simulates an arm moved by joint_commands, publishes joint_states and /clock."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.node import Node

from arm_dynamics.control.control_loop import PAUSE, ControlLoop
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.loop_requests import LoopRequests
from arm_dynamics.core.signals import ShutdownFlag
from arm_dynamics.core.state import Command
from arm_dynamics.core.status_summary import STOPPED
from arm_dynamics.recording.recorder import RECORDING_TIMEOUT, Recorder, References
from arm_dynamics.ros.parameters.arm_parameters import (
    declare_arm,
    declared_model,
    declared_simulation,
)
from arm_dynamics.ros.parameters.ros_parameters import (
    declare_live,
    from_ros_bounds,
    on_change,
)
from arm_dynamics.ros.runtime.process import run_node
from arm_dynamics.ros.topics.arm_topics import (
    CommandTopics,
    LockstepWait,
    ReplyWait,
    StateTopics,
    ToolTrace,
)
from arm_dynamics.ros.topics.capability_topics import CapabilityPublisher, simulated_capabilities
from arm_dynamics.ros.topics.contact_topics import ContactTopics
from arm_dynamics.ros.topics.controller_clients import TrackingSubscription, record_references
from arm_dynamics.ros.topics.diagnostics import (
    ERROR,
    OK,
    Diagnostics,
    StatusReport,
    Throttle,
    status,
)
from arm_dynamics.ros.topics.emergency_stop_interface import EmergencyStopInterface
from arm_dynamics.ros.topics.frames import declare_frames, declare_robot_state, initial_transforms
from arm_dynamics.ros.topics.pacing import declare_time_source
from arm_dynamics.ros.topics.publisher_checks import sole_arm, sole_clock
from arm_dynamics.ros.topics.scene_topics import SceneTopics
from arm_dynamics.ros.topics.simulation_services import SimulationServices
from arm_dynamics.simulation.plant import Plant
from arm_dynamics.simulation.simulation import Simulation
from arm_dynamics.simulation.simulation_control import SimulationControl
from arm_dynamics.simulation.simulation_parameters import (
    FACTOR,
    LIVE,
    TIMEOUT,
    affects_arm,
    changed_arm,
)
from arm_dynamics.simulation.simulation_report import SimulationReport

REPEAT_PERIOD = 0.1
"""Time [s] after which a state without a reply in lockstep is published again."""

Advance = Callable[[], bool]


class SimulatorNode(Node):
    """Simulated arm, moved by ``joint_commands`` or ``voltage_commands``.

    Without ``take_commands`` it subscribes to neither: the caller of ``run`` advances it.
    """

    def __init__(self, *, take_commands: bool = True) -> None:
        super().__init__("simulator")
        self._nominal = declared_model(self)
        self._arm = declare_arm(self, self._nominal)
        self._frames = declare_frames(self, self._nominal)
        robot_state = declare_robot_state(self, self._nominal, self._frames)
        self.scene = SceneTopics(self, self._nominal, self._frames)
        self.simulation, factor = self._build_simulation()
        self.events = self.simulation.watchdog.events
        self.events.listener = Throttle(self.get_logger()).warn
        source = declare_time_source(self, self.simulation, factor)
        self.pacer, self.lockstep = source.pacer, source.lockstep
        self._publishes_clock = source.publishes_clock
        self._record = declare_live(
            self, "recording_path", "", "new folder to record into; empty: none"
        )
        self._recording: Recorder | None = None
        self._loop: ControlLoop | None = None
        self._tracking: TrackingSubscription | None = None
        self._cost = 0.0  # of computing one period [s], smoothed
        self._ready = False  # whether a command has been received
        self._state_due = not source.follows_clock  # whether the current state is published, or due
        self._states_paused_until = 0.0  # simulated time [s]
        self._requests = LoopRequests()
        self.scene.follow(self.simulation)
        self._stop = ShutdownFlag()  # that of ``run``
        self.states = StateTopics(self, self._nominal, self._frames, source, robot_state)
        self.control = SimulationControl(
            self.simulation,
            self._requests,
            release="~/reset_emergency_stop",
            on_reset=self.states.publish,
            on_stop=self._publish_capabilities,
        )
        self._commands = self._build_commands() if take_commands else None
        self._reply_wait = ReplyWait(self.simulation, self._commands) if self._commands else None
        self._lockstep_wait = LockstepWait(self, self.events)
        checks = (sole_arm, sole_clock) if source.is_simulated else (sole_arm,)
        self._sole_publishers = [check(self, self.events) for check in checks]
        self._build_services()
        self._diagnostics = self._build_diagnostics()
        on_change(self, self.change_parameters)

    def _build_simulation(self) -> tuple[Simulation, float]:
        """Return the simulation and its real-time factor; show the arm until it is compiled."""
        transforms = partial(initial_transforms, self, self._nominal, self._frames)
        return declared_simulation(self, self._arm, self._nominal, transforms, self.scene.initial)

    def _build_commands(self) -> CommandTopics:
        """Subscribe to the commands; they expire by simulated time, and by the wall clock."""
        return CommandTopics(
            self,
            self._nominal.joint_names,
            self.states,
            self.events,
            submit=self._submit,
            restart=self._pause_states,
            max_age=lambda: self.simulation.watchdog.timeout * max(1.0, self.pacer.factor),
        )

    def _build_services(self) -> None:
        """Serve the emergency stop, ~/pause, ~/step, ~/reset and ~/push; publish tool_trace."""
        self.emergency = EmergencyStopInterface(
            self,
            self._requests,
            self.events,
            self.control.engage_emergency_stop,
            self.control.reset_emergency_stop,
        )
        self._capabilities = CapabilityPublisher(self)
        self._publish_capabilities()
        self._time_services = SimulationServices(self, self.simulation, self._nominal, self.control)
        self._standard = self._standard_services()
        self._contacts = ContactTopics(
            self, self._frames, self.simulation, lambda: self.states.stamp
        )
        self._trace = ToolTrace(
            self,
            self._nominal,
            self._frames,
            lambda: self.simulation.state,
            lambda: self.states.stamp,
        )

    def _standard_services(self) -> Any:
        """Return the services of simulation_interfaces; None if it is not installed."""
        try:
            from arm_dynamics.ros.topics.simulation_interfaces import SimulationInterfaces  # noqa: PLC0415
        except ImportError:
            return None
        return SimulationInterfaces(
            self,
            self._nominal,
            self._frames,
            self.simulation,
            self.control,
            self._time_services.reset,
            self._requests,
            self.fixed_time,
            self.end,
            self.scene,
        )

    def _build_diagnostics(self) -> Diagnostics:
        """Publish the diagnostics of the loop."""
        report = SimulationReport(
            self.simulation,
            self.control,
            lambda: self.pacer.missed,
            self._requests.post,
            lockstep=self.lockstep,
            round_trip=self.states.round_trip,
        )

        def summary() -> StatusReport:
            queue = self._recording.queue if self._recording else None
            trouble = "; ".join(filter(None, (self._conflict(), queue.trouble if queue else "")))
            ok, message, values = report.summary(trouble, queue.values() if queue else {})
            return ERROR if message.startswith(STOPPED) else ok, message, values

        def joints(name: str) -> Sequence[DiagnosticStatus]:
            return [
                status(f"{name}: {joint}", OK, "simulated", values)
                for joint, values in report.joints().items()
            ]

        return Diagnostics(self, summary, joints)

    def _submit(self, command: Command) -> None:
        if not self._states_paused:
            self.simulation.submit(command)

    @property
    def _states_paused(self) -> bool:
        """Whether states are not published, so that the next controller restarts."""
        remaining = self._states_paused_until - self.simulation.state.time
        return 0 < remaining < PAUSE + self.simulation.period  # (t + PAUSE) - t may exceed PAUSE

    def _pause_states(self) -> None:
        """Publish no states and ignore commands for PAUSE: controllers then restart."""
        self._states_paused_until = self.simulation.state.time + PAUSE

    def _conflict(self) -> str:
        """Return conflicting publishers, the lag behind /clock, and a wait for a command."""
        commands = self._commands.publisher.conflict if self._commands is not None else ""
        conflicts = (sole.conflict() for sole in self._sole_publishers)
        waits = (self.pacer.trouble, self._lockstep_wait.trouble)
        return "; ".join(filter(None, (commands, *conflicts, *waits)))

    def _publish_capabilities(self) -> None:
        """Publish at the start, and when an emergency stop begins or ends."""
        self._capabilities.publish(
            simulated_capabilities(self._nominal),
            period=self.simulation.period,
            inactive=self.control.stopped(),
        )

    def run(
        self, stop: ShutdownFlag, advance: Advance | None = None, loop: ControlLoop | None = None
    ) -> None:
        """Simulate until ``stop`` is set; ``advance`` replaces the commands from topics.

        A recording contains the references of ``loop``, or else those of ``joint_controller``.
        """
        self._stop, self._loop = stop, loop
        self.scene.follow(self.simulation, self._requests)
        advance = advance or (self._in_lockstep if self.lockstep else self._in_real_time)
        if self._record:
            self._begin_recording(self._record)
        try:
            if self._state_due:
                self.states.publish(self.simulation.state)
            self.pacer.restart()
            while not stop.is_set():
                self._cycle(advance)
        finally:
            if self._recording is not None:
                self._recording.close()
        self._requests.close()

    def _references(self) -> References | None:
        return None if self._recording is None else self._recording.references

    def _begin_recording(self, folder: str) -> None:
        """Record to a new folder; between two cycles."""
        # Wait for a slow disk only if simulated time may stop.
        patience = RECORDING_TIMEOUT if self.lockstep or self.pacer.factor > 1 else 0.0
        self._recording = Recorder(self.simulation, folder, loop=self._loop, patience=patience)
        if self._loop is None and self._tracking is None:
            self._tracking = record_references(self, self._nominal, self._references)

    def _change_recording(self, folder: str) -> None:
        """Begin or end a recording; raise InvalidValue for one that failed."""
        if folder:
            self._requests.call(lambda: self._begin_recording(folder))
            return
        recorder, self._recording = self._recording, None
        if recorder is not None:
            self._requests.call(recorder.detach)
            recorder.close()
            if recorder.fault:
                raise InvalidValue(recorder.fault)

    def _cycle(self, advance: Advance) -> None:
        """Serve requests, then simulate and publish one period unless simulated time is stopped.

        A diverged simulation pauses instead of ending the node.
        """
        self._requests.serve()
        self.emergency.poll()
        if self.control.is_time_stopped:
            self.states.repeat_clock()  # a node that starts now has a time
            self.control.sleep()
            self.pacer.restart()
            return
        if self._state_due and not self.control.attempt(advance):
            return
        self._state_due = self.pacer.wait()
        if not self._ready and self.simulation.watchdog.accepted:
            self._ready = True
            self.get_logger().info(f"ready: '{self._arm.name}' accepts commands")
        if self._state_due:
            self.control.period_elapsed()
            self.scene.show_motion()
            self._contacts.publish()
            if not self._states_paused:
                self.states.publish(self.simulation.state)

    def _in_real_time(self) -> bool:
        """Simulate one period after the reply to the current state, or in time for its end."""
        assert self._commands is not None
        assert self._reply_wait is not None
        time_left = self.pacer.time_left
        replied = self._commands.read_until_reply(lambda: max(0.0, time_left() - self._cost))
        self._reply_wait.wait(self.pacer.factor, replied)
        started = time.monotonic()
        self.simulation.advance()
        self._cost += 0.1 * (time.monotonic() - started - self._cost)
        return True

    def _in_lockstep(self) -> bool:
        """Simulate one period only after the reply to the current state, if it was published."""
        assert self._commands is not None
        if self._states_paused:
            self.simulation.advance()
            return True
        started = time.monotonic()
        until = started + REPEAT_PERIOD
        if self._commands.read_until_reply(lambda: max(0.0, until - time.monotonic())):
            self._lockstep_wait.end()
            self.simulation.advance()
            return True
        self._lockstep_wait.elapse(time.monotonic() - started)
        self.states.publish(self.simulation.state)
        return False

    def fixed_time(self) -> str:
        """Return why simulated time cannot start again at 0; "" if it can."""
        if not self._publishes_clock:
            return "this simulator is not the source of /clock"
        return "" if self._recording is None else "stamps of a recording increase"

    def end(self) -> None:
        """End ``run`` after the present period."""
        self._stop.set()

    def change_parameters(self, values: dict[str, Any]) -> None:
        """Apply changed parameters; an error rejects all of them."""
        self._time_services.check(values)
        scene = self.scene.changed(values)
        for parameter in LIVE:
            if parameter.name in values:
                parameter.check("simulator", values[parameter.name])
        if affects_arm(values):
            arm = changed_arm(self._arm, from_ros_bounds(values))
            Plant(arm).require_stable(self.simulation.state.q, self.simulation.dt)
            self._arm = arm
            self._requests.post(lambda: self.simulation.set_arm(arm))  # from the next period on
        self.scene.take(scene)
        if FACTOR.name in values:
            self.pacer.factor = values[FACTOR.name]
        if TIMEOUT.name in values:
            self.simulation.watchdog.timeout = values[TIMEOUT.name]
        if "recording_path" in values:
            self._change_recording(values["recording_path"])


def main() -> None:
    """Run the node until SIGINT or SIGTERM."""
    sys.exit(run_node(SimulatorNode))


if __name__ == "__main__":
    main()
