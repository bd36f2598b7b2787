"""Outcome of an injected fault: detection, motion of the arm and recovery."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import numpy as np
from emulators.vendors import VENDORS

from arm_dynamics.core.errors import DriverFault, TrajectoryRejected
from arm_dynamics.hardware.driver import DriverState

from .bench import PERIOD, Bench
from .faults import FAULTS, Fault

BEFORE, AFTER, TRIES, PAUSE = 45, 60, 30, 20
"""Cycles before and after a fault; attempts to recover, and cycles between them."""
CONSEQUENCES = {"driver_fault", "control_restarted", "state_rejected"}
"""Events in addition to the cause."""
FOLLOWS = 0.06
"""Largest tracking error of a recovered arm [rad]."""


@dataclass(frozen=True)
class Outcome:
    """One row of the table.

    Attributes
    ----------
    detected_by : str
        Trips or events that report the fault.
    detection_time : int or None
        Cycles until then; None if nothing reports it.
    max_displacement : float
        Largest displacement of a joint during the fault [°].
    max_torque : float
        Largest torque of a motor, as a fraction of the joint's effort limit.
    max_cycle_time : float
        Longest control cycle [s].
    max_position_error : float
        Largest difference between a position reported as current and the true one [°].
    recovery : str
        "automatic", or the required steps.
    stopped : bool
        Whether all motors had stopped or were disabled at the end of the fault.

    """

    detected_by: str
    detection_time: int | None
    max_displacement: float
    max_torque: float
    max_cycle_time: float
    max_position_error: float
    recovery: str
    stopped: bool


@cache
def outcome(vendor: str, fault: str) -> Outcome:
    """Return the outcome of a fault by name, computed once."""
    chosen = next(one for one in FAULTS if one.name == fault)
    bench = Bench(VENDORS[vendor])
    return _configure_faulty(bench, chosen) if chosen.configuring else _inject(bench, chosen)


def _inject(bench: Bench, fault: Fault) -> Outcome:
    bench.up().run(BEFORE)
    before = bench.counts
    bench.body.forget()
    bench.longest = 0.0
    fault.begin(bench)
    bench.position_error = 0.0
    detected_by, after = _observe(bench, fault, before)
    position_error = float(np.degrees(bench.position_error))
    body, limit = bench.body, bench.vendor.arm.effort_limit
    displacement = float(np.degrees(body.moved.max()))
    torque, longest = float((body.strongest / limit).max()), bench.longest
    stopped = bench.stopped
    if fault.end is not None:
        fault.end(bench)
    return Outcome(
        detected_by, after, displacement, torque, longest, position_error, recovered(bench), stopped
    )


def _observe(bench: Bench, fault: Fault, before: Counter[str]) -> tuple[str, int | None]:
    """Run the cycles of the fault; return what detects it first, and after how many of them."""
    detected_by, after = _detection(bench, before), 0
    for cycle in range(1, fault.cycles + 1):
        bench.cycle()
        if not detected_by:
            detected_by, after = _detection(bench, before), cycle
    return detected_by, after if detected_by else None


def _detection(bench: Bench, before: Counter[str]) -> str:
    if bench.second_program_error:
        return "rejected"
    if not bench.alive:
        return "motor watchdog" if bench.stopped else ""
    new = bench.counts - before
    kinds = sorted(new.keys() - CONSEQUENCES) or sorted(new)
    if kinds:
        return ", ".join(kinds).replace("_", " ")
    status = bench.driver.status
    if status is DriverState.UNCONFIGURED:
        return "closed"
    return "age" if (bench.driver.feedback.age > 1.5 * PERIOD).any() else ""


def recovered(bench: Bench, after: int = AFTER) -> str:
    """Return how the arm recovered, checked every ``after`` cycles; "" if it did not."""
    steps: list[str] = []
    if not bench.alive:
        bench.boot()
        bench.alive = True
        steps.append("new program")
    bench.run(after)
    for _ in range(TRIES):
        if bench.active and not bench.driver.trips:
            break
        _recover(bench, steps)
        bench.run(PAUSE)
    with suppress(TrajectoryRejected):
        bench.start_motion()
    for _ in range(3 * AFTER // after):
        bench.run(after)
        if _follows(bench):
            return ", ".join(steps) or "automatic"
    return ""


def _recover(bench: Bench, steps: list[str]) -> None:
    """Follow the operator's procedure: configure, activate, and reset if that is rejected."""
    driver = bench.driver
    with suppress(DriverFault):
        if driver.status is DriverState.UNCONFIGURED:
            _take(driver.configure, steps)
        bench.run(3)
        if not bench.torque:
            bench.body.hold_at(bench.body.state.q)  # a hand stops the moving arm
        bench.run(3)
        try:
            _take(driver.activate, steps)
        except DriverFault:
            _take(driver.reset, steps)
            _take(driver.activate, steps)


def _take(step: Callable[[], None], steps: list[str]) -> None:
    """Execute a step and record it."""
    step()
    if step.__name__ not in steps:
        steps.append(step.__name__)


def _follows(bench: Bench) -> bool:
    reference, state = bench.loop.reference, bench.loop.state
    if not bench.active or reference is None or state is None:
        return False
    return bool((np.abs(reference.q - bench.body.state.q) < FOLLOWS).all())


def _configure_faulty(bench: Bench, fault: Fault) -> Outcome:
    """Try to configure a faulty arm; then, if the fault can clear, a good one."""
    fault.begin(bench)
    detected_by, after = "", None
    try:
        bench.driver.configure()
    except DriverFault as error:
        detected_by, after = ("not opened", 0) if str(error) else ("", None)
    bench.run(BEFORE)
    stopped = bench.stopped
    recovery = "rejected"
    if fault.end is not None:
        fault.end(bench)
        with suppress(DriverFault):
            bench.up()
        recovery = recovered(bench)
    displacement = float(np.degrees(bench.body.moved.max())) if fault.end is None else 0.0
    return Outcome(detected_by, after, displacement, 0.0, bench.longest, 0.0, recovery, stopped)
