"""Joint trajectories: waypoints at their times, velocity limits, synchronous joints, rejections."""

import numpy as np
import pytest
from conftest import chain
from hypothesis import given
from hypothesis import strategies as st

from arm_dynamics.control.trajectories import joint_splines
from arm_dynamics.control.trajectories.joint_trajectory import check_limits
from arm_dynamics.core.errors import TrajectoryRejected
from arm_dynamics.core.state import Reference

rows = st.lists(st.floats(-2, 2), min_size=3, max_size=3)
limits = st.lists(st.floats(0.1, 5), min_size=3, max_size=3)
TIMES = [1.0, 2.0, 4.5]


@pytest.mark.parametrize(
    "make",
    [
        joint_splines.cubic_trajectory,
        joint_splines.quintic_trajectory,
        joint_splines.spline_trajectory,
    ],
)
@given(points=st.lists(rows, min_size=3, max_size=3))
def test_waypoints_are_reached_at_their_times_from_rest_to_rest(make, points):
    trajectory = make(points, TIMES)
    for time, point in zip(TIMES, points, strict=True):
        np.testing.assert_allclose(trajectory.at(time).q, point, atol=1e-12)
    for time in (TIMES[0] + 1e-9, TIMES[-1] - 1e-9):
        np.testing.assert_allclose(trajectory.at(time).v, 0, atol=1e-6)


def test_a_cubic_rests_at_its_waypoints_or_passes_them_at_given_velocities():
    points = [[0.0], [1.0], [0.0]]
    assert joint_splines.cubic_trajectory(points, TIMES).at(2.0).v[0] == 0
    passing = joint_splines.cubic_trajectory(points, TIMES, [[0.0], [0.7], [0.0]])
    assert passing.at(2.0).v[0] == pytest.approx(0.7)
    rates = np.array([[[0.0], [0.7], [0.0]], [[0.1], [0.2], [0.0]]])
    passing = joint_splines.quintic_trajectory(points, TIMES, *rates)
    assert passing.at(2.0).v[0] == pytest.approx(0.7)
    assert passing.at(2.0).a[0] == pytest.approx(0.2)


@given(points=st.lists(rows, min_size=3, max_size=3))
def test_a_smooth_trajectory_has_continuous_acceleration(points):
    trajectory = joint_splines.spline_trajectory(points, TIMES)
    before, after = trajectory.at(2.0 - 1e-9), trajectory.at(2.0 + 1e-9)
    np.testing.assert_allclose(before.a, after.a, atol=1e-6)


@given(rows, rows, limits, limits)
def test_a_trapezoid_keeps_the_limits_and_reaches_one(start, end, v, a):
    distance = np.abs(np.subtract(end, start))
    if distance.max() < 1e-3:
        return
    trajectory = joint_splines.trapezoidal_trajectory([start, end], v, a, start=3.0)
    h = 1e-6 * (trajectory.end - 3.0)
    knots = [t for w in trajectory.waypoints for t in (w.time - h, w.time + h)]
    samples = [trajectory.at(t) for t in (*knots, *np.linspace(3.0, trajectory.end, 101))]
    speed = np.max([np.abs(r.v) for r in samples], axis=0) / v
    strength = np.max([np.abs(r.a) for r in samples], axis=0) / a
    assert speed.max() < 1 + 1e-6
    assert strength.max() == pytest.approx(1, abs=1e-5)
    shortest = max(
        max(w / v_, 2 * np.sqrt(w / a_)) for w, v_, a_ in zip(distance, v, a, strict=True)
    )
    assert trajectory.end - 3.0 >= shortest * (1 - 1e-9)
    for r in samples:  # straight line in joint space
        fraction = (r.q - start) @ np.subtract(end, start) / (distance @ distance)
        np.testing.assert_allclose(r.q, start + fraction * np.subtract(end, start), atol=1e-8)


def test_a_trapezoid_by_hand():
    """1 rad at 1 rad/s² takes 2 s without a cruise; 4 rad at up to 1 rad/s take 5 s with one."""
    short = joint_splines.trapezoidal_trajectory([[0.0], [1.0]], [9.0], [1.0])
    assert [w.time for w in short.waypoints] == pytest.approx([0, 1, 2])
    assert short.at(0.5).q[0] == pytest.approx(0.125)
    assert short.at(1.5).a[0] == pytest.approx(-1)
    long = joint_splines.trapezoidal_trajectory([[0.0], [4.0]], [1.0], [1.0])
    assert [w.time for w in long.waypoints] == pytest.approx([0, 1, 4, 5])
    assert long.at(2.5).a[0] == pytest.approx(0)
    slow = joint_splines.trapezoidal_trajectory([[0.0], [4.0]], [1.0], [1.0], durations=[10.0])
    assert slow.end == pytest.approx(10)
    assert slow.at(5.0).v[0] == pytest.approx(0.5)


