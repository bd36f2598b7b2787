"""Inverse kinematics: round trips on every arm, limits, free axes, unreachable targets."""

import json
import pickle
from functools import cache
from math import hypot, pi
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from conftest import chain, examples
from four_joint_ik import elbow_postures
from hypothesis import given, settings
from hypothesis import strategies as st

from arm_dynamics import load_arm
from arm_dynamics.core.errors import ArmDynamicsError, InvalidValue, UnknownName, Unreachable
from arm_dynamics.dynamics.kinematics.frames import jacobian, pose
from arm_dynamics.dynamics.kinematics.inverse_kinematics import (
    TOLERANCE,
    inverse_kinematics,
    nearest_reachable,
)

ARMS = ("five_dof", "four_joint", "puma560", "two_link", "two_link_pb", "three_link")
PAIRS = json.loads((Path(__file__).parents[1] / "data/four_joint/fk_ik_pairs.json").read_text())
arm_of = cache(load_arm)
fraction = st.floats(0, 1)
TIP = (
    '<link name="tip"/><joint name="tip_joint" type="fixed"><origin xyz="0.5 0 0"/>'
    '<parent link="{}_link"/><child link="tip"/></joint>'
)


def configuration_at(arm, fractions):
    """Return the configuration at these fractions of the ranges; one turn without limits."""
    lower = np.where(np.isfinite(arm.lower), arm.lower, -pi)
    upper = np.where(np.isfinite(arm.upper), arm.upper, pi)
    return lower + np.array(fractions[: arm.nv]) * (upper - lower)


def angle(R, S):
    return np.linalg.norm(pin.log3(R @ S.T))


# --- round trips ---


@pytest.mark.parametrize("name", ARMS)
@settings(max_examples=examples(25))
@given(st.tuples(*[st.floats(0.05, 0.95)] * 6))
def test_the_pose_of_a_configuration_is_found(name, fractions):
    arm = arm_of(name)
    position, rotation = pose(arm, configuration_at(arm, fractions))
    found = inverse_kinematics(arm, position, rotation)
    there = pose(arm, found.q)
    assert np.linalg.norm(there[0] - position) <= TOLERANCE * 1.01
    assert angle(there[1], rotation) <= TOLERANCE * 1.01
    np.testing.assert_array_equal(found.position, there[0])
    np.testing.assert_array_equal(found.rotation, there[1])
    assert (found.q >= arm.lower).all()
    assert (found.q <= arm.upper).all()


@pytest.mark.parametrize("name", ARMS)
@settings(max_examples=examples(25))
@given(st.tuples(*[fraction] * 6))
def test_the_position_of_a_configuration_is_found(name, fractions):
    arm = arm_of(name)
    target = pose(arm, configuration_at(arm, fractions))[0]
    found = inverse_kinematics(arm, target)
    assert np.linalg.norm(pose(arm, found.q)[0] - target) <= TOLERANCE * 1.01
    assert (arm.lower <= found.q).all()
    assert (found.q <= arm.upper).all()


def test_inverse_kinematics_of_every_frame():
    arm = arm_of("puma560")
    q = arm.configuration("initial") + 0.2
    for frame in ("J3_link", "J5_link", "J6_link"):
        target = pose(arm, q, frame)
        found = inverse_kinematics(arm, *target, frame=frame)
        np.testing.assert_allclose(pose(arm, found.q, frame)[0], target[0], atol=1e-8)


@given(st.tuples(*[st.floats(0.1, 0.9)] * 6), st.tuples(*[st.floats(-1e-3, 1e-3)] * 6))
def test_a_warm_start_keeps_its_branch(fractions, off):
    arm = arm_of("puma560")
    q = configuration_at(arm, fractions)
    if np.linalg.svd(jacobian(arm, q), compute_uv=False)[-1] < 0.05:
        return  # branches meet at singular configurations
    found = inverse_kinematics(arm, *pose(arm, q), initial_guess=q + off)
    np.testing.assert_allclose(found.q, q, atol=1e-7)
    assert found.restarts == 0
    assert found.iterations <= 4


@pytest.mark.parametrize("elbow", [0, 1])
def test_both_elbow_solutions_of_four_joint_are_found_from_their_side(elbow):
    arm = arm_of("four_joint")
    for pair in PAIRS["pairs"]:
        expected = elbow_postures(pair["xyz"])[elbow]
        found = inverse_kinematics(arm, *pose(arm, expected), initial_guess=expected + 0.05)
        np.testing.assert_allclose(found.q, expected, atol=1e-7)


# --- limits, and turns ---


@settings(max_examples=examples(25))
@given(st.tuples(*[st.floats(-1.2, 1.2)] * 3), st.integers(0, 9))
def test_limits_hold_for_every_target(target, seed):
    arm = arm_of("five_dof")
    found = nearest_reachable(arm, target, restarts=1, seed=seed)
    assert (arm.lower <= found.q).all()
    assert (found.q <= arm.upper).all()
    assert found.position_error == pytest.approx(np.linalg.norm(pose(arm, found.q)[0] - target))


