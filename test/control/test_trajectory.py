"""Trajectories: boundary values, derivatives, continuity, rejections with their cause."""

import numpy as np
import pytest
from conftest import five_dof
from hypothesis import given
from hypothesis import strategies as st

from arm_dynamics.control.trajectories.joint_trajectory import (
    JointTrajectory,
    Waypoint,
    check_limits,
    segment_spline,
)
from arm_dynamics.control.trajectories.trajectory_parsing import Options, parse_trajectory
from arm_dynamics.core.errors import InvalidValue, TrajectoryRejected
from arm_dynamics.core.state import Reference

NAMES = five_dof().joint_names
HOME = five_dof().configuration("initial")

some = st.floats(-5, 5)
rows = st.lists(some, min_size=3, max_size=3).map(np.array)
durations = st.floats(0.1, 10)


def waypoint(draw, time, order):
    return Waypoint(time, draw(rows), *[draw(rows) for _ in range(order)])


@st.composite
def segments(draw):
    order = draw(st.integers(0, 2))
    start = draw(st.floats(-5, 5))
    return order, waypoint(draw, start, order), waypoint(draw, start + draw(durations), order)


@given(segments())
def test_boundary_values_are_met(case):
    order, start, end = case
    for point in (start, end):
        reference = segment_spline(start, end, point.time)
        scale = 1e-9 * (1 + 1 / (end.time - start.time)) ** 2 * 100
        np.testing.assert_allclose(reference.q, point.q, atol=scale)
        if order > 0:
            np.testing.assert_allclose(reference.v, point.v, atol=scale)
        if order > 1:
            np.testing.assert_allclose(reference.a, point.a, atol=scale)


@given(segments(), st.floats(0.05, 0.95))
def test_velocity_and_acceleration_are_the_derivatives(case, fraction):
    _, start, end = case
    T = end.time - start.time
    t, h = start.time + fraction * T, 1e-5 * T
    before, at, after = (segment_spline(start, end, x) for x in (t - h, t, t + h))
    scale = (5 + 5 * T + 5 * T * T) / T
    np.testing.assert_allclose((after.q - before.q) / (2 * h), at.v, atol=1e-6 * scale)
    np.testing.assert_allclose((after.v - before.v) / (2 * h), at.a, atol=1e-6 * scale / T)


@given(segments(), st.floats(0, 1))
def test_the_degree_is_the_lowest(case, fraction):
    """Positions without derivatives give a line: position and time advance by the same fraction."""
    _, start, end = case
    t = start.time + fraction * (end.time - start.time)
    line = segment_spline(Waypoint(start.time, start.q), Waypoint(end.time, end.q), t)
    np.testing.assert_allclose(line.q, start.q + fraction * (end.q - start.q), atol=1e-9)
    assert not line.a.any()


def test_a_cubic_between_rests_by_hand():
    start, end = (Waypoint(t, np.array([q]), np.zeros(1)) for t, q in ((1.0, 0.0), (3.0, 4.0)))
    middle = segment_spline(start, end, 2.0)
    # q = 3 h (s/T)² - 2 h (s/T)³, with its maximum velocity 1.5 h / T in the middle.
    assert (middle.q[0], middle.v[0], middle.a[0]) == pytest.approx((2.0, 3.0, 0.0))
    assert segment_spline(start, end, 1.5).q[0] == pytest.approx(4 * (3 / 16 - 2 / 64))


def route(order, times=(1.0, 2.0, 3.5), start=0.0):
    q = [HOME + np.array([0.1, 0.1, -0.1, 0.2, 0.1]) * k for k in range(len(times))]
    v = [np.full(5, 0.05 * (k < len(times) - 1)) for k in range(len(times))]
    a = [np.full(5, 0.1 * (k < len(times) - 1)) for k in range(len(times))]
    return parse_trajectory(five_dof(), NAMES, times, q, *(v, a)[:order], start=start)


