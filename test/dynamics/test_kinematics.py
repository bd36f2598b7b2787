"""Forward kinematics: published points, rotation matrices, twists and Jacobians."""

import csv
from functools import cache
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from conftest import chain, chain_urdf, examples, five_dof
from hypothesis import given, settings
from hypothesis import strategies as st

from arm_dynamics import load_arm
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.dynamics.kinematics.frames import (
    acceleration,
    in_axes,
    jacobian,
    jacobian_derivative,
    link_poses,
    pose,
    tool_pose,
    tool_position,
    twist,
)
from arm_dynamics.model.load import parse_arm

DATA = Path(__file__).parents[1] / "data/five_dof/dynamics_samples.csv"


def transform(a, alpha, d, theta):
    """Return Tx(a) Rx(alpha) Tz(d) Rz(theta)."""
    ca, sa, ct, st_ = np.cos(alpha), np.sin(alpha), np.cos(theta), np.sin(theta)
    return np.array(
        [[ct, -st_, 0, a], [ca * st_, ca * ct, -sa, -sa * d], [sa * st_, sa * ct, ca, ca * d],
         [0, 0, 0, 1]]
    )  # fmt: skip


def test_tool_positions_equal_published_points():
    with DATA.open() as file:
        for row in csv.DictReader(file):
            q = [float(row[f"q{i}"]) for i in range(1, 6)]
            point = [float(row[f"ee_{axis}"]) for axis in "xyz"]
            np.testing.assert_allclose(tool_position(five_dof(), q), point, atol=1e-12)


@settings(max_examples=examples(50))
@given(st.tuples(*[st.floats(-10, 10)] * 5))
def test_pose_is_the_product_of_the_denavit_hartenberg_table(q):
    h = np.pi / 2
    rows = [(0, 0, 0.35), (0.085, -h, 0), (0.38, 0, 0), (0, -h, 0.425), (0, h, 0)]
    pose = np.eye(4)
    for row, theta in zip(rows, q, strict=True):
        pose = pose @ transform(*row, theta)
    position, rotation = tool_pose(five_dof(), q)
    np.testing.assert_allclose(position, (pose @ [0, 0.1, 0, 1])[:3], atol=1e-12)
    np.testing.assert_allclose(rotation, pose[:3, :3], atol=1e-12)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-12)


def test_the_tool_link_may_have_the_name_of_its_joint():
    text = chain_urdf({}, {})
    same, other = parse_arm(text.replace("_link", "")), parse_arm(text)
    for found, expected in zip(
        tool_pose(same, [0.3, 0.4]), tool_pose(other, [0.3, 0.4]), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_wrong_positions_are_named():
    with pytest.raises(InvalidValue, match=r"q: shape = \(3,\); expected"):
        tool_pose(five_dof(), [0, 0, 0])
    with pytest.raises(InvalidValue, match=r"q\[1\] = nan"):
        tool_pose(five_dof(), [0, np.nan, 0, 0, 0])


# --- velocities and accelerations of frames, by central differences ---

FRAMES = (
    ("five_dof", "R3_link"), ("five_dof", None), ("puma560", "J4_link"), ("puma560", None),
    ("four_joint", None), ("three_link", None), ("two_link", "J1_link"),
)  # fmt: skip
H = 1e-5
arm_of = cache(load_arm)
number = st.floats(-2, 2)
six = st.tuples(*[number] * 6)


def arm_with_frame(case, *vectors):
    arm = arm_of(case[0])
    return arm, *(np.array(x[: arm.nv]) for x in vectors)


@settings(max_examples=examples(60))
@given(st.sampled_from(FRAMES), six, six)
def test_a_twist_is_the_derivative_of_a_pose(case, q, v):
    """ṗ, and ω of Ṙ = [ω]× R, along the axes of the base."""
    arm, q, v = arm_with_frame(case, q, v)
    (before, R), (after, S) = (pose(arm, q + s * H * v, case[1]) for s in (-1, 1))
    found = twist(arm, q, v, case[1])
    np.testing.assert_allclose(found[:3], (after - before) / (2 * H), atol=1e-7)
    np.testing.assert_allclose(found[3:], pin.log3(S @ R.T) / (2 * H), atol=1e-7)
    np.testing.assert_allclose(found, jacobian(arm, q, case[1]) @ v, atol=1e-12)


@settings(max_examples=examples(60))
@given(st.sampled_from(FRAMES), six, six)
def test_the_jacobian_derivative_equals_the_difference_along_v(case, q, v):
    arm, q, v = arm_with_frame(case, q, v)
    before, after = (jacobian(arm, q + s * H * v, case[1]) for s in (-1, 1))
    found = jacobian_derivative(arm, q, v, case[1])
    np.testing.assert_allclose(found, (after - before) / (2 * H), atol=1e-7)


@settings(max_examples=examples(60))
@given(st.sampled_from(FRAMES), six, six, six)
def test_an_acceleration_is_the_derivative_of_a_twist(case, q, v, a):
    arm, q, v, a = arm_with_frame(case, q, v, a)
    after, before = (
        twist(arm, q + s * H * v + H**2 / 2 * a, v + s * H * a, case[1]) for s in (1, -1)
    )
    found = acceleration(arm, q, v, a, case[1])
    np.testing.assert_allclose(found, (after - before) / (2 * H), atol=1e-6)
    by_parts = jacobian(arm, q, case[1]) @ a + jacobian_derivative(arm, q, v, case[1]) @ v
    np.testing.assert_allclose(found, by_parts, atol=1e-10)


def test_a_jacobian_of_one_joint_is_a_column():
    arm = chain({})
    assert jacobian(arm, [0.1]).shape == jacobian_derivative(arm, [0.1], [0.2]).shape == (6, 1)
    np.testing.assert_allclose(jacobian(arm, [0.1])[3:, 0], [0, 1, 0], atol=1e-12)


def test_an_unknown_frame_is_rejected_with_a_list_of_frames():
    with pytest.raises(UnknownName, match=r"unknown frame of arm 'five_dof' 'hand'; known: .*R5"):
        jacobian(five_dof(), [0] * 5, "hand")
    with pytest.raises(InvalidValue, match="frame = 3"):
        twist(five_dof(), [0] * 5, [0] * 5, 3)
    with pytest.raises(InvalidValue, match=r"v\[0\] = inf"):
        jacobian_derivative(five_dof(), [0] * 5, [np.inf] * 5)


def test_link_frames_and_wrenches_have_the_pose_of_their_link():
    arm, q = load_arm("puma560"), np.linspace(-0.5, 0.5, 6)
    placed = link_poses(arm, q)
    assert {"base_link", arm.tool_frame} < set(placed)
    for link, (position, rotation) in placed.items():
        for found, expected in zip((position, rotation), pose(arm, q, link), strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-15)
    _, rotation = placed[arm.tool_frame]
    push = np.arange(1.0, 7.0)
    own = in_axes(rotation, push)
    np.testing.assert_allclose(rotation @ own[:3], push[:3], atol=1e-12)
    np.testing.assert_allclose(rotation @ own[3:], push[3:], atol=1e-12)