def test_several_moves_rest_in_between_and_zero_distance_takes_no_time_unless_given():
    points = [[0.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 0.5]]
    quick = joint_splines.trapezoidal_trajectory(points, [np.inf, 9.0], [1.0, 1.0])
    assert quick.end == pytest.approx(4.0)
    assert not quick.at(2.0).v.any()
    waiting = joint_splines.trapezoidal_trajectory(
        points, [9.0, 9.0], [1.0, 1.0], durations=[2.0, 1.0, 2.0]
    )
    assert waiting.end == pytest.approx(5.0)
    np.testing.assert_array_equal(waiting.at(2.5).q, points[1])


def test_moves_are_replaced_and_checked_like_any_trajectory():
    arm = chain({"upper": 1.0})
    check_limits(
        arm, joint_splines.trapezoidal_trajectory([[0.0], [1.0]], arm.velocity_limit, [1.0])
    )
    with pytest.raises(TrajectoryRejected, match=r"'J1': position = 1.1 rad"):
        joint_splines.trapezoidal_trajectory([[0.0], [1.1]], [1.0], [1.0]).check(arm)
    present = Reference(np.array([0.05]), np.array([0.2]), np.array([0.0]))
    entered = joint_splines.trapezoidal_trajectory([[0.0], [1.0]], [9.0], [1.0]).starting_from(
        0.3, present
    )
    assert entered.at(0.3 + 1e-9).q[0] == pytest.approx(0.05)
    assert entered.at(0.3 + 1e-9).v[0] == pytest.approx(0.2)


P, T = [[0.0, 0.0], [1.0, 1.0]], [0.0, 1.0]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (
            lambda: joint_splines.cubic_trajectory([[0.0]], [0.0]),
            "number of points = 1; expected at least 2",
        ),
        (
            lambda: joint_splines.cubic_trajectory(None, [0.0]),
            "points = None; expected a list of rows",
        ),
        (
            lambda: joint_splines.cubic_trajectory([1.0, 2.0], T),
            r"points\[0\] = 1.0; expected a list",
        ),
        (
            lambda: joint_splines.cubic_trajectory(P, None),
            "times = None; expected a list of 2 numbers",
        ),
        (
            lambda: joint_splines.quintic_trajectory(P, T, None, 5),
            "accelerations = 5; expected a list of rows",
        ),
        (lambda: joint_splines.cubic_trajectory(P, [0.0]), r"times: shape = \(1,\); expected"),
        (lambda: joint_splines.cubic_trajectory(P, [1.0, 1.0]), r"times\[1\] = 1.0 s after 1.0 s"),
        (lambda: joint_splines.spline_trajectory([[0, 0], [1]], T), r"points\[1\]: shape"),
        (
            lambda: joint_splines.quintic_trajectory([[0, 0], [1, np.nan]], T),
            r"points\[1\]\[1\] = nan",
        ),
        (lambda: joint_splines.cubic_trajectory(P, T, [[0, 0]]), "velocities: 1 rows; expected 2"),
        (
            lambda: joint_splines.cubic_trajectory(P, T, [[0, 0], [0, 1]]),
            "last point = .*; expected 0",
        ),
        (
            lambda: joint_splines.quintic_trajectory(P, T, None, [[0, 0], [0]]),
            r"accelerations\[1\]: shape",
        ),
        (
            lambda: joint_splines.trapezoidal_trajectory(P, [1.0], [1, 1]),
            r"velocity: shape = \(1,\)",
        ),
        (lambda: joint_splines.trapezoidal_trajectory(P, [1.0, -1], [1, 1]), r"velocity\[1\] = -1"),
        (
            lambda: joint_splines.trapezoidal_trajectory(P, [1, 1], [1, np.nan]),
            r"acceleration\[1\] = nan",
        ),
        (
            lambda: joint_splines.trapezoidal_trajectory(P, [1, 0], [1, 1]),
            "from point 0 to 1: velocity",
        ),
        (
            lambda: joint_splines.trapezoidal_trajectory(P, [1, 1], [1, 1], 0, [0.5]),
            "expected at least 2 s",
        ),
        (
            lambda: joint_splines.trapezoidal_trajectory(P, [1, 1], [1, 1], np.nan),
            r"start \[s\] = nan",
        ),
    ],
)
def test_rejections_name_the_waypoint(call, text):
    with pytest.raises(TrajectoryRejected, match=text):
        call()
