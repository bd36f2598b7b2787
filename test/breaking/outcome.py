"""What comes of a fault: when it was noticed, what the arm did, and how it went on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import numpy as np
from emulators.makers import MAKERS

from arm_dynamics.core.errors import DriverFault, TrajectoryRejected
from arm_dynamics.hardware.driver import DriverState

from .bench import PERIOD, Bench
from .faults import FAULTS, Fault

BEFORE, AFTER, TRIES, PAUSE = 45, 60, 30, 20
"""Cycles before a fault and after it; tries to go on, and cycles between two of them."""
CONSEQUENCES = {"driver_fault", "control_restarted", "state_rejected"}
"""What is counted beside the cause."""
FOLLOWS = 0.06
"""How far from its reference an arm may be that is well [rad]."""


@dataclass(frozen=True)
class Outcome:
    """One row: ``seen`` is what told of the fault, ``after`` cycles [None: nothing did].

    ``moved`` [°] is the largest way of a joint while the fault lasted, from where it was when it
    began; ``torque`` the largest share of a joint's effort limit that a motor gave; ``longest``
    [s] the longest cycle; ``wrong`` [°] how far a position that was told as fresh was from the
    arm's own then; ``went_on`` how the arm came back: by itself, or what it took; ``stopped``
    whether all motors had stopped or were off when the fault was over.
    """

    seen: str
    after: int | None
    moved: float
    torque: float
    longest: float
    wrong: float
    went_on: str
    stopped: bool


@cache
def outcome(maker: str, fault: str) -> Outcome:
    """The outcome of a fault by name, computed once."""
    chosen = next(one for one in FAULTS if one.name == fault)
    bench = Bench(MAKERS[maker])
    return _refused(bench, chosen) if chosen.configuring else _broken(bench, chosen)


def _broken(bench: Bench, fault: Fault) -> Outcome:
    bench.up().run(BEFORE)
    before = bench.counts
    bench.body.forget()
    bench.longest = 0.0
    fault.begin(bench)
    bench.wrong = 0.0
    seen, after = _watched(bench, fault, before)
    wrong = float(np.degrees(bench.wrong))
    body, limit = bench.body, bench.maker.arm.effort_limit
    moved = float(np.degrees(body.moved.max()))
    torque, longest = float((body.strongest / limit).max()), bench.longest
    stopped = bench.stopped
    if fault.end is not None:
        fault.end(bench)
    return Outcome(seen, after, moved, torque, longest, wrong, recovered(bench), stopped)


def _watched(bench: Bench, fault: Fault, before: Counter[str]) -> tuple[str, int | None]:
    """The cycles of the fault; what told of it first, and after how many of them."""
    seen, after = _noticed(bench, before), 0
    for cycle in range(1, fault.cycles + 1):
        bench.cycle()
        if not seen:
            seen, after = _noticed(bench, before), cycle
    return seen, after if seen else None


def _noticed(bench: Bench, before: Counter[str]) -> str:
    if bench.rival:
        return "refused"
    if not bench.alive:
        return "the motors" if bench.stopped else ""
    new = bench.counts - before
    told = sorted(new.keys() - CONSEQUENCES) or sorted(new)
    if told:
        return ", ".join(told).replace("_", " ")
    status = bench.driver.status
    if status is DriverState.UNCONFIGURED:
        return "closed"
    return "age" if (bench.driver.feedback.age > 1.5 * PERIOD).any() else ""


def recovered(bench: Bench, after: int = AFTER) -> str:
    """How the arm came to follow again, looked at every ``after`` cycles; "" if it did not."""
    steps: list[str] = []
    if not bench.alive:
        bench.boot()
        bench.alive = True
        steps.append("new program")
    bench.run(after)
    for _ in range(TRIES):
        if bench.active and not bench.driver.trips:
            break
        _go_on(bench, steps)
        bench.run(PAUSE)
    with suppress(TrajectoryRejected):
        bench.swing()
    for _ in range(3 * AFTER // after):
        bench.run(after)
        if _follows(bench):
            return ", ".join(steps) or "by itself"
    return ""


def _go_on(bench: Bench, steps: list[str]) -> None:
    """What a person would do: open, activate, and reset where that is refused."""
    driver = bench.driver
    with suppress(DriverFault):
        if driver.status is DriverState.UNCONFIGURED:
            _take(driver.configure, steps)
        bench.run(3)
        if not bench.torque:
            bench.body.hold_at(bench.body.state.q)  # a hand stops an arm that swings
        bench.run(3)
        try:
            _take(driver.activate, steps)
        except DriverFault:
            _take(driver.reset, steps)
            _take(driver.activate, steps)


def _take(step: Callable[[], None], steps: list[str]) -> None:
    """Do a step, and note that it was needed."""
    step()
    if step.__name__ not in steps:
        steps.append(step.__name__)


def _follows(bench: Bench) -> bool:
    reference, state = bench.loop.reference, bench.loop.state
    if not bench.active or reference is None or state is None:
        return False
    return bool((np.abs(reference.q - bench.body.state.q) < FOLLOWS).all())


def _refused(bench: Bench, fault: Fault) -> Outcome:
    """An arm that must not be opened; then, where it can pass, one that is."""
    fault.begin(bench)
    seen, after = "", None
    try:
        bench.driver.configure()
    except DriverFault as error:
        seen, after = ("not opened", 0) if str(error) else ("", None)
    bench.run(BEFORE)
    stopped = bench.stopped
    went_on = "refused"
    if fault.end is not None:
        fault.end(bench)
        with suppress(DriverFault):
            bench.up()
        went_on = recovered(bench)
    moved = float(np.degrees(bench.body.moved.max())) if fault.end is None else 0.0
    return Outcome(seen, after, moved, 0.0, bench.longest, 0.0, went_on, stopped)
