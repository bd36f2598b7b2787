"""Manipulability: closed forms of planar arms, and the determinant of its definition."""

from functools import cache
from math import inf, pi, sin, sqrt

import numpy as np
import pytest
from conftest import chain
from hypothesis import given
from hypothesis import strategies as st

from arm_dynamics import load_arm
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.dynamics.kinematics.frames import AXIS_NAMES, jacobian
from arm_dynamics.dynamics.kinematics.workspace import manipulability

arm_of = cache(load_arm)
angle = st.floats(-pi, pi)


@given(angle, angle)
def test_manipulability_of_a_planar_arm(first, second):
    """Yoshikawa (1985), section 5: w = L1 L2 |sin θ2|, maximal with a right angle at the elbow."""
    for name, area in (("two_link", 1.0), ("two_link_pb", 0.6)):
        found = manipulability(arm_of(name), [first, second], ("x", "z"))
        assert found.w == pytest.approx(area * abs(sin(second)), abs=1e-11)


def test_condition_number_of_an_isotropic_arm():
    """For L1 = √2 L2 and θ2 = 3π/4 the columns of J are orthogonal with equal norm (J. Salisbury
    and J. Craig, Int. J. Robotics Research 1(1) (1982), 4).
    """
    tip = (
        '<link name="tip"/><joint name="tip_joint" type="fixed"><origin xyz="0.5 0 0"/>'
        '<parent link="J2_link"/><child link="tip"/></joint>'
    )
    arm = chain({}, {"xyz": f"{0.5 * sqrt(2)} 0 0"}, more=tip)
    found = manipulability(arm, [0.3, 3 * pi / 4], ("x", "z"))
    assert found.condition == pytest.approx(1)
    np.testing.assert_allclose(found.singular_values, [0.5, 0.5], rtol=1e-12)


@given(st.tuples(*[angle] * 6), st.sets(st.sampled_from(AXIS_NAMES), min_size=1))
def test_w_is_the_square_root_of_the_determinant(q, axes):
    arm, axes = arm_of("puma560"), sorted(axes)
    J = jacobian(arm, q)[[AXIS_NAMES.index(axis) for axis in axes]]
    found = manipulability(arm, q, axes)
    assert found.w**2 == pytest.approx(max(np.linalg.det(J @ J.T), 0), abs=1e-9)
    assert found.condition >= 1
    assert (np.diff(found.singular_values) <= 0).all()


@pytest.mark.parametrize(
    ("arm", "q", "axes"),
    [
        ("two_link", [0.3, 0.0], ("x", "z")),  # stretched
        ("two_link", [0.3, 1.0], ("x", "y", "z")),  # no velocity along y
        ("two_link", [0.3, 1.0], ("x", "z", "ry")),  # more task axes than joints
        ("puma560", [0, 0.7, -3, 0, 0, 0], AXIS_NAMES),  # wrist stretched
        ("five_dof", [0, -1, 0.3, 0, 0.2], AXIS_NAMES),
    ],
)
def test_the_direction_of_the_minimum_singular_value(arm, q, axes):
    found = manipulability(arm_of(arm), q, axes)
    assert (found.w, found.condition, found.singular_values[-1]) == (0.0, inf, 0.0)


def test_manipulability_of_another_frame():
    assert manipulability(arm_of("three_link"), [0, 1, 2], ("x", "z"), "tool").w > 0
    assert manipulability(arm_of("five_dof"), [0] * 5, frame="R1_link").w == 0


def test_invalid_input_is_named():
    arm = arm_of("two_link")
    with pytest.raises(UnknownName, match="unknown axis 'roll'; known: rx"):
        manipulability(arm, [0, 0], ("x", "roll"))
    with pytest.raises(InvalidValue, match="each once"):
        manipulability(arm, [0, 0], ("x", "x"))
    with pytest.raises(InvalidValue, match="each once"):
        manipulability(arm, [0, 0], ())
    with pytest.raises(InvalidValue, match="a list of names"):
        manipulability(arm, [0, 0], "xz")
    with pytest.raises(InvalidValue, match=r"q\[1\] = nan"):
        manipulability(arm, [0, np.nan])
    with pytest.raises(UnknownName, match="unknown frame"):
        manipulability(arm, [0, 0], frame="hand")