def test_a_start_beyond_the_limits_is_clipped():
    arm = chain({"lower": 0.0, "upper": 1.0}, {"lower": 0.0, "upper": 1.0}, more=TIP.format("J2"))
    target = pose(arm, [0.5, 0.5])[0]
    found = inverse_kinematics(arm, target, initial_guess=[-2.0, 9.0])
    np.testing.assert_allclose(found.q, [0.5, 0.5], atol=1e-7)


def test_the_best_solution_is_at_the_joint_limit():
    """One link of 0.5 m, range up to 1 rad, target at 1.4 rad: the position error is a chord."""
    arm = chain({"lower": 0.0, "upper": 1.0, "axis": "0 -1 0"}, more=TIP.format("J1"))
    target = (0.5 * np.cos(1.4), 0, 0.5 * np.sin(1.4))
    found = nearest_reachable(arm, target, restarts=2)
    assert found.q[0] == 1.0
    assert found.position_error == pytest.approx(2 * 0.5 * np.sin(0.2), abs=1e-12)


@given(st.integers(-5, 5), st.integers(-5, 5))
def test_continuous_joints_end_within_half_a_turn_of_the_start(first, second):
    arm = arm_of("two_link")
    start = 2 * pi * np.array([first, second]) + [0.3, 0.4]
    found = inverse_kinematics(arm, pose(arm, [1.5, -0.9])[0], initial_guess=start)
    assert (np.abs(found.q - start) <= pi + 1e-12).all()


# --- axes ---


def test_a_free_rotation_about_the_targets_axis_leaves_two_angles():
    """five_dof cannot reach every pose, but can point its tool in every direction."""
    arm = arm_of("five_dof")
    position, rotation = pose(arm, [0.3, -0.9, 0.2, 0.4, 0.5])
    rolled = rotation @ pin.exp3(np.array([0, 0.7, 0]))
    found = inverse_kinematics(
        arm,
        position,
        rolled,
        weights=[1, 1, 1, 1, 0, 1],
        weights_frame="target",
        initial_guess=[0] * 5,
    )
    there, turned = pose(arm, found.q)
    np.testing.assert_allclose(there, position, atol=1e-8)
    np.testing.assert_allclose(turned[:, 1], rotation[:, 1], atol=1e-8)


def test_a_free_yaw_about_the_bases_axis_keeps_the_tool_level():
    arm = arm_of("four_joint")
    level = pose(arm, arm.configuration("initial"))[1]
    found = inverse_kinematics(arm, (0.3, -0.4, 0.2), level, weights=[1, 1, 1, 1, 1, 0])
    assert found.q[1:].sum() % (2 * pi) == pytest.approx(pi / 2)
    np.testing.assert_allclose(found.position, (0.3, -0.4, 0.2), atol=1e-8)


def test_zero_weight_makes_an_axis_free():
    found = inverse_kinematics(arm_of("two_link"), (1.2, 77, 0.5), weights=[1, 0, 1, 0, 0, 0])
    np.testing.assert_allclose(found.position, (1.2, 0, 0.5), atol=1e-8)
    assert found.position_error <= TOLERANCE


def test_weights_select_the_axes_of_an_unreachable_pose():
    arm = arm_of("two_link")
    target, turned = (1.2, 0.0, 0.5), np.eye(3)
    place = nearest_reachable(arm, target, turned, weights=[100] * 3 + [0.01] * 3)
    turn = nearest_reachable(arm, target, turned, weights=[0.01] * 3 + [100] * 3)
    assert place.position_error < 1e-3 < turn.position_error
    assert turn.orientation_error < place.orientation_error


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_a_common_scale_of_the_weights_changes_nothing(scale):
    weights = np.array([1, 0, 2, 0, 0, 0])
    one, other = (
        nearest_reachable(arm_of("two_link"), (3, 0, 1), weights=w, restarts=2)
        for w in (weights, scale * weights)
    )
    np.testing.assert_allclose(one.q, other.q, atol=1e-12)


# --- unreachable targets ---


@settings(max_examples=examples(25))
@given(st.floats(-pi, pi), st.floats(0, 4), st.floats(-1, 1))
def test_the_position_error_is_the_distance_to_the_workspace(direction, radius, side):
    """two_link_pb reaches a ring of radii 0.4 to 1.6 in the plane y = 0.

    Near the first axis all points of the ring have almost the same distance: the descent ends
    earlier.
    """
    target = (radius * np.cos(direction), side, radius * np.sin(direction))
    expected = hypot(side, radius - np.clip(radius, 0.4, 1.6))
    found = nearest_reachable(arm_of("two_link_pb"), target, restarts=5)
    assert found.position_error == pytest.approx(expected, abs=2e-9 if radius > 0.1 else 2e-6)


