"""Everything that is broken on purpose: how a fault begins, how it ends, and what is allowed."""

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
    """``begin`` breaks something, ``end`` mends it; None where it never passes.

    It lasts ``cycles`` of the host, and must be noticed within ``within`` of them where any value
    gets old by it; ``quiet``: it may pass unnoticed, every value fresh. ``far`` [°] bounds the
    arm's way. ``alone``: once it is over the arm goes on by itself. ``configuring``: it is there
    before the arm is opened, which must be refused. ``silence``: nobody talks to the motors.
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
    """A line that does this to what goes either way."""

    def begin(bench: Bench) -> None:
        for way in bench.ways:
            for name, value in changes.items():
                setattr(way, name, value)

    return begin


def answers(**changes: object) -> Act:
    """A line that does this to what comes back."""

    def begin(bench: Bench) -> None:
        for name, value in changes.items():
            setattr(bench.answers, name, value)

    return begin


def mended(bench: Bench) -> None:
    """A good line, motors that are well, a host that commands."""
    for way in bench.ways:
        way.heal()
    for shaft in bench.shafts:
        shaft.silent, shaft.temperature = False, 30.0
    bench.commanding, bench.law.spoil = True, None
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
        bench.rival = str(error)


def _mute(bench: Bench) -> None:
    bench.commanding = False


def commands(value: float) -> Act:
    """A law that asks one joint for this."""

    def begin(bench: Bench) -> None:
        def spoil(told: np.ndarray) -> np.ndarray:
            told[MOTOR] = value
            return told

        bench.law.spoil = spoil

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
    """An arm whose second motor has this id, or is of another model."""

    def begin(bench: Bench) -> None:
        shafts = bench.maker.shafts()
        shafts[MOTOR].id = id
        shafts[MOTOR].model = (bench.maker.other if model else "") or shafts[MOTOR].model
        bench.wire(shafts)

    return begin


SILENT = 7
"""silent_cycles and the cycle that judges."""
FALLS, LIMITS = 60.0, 115.0
"""Ways [°] of an arm without torque, and between the joints' limits."""


def poor(name: str, begin: Act, within: int) -> Fault:
    """A poor line: what it costs may go unnoticed, and it goes on by itself."""
    return Fault(name, begin, mended, within, quiet=True, alone=True)


def at_start(name: str, begin: Act, end: Act | None = None) -> Fault:
    """What must keep an arm from being opened."""
    return Fault(name, begin, end, 0, configuring=True)


FAULTS = (
    Fault("unplugged, plugged in again", line(unplugged=True), mended, 1),
    poor("1 % of packets lost", line(loss=0.01), 80),
    poor("10 % of packets lost", line(loss=0.1), 80),
    poor("50 % of packets lost", line(loss=0.5), 3),
    poor("bytes of nobody before 20 %", line(noise=0.2), 80),
    poor("a byte of 20 % changed", line(corruption=0.2), 10),
    poor("20 % cut short", line(truncation=0.2), 10),
    poor("20 % doubled", line(duplication=0.2), 80),
    poor("answers 7 ms late", answers(delay=7e-3), SILENT),
    poor("answers 0 to 10 ms late", answers(jitter=1e-2), 80),
    poor("answers 60 ms late", answers(delay=6e-2), SILENT),
    poor("answers one exchange old", answers(lag=1), SILENT),
    Fault("one motor silent", _silent, mended, SILENT),
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
    at_start("another baud", line(garbled=True), mended),
)
