"""Stop trajectories: constant deceleration within the position limits."""

import numpy as np
import pytest
from conftest import five_dof
from hypothesis import given
from hypothesis import strategies as st

from arm_dynamics.control.trajectories.trajectory import StopTrajectory
from arm_dynamics.core.state import Reference
from arm_dynamics.safety.braking import default_deceleration

ARM = five_dof()
HOME = ARM.configuration("initial")
SPEEDS = st.lists(st.floats(-1.2, 1.2), min_size=5, max_size=5)


def stopping(v, q=HOME, deceleration=None):
    rate = default_deceleration(ARM) if deceleration is None else np.full(5, deceleration)
    present = Reference(np.array(q), np.array(v, dtype=float), np.zeros(5))
    return StopTrajectory.of(ARM, rate).starting_from(2.0, present)


@given(SPEEDS)
def test_every_joint_decelerates_at_its_rate_until_rest(v):
    """v² = 2 d x for each joint, if the limits allow it."""
    stop, rate = stopping(v), default_deceleration(ARM)
    gone = stop.at(stop.end).q - HOME
    allowed = np.array(v) ** 2 / (2 * rate)
    assert (np.abs(gone) <= allowed + 1e-12).all()
    distance = np.where(np.array(v) > 0, ARM.upper - HOME, HOME - ARM.lower)
    free = allowed < distance
    np.testing.assert_allclose(np.abs(gone)[free], allowed[free], atol=1e-12)
    assert not stop.at(stop.end + 1).v.any()
    assert not stop.at(stop.end + 1).a.any()


@given(SPEEDS)
def test_it_starts_with_the_measured_motion_and_is_consistent(v):
    stop = stopping(v)
    np.testing.assert_array_equal(stop.at(2.0).q, HOME)
    if stop.end > 2.0:
        moving = (stop.at(2.0).v != 0) | (np.array(v) == 0)
        np.testing.assert_array_equal(stop.at(2.0).v[moving], np.array(v)[moving])
    h = 1e-5
    for time in np.linspace(2.0 + h, 2.4, 23):
        before, here, after = (stop.at(time + k * h) for k in (-1, 0, 1))
        slope = (after.q - before.q) / (2 * h)
        steepest = np.abs(here.a).max(initial=0) + np.abs(before.a).max(initial=0)
        assert np.abs(slope - here.v).max() <= h * steepest + 1e-9


@given(SPEEDS, st.floats(0.001, 5.0))
def test_it_ends_within_the_position_limits(v, rate):
    q = np.array([0.0, -1.19, 0.5, 3.13, 0.0])
    stop = stopping(v, np.clip(q, ARM.lower, ARM.upper), rate)
    for time in np.linspace(2.0, stop.end, 50):
        at = stop.at(time).q
        assert (at >= ARM.lower - 1e-9).all()
        assert (at <= ARM.upper + 1e-9).all()


def test_a_rate_of_zero_is_an_immediate_stop():
    stop = stopping(np.ones(5), deceleration=0.0)
    assert stop.end == stop.start == 2.0
    np.testing.assert_array_equal(stop.at(2.0).q, HOME)
    assert not stop.at(2.0).v.any()


def test_it_can_be_replaced_by_an_equal_one():
    stop = stopping(np.full(5, 0.5))
    present = stop.at(2.05)
    np.testing.assert_array_equal(stop.starting_from(2.05, present).at(2.05).q, present.q)
    assert stop.check(ARM) is None


def test_default_decelerations_follow_from_the_velocity_limits():
    assert default_deceleration(ARM) == pytest.approx(ARM.velocity_limit / 0.25)
