"""Time-optimal motion to a moving target: it arrives in minimum time within the limits."""

import numpy as np
import pytest

from arm_dynamics.control.trajectories.limited_move import (
    Limits,
    Moment,
    Track,
    brake,
    fading,
    fastest,
    join,
    moment,
    settle,
)

LIMITS = Limits(2.0, 8.0)


def targets():
    """Motions of constant acceleration that come to rest, and present motions."""
    rng = np.random.default_rng(0)
    for number in range(200):
        p, w, a = rng.uniform(-1, 1), rng.uniform(-1.3, 1.3), rng.uniform(-2, 2)
        target = Track([0.0], [(p, w, a / 2)])
        if number % 2:
            settle(target, 0.3, target.at(0.3), p, LIMITS)
        else:
            brake(target, 0.3, target.at(0.3), LIMITS)
        yield target, Moment(rng.uniform(-1, 1), rng.uniform(-2.5, 2.5), 0.0)


def test_the_motion_reaches_its_target_within_the_limits():
    for target, present in targets():
        move, until = join(target, 0.0, present, LIMITS)
        found, there = move.at(until - 1e-12), target.at(until)
        assert found.q == pytest.approx(there.q, abs=1e-9)
        assert found.v == pytest.approx(there.v, abs=1e-5)
        during = [move.at(t) for t in np.linspace(0, until - 1e-9, 50)]
        assert max(abs(m.v) for m in during) <= max(2.0, abs(present.v)) + 1e-9
        assert max(abs(m.a) for m in during) <= 8.0 + 1e-9


def test_from_rest_to_rest_the_motion_is_a_trapezoid():
    """1 rad at 2 rad/s and 8 rad/s²: 1/2 + 2/8 s; 0.1 rad: 2 sqrt(0.1/8) s."""
    assert fastest(0.0, 0.0, 1.0, 0.0, LIMITS).duration == pytest.approx(0.75)
    assert fastest(0.0, 0.0, 0.1, 0.0, LIMITS).duration == pytest.approx(2 * np.sqrt(0.1 / 8))


def test_a_target_as_fast_as_the_limit_is_never_reached():
    assert fastest(0.0, 0.0, 1.0, 2.0, LIMITS).duration == np.inf


def test_a_difference_and_its_derivatives_decay_to_zero():
    row = fading((0.3, -1.0, 2.0), 0.12)
    np.testing.assert_allclose(moment(row, 0.0), (0.3, -1.0, 2.0))
    np.testing.assert_allclose(moment(row, 0.12), 0.0, atol=1e-10)
