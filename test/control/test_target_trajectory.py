"""Motions to targets that replace each other: limits, no overshoot, no extrapolation."""

import numpy as np
import pytest

from arm_dynamics import load_arm
from arm_dynamics.control.trajectories.target_trajectory import TargetTrajectory
from arm_dynamics.core.state import Reference
from arm_dynamics.safety.braking import default_deceleration

ARM = load_arm("so101")
ACCELERATION = default_deceleration(ARM)
DT = 1e-3


def stream(targets, period, interval=None, start=None, **options):
    """Follow one target per period [s], expected after ``interval``; return q and v at DT."""
    reference, rows = Reference.hold(np.zeros(ARM.nv) if start is None else start), []
    for k, target in enumerate(targets):
        t0 = k * period
        motion = TargetTrajectory.of(ARM, np.asarray(target), interval or 0.0, **options)
        motion = motion.starting_from(t0, reference)
        rows += [motion.at(t0 + i * DT) for i in range(round(period / DT))]
        reference = motion.at(t0 + period)
    return np.array([r.q for r in rows]), np.array([r.v for r in rows])


def test_a_motion_ends_at_rest_at_its_target_within_the_limits():
    target = np.array([1.5, -1.5, 0.5, 1e-4, 0.0, 1.0])
    q, v = stream([target], 2.0)
    np.testing.assert_allclose(q[-1], target, atol=1e-12)
    np.testing.assert_allclose(v[-1], 0, atol=1e-12)
    assert (np.abs(v) <= ARM.velocity_limit + 1e-9).all()
    assert (np.abs(np.diff(v, axis=0)) <= ACCELERATION * DT + 1e-9).all()
    assert (np.abs(q) <= np.abs(target) + 1e-9).all()


def test_a_slower_speed_limits_each_joint():
    speeds = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    _, v = stream([np.ones(6)], 1.0, max_speed=speeds)
    np.testing.assert_allclose(np.abs(v).max(axis=0), speeds)


def test_a_target_beyond_the_range_is_limited_to_it():
    q, _ = stream([np.full(6, 9.0)], 3.0)
    np.testing.assert_allclose(q[-1], ARM.upper)


@pytest.mark.parametrize("speed", [0.2, 1.0, 3.0])
def test_targets_of_constant_velocity_are_followed_without_ripple(speed):
    """The velocity settles at that of the targets; the lag is h w + w² / (2 a)."""
    h, joint = 1 / 25, ARM.index("wrist_roll")
    start = np.full(6, -1.5)
    start[joint] = -2.7
    targets = [start + np.eye(6)[joint] * speed * h * k for k in range(round(1.7 / h))]
    q, v = stream(targets, h, h, start)
    per_target = round(h / DT)
    np.testing.assert_allclose(v[-3 * per_target :, joint], speed, rtol=0.01)
    lag = targets[-1][joint] - q[-per_target, joint]
    assert lag == pytest.approx(speed * h + speed**2 / (2 * ACCELERATION[joint]), rel=0.02)


def test_targets_at_any_interval_are_not_exceeded():
    """Bursts and gaps of the messages: positions stay between the targets."""
    rng = np.random.default_rng(0)
    reference, now = Reference.hold(np.zeros(6)), 0.0
    for k in range(200):
        goal = np.full(6, 0.4 * np.sin(0.1 * k))
        trajectory = TargetTrajectory.of(ARM, goal, 1 / 30).starting_from(now, reference)
        now += rng.choice([1e-3, 0.02, 0.3])
        reference = trajectory.at(now)
        assert (np.abs(reference.q) <= 0.4 + 1e-2).all()


def test_a_motion_that_is_too_fast_for_the_new_limit_slows_down_without_a_jump():
    moving = Reference(np.zeros(6), np.full(6, 2.0), np.zeros(6))
    trajectory = TargetTrajectory.of(ARM, np.ones(6), 0.0, 0.5).starting_from(0.0, moving)
    np.testing.assert_allclose(trajectory.at(0.0).v, 2.0)
    v = np.array([trajectory.at(t).v for t in np.arange(0, trajectory.end, DT)])
    assert (np.abs(np.diff(v, axis=0)) <= ACCELERATION * DT + 1e-9).all()
    np.testing.assert_allclose(trajectory.at(trajectory.end).q, 1.0)
