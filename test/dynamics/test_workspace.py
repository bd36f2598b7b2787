"""The reachable workspace: rings with inner radius, cones of limits, reproducible points."""

from functools import cache

import numpy as np
import pytest
from conftest import chain

from arm_dynamics import load_arm
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.dynamics.kinematics.frames import tool_position
from arm_dynamics.dynamics.kinematics.inverse_kinematics import nearest_reachable
from arm_dynamics.dynamics.kinematics.workspace import reachable_points, workspace_slice

arm_of = cache(load_arm)


def test_points_lie_in_the_ring_and_fill_it():
    found = reachable_points(arm_of("two_link_pb"), 4000)
    radius = np.linalg.norm(found.points, axis=1)
    assert 0.4 - 1e-12 <= radius.min() < 0.4001
    assert 1.5999 < radius.max() <= 1.6 + 1e-12
    assert np.ptp(np.arctan2(found.points[:, 2], found.points[:, 0])) > 6.2
    np.testing.assert_allclose(found.points[:, 1], 0, atol=1e-12)


def test_configurations_are_within_limits_and_belong_to_their_points():
    arm = arm_of("five_dof")
    found = reachable_points(arm, 500, seed=3)
    assert (arm.lower <= found.q).all()
    assert (found.q <= arm.upper).all()
    for q, point in zip(found.q[::50], found.points[::50], strict=True):
        np.testing.assert_array_equal(point, tool_position(arm, q))


def test_the_seed_determines_the_points():
    first, again, other = (reachable_points(arm_of("puma560"), 50, seed=s) for s in (1, 1, 2))
    np.testing.assert_array_equal(first.points, again.points)
    assert (first.points != other.points).any()


@pytest.mark.parametrize(
    ("name", "inner", "outer"), [("two_link", 0.0, 2.0), ("two_link_pb", 0.4, 1.6)]
)
def test_a_slice_is_the_distance_from_the_ring(name, inner, outer):
    grid = np.linspace(-2.1, 2.1, 11)
    found = workspace_slice(arm_of(name), grid, grid, starts=2)
    radius = np.hypot(*np.meshgrid(grid, grid))
    np.testing.assert_allclose(
        found.distance, np.abs(radius - np.clip(radius, inner, outer)), atol=2e-9
    )


def test_a_slice_in_a_given_plane():
    """four_joint rotates about the vertical: a level plane at 0.3 m cuts a disk from its sphere."""
    across = np.linspace(0, 1.2, 7)
    found = workspace_slice(
        arm_of("four_joint"), across, [0.0], origin=(0, 0, 0.3), u=(3, 4, 0), v=(-4, 3, 0), starts=2
    )
    expected = np.maximum(np.hypot(across, 0.3) - 0.95, 0)
    np.testing.assert_allclose(found.distance[0], expected, atol=2e-9)
    np.testing.assert_allclose(found.u, (0.6, 0.8, 0))


def test_joint_limits_bound_the_workspace():
    """One joint within 0 to 1 rad carries a link of 0.5 m: an arc, with the nearest points at its
    ends.
    """
    tip = (
        '<link name="tip"/><joint name="tip_joint" type="fixed"><origin xyz="0.5 0 0"/>'
        '<parent link="J1_link"/><child link="tip"/></joint>'
    )
    arm = chain({"lower": 0.0, "upper": 1.0, "axis": "0 -1 0"}, more=tip)
    found = workspace_slice(arm, [0.5, 0.25], [-0.3, 0.0])
    np.testing.assert_allclose(found.distance[:, 0], [0.3, 0.0], atol=2e-9)
    np.testing.assert_allclose(found.distance[:, 1], [np.hypot(0.25, 0.3), 0.25], atol=2e-9)


def test_a_slice_of_five_dof_is_as_accurate_as_many_restarts():
    arm = arm_of("five_dof")
    across, up = [-1.0, 0.0, 0.5, 1.2], [-0.3, 0.4, 1.1]
    found = workspace_slice(arm, across, up)
    for j, z in enumerate(up):
        for i, x in enumerate(across):
            other = nearest_reachable(arm, (x, 0, z), restarts=15).position_error
            assert found.distance[j, i] <= other + 1e-8


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"across": 1.0}, "across = 1.0; expected a list"),
        ({"up": [np.nan]}, r"up\[0\] = nan"),
        ({"u": (0, 0, 0)}, "expected a direction other than 0"),
        ({"starts": 0}, "starts = 0"),
        ({"seed": -1}, "seed = -1"),
        ({"origin": (0, 0)}, r"origin: shape = \(2,\)"),
    ],
)
def test_invalid_input_is_named(changes, message):
    with pytest.raises(InvalidValue, match=message):
        workspace_slice(arm_of("two_link"), **{"across": [0.0], "up": [0.0], **changes})


def test_unknown_frames_and_counts_are_named():
    with pytest.raises(InvalidValue, match="count = 0"):
        reachable_points(arm_of("two_link"), 0)
    with pytest.raises(UnknownName, match="unknown frame"):
        reachable_points(arm_of("two_link"), 5, frame="hand")
    for function in (reachable_points, lambda arm: workspace_slice(arm, [0], [0])):
        with pytest.raises(InvalidValue, match="load_arm"):
            function("two_link")
