"""The tool's place: published points, and rotation matrices that are rotations."""

import csv
from pathlib import Path

import numpy as np
import pytest
from conftest import chain_urdf, five_dof
from hypothesis import given, settings
from hypothesis import strategies as st

from arm_dynamics.errors import InvalidValue
from arm_dynamics.kinematics import tool_pose, tool_position
from arm_dynamics.model.load import parse_arm

DATA = Path(__file__).parent / "data/five_dof/dynamics_samples.csv"


def transform(a, alpha, d, theta):
    """Tx(a) Rx(alpha) Tz(d) Rz(theta)."""
    ca, sa, ct, st_ = np.cos(alpha), np.sin(alpha), np.cos(theta), np.sin(theta)
    return np.array(
        [[ct, -st_, 0, a], [ca * st_, ca * ct, -sa, -sa * d], [sa * st_, sa * ct, ca, ca * d],
         [0, 0, 0, 1]]
    )  # fmt: skip


def test_published_points():
    with DATA.open() as file:
        for row in csv.DictReader(file):
            q = [float(row[f"q{i}"]) for i in range(1, 6)]
            point = [float(row[f"ee_{axis}"]) for axis in "xyz"]
            np.testing.assert_allclose(tool_position(five_dof(), q), point, atol=1e-12)


@settings(max_examples=50)
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


def test_the_tool_may_have_the_name_of_its_joint():
    text = chain_urdf({}, {})
    same, other = parse_arm(text.replace("_link", "")), parse_arm(text)
    for found, expected in zip(
        tool_pose(same, [0.3, 0.4]), tool_pose(other, [0.3, 0.4]), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_wrong_positions_are_named():
    with pytest.raises(InvalidValue, match=r"q: shape \(3,\) given"):
        tool_pose(five_dof(), [0, 0, 0])
    with pytest.raises(InvalidValue, match=r"q\[1\] = nan"):
        tool_pose(five_dof(), [0, np.nan, 0, 0, 0])
