"""One joint led slowly within bounds; the others are held where they are.

Torque on, a joint led by keys, torque off again, whatever happens between.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import degrees, isfinite

import numpy as np

from arm_dynamics.cli.keyboard import GONE, HoldToRunKey, Keyboard
from arm_dynamics.cli.terminal import StatusLine
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import DriverFault
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.core.timing import Pacer
from arm_dynamics.hardware.driver import DriverState
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver

LEAD = 0.15
"""Farthest that the reference runs ahead of the joint [rad or m]: it waits for one that is held."""


@dataclass(frozen=True, slots=True)
class JogBounds:
    """Speed [rad/s or m/s], and the positions [rad or m] that the joint is led between."""

    speed: float
    lower: float
    upper: float


class JogMotion:
    """x' = way · speed while lower <= x <= upper and |x - q| < LEAD, way one of -1, 0, 1.

    Each ``tick`` is one cycle of the driver. Whenever it does not obey, the law begins anew at
    the measured position.
    """

    def __init__(
        self, driver: MotorBusDriver, law: Controller, joint: int, bounds: JogBounds
    ) -> None:
        self.driver, self.bounds, self.joint = driver, bounds, joint
        self._law = law
        self._reference: Vector | None = None
        self._time = 0.0

    @property
    def goal(self) -> float:
        """Where the joint is led to at present [rad or m]; NaN before the first tick."""
        return float("nan") if self._reference is None else float(self._reference[self.joint])

    def warm_up(self) -> None:
        """Have the law work out commands that are not sent: what it compiles takes its time now.

        Raises DriverFault where no joint is known.
        """
        state = self.driver.read()
        self._begin(state)
        self._command(state, 0.0, 0.0)
        self._command(state, 0.0, 1e-3)
        self._reference = None

    def tick(self, way: float) -> None:
        """Read, lead the joint on, write; a stopped arm is asked to stay where it is."""
        try:
            state = self.driver.read()
        except DriverFault:
            self._idle()
            return
        if not (self.driver.status.torque_enabled and np.isfinite([state.q, state.v]).all()):
            self._idle()
        elif self.driver.status is DriverState.ACTIVE:
            self._follow(state, way)
        else:
            self._reference = None
            self._follow(state, 0.0)

    def _idle(self) -> None:
        self._reference = None
        self.driver.idle()

    def _follow(self, state: State, way: float) -> None:
        if self._reference is None:
            self._begin(state)
        dt, self._time = max(0.0, state.time - self._time), state.time
        self.driver.write(self._command(state, way, dt))

    def _begin(self, state: State) -> None:
        self._law.reset(state)
        self._reference, self._time = np.array(state.q), state.time

    def _command(self, state: State, way: float, dt: float) -> Command:
        """The law's, for the reference a time dt later."""
        assert self._reference is not None
        before, v = self.goal, np.zeros_like(self._reference)
        self._reference[self.joint] = self._led(before, float(state.q[self.joint]), way, dt)
        v[self.joint] = (self.goal - before) / dt if dt > 0 else 0.0
        reference = Reference(self._reference, v, np.zeros_like(v))
        return self._law.update(state, reference, dt)

    def _led(self, x: float, q: float, way: float, dt: float) -> float:
        """The reference a time dt later; one that is outside its bounds may only come back."""
        bounds, step = self.bounds, way * self.bounds.speed * min(dt, 0.1)
        wanted = x + step
        if way > 0:
            return max(x, min(wanted, bounds.upper, q + LEAD))
        return min(x, max(wanted, bounds.lower, q - LEAD)) if way < 0 else x


PERIOD = 0.01
"""Of a cycle [s]."""
REST, MAX_STOP_TIME = 0.02, 0.5
"""Speed [rad/s] that counts as rest, and how long it is waited for before torque goes off [s]."""
QUIT = "q"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STILL_ON = "SWITCH THE MOTORS' POWER OFF"


def run_jog(motion: JogMotion, dead_man: HoldToRunKey, done: Callable[[], bool]) -> int:
    """Lead until ``done``, QUIT or a signal; 0, or 1 where the arm tripped."""
    driver = motion.driver
    with catch_stop_signals() as stopped:
        motion.warm_up()
        try:
            driver.activate()
            tripped = _led(motion, dead_man, lambda: stopped() or done())
            _come_to_rest(motion)
        finally:
            torque_off(driver)
    if tripped:
        print("stopped:", *tripped, sep="\n  ")
    return 1 if tripped else 0


def _led(motion: JogMotion, dead_man: HoldToRunKey, stopped: Callable[[], bool]) -> list[str]:
    """Tick after tick; what tripped."""
    tripped: list[str] = []
    pacer = Pacer(PERIOD)
    with Keyboard() as keys, StatusLine() as line:
        while not (stopped() or tripped):
            key, now = keys.latest_key(), time.monotonic()
            if key in (QUIT, GONE):
                break
            if key:
                dead_man.press(key, now)
            motion.tick(dead_man.direction(now))
            line.show(status_text(motion))
            tripped = tripped_by(motion.driver)
            pacer.wait()
        line.end(status_text(motion))
    return tripped


def tripped_by(driver: MotorBusDriver) -> list[str]:
    """What ends a jog, in words: trips that do not pass by themselves, or torque that is gone."""
    latched = [str(trip) for trip in driver.trips if not trip.self_clearing]
    if not latched and driver.status in (DriverState.ERROR, DriverState.INACTIVE):
        return [*map(str, driver.trips)] or [f"the arm is {driver.status.value}"]
    return latched


def _come_to_rest(motion: JogMotion) -> None:
    """Hold the goal until the joint rests, or LONGEST."""
    pacer, until = Pacer(PERIOD), time.monotonic() + MAX_STOP_TIME
    least = time.monotonic() + 5 * PERIOD
    while time.monotonic() < until and motion.driver.status.torque_enabled:
        motion.tick(0.0)
        speed = abs(float(motion.driver.feedback.v[motion.joint]))
        if speed < REST and time.monotonic() > least:
            break
        pacer.wait()


def torque_off(driver: MotorBusDriver) -> None:
    """Torque off until it is confirmed, and the port closed."""
    try:
        if driver.status in (DriverState.UNCONFIGURED, DriverState.ERROR):
            print(f"the port is lost, and nothing confirms that torque is off: {STILL_ON}")
        else:
            driver.deactivate()
            print("torque is off")
    except DriverFault as error:
        print(f"{error}: {STILL_ON}")
    finally:
        driver.close()


def status_text(motion: JogMotion) -> str:
    """The joint's position, goal, effort and temperature, and the arm's status."""
    driver, i = motion.driver, motion.joint
    told, joint = driver.feedback, driver.arm.joints[i]
    scale, unit = (degrees(1.0), "°") if joint.unit == "rad" else (1e3, " mm")
    parts = [
        f"{joint.name} {_number(scale * told.q[i], '.1f')}{unit}",
        f"goal {_number(scale * motion.goal, '.1f')}{unit}",
        f"effort {_number(told.tau[i], '.2f')} {'N·m' if joint.unit == 'rad' else 'N'}",
        f"{_number(told.temperature[i], '.0f')} °C",
        driver.status.value if not driver.trips else str(driver.trips[-1]),
    ]
    return "  ".join(parts)


def _number(value: float, form: str) -> str:
    return format(value, form) if isfinite(value) else "?"


@contextmanager
def catch_stop_signals() -> Iterator[Callable[[], bool]]:
    """Whether a signal that ends programs came since; none of them does meanwhile."""
    came: list[int] = []
    before = {n: signal.signal(n, lambda n, _: came.append(n)) for n in SIGNALS}
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
