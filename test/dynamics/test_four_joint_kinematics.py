"""Closed-form inverse kinematics of four_joint: published pairs, both elbows, position error."""

import json
from math import hypot, pi, sin
from pathlib import Path

import numpy as np
import pytest
from four_joint_ik import elbow_postures, nearest_reachable_point
from hypothesis import assume, given
from hypothesis import strategies as st

from arm_dynamics import load_arm
from arm_dynamics.core.errors import InvalidValue, Unreachable
from arm_dynamics.dynamics.kinematics.frames import tool_position

DATASET = json.loads((Path(__file__).parents[1] / "data/four_joint/fk_ik_pairs.json").read_text())
ARM = load_arm("four_joint")
points = st.tuples(*[st.floats(-1.2, 1.2)] * 3)


def test_solutions_equal_the_published_pairs_of_both_elbows():
    for pair in DATASET["pairs"]:
        up, down = elbow_postures(pair["xyz"])
        np.testing.assert_allclose(up, pair["theta_elbow_up"], rtol=0, atol=1e-12)
        np.testing.assert_allclose(down, pair["theta_elbow_down"], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("target", "missed"),
    [*zip(DATASET["unreachable"], [0.01, hypot(0.5, 0.75) - 0.75, 0.15], strict=True)],
)
def test_unreachable_targets_are_rejected_with_the_position_error(target, missed):
    with pytest.raises(
        Unreachable, match=r"position \(.*out of reach: position error = "
    ) as raised:
        elbow_postures(target)
    assert raised.value.position_error == pytest.approx(missed, abs=1e-12)
    np.testing.assert_allclose(tool_position(ARM, raised.value.q), raised.value.nearest, atol=1e-12)


@given(points)
def test_solutions_for_the_nearest_reachable_point_have_a_horizontal_hand(target):
    goal = nearest_reachable_point(target)
    for q in elbow_postures(goal):
        np.testing.assert_allclose(tool_position(ARM, q), goal, atol=1e-8)  # sqrt(eps) of L
        assert q[1] + q[2] + q[3] == pytest.approx(pi / 2)


@given(points, st.tuples(*[st.floats(-pi, pi)] * 3))
def test_no_reachable_point_is_nearer(target, angles):
    q = [*angles, pi / 2 - angles[1] - angles[2]]
    assume(0.4 * sin(q[1]) + 0.35 * sin(q[1] + q[2]) + 0.2 >= 0)  # the hand points outwards
    near = np.linalg.norm(nearest_reachable_point(target) - target)
    assert np.linalg.norm(tool_position(ARM, q) - target) >= near - 1e-12


@pytest.mark.parametrize("target", [(0, 0.95, 0), (0.25, 0, 0), (0, 0.2, 0.75), (0, 0, 0.4)])
def test_stretched_folded_and_on_the_axis(target):
    up, down = elbow_postures(target)
    for q in (up, down):
        np.testing.assert_allclose(tool_position(ARM, q), target, atol=1e-8)


def test_the_shoulder_is_unreachable():
    with pytest.raises(Unreachable) as raised:
        elbow_postures((0, 0.2, 0))
    assert raised.value.position_error == pytest.approx(0.05)


def test_a_target_that_is_not_a_point_is_rejected():
    with pytest.raises(InvalidValue, match=r"position\[2\] = nan"):
        elbow_postures((0, 0.3, np.nan))
    with pytest.raises(InvalidValue, match=r"position: shape = \(2,\)"):
        elbow_postures((0, 0.3))
    with pytest.raises(InvalidValue, match="at most"):
        elbow_postures((1e300, 0, 0))
