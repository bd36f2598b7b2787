"""Injected faults: how each begins and ends, and what is allowed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, nan

import numpy as np

from arm_dynamics.core.errors import DriverFault

from .bench import PERIOD, Bench

Act = Callable[[Bench], None]
MOTOR = 1
"""Index of the motor that misbehaves: the second."""


@dataclass(frozen=True)
class Fault:
    """``begin`` injects the fault, ``end`` removes it; None if it never clears.

    The fault lasts ``cycles`` of the host and must be detected within ``within`` of them if a value
    becomes old. ``quiet``: it may remain undetected, every value fresh. ``far`` [°] bounds the
    displacement. ``alone``: recovery is automatic. ``configuring``: the fault exists before the arm
    is configured, which must be rejected. ``silence``: the motors receive nothing.
    """

    name: str
    begin: Act
    end: Act | None
    within: int
    cycles: int = 80
    far: float = 20.0
    quiet: bool = False
    alone: bool = False
    configuring: bool = False
    silence: bool = False


def line(**changes: object) -> Act:
    """Change the line in both directions."""

    def begin(bench: Bench) -> None:
        for direction in bench.directions:
            for name, value in changes.items():
                setattr(direction, name, value)

    return begin


def answers(**changes: object) -> Act:
    """Change the replies."""

    def begin(bench: Bench) -> None:
        for name, value in changes.items():
            setattr(bench.answers, name, value)

    return begin


def mended(bench: Bench) -> None:
    """Restore the line, the motors and the host."""
    for direction in bench.directions:
        direction.heal()
    for shaft in bench.shafts:
        shaft.silent, shaft.temperature = False, 30.0
    bench.commanding, bench.controller.corrupt = True, None
    bench.alive = True


def _silent(bench: Bench) -> None:
    bench.shafts[MOTOR].silent = True


def _rebooted(bench: Bench) -> None:
    bench.motors.reboot(bench.shafts[MOTOR].id)


def _hot(bench: Bench) -> None:
    bench.shafts[MOTOR].temperature = 110.0


def _overloaded(bench: Bench) -> None:
    bench.motors.trip(bench.shafts[MOTOR].id, "overload")


def _stalled(bench: Bench) -> None:
    bench.port.pass_until(bench.port.now() + 0.5)


def _killed(bench: Bench) -> None:
    bench.alive = False


def _second_program(bench: Bench) -> None:
    try:
        bench.port.open()
    except DriverFault as error:
        bench.second_program_error = str(error)


def _mute(bench: Bench) -> None:
    bench.commanding = False


def commands(value: float) -> Act:
    """Replace the command of one joint."""

    def begin(bench: Bench) -> None:
        def distort(efforts: np.ndarray) -> np.ndarray:
            efforts[MOTOR] = value
            return efforts

        bench.controller.corrupt = distort

    return begin


def _closed_twice(bench: Bench) -> None:
    bench.driver.close()
    bench.driver.close()


def _closed_while_reading(bench: Bench) -> None:
    bench.port.at_read = bench.driver.close


def _closed_unplugged(bench: Bench) -> None:
    line(unplugged=True)(bench)
    bench.driver.close()
    bench.driver.close()


def other_motor(id: int = MOTOR + 1, model: str = "") -> Act:
    """Use an arm whose second motor has this id or another model."""

    def begin(bench: Bench) -> None:
        shafts = bench.vendor.shafts()
        shafts[MOTOR].id = id
        shafts[MOTOR].model = (bench.vendor.other if model else "") or shafts[MOTOR].model
        bench.wire(shafts)

    return begin


SILENT = 7
"""``max_missed_cycles`` and the cycle that checks."""
FALLS, LIMITS = 60.0, 115.0
"""Displacement [°] of an arm without torque, and between the joint limits."""


def poor(name: str, begin: Act, within: int) -> Fault:
    """Create a fault of the line: it may remain undetected, and recovery is automatic."""
    return Fault(name, begin, mended, within, quiet=True, alone=True)


def at_start(name: str, begin: Act, end: Act | None = None) -> Fault:
    """Create a fault that must prevent the configuration."""
    return Fault(name, begin, end, 0, configuring=True)


FAULTS = (
    Fault("unplugged, plugged in again", line(unplugged=True), mended, 1),
    poor("1 % of packets lost", line(loss=0.01), 80),
    poor("10 % of packets lost", line(loss=0.1), 80),
    poor("50 % of packets lost", line(loss=0.5), 3),
    poor("random bytes before 20 % of packets", line(noise=0.2), 80),
    poor("20 % of packets corrupted", line(corruption=0.2), 10),
    poor("20 % of packets truncated", line(truncation=0.2), 10),
    poor("20 % of packets duplicated", line(duplication=0.2), 80),
    poor("replies delayed by 7 ms", answers(delay=7e-3), SILENT),
    poor("replies delayed by 0 to 10 ms", answers(jitter=1e-2), 80),
    poor("replies delayed by 60 ms", answers(delay=6e-2), SILENT),
    poor("replies delayed by one cycle", answers(lag=1), SILENT),
    Fault("one motor not responding", _silent, mended, SILENT),
    Fault("one motor rebooted", _rebooted, mended, SILENT),
    Fault("one motor at 110 °C", _hot, mended, 3),
    Fault("one motor overloaded", _overloaded, mended, 3),
    Fault("host stalled 0.5 s", _stalled, mended, 2, 2, FALLS, silence=True),
    Fault("host killed", _killed, None, 41, 200, FALLS, silence=True),
    Fault("a second program on the port", _second_program, mended, 0, alone=True),
    Fault("commands NaN", commands(nan), mended, 1, alone=True),
    Fault("commands infinite", commands(inf), mended, 1, alone=True),
    Fault("commands 1e9", commands(1e9), mended, 1, far=LIMITS),
    Fault("no commands", _mute, mended, round(0.1 / PERIOD) + 2, alone=True),
    Fault("closed twice", _closed_twice, mended, 1, cycles=4),
    Fault("closed during a read", _closed_while_reading, mended, 1, cycles=4),
    Fault("unplugged, then closed twice", _closed_unplugged, mended, 1, cycles=4),
    at_start("two motors with one id", other_motor(id=3)),
    at_start("a motor with another id", other_motor(id=9)),
    at_start("a motor of another model", other_motor(model="other")),
    at_start("another baud", line(corrupt=True), mended),
)
