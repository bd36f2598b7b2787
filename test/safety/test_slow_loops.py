"""Stops and limits of slow control loops are stable: they brake without oscillation."""

import numpy as np
import pytest
from conftest import chain
from emulators.ideal import WIRE
from hypothesis import given
from hypothesis import strategies as st
from motor_rig import PERIOD, SAFETY, WIRING, Rig, arm, weight

from arm_dynamics.core.timing import UNTIMED, LoopTiming
from arm_dynamics.dynamics.rigid_body import gravity, mass_matrix
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.safety.command_limiter import SPEED, CommandLimiter, soft_limit_efforts
from arm_dynamics.safety.controlled_stop import REACTION, max_loop_bandwidth
from arm_dynamics.safety.safety_settings import SafetySettings

pytestmark = pytest.mark.hardware

LOOSE = {"velocity_limit_scale": 0.06, "motor_watchdog_timeout": 1.0, "command_timeout": 1.0}
POSTURES = st.lists(st.floats(-2, 2), min_size=3, max_size=3)
PERIODS = st.floats(1e-3, 0.1)


@given(POSTURES, PERIODS)
def test_the_gains_of_a_sampled_stop_are_stable(q, period):
    """x'' = -M⁻¹ (K x + D x') sampled with the period: no eigenvalue outside the unit circle."""
    M = mass_matrix(arm(), q)
    w, m = max_loop_bandwidth(M, LoopTiming(period)), np.diag(np.diag(M))
    A, B = np.linalg.solve(M, w**2 * m), np.linalg.solve(M, 1.6 * w * m)
    speed = np.hstack([-period * A, np.eye(3) - period * B])  # constant effort over a period
    place = np.hstack([np.eye(3) - period**2 / 2 * A, period * np.eye(3) - period**2 / 2 * B])
    assert np.abs(np.linalg.eigvals(np.vstack([place, speed]))).max() < 1


def test_a_loop_without_a_period_has_no_bound():
    assert max_loop_bandwidth(np.eye(2), UNTIMED) == np.inf
    assert max_loop_bandwidth(np.eye(2), LoopTiming(0.01)) == pytest.approx(REACTION / 0.01)


@given(POSTURES, PERIODS, st.integers(0, 2))
def test_no_damper_of_a_limit_increases_a_velocity(q, period, i):
    """One joint above its velocity limit, for one cycle: v' = v - (D v + B v_over) T (M⁻¹)_ii."""
    limits = CommandLimiter(arm(), SafetySettings(velocity_limit_scale=0.06, max_effort_rate=1e9))
    M, load, v = mass_matrix(arm(), q), gravity(arm(), q), np.zeros(3)
    v[i], dt = 8.0, min(period, 0.05)
    out = np.empty(3)
    soft_limit_efforts(load, (np.array(q), v), (load, M), limits.table, 0.1, dt, out)
    after = v + dt * np.linalg.solve(M, out - load)
    assert limits.table[SPEED, i] - v[i] - 1e-9 <= after[i] <= v[i]


@pytest.mark.quick(3)
@pytest.mark.parametrize("policy", ["hold", "ramp", "damp"])
@pytest.mark.parametrize("period", [5e-3, 1e-2, 2e-2, 4e-2])
def test_a_stop_of_a_slow_loop_ends_in_rest(policy, period, monkeypatch):
    """For joints whose inertia is a tenth of M_ii when the other joints move freely."""
    monkeypatch.setattr("motor_rig.PERIOD", period)
    rig = Rig(safety=SafetySettings(stop_policy=policy, **LOOSE))
    rig.driver.configure()
    rig.cycles(10)
    rig.driver.activate()
    rig.cycles(round(0.3 / period), lambda: weight(rig, 0.2, -0.2, 0.1))
    rig.driver.controlled_stop()
    rig.cycles(round(1.0 / period))
    assert rig.kinds == ["controlled_stop"]
    assert np.abs(rig.body.state.v).max() < (2.0 if policy == "damp" else 0.5)


def test_a_slow_loop_pushing_into_a_narrow_range_stays_near_it(monkeypatch):
    monkeypatch.setattr("motor_rig.PERIOD", 1e-2)
    joint, end = {"effort": 40.0, "damping": 0.1}, 0.08
    narrow, wide = joint | {"lower": -end, "upper": end}, joint | {"lower": -9, "upper": 9}
    heavy, light = {"mass": 2.0}, {"mass": 0.5}
    real = chain(wide | heavy, wide, wide | light)
    rig = Rig(q=(-0.06,) * 3, model=real, safety=SafetySettings(**LOOSE))
    model = chain(narrow | heavy, narrow, narrow | light)
    rig.driver = MotorBusDriver(model, rig.bus, wiring=WIRING, safety=rig.driver.safety)
    rig.up()
    for _ in range(200):
        rig.cycle([0.0, 39.0, 39.0])
        assert np.abs(rig.body.state.q).max() < end + 0.1


def test_the_period_is_that_of_the_last_cycles_without_pauses():
    rig = Rig().up()
    rig.cycles(20)
    rig.bus.pass_time(0.3)
    rig.cycles(2)
    assert rig.driver.timing.period == pytest.approx(2.1e-3, rel=0.1)


def test_readings_of_a_reset_are_not_cycles_and_a_closed_driver_has_no_period():
    rig = Rig()
    rig.driver = MotorBusDriver(arm(), rig.bus, wiring=WIRING, safety=SAFETY)
    rig.driver.configure()
    rig.cycles(20)
    before = rig.driver.timing.period
    assert before == pytest.approx(2.1e-3, rel=0.1)
    for _ in range(20):
        rig.driver.reset()
    assert rig.driver.timing.period == before
    rig.driver.close()
    assert rig.driver.timing is None


@pytest.mark.parametrize(("reading", "delay"), [(2e-4, 0.2), (9e-4, 0.9), (4e-3, 1.0)])
def test_the_delay_is_twice_the_age_of_readings_and_at_most_a_period(reading, delay):
    rig = Rig()
    read = rig.bus.read

    def slow():
        rig.bus.pass_time(reading - WIRE)
        return read()

    rig.bus.read = slow
    rig.driver.configure()
    for _ in range(10):
        rig.bus.pass_time(max(0.0, PERIOD - reading))
        rig.driver.read()
    timing = rig.driver.timing
    assert timing.period == pytest.approx(max(PERIOD, reading), rel=1e-6)
    assert timing.delay == pytest.approx(delay, rel=1e-6)
