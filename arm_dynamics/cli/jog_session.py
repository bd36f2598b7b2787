"""Jog one joint of an arm of motors: hold-to-run motion, trips, and torque disabled at the end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import degrees

import numpy as np

from arm_dynamics.cli.keyboard import GONE, HoldToRunKey, Keyboard
from arm_dynamics.cli.terminal import StatusLine, number_text
from arm_dynamics.cli.torque_session import (
    QUIT,
    catch_stop_signals,
    disable_torque,
    exit_code,
    latched_trips,
    wait_for_rest,
)
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import DriverFault
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.core.timing import Pacer
from arm_dynamics.hardware.driver import DriverState
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver

LEAD = 0.15
"""Largest distance [rad or m] of the reference from the joint: it waits for a blocked joint."""
PERIOD = 0.01
"""Control period [s]."""
MAX_STOP_TIME = 0.5
"""Longest time [s] to wait for rest before torque is disabled."""


@dataclass(frozen=True, slots=True)
class JogBounds:
    """Speed [rad/s or m/s] of a jogged joint, and its lower and upper position [rad or m]."""

    speed: float
    lower: float
    upper: float


class JogMotion:
    """Reference of a jogged joint, tracked by a controller; the other joints are held.

    dx/dt = direction · speed while lower <= x <= upper and |x - q| < LEAD, with direction -1, 0
    or 1. Each ``tick`` is one control cycle. While the driver is not active, the controller
    restarts at the measured position.
    """

    def __init__(
        self, driver: MotorBusDriver, controller: Controller, joint: int, bounds: JogBounds
    ) -> None:
        self.driver, self.bounds, self.joint = driver, bounds, joint
        self._controller = controller
        self._reference: Vector | None = None
        self._time = 0.0

    @property
    def goal(self) -> float:
        """Reference x of the joint [rad or m]; NaN before the first tick."""
        return float("nan") if self._reference is None else float(self._reference[self.joint])

    def warm_up(self) -> None:
        """Compile the controller by two updates, whose commands are not sent.

        Raises
        ------
        DriverFault
            If no joint has feedback.

        """
        state = self.driver.read()
        self._restart(state)
        self._command(state, 0.0, 0.0)
        self._command(state, 0.0, 1e-3)
        self._reference = None

    def tick(self, direction: float) -> None:
        """Read the state, move the reference and write the command; hold a stopped arm."""
        try:
            state = self.driver.read()
        except DriverFault:
            self._idle()
            return
        if not (self.driver.status.torque_enabled and np.isfinite([state.q, state.v]).all()):
            self._idle()
            return
        active = self.driver.status is DriverState.ACTIVE
        if self._reference is None or not active:
            self._restart(state)
        dt, self._time = max(0.0, state.time - self._time), state.time
        self.driver.write(self._command(state, direction if active else 0.0, dt))

    def _idle(self) -> None:
        self._reference = None
        self.driver.idle()

    def _restart(self, state: State) -> None:
        self._controller.reset(state)
        self._reference, self._time = np.array(state.q), state.time

    def _command(self, state: State, direction: float, dt: float) -> Command:
        """Return the controller's command for the reference after dt [s].

        A reference outside its bounds can only return into them.
        """
        assert self._reference is not None
        x, q, bounds = self.goal, float(state.q[self.joint]), self.bounds
        desired = x + direction * bounds.speed * min(dt, 0.1)
        if direction > 0:
            desired = max(x, min(desired, bounds.upper, q + LEAD))
        elif direction < 0:
            desired = min(x, max(desired, bounds.lower, q - LEAD))
        else:
            desired = x
        v = np.zeros_like(self._reference)
        self._reference[self.joint] = desired
        v[self.joint] = (desired - x) / dt if dt > 0 else 0.0
        reference = Reference(self._reference, v, np.zeros_like(v))
        return self._controller.update(state, reference, dt)


def run_jog(motion: JogMotion, key: HoldToRunKey, is_done: Callable[[], bool]) -> int:
    """Enable torque, jog until ``is_done``, QUIT, a signal or a trip, and disable torque.

    Returns
    -------
    int
        1 after a trip, else 0.

    """
    driver, pacer = motion.driver, Pacer(PERIOD)
    trips: list[str] = []
    with catch_stop_signals() as stopped:
        motion.warm_up()
        try:
            driver.activate()
            with Keyboard() as keys, StatusLine() as line:
                while not (stopped() or is_done() or trips):
                    pressed, now = keys.latest_key(), time.monotonic()
                    if pressed in (QUIT, GONE):
                        break
                    if pressed:
                        key.press(pressed, now)
                    motion.tick(key.direction(now))
                    line.show(status_text(motion))
                    trips = latched_trips(driver)
                    pacer.wait()
                line.end(status_text(motion))
            wait_for_rest(
                driver,
                lambda: motion.tick(0.0),
                pacer,
                joints=slice(motion.joint, motion.joint + 1),
                min_time=5 * PERIOD,
                max_time=MAX_STOP_TIME,
            )
        finally:
            disable_torque(driver)
    return exit_code(trips)


def status_text(motion: JogMotion) -> str:
    """Return position, goal, effort and temperature of the joint, and the driver's state."""
    driver, i = motion.driver, motion.joint
    feedback, joint = driver.feedback, driver.arm.joints[i]
    scale, unit = (degrees(1.0), "°") if joint.unit == "rad" else (1e3, " mm")
    parts = [
        f"{joint.name} {number_text(scale * feedback.q[i], '.1f')}{unit}",
        f"goal {number_text(scale * motion.goal, '.1f')}{unit}",
        f"effort {number_text(feedback.tau[i], '.2f')} {'N·m' if joint.unit == 'rad' else 'N'}",
        f"{number_text(feedback.temperature[i], '.0f')} °C",
        driver.status.value if not driver.trips else str(driver.trips[-1]),
    ]
    return "  ".join(parts)
