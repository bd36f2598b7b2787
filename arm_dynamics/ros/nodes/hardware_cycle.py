"""Control cycle of a physical arm: read, publish, receive a command, write; its diagnostics."""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import isfinite

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.node import Node

from arm_dynamics.control.control_loop import PAUSE
from arm_dynamics.core.errors import ArmDynamicsError, DriverFault
from arm_dynamics.core.state import Command
from arm_dynamics.core.status_summary import STOPPED
from arm_dynamics.core.timing import Pacer, RateMeter
from arm_dynamics.hardware.driver import DriverState
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording.recorder import StateLog
from arm_dynamics.ros.topics.arm_topics import CommandTopics, StateTopics
from arm_dynamics.ros.topics.diagnostics import (
    ERROR,
    OK,
    WARN,
    StatusReport,
    status,
)
from arm_dynamics.ros.topics.frames import declare_frames, declare_robot_state
from arm_dynamics.safety.events import Events, Trip, event_values

REST_VELOCITY = 0.02
"""Velocity of every joint [rad/s] below which the arm is at rest."""


class HardwareCycle:
    """Control cycle of the hardware node; errors of motors, port and messages are events."""

    def __init__(self, node: Node, arm: ArmModel, events: Events) -> None:
        self._events = events
        self.pacer = Pacer(1.0)
        self.commands = 0
        """Number of received commands."""
        self.fault = ""
        """Error of the last read, "" if it succeeded."""
        self.log: StateLog | None = None
        """Recording of states and commands."""
        self.frames = frames = declare_frames(node, arm)
        robot_state = declare_robot_state(node, arm, frames)
        self.states = StateTopics(node, arm, frames, robot_state=robot_state)
        self._topics = CommandTopics(
            node,
            arm.joint_names,
            self.states,
            events,
            submit=self._submit,
            restart=self._pause_states,
            max_age=lambda: self._max_age,
        )
        self._newest: Command | None = None
        self._cost, self._states_paused_until, self._command_epoch, self._max_age = 0.0, 0.0, 0, 0.0

    def begin(self, rate: float, max_age: float) -> None:
        """Start cycles at ``rate`` [Hz]; accept commands for states up to ``max_age`` [s] old."""
        self.pacer.period, self._max_age, self._command_epoch = 1 / rate, max_age, 0
        self.pacer.restart()

    @property
    def conflict(self) -> str:
        """Other publishers of commands, as text."""
        return self._topics.publisher.conflict

    def run(self, driver: MotorBusDriver) -> None:
        """Run one cycle to the end of its period."""
        self._read(driver)
        self._newest = None
        self._topics.read_until_reply(lambda: max(0.0, self.pacer.time_left() - self._cost))
        self._write(driver, self._newest)
        self.pacer.wait()

    def run_without_commands(self, driver: MotorBusDriver) -> None:
        """Run one cycle without commands."""
        self._read(driver)
        self._write(driver, None)
        self.pacer.wait()

    def _submit(self, command: Command) -> None:
        """Accept a command for this cycle."""
        self.commands += 1
        self._newest = command

    def _read(self, driver: MotorBusDriver) -> None:
        """Read and publish a state; after a fault the driver itself reconnects."""
        try:
            state = driver.read()
        except DriverFault as error:
            if not self.fault:  # one event for its whole duration
                self._events.report("driver_fault", str(error))
            self.fault = str(error)
            return
        self.fault = ""
        if driver.command_epoch != self._command_epoch:
            self._command_epoch = driver.command_epoch
            self._pause_states()
        if time.monotonic() >= self._states_paused_until:
            self.states.publish(state)
            if self.log is not None:
                self.log.state(self.states.stamp, state)

    def _pause_states(self) -> None:
        """Publish no states and ignore commands for PAUSE: controllers then restart."""
        self._states_paused_until = time.monotonic() + PAUSE
        self.pacer.restart()

    def _write(self, driver: MotorBusDriver, command: Command | None) -> None:
        """Write a command, or call ``idle``: exactly one of them in each cycle."""
        started = time.monotonic()
        try:
            if command is None or started < self._states_paused_until:
                driver.idle()
            else:
                driver.write(command)
                if self.log is not None:
                    self.log.command(self.states.stamp, command)
        except ArmDynamicsError as error:
            self._events.report("command_rejected", str(error))
        self._cost += 0.1 * (time.monotonic() - started - self._cost)


