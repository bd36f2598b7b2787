"""Cartesian trajectories: segment geometry, consistent derivatives, continuous transitions."""

import itertools

import numpy as np
import pinocchio as pin
import pytest
from conftest import five_dof
from hypothesis import given
from hypothesis import strategies as st

from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
from arm_dynamics.control.trajectories.profiles import cubic, quintic, trapezoidal
from arm_dynamics.control.trajectories.tool_paths import ToolLimits
from arm_dynamics.core.errors import ArmDynamicsError, InvalidValue
from arm_dynamics.core.state import Reference, TaskReference
from arm_dynamics.dynamics.kinematics import frames

ARM = five_dof()
HOME = ARM.configuration("initial")
P0, R0 = frames.pose(ARM, HOME)

triples = st.lists(st.floats(-1, 1), min_size=3, max_size=3).map(np.array)
timings = st.sampled_from(
    [cubic(1.0), quintic(2.0), trapezoidal(0.7, 2.0), ToolLimits(0.2, 0.5, 0.8, 2.0)]
)


def tool_at(*offset):
    return P0 + np.array(offset)


def turned(vector):
    return pin.exp3(np.asarray(vector)) @ R0


@st.composite
def trajectories(draw):
    found = CartesianTrajectory.from_configuration(ARM, HOME, start=1.0)
    for kind in draw(st.lists(st.sampled_from("lach"), min_size=1, max_size=3)):
        timing, rotation = draw(timings), turned(draw(triples))
        a, b = draw(triples), draw(triples)
        if kind == "l":
            found = found.line(P0 + 0.2 * a, timing, rotation)
        elif kind == "a" and np.linalg.norm(np.cross(a, b)) > 0.05:
            p = found.at(found.end).position
            found = found.arc(p + 0.2 * a, p + 0.2 * b, timing, rotation)
        elif kind == "c" and np.linalg.norm(a) > 0.1 and np.linalg.norm(np.cross(a, b)) > 0.1:
            p = found.at(found.end).position
            found = found.circle(p + 0.3 * b, a, draw(st.floats(-7, 7)), timing)
        else:
            found = found.hold(draw(st.floats(0.2, 2)))
    return found


def require_consistent(trajectory, t, h=1e-5):
    """Check that twist and acceleration at t are the derivatives of pose and twist."""
    before, at, after = (trajectory.at(x) for x in (t - h, t, t + h))
    scale = 1 + np.abs(at.twist).max() + np.abs(at.acceleration).max()
    v = (after.position - before.position) / (2 * h)
    w = pin.log3(after.rotation @ before.rotation.T) / (2 * h)
    np.testing.assert_allclose(np.append(v, w), at.twist, atol=1e-6 * scale)
    rate = (after.twist - before.twist) / (2 * h)
    np.testing.assert_allclose(rate, at.acceleration, atol=1e-5 * scale)
    np.testing.assert_allclose((after.q - before.q) / (2 * h), at.v, atol=1e-6)
    np.testing.assert_allclose((after.v - before.v) / (2 * h), at.a, atol=1e-5)


def acceleration_jumps(trajectory):
    """Return the times at which an acceleration may jump."""
    inner = [[k + t for t in (*p.times, p.duration)] for k, (_, p) in
             zip(trajectory.knots, trajectory.segments, strict=False)]  # fmt: skip
    entry = [] if trajectory.entry is None else [trajectory.entry.begin, trajectory.entry.end]
    return [trajectory.start_time, trajectory.end, *itertools.chain(*inner), *entry]


@given(trajectories(), st.floats(0, 1))
def test_rates_are_the_derivatives(trajectory, fraction):
    t = trajectory.start + fraction * (trajectory.end - trajectory.start)
    if min(abs(t - x) for x in acceleration_jumps(trajectory)) > 1e-4:
        require_consistent(trajectory, t)


@given(trajectories())
def test_position_and_twist_are_continuous_and_it_rests_outside(trajectory):
    for t in acceleration_jumps(trajectory):
        before, after = trajectory.at(t - 1e-9), trajectory.at(t + 1e-9)
        np.testing.assert_allclose(before.position, after.position, atol=1e-7)
        np.testing.assert_allclose(before.rotation, after.rotation, atol=1e-7)
        np.testing.assert_allclose(before.twist, after.twist, atol=1e-6)
    for t in (trajectory.start_time - 1, trajectory.end + 1):
        assert not trajectory.at(t).twist.any()
        assert not trajectory.at(t).acceleration.any()


def test_a_line_is_straight_with_a_rotation_about_one_axis_at_constant_rate():
    to, turn = tool_at(0.1, -0.05, 0.02), np.array([0.3, -0.8, 0.4])
    line = CartesianTrajectory.from_configuration(ARM, HOME).line(to, quintic(2.0), turned(turn))
    for t in (0.3, 1.0, 1.8):
        s, _, _ = quintic(2.0).at(t)
        np.testing.assert_allclose(line.at(t).position, P0 + s * (to - P0), atol=1e-12)
        np.testing.assert_allclose(line.at(t).rotation, turned(s * turn), atol=1e-12)
        assert np.linalg.norm(np.cross(line.at(t).twist[3:], turn)) < 1e-12
    np.testing.assert_allclose(line.at(2.0).position, to, atol=1e-12)


