"""Quaternions of messages: conversions compared with SciPy's, and invalid ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.rotations import quaternion_from_rotation, rotation_from_quaternion

SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS)
def test_rotations_equal_scipys_and_convert_back(seed):
    turned = Rotation.random(random_state=seed)
    xyzw = turned.as_quat()
    R = rotation_from_quaternion("q", xyzw)
    assert np.allclose(R, turned.as_matrix(), atol=1e-14)
    assert np.array_equal(R, rotation_from_quaternion("q", -xyzw)) or np.allclose(
        R, rotation_from_quaternion("q", -xyzw)
    )
    back = quaternion_from_rotation(R)
    assert np.allclose(back, xyzw if xyzw[3] >= 0 else -xyzw, atol=1e-12)
    assert back[3] >= 0
    assert np.linalg.norm(back) == pytest.approx(1, abs=1e-14)


def test_rounding_errors_of_the_norm_are_removed():
    R = rotation_from_quaternion("q", 1.0009 * np.array([0, 0, 0.6, 0.8]))
    assert np.allclose(R.T @ R, np.eye(3), atol=1e-15)


@pytest.mark.parametrize(
    "bad",
    [[0, 0, 0, 0], [0, 0, 0, 1.01], [1, 1, 1, 1], [0, 0, np.nan, 1], [0, np.inf, 0, 1],
     [1e300, 1e300, 0, 0], [0, 0, 1], "x"],
)  # fmt: skip
def test_an_invalid_quaternion_is_rejected_by_name(bad):
    with pytest.raises(InvalidValue, match="target"):
        rotation_from_quaternion("target", bad)
