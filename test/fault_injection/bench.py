"""One maker's arm under a driver's loop, on virtual time, swinging while it is broken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import numpy as np
from emulators.base import Shaft
from emulators.faults import Faults
from emulators.makers import Maker
from emulators.memory import MemoryPort
from emulators.small_arm import START

from arm_dynamics.control.config import build_controller
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Waypoint
from arm_dynamics.core import plugins
from arm_dynamics.core.errors import DriverFault
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.hardware.driver import DriverState
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.model.hardware_info import read_hardware_info
from arm_dynamics.safety.safety_settings import SafetySettings

PERIOD = 5e-3
SWING = (0.12, -0.12, 0.12)
"""How far the joints swing about START [rad]."""
BEAT = 0.4
"""Time of one way [s]."""
SAFETY = SafetySettings(soft_limit_zone=0.05)


class Spoilt(Controller):
    """A law whose commands a fault may replace; ``spoil`` makes another value of one."""

    def __init__(self, law: Controller) -> None:
        self.law = law
        self.interface = law.interface  # type: ignore[misc]
        self.spoil: Callable[[np.ndarray], np.ndarray] | None = None
        super().__init__(law.arm)

    def reset(self, state: State) -> None:
        self.law.reset(state)

    def update(self, state: State, reference: Reference, dt: float) -> Command:
        told = self.law.update(state, reference, dt)
        if self.spoil is None:
            return told
        return Command(told.interface, self.spoil(np.array(told.value)), told.stamp)


class BrokenPort(MemoryPort):
    """A line in memory; what is in ``at_read`` happens once, in the middle of a read."""

    at_read: Callable[[], None] | None = None

    def read(self, size: int, until: float) -> bytes:
        happening, self.at_read = self.at_read, None
        if happening is not None:
            happening()
        return super().read(size, until)


class Bench:
    """``cycle`` is one of the host's; all randomness is that of ``seed``."""

    def __init__(self, maker: Maker, seed: int = 1, safety: SafetySettings = SAFETY) -> None:
        self.maker, self.safety = maker, safety
        self.requests = Faults(seed, split=maker.split)
        self.answers = Faults(seed + 1, split=maker.split)
        self.commanding = self.alive = True
        self.cycles, self.longest, self.position_error = 0, 0.0, 0.0
        """Cycles so far; longest cycle [s]; largest error of a reported position [rad]."""
        self.rival = ""
        """What another program was told that wanted the port."""
        self.wire(maker.shafts())

    def wire(self, shafts: list[Shaft]) -> None:
        """An arm with these motors, and a driver that knows nothing yet."""
        self.shafts, self.motors = shafts, self.maker.motors(shafts)
        self.body = self.maker.body(self.motors)
        self.port = BrokenPort(
            self.motors, self.body, baud=self.maker.baud,
            requests=self.requests, answers=self.answers,
        )  # fmt: skip
        self.boot()

    def boot(self) -> None:
        """A program that has just begun, on the same port."""
        maker, arm = self.maker, self.maker.arm
        self.port.close()
        wiring = read_hardware_info(arm)
        bus = plugins.load_class("drivers", maker.driver)(wiring.motors, wiring.settings, self.port)
        self.driver = MotorBusDriver(arm, bus, interface=maker.interface, safety=self.safety)
        law = "position" if maker.interface == "position" else "computed_torque"
        self.law = Spoilt(build_controller(arm, law))
        self.loop = ControlLoop(self.driver, self.law)

    def up(self) -> Bench:
        """Configured, activated and swinging."""
        self.driver.configure()
        self.run(3)
        self.driver.activate()
        self.body.forget()
        self.run(2)
        return self.swing()

    def swing(self) -> Bench:
        """To and fro about START for as long as any test lasts."""
        times = np.arange(1, 40) * BEAT
        sides = np.where(np.arange(1, 40) % 2, 1.0, -1.0)
        points = np.array(START) + np.outer(sides, SWING)
        now, still = self.port.now(), np.zeros(3)
        marks = zip(now + times, points, strict=True)
        self.loop.follow(JointTrajectory(tuple(Waypoint(t, q, still, still) for t, q in marks)))
        return self

    def run(self, count: int) -> None:
        """Cycles of the host."""
        for _ in range(count):
            self.cycle()

    def cycle(self) -> None:
        """One cycle; nothing may be raised."""
        start = self.port.now()
        if self.alive and self.commanding:
            self.loop.step()
        elif self.alive:
            self._look()
        self._compare()
        self.longest = max(self.longest, self.port.now() - start)
        self.cycles += 1
        self.port.pass_until(start + PERIOD)

    def _look(self) -> None:
        """A host that reads and commands nothing."""
        with suppress(DriverFault):
            self.driver.read()
        self.driver.idle()

    def _compare(self) -> None:
        """What is told as fresh with where the arm is."""
        told = self.driver.feedback
        fresh = told.age <= 1.5 * PERIOD
        if not (self.alive and fresh.any()):
            return
        if self.port.now() - told.time - told.age.min() < PERIOD:  # it was read in this cycle
            self.position_error = max(
                self.position_error, np.abs(told.q - self.body.state.q)[fresh].max()
            )

    @property
    def ways(self) -> tuple[Faults, Faults]:
        """Both ways of the line."""
        return self.requests, self.answers

    @property
    def counts(self) -> Counter[str]:
        """Events of the driver and its loop."""
        return self.driver.events.counts + self.loop.events.counts

    @property
    def torque(self) -> bool:
        """Whether any motor has torque."""
        return any(self.motors.torque_is_on(shaft.id) for shaft in self.shafts)

    @property
    def stopped(self) -> bool:
        """Whether every motor is off or has stopped because nobody talked to it."""
        return all(self.maker.at_rest(self.motors, shaft.id) for shaft in self.shafts)

    @property
    def active(self) -> bool:
        """Whether the arm obeys."""
        return self.driver.status is DriverState.ACTIVE
