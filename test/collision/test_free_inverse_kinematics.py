"""Inverse kinematics with the distances of links and objects as a limit."""

import numpy as np
import pytest

from arm_dynamics import load_arm
from arm_dynamics.collision import Scene, SceneObject, SelfCollision, free_inverse_kinematics
from arm_dynamics.core.errors import CollisionRejected, Unreachable
from arm_dynamics.dynamics.kinematics.frames import pose
from arm_dynamics.dynamics.kinematics.inverse_kinematics import inverse_kinematics
from arm_dynamics.model.solids import Shape

ARM = load_arm("puma560")
HOME = np.array(ARM.configuration("initial"))


def elbow(q):
    """Return the position of the elbow of the arm (3,) [m]."""
    return pose(ARM, q, "J3_link")[0]


def test_another_posture_replaces_one_that_collides():
    """A ball at the elbow of the usual solution; the tool reaches the pose with another elbow."""
    near = HOME + np.array([0.6, -0.3, 0.7, 0.3, 0.4, 0.2])
    target = pose(ARM, near)
    usual = inverse_kinematics(ARM, *target, initial_guess=near)
    ball = SceneObject("ball", Shape("sphere", (0.05,)), elbow(usual.q))
    check = SelfCollision(ARM, 0.01, HOME, scene=Scene((ball,)))
    assert "ball" in check.find(usual.q)
    found = free_inverse_kinematics(check, *target, initial_guess=near)
    assert check.find(found.q) is None
    np.testing.assert_allclose(pose(ARM, found.q)[0], target[0], atol=1e-8)
    np.testing.assert_allclose(pose(ARM, found.q)[1], target[1], atol=1e-8)
    free = SelfCollision(ARM, 0.01, HOME)
    np.testing.assert_array_equal(
        free_inverse_kinematics(free, *target, initial_guess=near).q, usual.q
    )


def test_a_pose_inside_an_object_is_rejected_and_one_out_of_reach_is_unreachable():
    near = HOME + 0.3
    target = pose(ARM, near)
    ball = SceneObject("ball", Shape("sphere", (0.1,)), target[0])
    check = SelfCollision(ARM, 0.01, HOME, scene=Scene((ball,)))
    with pytest.raises(CollisionRejected, match=r"= 0 of \d+; .* and 'ball' are too near"):
        free_inverse_kinematics(check, *target, initial_guess=near, restarts=20)
    with pytest.raises(Unreachable):
        free_inverse_kinematics(check, (9.0, 0.0, 0.0), restarts=5)