def is_at_rest(driver: MotorBusDriver) -> bool:
    """Return whether every joint with known velocity is at rest."""
    return bool((np.abs(np.nan_to_num(driver.feedback.v)) < REST_VELOCITY).all())


def _trip_text(trips: Sequence[Trip]) -> str:
    """Return the first trip, the number of the others, and the remedy of a latched one."""
    more = f", and {len(trips) - 1} more" if len(trips) > 1 else ""
    latched = any(not trip.self_clearing for trip in trips)
    return f"{trips[0]}{more}{'; reset, then activate' if latched else ''}"


LEVELS = {
    DriverState.UNCONFIGURED: WARN,
    DriverState.INACTIVE: OK,
    DriverState.ACTIVE: OK,
    DriverState.STOPPED: ERROR,
    DriverState.ERROR: ERROR,
}
MAX_LATE_FRACTION = 0.05
"""Fraction of late cycles above which diagnostics warn."""
TORQUE = {True: "on", False: "off", None: "unknown"}


class HardwareReport:
    """Diagnostics of the loop, readable from any thread."""

    def __init__(self, events: Events, cycle: HardwareCycle) -> None:
        self._events, self._cycle = events, cycle
        self._rate, self._misses = RateMeter(), RateMeter()

    def summary(self, driver: MotorBusDriver | None, engaged: str, rejection: str) -> StatusReport:
        """``engaged``: source of the emergency stop; ``rejection``: why a transition failed."""
        state = DriverState.UNCONFIGURED if driver is None else driver.status
        trips = () if driver is None else driver.trips
        queue = self._cycle.log.queue if self._cycle.log else None
        late_fraction = min(
            1.0, self._misses.update(self._cycle.pacer.missed) * self._cycle.pacer.period
        )
        values = {
            "state": state.value,
            "emergency stop": engaged or "released",
            "commands per second": f"{self._rate.update(self._cycle.commands):.0f}",
            "round trip p50 / p99 [ms]": self._cycle.states.round_trip.summary(),
            "deadlines missed": f"{self._cycle.pacer.missed}, {late_fraction:.0%} of the last",
            **({"last rejected transition": rejection} if rejection else {}),
            **{f"trip {i}": str(trip) for i, trip in enumerate(trips, 1)},
            **(queue.values() if queue else {}),
            **event_values(self._events),
        }
        if engaged:
            return ERROR, f"{STOPPED} {engaged}", values
        if state is DriverState.ERROR and self._cycle.fault:
            return ERROR, f"error: {self._cycle.fault}", values
        if trips:
            return ERROR, f"{state.value}: {_trip_text(trips)}", values
        trouble = "; ".join(filter(None, (self._cycle.conflict, queue.trouble if queue else "")))
        if trouble:
            return WARN, f"{state.value}; {trouble}", values
        if late_fraction > MAX_LATE_FRACTION:
            return WARN, f"{state.value}; {late_fraction:.0%} of the cycles are late", values
        return LEVELS[state], state.value, values

    def joints(self, name: str, driver: MotorBusDriver | None) -> Sequence[DiagnosticStatus]:
        """Return one status per joint of the node ``name``: motor feedback and its age."""
        if driver is None or driver.status is DriverState.UNCONFIGURED:
            return ()
        statuses, feedback = [], driver.feedback
        for i, joint in enumerate(driver.arm.joint_names):
            values = {
                "age [s]": f"{feedback.age[i]:.3f}",
                "position [rad]": f"{feedback.q[i]:.4f}",
                "temperature [°C]": f"{feedback.temperature[i]:.0f}",
                "supply [V]": f"{feedback.supply[i]:.1f}",
                "torque": TORQUE[feedback.enabled[i]],
                "fault": feedback.fault[i] or "none",
                "effort": driver.capabilities[i].effort_source,
            }
            trouble = [str(trip) for trip in driver.trips if trip.joint == joint]
            if not trouble and feedback.fault[i]:
                trouble = [feedback.fault[i]]
            if not trouble and not isfinite(feedback.q[i]):
                age = feedback.age[i]
                trouble = [f"no feedback for {age:.3f} s" if isfinite(age) else "no feedback"]
            level = ERROR if trouble else OK
            statuses.append(status(f"{name}: {joint}", level, "; ".join(trouble) or "OK", values))
        return statuses
