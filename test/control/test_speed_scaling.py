"""Speed scaling of trajectories: continuous position and velocity, exact durations, limits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from arm_dynamics.control.reference_generator import RAMP, ScaledClock
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import Reference, TaskReference

FACTORS = st.lists(st.tuples(st.floats(0, 1), st.integers(1, 400)), min_size=1, max_size=6)
DT = 1e-3


def wave(s):
    """q = sin s, with its derivatives."""
    return Reference(np.array([np.sin(s)]), np.array([np.cos(s)]), np.array([-np.sin(s)]))


def test_without_a_factor_trajectory_time_equals_time():
    clock = ScaledClock()
    times = np.linspace(3.0, 7.0, 1001)
    assert [clock.advance(t) for t in times] == times.tolist()
    reference = wave(1.0)
    assert clock.scaled(reference) is reference
    assert clock.unscaled(reference) is reference


@given(FACTORS)
def test_scaled_velocities_and_accelerations_are_derivatives_of_the_scaled_motion(changes):
    """v and a are the derivatives of q(s(t)), for requests at any time."""
    clock, now, q, v, a, f = ScaledClock(), 0.0, [], [], [], []
    for factor, ticks in changes:
        clock.set_factor(factor)
        for _ in range(ticks):
            now += DT
            reference = clock.scaled(wave(clock.advance(now)))
            q.append(reference.q[0])
            v.append(reference.v[0])
            a.append(reference.a[0])
            f.append(clock.factor)
    q, v, a, f = np.array(q), np.array(v), np.array(a), np.array(f)
    between = 0.5 * (v[1:] + v[:-1])
    within_a_tick = 0.5 * DT / RAMP  # a ramp may end between two cycles
    np.testing.assert_allclose(np.diff(q) / DT, between, atol=within_a_tick)
    assert np.abs(np.diff(v)).max(initial=0.0) <= DT * (1 / RAMP + 1) + 1e-9
    assert np.abs(a).max() <= 1 / RAMP + 1 + 1e-9
    even = np.abs(np.diff(f, 2)) < 1e-12  # no ramp starts or ends near these cycles
    differences = (v[2:] - v[:-2]) / (2 * DT)
    np.testing.assert_allclose(differences[even], a[1:-1][even], atol=1e-4)


def test_a_pause_takes_half_a_ramp_then_time_stops():
    clock = ScaledClock()
    clock.advance(0.0)
    clock.set_factor(0.0)
    for now in np.arange(DT, 1.0, DT):
        s = clock.advance(now)
    assert s == pytest.approx(RAMP / 2, abs=1e-12)
    held = clock.scaled(wave(s))
    assert held.q == np.sin(s)
    assert not held.v.any()
    assert not held.a.any()


def test_the_ramp_does_not_depend_on_the_cycles():
    ends = []
    for dt in (1e-3, 7e-3, 0.4):
        clock = ScaledClock()
        clock.advance(0.0)
        clock.set_factor(0.3)
        for now in np.arange(1, round(2.8 / dt) + 1) * dt:
            s = clock.advance(now)
        ends.append(s - 0.3 * now)
    np.testing.assert_allclose(ends, 0.7**2 * RAMP / 2, atol=1e-12)


def test_a_trajectory_replaced_under_speed_scaling_starts_with_the_scaled_motion():
    clock = ScaledClock()
    clock.advance(0.0)
    clock.set_factor(0.5)
    clock.advance(1.0)
    moving = wave(0.3)
    np.testing.assert_allclose(clock.scaled(clock.unscaled(moving)).v, moving.v)
    np.testing.assert_allclose(clock.scaled(clock.unscaled(moving)).a, moving.a)
    clock.restart()
    assert clock.advance(1.0) == 1.0
    assert clock.at(3.0) == 2.0


def test_a_new_trajectory_does_not_move_during_a_pause():
    clock = ScaledClock()
    clock.advance(0.0)
    clock.set_factor(0.0)
    clock.advance(1.0)
    assert not clock.unscaled(wave(0.3)).v.any()


def test_cartesian_trajectories_are_scaled():
    clock = ScaledClock()
    clock.advance(0.0)
    clock.set_factor(0.5)
    clock.advance(1.0)
    one, six = np.ones(2), np.ones(6)
    task = TaskReference(one, one, one, np.zeros(3), np.eye(3), six, six, six)
    scaled = clock.scaled(task)
    np.testing.assert_array_equal(scaled.twist, 0.5 * six)
    np.testing.assert_array_equal(scaled.acceleration, 0.25 * six)
    np.testing.assert_array_equal(scaled.wrench, six)


@pytest.mark.parametrize("factor", [-0.1, 1.01, np.nan, np.inf, "fast", None])
def test_factors_out_of_range_are_rejected(factor):
    clock = ScaledClock()
    with pytest.raises(InvalidValue, match="speed scaling factor"):
        clock.set_factor(factor)
    assert clock.requested == 1.0