def test_an_arc_through_three_points_keeps_its_radius():
    via, to = tool_at(0.05, 0.05, 0.0), tool_at(0.1, 0.0, 0.0)
    arc = CartesianTrajectory.from_configuration(ARM, HOME).arc(via, to, quintic(2.0))
    center = tool_at(0.05, 0.0, 0.0)
    places = [arc.at(t).position for t in np.linspace(0, 2, 41)]
    np.testing.assert_allclose(np.linalg.norm(places - center, axis=1), 0.05, atol=1e-12)
    np.testing.assert_allclose(places[20], via, atol=1e-12)
    np.testing.assert_allclose(places[-1], to, atol=1e-12)


@given(triples, triples)
def test_an_arc_passes_its_points(via, to):
    if np.linalg.norm(np.cross(via, to)) < 0.05:
        return
    curve = (
        CartesianTrajectory.from_configuration(ARM, HOME)
        .arc(P0 + via, P0 + to, quintic(1.0))
        .segments[0][0]
    )
    np.testing.assert_allclose(curve.at(1.0)[0], P0 + to, atol=1e-9)
    nearest = min(np.linalg.norm(curve.at(s)[0] - P0 - via) for s in np.linspace(0, 1, 2001))
    assert nearest < 2e-3 * curve.curve.length


def test_a_full_circle_returns_to_its_start():
    circle = CartesianTrajectory.from_configuration(ARM, HOME).circle(
        tool_at(0, 0, 0.1), [0, 2, 0], 2 * np.pi, ToolLimits(0.1, 0.5)
    )
    np.testing.assert_allclose(circle.at(circle.end).position, P0, atol=1e-12)
    quarter = circle.segments[0][0].at(0.25)[0]  # below the center, about y: on toward -x
    np.testing.assert_allclose(quarter, tool_at(-0.1, 0, 0.1), atol=1e-12)


def test_a_circle_keeps_its_distance_from_the_axis_and_its_height_along_it():
    """About any point of the axis."""
    point, axis = tool_at(0.3, -0.2, 0.1), np.array([1.0, 2.0, -2.0]) / 3
    rest = CartesianTrajectory.from_configuration(ARM, HOME)
    curve = rest.circle(point, 5 * axis, 2.0, quintic(1.0)).segments[0][0]
    distance = np.linalg.norm(np.cross(P0 - point, axis))
    for s in np.linspace(0, 1, 9):
        p = curve.at(s)[0]
        assert np.linalg.norm(np.cross(p - point, axis)) == pytest.approx(distance, abs=1e-12)
        assert (p - P0) @ axis == pytest.approx(0.0, abs=1e-12)
    assert np.linalg.norm(curve.at(1.0)[0] - P0) == pytest.approx(2 * distance * np.sin(1.0))


@given(trajectories())
def test_tool_limits_are_kept_and_one_is_touched(trajectory):
    limits = ToolLimits(0.2, 0.5, 0.8, 2.0)
    for (path, _), begin in zip(trajectory.segments, trajectory.knots, strict=False):
        profile = limits.profile(path)
        if profile is None or begin < 0:
            continue
        times = np.linspace(0, profile.duration, 201)
        _, v, a = np.array([profile.at(t) for t in times]).T
        length, angle = path.curve.length, np.linalg.norm(path.turn)
        peak = np.abs([v.max() * length / 0.2, v.max() * angle / 0.8])
        strength = [
            np.abs(a).max() * length / 0.5, np.abs(a).max() * angle / 2.0,
            v.max() ** 2 * path.curve.curvature_bound / 0.5,
        ]  # fmt: skip
        assert max(*peak, *strength) == pytest.approx(1, abs=1e-6)


def test_limits_without_distance_take_no_time():
    rest = CartesianTrajectory.from_configuration(ARM, HOME)
    assert rest.line(P0, ToolLimits()).end == rest.end == 0.0
    assert rest.line(P0, cubic(1.0)).end == 1.0


presents = st.builds(
    lambda p, turn, v, w, a, alpha: TaskReference(
        HOME + 0.1, np.full(5, 0.2), np.full(5, -0.3), P0 + 0.1 * p, turned(turn),
        np.append(v, w), np.append(a, alpha), np.arange(6.0),
    ),
    *[triples] * 6,
)  # fmt: skip


