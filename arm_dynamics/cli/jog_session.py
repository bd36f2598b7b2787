"""Torque on, a joint led by keys, torque off again, whatever happens between."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import degrees, isfinite

from arm_dynamics.cli.dead_man import DeadMan
from arm_dynamics.cli.jog_motion import JogMotion
from arm_dynamics.cli.keyboard import GONE, Keyboard
from arm_dynamics.cli.live_line import LiveLine
from arm_dynamics.drivers.motor_arm import MotorArm
from arm_dynamics.drivers.status import Status
from arm_dynamics.errors import DriverFault
from arm_dynamics.pacer import Pacer

PERIOD = 0.01
"""Of a cycle [s]."""
REST, LONGEST = 0.02, 0.5
"""Speed [rad/s] that counts as rest, and how long it is waited for before torque goes off [s]."""
QUIT = "q"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STILL_ON = "SWITCH THE MOTORS' POWER OFF"


def session(motion: JogMotion, dead_man: DeadMan, done: Callable[[], bool]) -> int:
    """Lead until ``done``, QUIT or a signal; 0, or 1 where the arm tripped."""
    driver = motion.driver
    with stopped_by_signals() as stopped:
        motion.rehearse()
        try:
            driver.activate()
            tripped = _led(motion, dead_man, lambda: stopped() or done())
            _come_to_rest(motion)
        finally:
            torque_off(driver)
    if tripped:
        print("stopped:", *tripped, sep="\n  ")
    return 1 if tripped else 0


def _led(motion: JogMotion, dead_man: DeadMan, stopped: Callable[[], bool]) -> list[str]:
    """Tick after tick; what tripped."""
    tripped: list[str] = []
    pacer = Pacer(PERIOD)
    with Keyboard() as keys, LiveLine() as line:
        while not (stopped() or tripped):
            key, now = keys.newest(), time.monotonic()
            if key in (QUIT, GONE):
                break
            if key:
                dead_man.press(key, now)
            motion.tick(dead_man.way(now))
            line.show(shown(motion))
            tripped = tripped_by(motion.driver)
            pacer.wait()
        line.end(shown(motion))
    return tripped


def tripped_by(driver: MotorArm) -> list[str]:
    """What ends a jog, in words: trips that do not pass by themselves, or torque that is gone."""
    latched = [str(trip) for trip in driver.trips if not trip.passes]
    if not latched and driver.status in (Status.ERROR, Status.INACTIVE):
        return [*map(str, driver.trips)] or [f"the arm is {driver.status.value}"]
    return latched


def _come_to_rest(motion: JogMotion) -> None:
    """Hold the goal until the joint rests, or LONGEST."""
    pacer, until = Pacer(PERIOD), time.monotonic() + LONGEST
    least = time.monotonic() + 5 * PERIOD
    while time.monotonic() < until and motion.driver.status.drives:
        motion.tick(0.0)
        speed = abs(float(motion.driver.feedback.v[motion.joint]))
        if speed < REST and time.monotonic() > least:
            break
        pacer.wait()


def torque_off(driver: MotorArm) -> None:
    """Torque off until it is confirmed, and the port closed."""
    try:
        if driver.status in (Status.UNCONFIGURED, Status.ERROR):
            print(f"the port is lost, and nothing confirms that torque is off: {STILL_ON}")
        else:
            driver.deactivate()
            print("torque is off")
    except DriverFault as error:
        print(f"{error}: {STILL_ON}")
    finally:
        driver.close()


def shown(motion: JogMotion) -> str:
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
def stopped_by_signals() -> Iterator[Callable[[], bool]]:
    """Whether a signal that ends programs came since; none of them does meanwhile."""
    came: list[int] = []
    before = {n: signal.signal(n, lambda n, _: came.append(n)) for n in SIGNALS}
    try:
        yield lambda: bool(came)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
