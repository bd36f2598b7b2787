"""Online Cartesian trajectories: smooth, within the velocity limits, and reaching the target."""

from functools import cache

import numpy as np
import pinocchio as pin
import pytest
from conftest import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from arm_dynamics.control.trajectories.online_trajectory import (
    OnlineCartesianTrajectory,
    TargetPose,
    TargetTwist,
    TwistProfile,
    blend_time,
)
from arm_dynamics.control.trajectories.tool_paths import MIN_LIMIT, ToolLimits
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import Reference
from arm_dynamics.dynamics.kinematics.frames import pose
from arm_dynamics.model.load import load_arm

LIMITS = ToolLimits(0.25, 1.0, 1.0, 4.0)
SMALL = st.floats(-0.5, 0.5)
SIX = st.lists(SMALL, min_size=6, max_size=6).map(np.array)


@cache
def arm():
    return load_arm("puma560")


def start():
    return Reference.hold(arm().configuration("initial"))


def target_at(six, limits=LIMITS):
    """Return a target displaced by six = (translation, rotation vector) from the initial pose."""
    p, R = pose(arm(), start().q)
    return TargetPose.of(arm(), p + six[:3], pin.exp3(six[3:]) @ R, limits)


def sampled(glide, end=None, n=2001):
    t = np.linspace(glide.start, glide.end if end is None else end, n)
    return t, [glide.at(float(x)) for x in t]


def test_a_twist_profile_is_the_integral_of_its_rate():
    glide, h = TwistProfile(np.ones(6), 0.7, 0.4), 1e-6
    for t in (0.1, 0.69, 0.75, 1.05):
        _, rate, change = glide.at(t)
        assert (glide.at(t + h)[0] - glide.at(t - h)[0]) / (2 * h) == pytest.approx(rate, abs=1e-5)
        assert (glide.at(t + h)[1] - glide.at(t - h)[1]) / (2 * h) == pytest.approx(
            change, abs=1e-5
        )
    assert glide.at(1.1) == glide.at(5.0) == (pytest.approx(0.9), 0.0, 0.0)
    assert glide.at(0.7)[:2] == pytest.approx((0.7, 1.0))


@settings(max_examples=examples(25))
@given(SIX)
def test_a_pose_is_reached_with_bounded_velocity_from_rest(six):
    glide = OnlineCartesianTrajectory.toward(arm(), target_at(six), 3.0, start())
    goal = glide.goal
    _, found = sampled(glide)
    assert np.allclose(found[-1].position, goal.position, atol=1e-9)
    assert np.allclose(found[-1].rotation, goal.rotation, atol=1e-9)
    assert np.abs(found[-1].twist).max() < 1e-9
    twists = np.array([r.twist for r in found])
    assert np.linalg.norm(twists[:, :3], axis=1).max() <= LIMITS.max_linear_velocity * (1 + 1e-6)
    assert np.linalg.norm(twists[:, 3:], axis=1).max() <= LIMITS.max_angular_velocity * (1 + 0.02)
    first = glide.at(3.0)
    p, R = pose(arm(), start().q)
    assert np.allclose(first.position, p, atol=1e-12)
    assert np.allclose(first.rotation, R, atol=1e-12)
    assert np.abs(first.twist).max() < 1e-12


@settings(max_examples=examples(25))
@given(SIX, SIX, st.floats(0, 3))
def test_a_new_target_is_followed_without_a_jump(six, other, when):
    """Position, rotation and twist are continuous at the change; the twist is their derivative."""
    glide = OnlineCartesianTrajectory.toward(arm(), target_at(six), 0.0, start())
    before = glide.at(when)
    after = OnlineCartesianTrajectory.toward(arm(), target_at(other), 0.0, start()).starting_from(
        when, before
    )
    now, h = after.at(when), 1e-6
    assert np.allclose(now.position, before.position, atol=1e-9)
    assert np.allclose(now.rotation, before.rotation, atol=1e-9)
    assert np.allclose(now.twist, before.twist, atol=1e-9)
    for t in (when + 0.05, when + 0.15, when + 0.5):
        a, b, middle = after.at(t - h), after.at(t + h), after.at(t)
        assert np.allclose((b.position - a.position) / (2 * h), middle.twist[:3], atol=1e-5)
        turned = pin.log3(b.rotation @ a.rotation.T) / (2 * h)
        assert np.allclose(turned, middle.twist[3:], atol=1e-5)
        assert np.allclose((b.twist - a.twist) / (2 * h), middle.acceleration, atol=1e-4)
    assert np.allclose(after.at(after.end).position, after.goal.position, atol=1e-9)


@pytest.mark.parametrize("rate", [10, 100, 500])
def test_a_repeated_target_is_reached_as_fast_as_a_single_one(rate):
    """Streams of poses: no standstill by restarts, overshoot at most a tenth of a millimeter."""
    offset = np.array([0.3, 0, 0, 0, 0, 0.2])
    goal = target_at(offset)
    once = OnlineCartesianTrajectory.toward(arm(), goal, 0.0, start())
    p, _ = pose(arm(), start().q)
    again, gone, speeds = once, [], []
    for k in range(1, round((once.end + 2.0) * rate)):
        t = k / rate
        present = again.at(t)
        gone.append(present.position[0] - p[0])
        speeds.append(np.linalg.norm(present.twist[:3]))
        again = again.starting_from(t, present)
    assert max(gone) < 0.3 + 1e-4
    assert gone[-1] == pytest.approx(0.3, abs=2e-3)
    assert max(speeds) <= LIMITS.max_linear_velocity * 1.001
    half = next(i for i, x in enumerate(gone) if x > 0.15) / rate
    alone = next(t for t in np.arange(0, 2, 0.01) if once.at(t).position[0] > p[0] + 0.15)
    assert half < 1.2 * alone


