"""Oscillation monitor: full-scale effort reversals trip, and the stop has lower gains."""

import numpy as np
import pytest
from motor_rig import PERIOD, arm
from test_motor_bus_driver_protocols import EmulatedLine

from arm_dynamics.control.config import build_controller
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.hardware.driver import DriverState
from arm_dynamics.safety.oscillation import FULL_SCALE, WINDOW, OscillationMonitor
from arm_dynamics.safety.safety_settings import SafetySettings

LIMIT = arm().effort_limit


def trips_of(efforts, period=PERIOD, **settings):
    """Return the trips after a series of efforts of the second joint."""
    monitor = OscillationMonitor(arm(), SafetySettings(**settings))
    found = []
    for k, effort in enumerate(efforts):
        found = found or monitor.update(k * period, np.array([0.0, effort, 0.0]))
    return found


@pytest.mark.parametrize("hertz", [5.0, 10.0, 50.0])
def test_full_scale_effort_reversals_trip_within_two_windows(hertz):
    t = np.arange(0, 2.1 * WINDOW, PERIOD)
    (trip,) = trips_of(LIMIT[1] * np.sin(2 * np.pi * hertz * t))
    assert (trip.kind, trip.joint, trip.limit) == ("oscillation", "J2", 8)
    assert "lower gains" in str(trip)
    assert not trip.self_clearing


def test_motions_with_full_effort_do_not_trip():
    t = np.arange(0, 10 * WINDOW, PERIOD)
    assert not trips_of(LIMIT[1] * np.sin(2 * np.pi * 3.0 * t))  # six reversals per second
    assert not trips_of(0.99 * FULL_SCALE * LIMIT[1] * np.sin(2 * np.pi * 20.0 * t))
    assert not trips_of(LIMIT[1] * np.abs(np.sin(2 * np.pi * 20.0 * t)))


def test_the_scaled_effort_limit_counts():
    t = np.arange(0, 2.1 * WINDOW, PERIOD)
    efforts = 0.3 * LIMIT[1] * np.sin(2 * np.pi * 10.0 * t)
    assert not trips_of(efforts)
    assert trips_of(efforts, effort_limit_scale=0.3)


def test_the_number_of_reversals_must_be_an_integer():
    with pytest.raises(InvalidValue, match="max_effort_reversals"):
        SafetySettings(max_effort_reversals=2.5)


def test_a_loop_unstable_by_delay_is_stopped_and_counting_restarts():
    """Gains that are stable with 2 ms between reading and writing, used with 20 ms."""
    line = EmulatedLine("dynamixel").up()
    line.cycles(12)  # the gains are scaled to the period of these cycles
    loop = ControlLoop(line.driver, build_controller(line.driver.arm, "pid_gravity"))
    write = line.driver.write

    def late(command):
        line.port.pass_until(line.port.now() + 0.02)
        write(command)

    def cycles(count):
        for _ in range(count):
            line.port.pass_until(line.port.now() + 0.01)
            loop.step()

    line.driver.write = late
    cycles(20)
    loop.hold({"J1": line.body.state.q[0] + 0.1})
    cycles(200)
    assert {trip.kind for trip in line.driver.trips} == {"oscillation"}
    assert line.driver.status is DriverState.STOPPED
    assert np.abs(line.body.state.v).max() < 0.1
    assert all(line.torque)
    line.driver.reset()
    line.body.hold_at(line.body.state.q)
    line.driver.write = write
    cycles(3)
    line.driver.activate()
    cycles(100)
    assert line.driver.status is DriverState.ACTIVE
