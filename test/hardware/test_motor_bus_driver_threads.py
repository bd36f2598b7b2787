"""Close and emergency stop from other threads: no torque remains enabled."""

import threading
from contextlib import suppress
from operator import attrgetter

import numpy as np
import pytest
from emulators.vendors import VENDORS
from motor_rig import RATIO, Rig, weight
from test_motor_bus_driver_protocols import EmulatedLine

from arm_dynamics.core.errors import DriverFault
from arm_dynamics.hardware.driver import DriverState

pytestmark = pytest.mark.hardware

LONG = 10.0
"""Time limit of each thread [s]."""


def concurrently(act, during, after=False):
    """Return a call before or after which another thread runs ``act`` for some time, and its
    thread.
    """
    threads = []

    def called(*args):
        done = during(*args) if after else None
        if not threads:
            threads.append(threading.Thread(target=act))
            threads[0].start()
            threads[0].join(0.05)
        return done if after else during(*args)

    return called, threads


@pytest.mark.quick(6)
@pytest.mark.parametrize("name", VENDORS)
@pytest.mark.parametrize("method", ["enable", "read", "enable_watchdog"])
@pytest.mark.parametrize("after", [False, True])
def test_a_close_during_an_activation_leaves_no_torque(name, method, after):
    line = EmulatedLine(name)
    line.driver.configure()
    line.cycles(3)
    bus = line.driver.bus
    called, threads = concurrently(line.driver.close, getattr(bus, method), after)
    setattr(bus, method, called)
    with suppress(DriverFault):
        line.driver.activate()
    threads[0].join(LONG)
    assert not threads[0].is_alive()
    line.cycles(3)
    assert line.torque == [False] * 3
    assert line.driver.status is DriverState.UNCONFIGURED


@pytest.mark.parametrize("name", VENDORS)
def test_no_goal_is_sent_after_close_disabled_torque(name):
    """A goal would enable the torque of a Feetech servo."""
    line = EmulatedLine(name).up()
    line.cycles(5)
    write = line.driver.bus.write
    called, threads = concurrently(line.driver.close, write)
    line.driver.bus.write = called
    line.cycles(3)
    threads[0].join(LONG)
    line.cycles(3)
    assert line.torque == [False] * 3
    assert line.driver.status is DriverState.UNCONFIGURED


@pytest.mark.slow
def test_a_loop_survives_emergency_stops_and_closes_of_other_threads():
    dice = np.random.default_rng(1)
    for _ in range(40):
        rig = Rig().up()
        errors, ended = [], threading.Event()

        def live(rig=rig, errors=errors, ended=ended):
            try:
                while not ended.is_set():
                    rig.cycle(weight(rig))
            except BaseException as error:  # any exception is an error
                errors.append(error)

        loop = threading.Thread(target=live)
        loop.start()
        ended.wait(dice.uniform(0, 0.01))
        press = dice.random() < 0.5
        others = [threading.Thread(target=rig.driver.close) for _ in range(2)]
        if press:
            others.append(threading.Thread(target=rig.driver.emergency_stop, args=("thread",)))
        for other in others:
            other.start()
        for other in others:
            other.join(LONG)
        ended.wait(0.005)
        ended.set()
        loop.join(LONG)
        assert not loop.is_alive()
        assert errors == []
        assert rig.torque == [False] * 3
        assert not rig.bus.is_open
        assert rig.driver.emergency_stopped is press
        assert rig.driver.status is DriverState.UNCONFIGURED


# After close, loss and restart ------------------------------------------------------------


def test_close_reports_motors_that_did_not_confirm_disabling():
    rig = Rig().up()
    rig.bus.deaf = {2}
    rig.driver.close()
    assert rig.counts == {"close_failed": 1}
    assert "not confirmed by joints J2" in rig.driver.events.latest["close_failed"]
    assert rig.torque == [False, True, False]


def test_close_after_a_reconnection_disables_torque():
    rig = Rig("position").up()
    rig.bus.gone = True
    rig.cycle()
    assert rig.driver.status is DriverState.ERROR
    rig.bus.gone = False
    rig.driver.close()
    assert rig.torque == [False] * 3
    assert not rig.bus.is_open


def test_a_reconnection_with_a_missing_motor_disables_the_others():
    """Without this they would hold a goal indefinitely."""
    rig = Rig("position")
    rig.bus.supports_watchdog = False
    rig.up()
    rig.bus.gone = True
    rig.cycle()
    rig.bus.gone, rig.shafts[0].silent = False, True
    rig.driver.emergency_stop("hand")
    rig.cycles(400)
    assert rig.driver.status is DriverState.ERROR
    assert rig.torque == [True, False, False]


def test_an_emergency_stop_disables_motors_left_enabled_by_another_program():
    rig = Rig("position")
    rig.bus.supports_watchdog = False
    rig.up().bus.close()
    after = Rig("position")
    after.bus.arm, after.bus.line = rig.body, rig.line
    rig.shafts[0].silent = True
    after.driver.emergency_stop("hand")
    with pytest.raises(DriverFault):
        after.driver.configure()
    assert rig.torque == [True, False, False]


def test_feedback_is_missing_while_the_port_is_disconnected():
    for lose in (lambda rig: setattr(rig.bus, "gone", True), lambda rig: rig.driver.close()):
        rig = Rig().up()
        rig.cycles(5)
        lose(rig)
        rig.cycle()
        feedback = rig.driver.feedback
        assert np.isnan([feedback.q, feedback.v, feedback.tau, feedback.temperature]).all()
        assert (feedback.age > 1e9).all()
        assert feedback.enabled == (None,) * 3


def test_an_exception_between_read_and_write_disables_torque():
    def fails(*args):
        raise ZeroDivisionError("of any kind")

    for part, method in (
        ("_supervisor._monitor", "check_feedback"),
        ("_limiter", "apply"),
        ("_supervisor._watchdog", "command"),
    ):
        rig = Rig().up()
        rig.cycles(3)
        setattr(attrgetter(part)(rig.driver), method, fails)
        rig.cycles(2)
        assert rig.torque == [False] * 3
        assert rig.counts["control_error"] == 1
        assert max(abs(m.goal) for m in rig.line.each.values()) * max(RATIO) < 200