@pytest.mark.parametrize(
    "name",
    [
        "max_linear_velocity",
        "max_linear_acceleration",
        "max_angular_velocity",
        "max_angular_acceleration",
    ],
)
def test_minimum_limits_give_finite_motions_and_lower_ones_are_rejected(name):
    with pytest.raises(InvalidValue, match=f"{name} = 1e-300; expected at least"):
        ToolLimits(**{name: 1e-300})
    goal = target_at(np.full(6, 0.1), ToolLimits(**{name: MIN_LIMIT}))
    glide = OnlineCartesianTrajectory.toward(arm(), goal, 0.0, start())
    for t in (0.0, 0.1, 10.0, glide.end):
        at = glide.at(t)
        assert np.isfinite([*at.position, *at.twist, *at.acceleration]).all()


def test_a_twist_is_held_then_the_tool_comes_to_rest():
    twist = np.array([0.1, -0.05, 0.0, 0.2, 0.0, 0.3])
    goal = TargetTwist.of(arm(), twist, 0.5, LIMITS)
    glide = OnlineCartesianTrajectory.toward(arm(), goal, 0.0, start())
    T = blend_time(twist, LIMITS)
    assert pytest.approx(1.5 * np.linalg.norm(twist[:3]) / 1.0) == T
    for t in (T, 0.3, 0.49):
        assert np.allclose(glide.at(t).twist, twist, atol=1e-9)
        assert np.abs(glide.at(t).acceleration).max() < 1e-9
    end = glide.at(glide.end)
    assert np.abs(end.twist).max() < 1e-12
    assert np.allclose(glide.at(glide.end + 9).position, end.position)
    p, R = pose(arm(), start().q)
    gone = 0.5 + max(np.linalg.norm(twist[:3]) / 1.0, np.linalg.norm(twist[3:]) / 4.0) / 2
    assert np.allclose(end.position, p + (gone - T / 2) * twist[:3], atol=1e-9)
    assert np.allclose(end.rotation, pin.exp3((gone - T / 2) * twist[3:]) @ R, atol=1e-9)


@pytest.mark.parametrize("rate", [10, 50, 500])
def test_a_repeated_twist_gives_one_motion(rate):
    """The acceleration is at least half that of a single twist; then the velocity is constant."""
    twist = np.array([0.2, 0.0, 0.1, 0.0, 0.5, 0.0])
    goal = TargetTwist.of(arm(), twist, 0.5, LIMITS)
    glide, found = OnlineCartesianTrajectory.toward(arm(), goal, 0.0, start()), []
    for k in range(1, rate):
        found.append(glide.at(k / rate))
        glide = glide.starting_from(k / rate, found[-1])
    late = found[round(0.8 * rate) :]
    assert np.allclose([r.twist for r in late], twist, atol=2e-3)
    assert (
        max(np.linalg.norm(r.acceleration[:3]) for r in found)
        < 1.7 * LIMITS.max_linear_acceleration
    )


def test_a_twist_beyond_the_limits_keeps_its_direction():
    goal = TargetTwist.of(arm(), [3, 4, 0, 0, 0, 0], 1.0, LIMITS)
    assert np.allclose(goal.twist, [0.15, 0.2, 0, 0, 0, 0])


def test_uncontrolled_axes_are_rejected_or_ignored():
    planar = load_arm("two_link")
    with pytest.raises(InvalidValue, match=r"rx = 0.1.*two_link.* x, z"):
        TargetTwist.of(planar, [0, 0, 0, 0.1, 0, 0], 1.0, LIMITS)
    goal = TargetPose.of(planar, [0.5, 0.7, 0.2], np.eye(3), LIMITS)
    held = Reference.hold([0.3, 0.4])
    p, R = pose(planar, held.q)
    end = OnlineCartesianTrajectory.toward(planar, goal, 0.0, held)
    end = end.at(end.end)
    assert np.allclose(end.position, [0.5, p[1], 0.2])
    assert np.allclose(end.rotation, R)


@pytest.mark.parametrize("bad", [[np.nan] * 3, [1e7, 0, 0], [0, 0]])
def test_an_invalid_target_is_rejected(bad):
    with pytest.raises(InvalidValue):
        TargetPose.of(arm(), bad, np.eye(3), LIMITS)
    with pytest.raises(InvalidValue):
        TargetTwist.of(arm(), [*bad, 0, 0, np.inf], 1.0, LIMITS)


def test_a_wrench_and_a_posture_are_passed_through():
    glide = OnlineCartesianTrajectory.toward(arm(), target_at(np.zeros(6)), 0.0, start())
    assert np.array_equal(glide.at(1.0).q, start().q)
    assert not glide.at(1.0).wrench.any()
