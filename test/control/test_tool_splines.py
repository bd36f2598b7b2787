"""Cartesian splines: they pass every pose within the limits, and are smooth."""

from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
from arm_dynamics.control.trajectories.tool_paths import ToolLimits
from arm_dynamics.control.trajectories.tool_splines import MAX_POSES, spline_through, timed_spline
from arm_dynamics.core.errors import InvalidValue, TrajectoryRejected
from arm_dynamics.dynamics.kinematics.frames import pose
from arm_dynamics.model.load import load_arm

LIMITS = ToolLimits(0.25, 1.0, 1.0, 4.0)


@cache
def arm():
    return load_arm("puma560")


def rest():
    return CartesianTrajectory.from_configuration(arm(), arm().configuration("initial"), 2.0)


def here():
    return pose(arm(), arm().configuration("initial"))


def shifted(*offsets):
    p, R = here()
    return [(p + np.array(w[:3]), pin.exp3(np.array((*w[3:], 0, 0, 0)[:3], dtype=float)) @ R)
            for w in offsets]  # fmt: skip


def circle(n=40, r=0.1):
    angles = np.linspace(0, 2 * np.pi, n)
    return shifted(*[(r * np.sin(a), 0, r * (1 - np.cos(a)), 0, a / 4, 0) for a in angles])


def check_smooth(trajectory, tolerance=1e-4):
    """Check that twist and acceleration are the derivatives of pose and twist."""
    h = 1e-6
    for t in np.linspace(trajectory.start + 0.013, trajectory.end - 0.017, 23):
        a, b, m = trajectory.at(t - h), trajectory.at(t + h), trajectory.at(t)
        assert np.allclose((b.position - a.position) / (2 * h), m.twist[:3], atol=tolerance)
        turned = pin.log3(b.rotation @ a.rotation.T) / (2 * h)
        assert np.allclose(turned, m.twist[3:], atol=tolerance)
        assert np.allclose((b.twist - a.twist) / (2 * h), m.acceleration, atol=10 * tolerance)


def test_a_square_has_straight_lines_with_rest_at_the_corners():
    corners = shifted((0.1, 0, 0), (0.1, 0.1, 0), (0, 0.1, 0), (0, 0, 0))
    trajectory = spline_through(rest(), corners, LIMITS)
    assert len(trajectory.segments) == 4
    side = 0.1 / 0.25 + 0.25 / 1.0
    assert np.allclose(np.diff(trajectory.knots), side)
    p, _ = here()
    for t, (corner, _) in zip(trajectory.knots[1:], corners, strict=True):
        assert np.allclose(trajectory.at(t).position, corner, atol=1e-12)
        assert np.abs(trajectory.at(t).twist).max() < 1e-9
    for t in np.linspace(trajectory.knots[1], trajectory.knots[2], 20):
        assert trajectory.at(t).position[0] == pytest.approx(p[0] + 0.1, abs=1e-12)
    check_smooth(trajectory)


def test_a_dense_circle_is_passed_through_every_pose_without_rest():
    poses = circle()
    trajectory = spline_through(rest(), poses, LIMITS)
    assert len(trajectory.segments) == 1
    path = trajectory.segments[0][0]
    for fraction, (p, R) in zip(path.spline.x[1:], poses[1:], strict=True):
        assert np.allclose(path.at(fraction)[0], p, atol=1e-12)
        assert np.allclose(path.at(fraction)[1], R, atol=1e-12)
    speeds = [
        np.linalg.norm(trajectory.at(t).twist[:3])
        for t in np.linspace(trajectory.start, trajectory.end, 300)
    ]
    assert max(speeds) <= LIMITS.max_linear_velocity * 1.01
    assert np.median(speeds) > 0.9 * LIMITS.max_linear_velocity
    check_smooth(trajectory)


def test_a_path_with_more_than_one_full_rotation_does_not_rotate_back():
    poses = shifted(*[(0.01 * k, 0, 0, 0, 0, 0.5 * k) for k in range(1, 20)])
    trajectory = spline_through(rest(), poses, LIMITS)
    rates = [trajectory.at(t).twist[5] for t in np.linspace(2.2, trajectory.end - 0.3, 100)]
    assert min(rates) > 0.5
    assert np.allclose(trajectory.at(trajectory.end).rotation, poses[-1][1], atol=1e-9)