@pytest.mark.parametrize("target", PAIRS["unreachable"])
def test_unreachable_targets_of_four_joint_agree_with_the_closed_form(target):
    """The hand is level and points away from the axis; the tool's x axis is the hand's."""
    with pytest.raises(Unreachable) as closed:
        elbow_postures(target)
    arm = arm_of("four_joint")
    level = pose(arm, closed.value.q)[1]
    with pytest.raises(Unreachable) as found:
        inverse_kinematics(arm, target, level, weights=[1, 1, 1, 1e3, 1e3, 1e3])
    assert found.value.position_error == pytest.approx(closed.value.position_error, abs=1e-6)
    np.testing.assert_allclose(found.value.nearest, closed.value.nearest, atol=1e-5)


def test_the_error_names_target_position_error_and_nearest_point():
    with pytest.raises(Unreachable) as raised:
        inverse_kinematics(arm_of("two_link"), (3, 0, 0))
    message = str(raised.value)
    assert "arm 'two_link', frame 'tool': position (3, 0, 0) m is out of reach" in message
    assert "position error = 1 m; the nearest point found is (2, 0, 0) m" in message
    assert isinstance(raised.value, ArmDynamicsError)
    np.testing.assert_allclose(raised.value.nearest, (2, 0, 0), atol=1e-12)
    sent = pickle.loads(pickle.dumps(raised.value))
    assert (str(sent), sent.position_error, sent.q) == (
        message,
        raised.value.position_error,
        raised.value.q,
    )


def test_an_orientation_error_is_reported_in_radians():
    with pytest.raises(Unreachable, match=r"and its rotation is out of reach.* rad") as raised:
        inverse_kinematics(arm_of("two_link"), (2, 0, 0), np.eye(3), restarts=2)
    assert raised.value.orientation_error == pytest.approx(pi / 2, abs=0.2)


def test_the_result_depends_on_the_seed_and_zero_restarts_is_one_descent():
    arm = arm_of("puma560")
    target = pose(arm, configuration_at(arm, [0.9, 0.1, 0.2, 0.8, 0.3, 0.6]))
    first, second = (inverse_kinematics(arm, *target, seed=4) for _ in range(2))
    np.testing.assert_array_equal(first.q, second.q)
    assert nearest_reachable(arm, (9, 9, 9), restarts=0).restarts == 0
    assert nearest_reachable(arm, (9, 9, 9), restarts=3).restarts == 3


# --- invalid input ---


@pytest.mark.parametrize(
    ("given_input", "message"),
    [
        ({"position": (1, 2)}, r"position: shape = \(2,\)"),
        ({"position": (1, 2, np.nan)}, r"position\[2\] = nan"),
        ({"position": (1, -1e7, 0)}, r"position\[1\] = -1e\+07 m; expected at most 1e\+06 m"),
        ({"rotation": np.eye(2)}, r"rotation: shape = \(2, 2\)"),
        ({"rotation": np.ones((3, 3))}, "rotation: .* expected a rotation"),
        ({"rotation": -np.eye(3)}, "det R = -1"),
        ({"rotation": np.full((3, 3), np.inf)}, r"rotation\[0\] = inf"),
        ({"rotation": [[1, np.nan, 0], [0, 1, 0], [0, 0, 1]]}, r"rotation\[1\] = nan"),
        ({"weights": [1] * 5}, r"weights: shape = \(5,\)"),
        ({"weights": [0] * 6}, "weights = .*; expected none below 0"),
        ({"weights": [1, 1, -1, 0, 0, 0]}, "none below 0"),
        ({"weights": [1] * 6}, "without a rotation; expected 0 for rx, ry, rz"),
        ({"initial_guess": [0.0]}, r"initial_guess: shape = \(1,\)"),
        ({"tolerance": 0.0}, "tolerance = 0.0"),
        ({"restarts": -1}, "restarts = -1"),
        ({"seed": 0.5}, "seed = 0.5"),
    ],
)
def test_invalid_input_is_named(given_input, message):
    with pytest.raises(InvalidValue, match=message):
        inverse_kinematics(arm_of("two_link"), **{"position": (1, 0, 0), **given_input})


def test_unknown_names_are_named():
    with pytest.raises(UnknownName, match="unknown frame of arm 'two_link' 'hand'"):
        inverse_kinematics(arm_of("two_link"), (1, 0, 0), frame="hand")
    with pytest.raises(UnknownName, match="known: base, target"):
        inverse_kinematics(arm_of("two_link"), (1, 0, 0), weights_frame="world")
    with pytest.raises(InvalidValue, match="load_arm"):
        inverse_kinematics("two_link", (1, 0, 0))
