"""One cycle of a physical arm: read, publish, take a command, write it."""

from __future__ import annotations

import time

import numpy as np
from rclpy.node import Node

from arm_dynamics.control.control_loop import PAUSE
from arm_dynamics.core.errors import ArmDynamicsError, DriverFault
from arm_dynamics.core.state import Command
from arm_dynamics.core.timing import Pacer, RoundTrip
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording.state_log import StateLog
from arm_dynamics.ros.command_topics import CommandTopics, declare_voltage_order
from arm_dynamics.ros.description import publish_description
from arm_dynamics.ros.frames import declare_frames
from arm_dynamics.ros.state_topics import StateTopics
from arm_dynamics.safety.events import Events

REST = 0.02
"""Speed of every joint [rad/s] that counts as rest."""


class HardwareCycle:
    """Nothing that motors, port or messages do raises here."""

    def __init__(self, node: Node, arm: ArmModel, events: Events) -> None:
        self._events = events
        self.round_trip, self.pacer = RoundTrip(), Pacer(1.0)
        self.commands = 0
        """Commands that came so far."""
        self.fault = ""
        """Why nothing is known of the arm at present."""
        self.log: StateLog | None = None
        """Where states and commands are written down."""
        self._description = publish_description(node, arm)
        self._states = StateTopics(node, arm, declare_frames(node, arm), self.round_trip)
        self._topics = CommandTopics(
            node,
            arm.joint_names,
            declare_voltage_order(node, arm.joint_names),
            self.round_trip,
            events,
            submit=self._note,
            restart=self._be_quiet,
            now=lambda: self._states.stamp,
        )
        self._newest: Command | None = None
        self._cost, self._quiet_until, self._begun, self._oldest = 0.0, 0.0, 0, 0.0

    def begin(self, rate: float, oldest: float) -> None:
        """Cycles at ``rate`` [Hz]; commands answer a state ``oldest`` [s] ago at most."""
        self.pacer.period, self._oldest, self._begun = 1 / rate, oldest, 0
        self.pacer.restart()

    @property
    def conflict(self) -> str:
        """Who else commands this arm."""
        return self._topics.publisher.conflict

    def run(self, driver: MotorBusDriver) -> None:
        """One cycle, to the end of its period."""
        self._read(driver)
        self._newest = None
        self._topics.read_until_reply(lambda: max(0.0, self.pacer.time_left() - self._cost))
        self._write(driver, self._newest)
        self.pacer.wait()

    def run_without_commands(self, driver: MotorBusDriver) -> None:
        """One cycle that obeys nobody any more."""
        self._read(driver)
        self._write(driver, None)
        self.pacer.wait()

    def _note(self, command: Command) -> None:
        """A command; one without a stamp is of now."""
        self.commands += 1
        age = self._states.stamp - command.stamp
        if command.stamp and age > self._oldest:
            self._events.report(
                "command_refused",
                f"stamped {age:.3f} s before the newest state; at most {self._oldest:g} s is"
                f" allowed (a stamp of 0 is none; another computer's clock?)",
            )
        else:
            self._newest = command

    def _read(self, driver: MotorBusDriver) -> None:
        """Publish what is known now; a fault leaves it to the driver to come back."""
        try:
            state = driver.read()
        except DriverFault as error:
            if not self.fault:  # one event, however long it lasts
                self._events.report("driver_fault", str(error))
            self.fault = str(error)
            return
        self.fault = ""
        if driver.command_epoch != self._begun:
            self._begun = driver.command_epoch
            self._be_quiet()
        if time.monotonic() >= self._quiet_until:
            self._states.publish(state)
            if self.log is not None:
                self.log.state(self._states.stamp, state)

    def _be_quiet(self) -> None:
        """Neither show states nor obey commands for a while: whoever commands begins anew."""
        self._quiet_until = time.monotonic() + PAUSE
        self.pacer.restart()

    def _write(self, driver: MotorBusDriver, command: Command | None) -> None:
        """One command, or word that there is none: exactly one of them a cycle."""
        started = time.monotonic()
        try:
            if command is None or started < self._quiet_until:
                driver.idle()
            else:
                driver.write(command)
                if self.log is not None:
                    self.log.command(self._states.stamp, command)
        except ArmDynamicsError as error:
            self._events.report("command_refused", str(error))
        self._cost += 0.1 * (time.monotonic() - started - self._cost)


def is_at_rest(driver: MotorBusDriver) -> bool:
    """Whether every joint that is known stands still."""
    return bool((np.abs(np.nan_to_num(driver.feedback.v)) < REST).all())