def test_repeated_poses_take_no_time_and_a_pure_rotation_does():
    assert spline_through(rest(), shifted((0, 0, 0), (0, 0, 0)), LIMITS).end == 2.0
    turn = spline_through(rest(), shifted((0, 0, 0), (0, 0, 0, 0.5, 0, 0)), LIMITS)
    assert turn.end - 2.0 == pytest.approx(0.5 / 1.0 + 1.0 / 4.0)


@settings(max_examples=examples(20))
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_poses_with_given_times_are_passed(seed, moving):
    random = np.random.default_rng(seed)
    times = np.cumsum(random.uniform(0.2, 1.0, 4))
    poses = shifted(*random.uniform(-0.3, 0.3, (4, 6)))
    twists = np.vstack([random.uniform(-0.2, 0.2, (3, 6)), np.zeros(6)]) if moving else None
    trajectory = timed_spline(rest(), times, poses, twists)
    for k, (t, (p, R)) in enumerate(zip(times, poses, strict=True)):
        at = trajectory.at(2.0 + t)
        assert np.allclose(at.position, p, atol=1e-9)
        assert np.allclose(at.rotation, R, atol=1e-9)
        if moving:
            before = trajectory.at(2.0 + t - 1e-9)
            assert np.allclose(before.twist, twists[k], atol=1e-6)
    first = trajectory.at(2.0)
    assert np.allclose(first.position, here()[0])
    assert np.abs(first.twist).max() < 1e-12
    check_smooth(trajectory, 1e-3)


BAD = {
    "equal times": (([1.0, 1.0], shifted((0, 0, 0), (0.1, 0, 0))), TrajectoryRejected, "point 1"),
    "NaN time": (([np.nan], shifted((0, 0, 0))), TrajectoryRejected, "point 0"),
    "before the start": (([-1.0], shifted((0, 0, 0))), TrajectoryRejected, "point 0"),
    "none": (([], []), TrajectoryRejected, "expected 1 to"),
    "lengths": (
        ([1.0], shifted((0, 0, 0), (0.1, 0, 0))),
        TrajectoryRejected,
        "expected 2, one per pose",
    ),
    "twists in an array": (
        ([1.0], shifted((0, 0, 0)), np.zeros((2, 6))),
        TrajectoryRejected,
        "1 times and 2 twists",
    ),
    "moving end": (([1.0], shifted((0, 0, 0)), [[0.1] * 6]), TrajectoryRejected, "expected 0"),
    "NaN": (([1.0], [([0, np.nan, 0], np.eye(3))]), InvalidValue, "pose 0: position"),
    "no rotation": (([1.0], [([0, 0, 0], 2 * np.eye(3))]), InvalidValue, "pose 0: rotation"),
}  # fmt: skip


@pytest.mark.parametrize("kind", BAD)
def test_invalid_times_are_rejected_by_name(kind):
    given_, error, word = BAD[kind]
    with pytest.raises(error, match=word):
        timed_spline(rest(), *given_)


def test_a_path_without_poses_is_rejected():
    with pytest.raises(TrajectoryRejected, match="expected 1 to"):
        spline_through(rest(), [], LIMITS)
    with pytest.raises(InvalidValue, match="pose 1: position"):
        spline_through(rest(), [*shifted((0.1, 0, 0)), ([0, 0, np.inf], np.eye(3))], LIMITS)


def test_too_many_poses_are_rejected_by_number():
    many = MAX_POSES + 1
    poses = shifted((0.1, 0, 0)) * many
    for build in (
        lambda: spline_through(rest(), poses, LIMITS),
        lambda: timed_spline(rest(), range(many), poses),
    ):
        with pytest.raises(TrajectoryRejected, match=f": {many} .* 1 to {MAX_POSES}"):
            build()


def test_an_unreachable_path_is_rejected_with_time_and_position_error():
    trajectory = spline_through(rest(), shifted((0.1, 0, 0), (1.0, 0, 0)), LIMITS)
    with pytest.raises(
        TrajectoryRejected, match=r"^trajectory out of reach from \d.* s.* m at .* s"
    ):
        trajectory.check(trajectory.arm)
