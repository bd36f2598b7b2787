"""Random sequences of faults on every driver: no hang, bounded motion, no exceptions.

The environment variable SEQUENCES is the number of new random sequences for each kind of motors.
Without it a few fixed ones run.
"""

import os
from contextlib import suppress

import numpy as np
import pytest
from emulators.vendors import VENDORS
from fault_injection.bench import Bench
from fault_injection.faults import FAULTS, mended
from fault_injection.outcome import recovered
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from arm_dynamics.core.errors import DriverFault
from arm_dynamics.hardware.driver import DriverState

pytestmark = pytest.mark.hardware

MANY = "SEQUENCES" in os.environ
COUNT = int(os.environ.get("SEQUENCES", "8"))
BEGINS = {fault.name: fault.begin for fault in FAULTS if not fault.configuring}
ACTS = (
    "configure",
    "activate",
    "reset",
    "deactivate",
    "controlled_stop",
    "emergency",
    "close",
    "boot",
)
EVENTS = st.sampled_from([*BEGINS, *ACTS, "mended", "mended"])
SEQUENCE = st.lists(st.tuples(EVENTS, st.integers(1, 15)), min_size=1, max_size=6)
MAX_CYCLE_TIME, MAX_SPEED, MAX_EXCESS = 0.5, 25.0, 0.4
"""Maxima: duration of a cycle, close included [s]; joint velocity, also in a fall [rad/s]; distance
beyond a position limit [rad]."""


def apply_event(bench, name):
    """Inject a fault or do an operator's action, in any state of the arm."""
    if name in BEGINS:
        BEGINS[name](bench)
    elif name == "mended":
        mended(bench)
    elif name == "boot":
        bench.boot()
    else:
        does = getattr(bench.driver, name, lambda: bench.driver.emergency_stop("a test"))
        with suppress(DriverFault):
            does()


def require_bounded(bench):
    """Check position, velocity and motor efforts."""
    arm, state = bench.vendor.arm, bench.body.state
    assert (arm.lower - MAX_EXCESS < state.q).all(), state.q
    assert (state.q < arm.upper + MAX_EXCESS).all(), state.q
    assert np.abs(state.v).max() < MAX_SPEED, state.v
    assert (bench.body.strongest <= 1.02 * bench.vendor.most * arm.effort_limit).all()
    assert bench.longest < MAX_CYCLE_TIME


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", VENDORS)
def test_motion_stays_bounded_and_the_arm_recovers_after_random_faults(name):
    @settings(
        max_examples=COUNT,
        derandomize=not MANY,
        print_blob=MANY,
        suppress_health_check=list(HealthCheck),
    )
    # Cycles without replies are longer than any gains allow; the arm is opened again after them.
    @example(
        [("one motor not responding", 11), ("reset", 6), ("unplugged, then closed twice", 1)], 0
    )
    @given(SEQUENCE, st.integers(0, 2**16))
    def check(sequence, seed):
        bench = Bench(VENDORS[name], seed).up()
        for event, cycles in sequence:
            apply_event(bench, event)
            for _ in range(cycles):
                bench.cycle()
            require_bounded(bench)
        mended(bench)
        if bench.driver.status is DriverState.UNCONFIGURED:
            bench.port.close()
        assert recovered(bench, 10), "no recovery"

    check()