@pytest.mark.parametrize("order", [0, 1, 2])
def test_continuity_at_the_waypoints_and_rest_outside(order):
    trajectory, h = route(order), 1e-9
    for time in (1.0, 2.0, 3.5):
        before, after = trajectory.at(time - h), trajectory.at(time + h)
        np.testing.assert_allclose(before.q, after.q, atol=1e-7)
        if order > 0 and time == 2.0:
            np.testing.assert_allclose(before.v, after.v, atol=1e-7)
        if order > 1 and time == 2.0:
            np.testing.assert_allclose(before.a, after.a, atol=1e-6)
    for time, k in ((-5.0, 0), (99.0, -1)):
        reference = trajectory.at(time)
        np.testing.assert_array_equal(reference.q, trajectory.waypoints[k].q)
        assert not reference.v.any()
        assert not reference.a.any()


@pytest.mark.parametrize("order", [0, 1, 2])
def test_a_transition_starts_at_the_reference(order):
    present = Reference(HOME + 0.05, np.full(5, 0.3), np.full(5, -0.2))
    entered = route(order).starting_from(1.4, present)
    assert [w.time for w in entered.waypoints] == [1.4, 2.0, 3.5]
    start = entered.at(1.4 + 1e-12)
    np.testing.assert_allclose(start.q, present.q, atol=1e-10)
    if order > 0:
        np.testing.assert_allclose(start.v, present.v, atol=1e-10)
    if order > 1:
        np.testing.assert_allclose(start.a, present.a, atol=1e-9)
    for time in (2.0, 2.7, 3.5):
        np.testing.assert_allclose(entered.at(time).q, route(order).at(time).q, atol=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_a_transition_in_motion_has_continuous_velocity(order):
    zeros = np.zeros(3)
    rows = [np.full(3, x) for x in (0.0, 1.0)]
    at_rest = [Waypoint(t, q, *[zeros] * order) for t, q in zip((0.0, 2.0), rows, strict=True)]
    present = Reference(np.full(3, 0.2), np.full(3, 0.4), np.full(3, 0.1))
    found = JointTrajectory(tuple(at_rest)).starting_from(0.5, present).at(0.5)
    np.testing.assert_allclose(found.q, present.q, atol=1e-12)
    np.testing.assert_allclose(found.v, present.v, atol=1e-12)
    if order == 2:
        np.testing.assert_allclose(found.a, present.a, atol=1e-12)


def test_hold_is_constant():
    hold = JointTrajectory.hold(HOME, 2.0)
    assert hold.end == 2.0
    for time in (0.0, 2.0, 9.0):
        np.testing.assert_array_equal(hold.at(time).q, HOME)


def test_joints_are_matched_by_name():
    order = [3, 0, 4, 1, 2]
    q = np.array(HOME)[order]
    trajectory = parse_trajectory(five_dof(), [NAMES[i] for i in order], [1.0], [q], start=5.0)
    np.testing.assert_array_equal(trajectory.waypoints[0].q, HOME)
    assert trajectory.end == 6.0


def test_references_are_read_only():
    for order in (0, 1, 2):
        reference = route(order).at(1.7)
        assert not any(x.flags.writeable for x in (reference.q, reference.v, reference.a))


Z = [0.0] * 5


@pytest.mark.parametrize(
    ("names", "times", "tables", "text"),
    [
        (NAMES[:4], [1], [[Z]], "missing joint 'R5'"),
        (
            (*NAMES, "R9"),
            [1],
            [[Z]],
            r"unknown joint 'R9'; expected each of R1, R2, R3, R4, R5 once",
        ),
        ((*NAMES, "R1"), [1], [[Z]], "repeated joint 'R1'"),
        (NAMES, [], [[]], "number of waypoints = 0"),
        (NAMES, [1, 1], [[Z, Z]], r"waypoint 1: time_from_start = 1 s; .*strictly increasing"),
        (NAMES, [2, 1], [[Z, Z]], r"waypoint 1: .*previous: 2"),
        (NAMES, [-1], [[Z]], "waypoint 0: time_from_start = -1 s"),
        (NAMES, [1, np.nan], [[Z, Z]], "waypoint 1: time_from_start = nan s"),
        (NAMES, [1], [[]], "positions: none given"),
        (NAMES, [1, 2], [[Z]], "positions: 1 rows; expected 2"),
        (NAMES, [1, 2], [[Z, Z[:3]]], "waypoint 1: 3 positions; expected 5"),
        (NAMES, [1, 2], [[Z, []]], "waypoint 1: 0 positions; expected 5"),
        (NAMES, [1], [[[0, 0, np.nan, 0, 0]]], "joint 'R3': positions of waypoint 0 = nan"),
        (NAMES, [1], [[Z], [[0, np.inf, 0, 0, 0]]], "joint 'R2': velocities of waypoint 0 = inf"),
        (NAMES, [1, 2], [[Z, Z], [Z, Z[:3]]], "waypoint 1: 3 velocities; expected 5"),
        (NAMES, [1, 2], [[Z, Z], [Z, []], [Z, Z]], "without velocities at waypoint 1"),
        (NAMES[:4], [1], [[Z[:4]]], "or the parameter allow_partial_joints_goal true"),
        (NAMES, [1], [[Z], [], [Z]], "accelerations: given without velocities"),
        (
            NAMES,
            [1],
            [[Z], [[0, 0, 0, 0.5, 0]]],
            r"'R4': velocity = 0.5 rad/s at the last waypoint",
        ),
    ],
)
def test_rejections_name_the_cause(names, times, tables, text):
    with pytest.raises(TrajectoryRejected, match=text):
        parse_trajectory(five_dof(), names, times, *tables)


def test_a_segment_to_or_from_a_waypoint_without_velocities_is_linear():
    """As in joint_trajectory_controller, whose cubics need velocities at both ends."""
    arm, q = five_dof(), [HOME + k * np.array([0.1, 0.05, 0.04, 0, 0.1]) for k in (0, 1, 3, 4)]
    v = [HOME * 0 + 0.05, HOME * 0 + 0.1, [], HOME * 0]
    mixed = parse_trajectory(arm, NAMES, [0, 1, 2, 3], q, v)
    mixed.check(arm)
    for k, T in ((0, 0.3), (1, 0.4), (2, 0.9)):
        h = q[k + 1] - q[k]
        expected = q[k] + T * h
        if k == 0:  # Hermite form of the cubic
            blend = 3 * T**2 - 2 * T**3
            expected = q[0] + blend * h + (T**3 - 2 * T**2 + T) * v[0] + (T**3 - T**2) * v[1]
        np.testing.assert_allclose(mixed.at(k + T).q, expected, atol=1e-12)
    fast = [q[0], q[0], q[0] + 5 * arm.velocity_limit * np.eye(5)[0] * 0.02, q[3]]
    with pytest.raises(TrajectoryRejected, match=r"'R1': velocity .* expected within the limit"):
        parse_trajectory(arm, NAMES, [0, 1, 1.01, 3], fast, v).check(arm)


def test_late_velocities_are_integrated_from_the_first_waypoint_ahead():
    """q_k = q_k-1 + (v_k-1 + v_k) h / 2 from the present reference; past waypoints do not count."""
    v = np.array([[k + 1.0] * 5 for k in range(5)])
    start = Reference(HOME, np.full(5, 0.5), np.zeros(5))
    late = Options(end_in_motion=True, integrate_from=start, now=2.5)
    found = parse_trajectory(five_dof(), NAMES, [1, 2, 3, 4, 6], [], v, options=late).waypoints
    assert [point.time for point in found] == [3, 4, 6]
    np.testing.assert_array_equal([point.v for point in found], v[2:])
    means, h = [(0.5 + 3) / 2, (3 + 4) / 2, (4 + 5) / 2], [0.5, 1, 2]
    expected = HOME[0] + np.cumsum(np.multiply(means, h))
    np.testing.assert_allclose([point.q[0] for point in found], expected, atol=1e-12)


def test_times_closer_than_the_clock_resolution_are_rejected():
    with pytest.raises(TrajectoryRejected, match="waypoint 1"):
        parse_trajectory(five_dof(), NAMES, [1.0, 1.0 + 1e-9], [Z, Z], start=1.7e9)


def entered(q, time, **more):
    trajectory = parse_trajectory(five_dof(), NAMES, [time], [q], **more)
    return trajectory.starting_from(0.0, Reference.hold(HOME))


def test_limits_name_joint_value_limit_and_time():
    arm = five_dof()
    check_limits(arm, entered([0, -1.0, 0.3, 0, 0], 1.0))
    with pytest.raises(TrajectoryRejected, match=r"'R2': position .* rad at .* \[-1.2, 0.7\]"):
        check_limits(arm, entered([0, -1.3, 0.3, 0, 0], 10.0))
    with pytest.raises(TrajectoryRejected, match=r"'R1': velocity = 2 rad/s at .* the limit 1.2"):
        check_limits(arm, entered([1.0, -1.1, 0.3, 0, 0], 0.5))


@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize(("joint", "side"), [(1, -1), (1, 1), (2, -1), (2, 1), (4, 1)])
def test_a_position_limit_is_checked_up_to_rounding(joint, side, order):
    """Up to q_max and 1e-10 rad beyond is accepted, 1e-8 rad beyond is not."""
    arm = five_dof()
    end = float((arm.upper if side > 0 else arm.lower)[joint])
    rests = [[[0.0] * 5] * 2, [[0.0] * 5] * 2][:order]

    def to(beyond):
        q = HOME.copy()
        q[joint] = end + side * beyond
        trajectory = parse_trajectory(arm, NAMES, [10.0, 11.0], [q, q], *rests)
        return trajectory.starting_from(0.0, Reference.hold(HOME))

    for beyond in (0.0, 1e-10):
        check_limits(arm, to(beyond))
    for beyond in (1e-8, 1e-3):
        with pytest.raises(TrajectoryRejected, match=f"'{NAMES[joint]}': position"):
            check_limits(arm, to(beyond))


@pytest.mark.parametrize("sign", [1, -1])
def test_a_velocity_limit_is_checked_up_to_rounding(sign):
    """A line at v_max is accepted, one faster by 1e-5 is not."""
    arm = five_dof()
    distance = sign * arm.velocity_limit[0]
    for fraction in (1 - 1e-9, 1 + 1e-9):
        check_limits(arm, entered([fraction * distance, *HOME[1:]], 1.0))
    with pytest.raises(TrajectoryRejected, match="'R1': velocity"):
        check_limits(arm, entered([(1 + 1e-5) * distance, *HOME[1:]], 1.0))


def test_a_spline_that_overshoots_a_limit_is_rejected():
    arm, q = five_dof(), [0, -1.15, 0.3, 0, 0]
    slow = parse_trajectory(arm, NAMES, [1.0, 2.0], [q, q], [[0] * 5] * 2)
    check_limits(arm, slow.starting_from(0.0, Reference.hold(HOME)))
    overshooting = parse_trajectory(arm, NAMES, [1.0, 2.0], [q, q], [[0, -0.5, 0, 0, 0], [0] * 5])
    with pytest.raises(TrajectoryRejected, match=r"joint 'R2': position = -1.2"):
        check_limits(arm, overshooting.starting_from(0.0, Reference.hold(HOME)))


def test_motion_back_from_beyond_a_limit_is_allowed_and_further_motion_is_not():
    arm, outside = five_dof(), np.array([0, -1.25, 0.3, 0, 0])

    def move_to(angle):
        trajectory = parse_trajectory(arm, NAMES, [1.0], [[0, angle, 0.3, 0, 0]])
        return trajectory.starting_from(0.0, Reference.hold(outside))

    check_limits(arm, move_to(-1.1))
    with pytest.raises(TrajectoryRejected, match=r"'R2': position = -1\.3"):
        check_limits(arm, move_to(-1.3))


def test_a_continuous_joint_may_rotate_without_limit():
    check_limits(five_dof(), entered([60.0, -1.1, 0.3, 0, 0], 100.0))


@pytest.mark.parametrize("count", [1, 3])
def test_a_time_that_is_not_a_number_is_rejected(count):
    waypoints = tuple(Waypoint(float(k), np.zeros(5)) for k in range(count))
    with pytest.raises(InvalidValue, match="time = nan s; expected a number"):
        JointTrajectory(waypoints).at(np.nan)
