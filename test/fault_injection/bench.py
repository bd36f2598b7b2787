"""Emulated arm of one manufacturer in a control loop on virtual time, in motion during a fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import numpy as np
from emulators.faults import Faults
from emulators.memory import MemoryPort
from emulators.small_arm import START
from emulators.vendors import Vendor

from arm_dynamics.control.config import build_controller
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Waypoint
from arm_dynamics.core import plugins
from arm_dynamics.core.errors import DriverFault
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.hardware.driver import DriverState
from arm_dynamics.hardware.emulation.emulated_motors import Shaft
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.model.hardware_info import read_hardware_info
from arm_dynamics.safety.safety_settings import SafetySettings

PERIOD = 5e-3
AMPLITUDE = (0.12, -0.12, 0.12)
"""Amplitude of the motion about START [rad]."""
BEAT = 0.4
"""Time from one end of the motion to the other [s]."""
SAFETY = SafetySettings(soft_limit_zone=0.05)


class FaultyController(Controller):
    """Controller whose values a fault may replace: ``corrupt`` maps one value to another."""

    def __init__(self, controller: Controller) -> None:
        self.controller = controller
        self.interface = controller.interface  # type: ignore[misc]
        self.corrupt: Callable[[np.ndarray], np.ndarray] | None = None
        super().__init__(controller.arm)

    def reset(self, state: State) -> None:
        self.controller.reset(state)

    def update(self, state: State, reference: Reference, dt: float) -> Command:
        command = self.controller.update(state, reference, dt)
        if self.corrupt is None:
            return command
        return Command(command.interface, self.corrupt(np.array(command.value)), command.stamp)


class FaultyPort(MemoryPort):
    """In-memory port; ``at_read`` is called once, in the middle of a read."""

    at_read: Callable[[], None] | None = None

    def read(self, size: int, until: float) -> bytes:
        happening, self.at_read = self.at_read, None
        if happening is not None:
            happening()
        return super().read(size, until)


class Bench:
    """Emulated arm, driver, controller and loop; ``seed`` determines all random numbers."""

    def __init__(self, vendor: Vendor, seed: int = 1, safety: SafetySettings = SAFETY) -> None:
        self.vendor, self.safety = vendor, safety
        self.requests = Faults(seed, split=vendor.split)
        self.answers = Faults(seed + 1, split=vendor.split)
        self.commanding = self.alive = True
        self.cycles, self.longest, self.position_error = 0, 0.0, 0.0
        """Number of cycles; longest cycle [s]; largest error of a reported position [rad]."""
        self.second_program_error = ""
        """Error of another program that opened the port."""
        self.wire(vendor.shafts())

    def wire(self, shafts: list[Shaft]) -> None:
        """Create an arm with these motors, and a new program."""
        self.shafts, self.motors = shafts, self.vendor.motors(shafts)
        self.body = self.vendor.body(self.motors)
        self.port = FaultyPort(
            self.motors, self.body, baud=self.vendor.baud,
            requests=self.requests, answers=self.answers,
        )  # fmt: skip
        self.boot()

    def boot(self) -> None:
        """Start a new program on the same port."""
        vendor, arm = self.vendor, self.vendor.arm
        self.port.close()
        wiring = read_hardware_info(arm)
        bus = plugins.load_class("drivers", vendor.driver)(
            wiring.motors, wiring.settings, self.port
        )
        self.driver = MotorBusDriver(arm, bus, interface=vendor.interface, safety=self.safety)
        name = "position" if vendor.interface == "position" else "computed_torque"
        self.controller = FaultyController(build_controller(arm, name))
        self.loop = ControlLoop(self.driver, self.controller)

    def up(self) -> Bench:
        """Configure, activate and start the motion."""
        self.driver.configure()
        self.run(3)
        self.driver.activate()
        self.body.forget()
        self.run(2)
        return self.start_motion()

    def start_motion(self) -> Bench:
        """Follow a trajectory back and forth about START, longer than any test runs."""
        times = np.arange(1, 40) * BEAT
        sides = np.where(np.arange(1, 40) % 2, 1.0, -1.0)
        points = np.array(START) + np.outer(sides, AMPLITUDE)
        now, still = self.port.now(), np.zeros(3)
        marks = zip(now + times, points, strict=True)
        self.loop.follow(JointTrajectory(tuple(Waypoint(t, q, still, still) for t, q in marks)))
        return self

    def run(self, count: int) -> None:
        """Run cycles of the host."""
        for _ in range(count):
            self.cycle()

    def cycle(self) -> None:
        """Run one cycle; no exception may be raised."""
        start = self.port.now()
        if self.alive and self.commanding:
            self.loop.step()
        elif self.alive:
            self._read_only()
        self._compare()
        self.longest = max(self.longest, self.port.now() - start)
        self.cycles += 1
        self.port.pass_until(start + PERIOD)

    def _read_only(self) -> None:
        """Read feedback without a command."""
        with suppress(DriverFault):
            self.driver.read()
        self.driver.idle()

    def _compare(self) -> None:
        """Update the largest difference between fresh feedback and the true configuration."""
        feedback = self.driver.feedback
        fresh = feedback.age <= 1.5 * PERIOD
        if not (self.alive and fresh.any()):
            return
        if self.port.now() - feedback.time - feedback.age.min() < PERIOD:  # read in this cycle
            self.position_error = max(
                self.position_error, np.abs(feedback.q - self.body.state.q)[fresh].max()
            )

    @property
    def directions(self) -> tuple[Faults, Faults]:
        """Faults of the requests and of the replies."""
        return self.requests, self.answers

    @property
    def counts(self) -> Counter[str]:
        """Events of the driver and its loop."""
        return self.driver.events.counts + self.loop.events.counts

    @property
    def torque(self) -> bool:
        """Whether any motor has torque enabled."""
        return any(self.motors.torque_is_on(shaft.id) for shaft in self.shafts)

    @property
    def stopped(self) -> bool:
        """Whether every motor is disabled or was stopped by its watchdog."""
        return all(self.vendor.at_rest(self.motors, shaft.id) for shaft in self.shafts)

    @property
    def active(self) -> bool:
        """Whether the driver is active."""
        return self.driver.status is DriverState.ACTIVE