@given(trajectories(), presents, st.floats(-0.5, 1.2))
def test_a_transition_starts_at_the_reference_and_ends_on_the_trajectory(
    trajectory, present, fraction
):
    now = trajectory.start + fraction * (trajectory.end - trajectory.start)
    if min(abs(now - x) for x in acceleration_jumps(trajectory)) < 1e-3:
        return
    entered = trajectory.starting_from(now, present)
    first = entered.at(now)
    for name in ("position", "rotation", "twist", "acceleration", "q", "v", "a", "wrench"):
        np.testing.assert_allclose(getattr(first, name), getattr(present, name), atol=1e-9)
    assert entered.end >= trajectory.end
    assert entered.start == now
    for t in (entered.entry.end, entered.end, entered.end + 1):
        np.testing.assert_allclose(entered.at(t).position, trajectory.at(t).position, atol=1e-12)
        np.testing.assert_allclose(entered.at(t).twist, trajectory.at(t).twist, atol=1e-12)
    assert not entered.at(now - 1).twist.any()


@given(trajectories(), presents, st.floats(-0.5, 1.2), st.floats(0.01, 0.99))
def test_rates_are_the_derivatives_during_a_transition(trajectory, present, fraction, into):
    now = trajectory.start + fraction * (trajectory.end - trajectory.start)
    entered = trajectory.starting_from(now, present)
    t = now + into * (entered.entry.end - now)
    if (
        min(abs(t - x) for x in acceleration_jumps(entered)) > 1e-4
        and entered.entry.end - now > 0.15
    ):
        require_consistent(entered, t)


def test_a_transition_from_the_trajectory_itself_changes_nothing():
    line = CartesianTrajectory.from_configuration(ARM, HOME).line(P0 + 0.05, quintic(2.0))
    assert line.starting_from(0.7, line.at(0.7)).entry is None


def test_a_transition_from_a_joint_reference_starts_at_its_tool():
    v, a = np.full(5, 0.3), np.full(5, -0.1)
    line = CartesianTrajectory.from_configuration(ARM, HOME, start=1.0).line(
        P0 + 0.05, quintic(2.0)
    )
    first = line.starting_from(0.0, Reference(HOME + 0.1, v, a)).at(0.0)
    np.testing.assert_allclose(first.position, frames.tool_position(ARM, HOME + 0.1))
    np.testing.assert_allclose(first.twist, frames.twist(ARM, HOME + 0.1, v), atol=1e-12)
    expected = frames.acceleration(ARM, HOME + 0.1, v, a)
    np.testing.assert_allclose(first.acceleration, expected, atol=1e-12)


def test_references_are_read_only():
    line = CartesianTrajectory.from_configuration(ARM, HOME).line(P0 + 0.05, quintic(2.0))
    present = line.at(0.5)
    shifted = CartesianTrajectory.from_configuration(ARM, HOME).line(P0 - 0.05, quintic(2.0))
    for reference in (
        line.at(-1),
        present,
        line.at(9),
        shifted.starting_from(0.2, present).at(0.5),
    ):
        for name in ("q", "v", "a", "position", "rotation", "twist", "acceleration", "wrench"):
            assert not getattr(reference, name).flags.writeable


REST = CartesianTrajectory.from_configuration(ARM, HOME)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: REST.line([0, 0], cubic(1.0)), r"to: shape = \(2,\)"),
        (lambda: REST.line([0, 0, np.nan], cubic(1.0)), r"to\[2\] = nan"),
        (lambda: REST.line(P0, 2.0), "timing = 2.0; expected a Profile; cubic"),
        (lambda: REST.line(P0, cubic(1.0), 2 * np.eye(3)), "rotation: .* expected a rotation"),
        (lambda: REST.arc(P0 + 0.1, P0 + 0.2, cubic(1.0)), "not collinear"),
        (lambda: REST.arc(P0, P0 + 0.2, cubic(1.0)), "not collinear"),
        (lambda: REST.circle(tool_at(0, 0, 1), [0, 0, 0], 1, cubic(1.0)), "axis = "),
        (lambda: REST.circle(tool_at(0, 0, 1), [0, 0, 1], 1, cubic(1.0)), "not on the axis"),
        (lambda: REST.circle(tool_at(0, 0, 1), [1, 0, 0], np.inf, cubic(1.0)), "angle .rad. = inf"),
        (lambda: REST.hold(0.0), "duration .s. = 0"),
        (lambda: ToolLimits(max_linear_velocity=0.0), "max_linear_velocity = 0"),
        (lambda: CartesianTrajectory.from_configuration(ARM, HOME[:3]), "q: shape"),
        (lambda: CartesianTrajectory.from_configuration("five_dof", HOME), "arm = 'five_dof'"),
        (lambda: CartesianTrajectory.from_pose(ARM, P0, -np.eye(3), HOME), "expected a rotation"),
    ],
)
def test_rejections_name_the_cause(call, message):
    with pytest.raises(ArmDynamicsError, match=message) as raised:
        call()
    assert isinstance(raised.value, InvalidValue)


def test_a_time_that_is_not_a_number_is_rejected():
    rest = CartesianTrajectory.from_configuration(five_dof(), np.zeros(5))
    for trajectory in (rest, rest.line(0.9 * rest.position, cubic(1.0))):
        with pytest.raises(InvalidValue, match="time = nan s; expected a number"):
            trajectory.at(np.nan)
