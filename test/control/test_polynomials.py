"""Polynomials: boundary values by the lowest degree, exact extrema."""

import numpy as np
import pytest
from conftest import chain
from hypothesis import given
from hypothesis import strategies as st

from arm_dynamics.control.trajectories.joint_trajectory import (
    JointTrajectory,
    Waypoint,
    check_limits,
)
from arm_dynamics.control.trajectories.polynomials import (
    are_certainly_within,
    boundary_polynomial,
    derivative,
    evaluate,
    evaluate_batch,
    extremes,
    is_certainly_within,
)
from arm_dynamics.core.errors import TrajectoryRejected

numbers = st.floats(-3, 3)
columns = st.lists(numbers, min_size=2, max_size=2).map(np.array)
pairs = st.tuples(columns, columns)


@given(pairs, pairs, pairs, st.floats(0.2, 5), st.integers(0, 2))
def test_extrema_bound_every_sample_and_are_attained(p, v, a, T, order):
    c = boundary_polynomial(T, p, *(v, a)[:order])
    (low_at, high_at), (low, high) = extremes(c, T)
    samples = np.array([evaluate(c, s)[0] for s in np.linspace(0, T, 301)])
    scale = 1e-9 * (1 + np.abs(samples).max())
    assert (samples >= low - scale).all()
    assert (samples <= high + scale).all()
    for i in range(2):
        assert 0 <= low_at[i] <= T
        assert evaluate(c, low_at[i])[0][i] == pytest.approx(low[i], abs=scale)
        assert evaluate(c, high_at[i])[0][i] == pytest.approx(high[i], abs=scale)


@given(pairs, pairs, pairs, st.floats(0.2, 5), st.integers(0, 2), columns, st.floats(0, 6))
def test_the_sufficient_bound_check_is_correct(p, v, a, T, order, low, width):
    c = boundary_polynomial(T, p, *(v, a)[:order])
    _, (lowest, highest) = extremes(c, T)
    if is_certainly_within(c, T, low, low + width):
        assert (lowest >= low - 1e-9).all()
        assert (highest <= low + width + 1e-9).all()
    bound = 40 * (1 + T) ** 2  # all Bézier points of such a polynomial are inside
    assert is_certainly_within(c, T, np.full(2, -bound), np.full(2, bound))


def test_extrema_by_hand():
    c = np.array([[0.0, 5.0], [-3.0, 0.0], [0.0, 0.0], [1.0, 0.0]])  # s³ - 3 s, and a constant
    (low_at, high_at), (low, high) = extremes(c, 3.0)
    assert (low_at[0], low[0]) == pytest.approx((1.0, -2.0))
    assert (high_at[0], high[0]) == pytest.approx((3.0, 18.0))
    assert (low[1], high[1]) == (5.0, 5.0)
    np.testing.assert_array_equal(derivative(c)[:, 0], [-3.0, 0.0, 3.0])


def test_an_overshoot_shorter_than_any_sampling_is_found():
    """4 µrad beyond the limit of 3 rad during the first 17 ms of 10 s."""
    start = Waypoint(0.0, np.array([3.0]), np.array([5e-4]))
    end = Waypoint(10.0, np.array([2.0]), np.array([0.0]))
    with pytest.raises(
        TrajectoryRejected, match=r"'J1': position = 3 rad at 0\.\d+ s; expected within"
    ):
        check_limits(chain({}), JointTrajectory((start, end)))
    falling = Waypoint(0.0, np.array([3.0]), np.array([-5e-4]))
    check_limits(chain({}), JointTrajectory((falling, end)))


def test_waypoints_closer_than_the_time_resolution_are_rejected():
    start, end = (Waypoint(t, np.array([q]), np.zeros(1)) for t, q in ((0.0, 0.0), (1e-200, 1.0)))
    with pytest.raises(TrajectoryRejected, match="1e-200 s; expected a time long enough"):
        check_limits(chain({}), JointTrajectory((start, end)))


@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_batch_evaluation_equals_single_evaluation(seed, terms):
    random = np.random.default_rng(seed)
    c, T = random.uniform(-1, 1, (terms, 7, 3)), random.uniform(0.1, 2.0, 7)
    s = random.uniform(0, 1, 7) * T
    each = [evaluate(c[:, k], s[k]) for k in range(7)]
    for found, alone in zip(evaluate_batch(c, s), zip(*each, strict=True), strict=True):
        np.testing.assert_allclose(found, alone, atol=1e-12)
    low, high = -random.uniform(0, 4, 3), random.uniform(0, 4, 3)
    alone = [is_certainly_within(c[:, k], T[k], low, high) for k in range(7)]
    assert are_certainly_within(c, T, low, high).tolist() == alone
    for k in range(7):
        np.testing.assert_array_equal(derivative(c)[:, k], derivative(c[:, k]))


@given(st.integers(0, 2**32 - 1), st.integers(1, 3))
def test_batch_boundary_polynomials_equal_single_ones(seed, given_):
    random = np.random.default_rng(seed)
    T = random.uniform(0.1, 2.0, 5)
    ends = [tuple(random.uniform(-1, 1, (2, 5, 3))) for _ in range(given_)]
    found = boundary_polynomial(T[:, None], *ends)
    for k in range(5):
        alone = boundary_polynomial(T[k], *[(x[k], y[k]) for x, y in ends])
        np.testing.assert_allclose(found[:, k], alone, rtol=1e-13)


@given(pairs, pairs, pairs, st.floats(0.2, 5), st.integers(0, 2))
def test_boundary_values_are_met_at_both_ends(p, v, a, T, order):
    c = boundary_polynomial(T, p, *(v, a)[:order])
    for k, s in enumerate((0.0, T)):
        for found, given_values in zip(evaluate(c, s)[: order + 1], (p, v, a), strict=False):
            np.testing.assert_allclose(found, given_values[k], atol=1e-8)
