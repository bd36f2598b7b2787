"""What a trajectory asks of the motors, by the law's own model, before it is followed."""

import numpy as np
import pytest
from conftest import five_dof

from arm_dynamics.dynamics import gravity, rnea
from arm_dynamics.errors import TrajectoryRefused
from arm_dynamics.following.effort_check import check_effort
from arm_dynamics.state import Reference
from arm_dynamics.trajectories.joint_trajectory import JointTrajectory, parse

ARM = five_dof()
HOME = ARM.pose("initial")
REST = np.zeros((1, 5))


def to(q, seconds):
    return parse(ARM, ARM.joint_names, [seconds], [q], REST, REST).after(0.0, Reference.hold(HOME))


def largest(trajectory, end):
    """By brute force."""
    found = []
    for time in np.linspace(1e-9, end - 1e-9, 4001):
        at = trajectory.at(time)
        found.append(np.abs(rnea(ARM, at.q, at.v, at.a)))
    return np.max(found, axis=0)


@pytest.mark.parametrize("seconds", [0.4, 1.0, 3.0])
def test_the_limit_is_the_largest_effort_on_the_way(seconds):
    trajectory = to(HOME + np.array([0.3, 0.4, -0.5, 0.6, 0.3]), seconds)
    needed = largest(trajectory, seconds)
    check_effort(ARM, trajectory, needed * 1.001)
    for joint in range(5):
        limit = needed * 1.1
        limit[joint] = needed[joint] * 0.98
        with pytest.raises(TrajectoryRefused, match=f"joint 'R{joint + 1}': effort .* exceeds"):
            check_effort(ARM, trajectory, limit)


def test_standing_needs_the_weight_to_be_held():
    hold = JointTrajectory.hold(HOME)
    weight = np.abs(gravity(ARM, HOME))
    check_effort(ARM, hold, weight * 1.001 + 1e-9)
    with pytest.raises(TrajectoryRefused, match=r"joint 'R2': effort .* at 0\.000 s exceeds"):
        check_effort(ARM, hold, weight * 0.99 + 1e-9)


def test_a_load_that_is_known_counts():
    trajectory = to(HOME + 0.1, 1.0)
    limit = largest(trajectory, 1.0) * 1.05 + 0.1
    check_effort(ARM, trajectory, limit)
    with pytest.raises(TrajectoryRefused, match="exceeds the limit"):
        check_effort(ARM.with_payload(1.0), trajectory, limit)
