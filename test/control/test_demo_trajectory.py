"""The demo trajectory: from the initial configuration and back, within all limits."""

import numpy as np
import pytest
from conftest import chain, chain_urdf, five_dof

from arm_dynamics.control.trajectories.demo_trajectory import VELOCITY_FRACTION, demo_trajectory
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Waypoint
from arm_dynamics.model.load import parse_arm


def still():
    """Return an arm of three joints, the second with a velocity limit of zero."""
    slow = 'effort="7.0" velocity="0"'
    head, _, tail = chain_urdf({}, {"effort": 7.0}, {}).partition('effort="7.0" velocity="100"')
    with pytest.warns(RuntimeWarning, match="0 is zero: the joint cannot be driven"):
        return parse_arm(head + slow + tail)


def rail():
    return chain({"kind": "prismatic", "lower": 0.0, "upper": 0.05}, {"kind": "continuous"})


@pytest.mark.parametrize("make", [five_dof, still, rail])
def test_a_demo_trajectory_is_within_all_limits_and_returns_to_its_start(make):
    arm = make()
    points, start = demo_trajectory(arm), arm.configuration("initial")
    assert 0 < points[-1].time < 60
    np.testing.assert_allclose(points[-1].q, start, atol=1e-12)
    assert not points[-1].v.any()
    trajectory = JointTrajectory((Waypoint(0.0, start, np.zeros(arm.nv)), *points))
    for time in np.linspace(0, points[-1].time, 500):
        now = trajectory.at(time)
        arm.check_position("walk", now.q)
        assert (np.abs(now.v) <= 1.1 * VELOCITY_FRACTION * arm.velocity_limit + 1e-12).all()


@pytest.mark.parametrize("make", [five_dof, still, rail])
def test_a_demo_trajectory_may_start_at_any_configuration(make):
    """Also from beyond the limits: first a motion into the range within velocity limits, then one
    round.
    """
    arm = make()
    here = arm.configuration("initial") + np.where(arm.velocity_limit > 0, 3.1, 0.0)
    points, round_ = demo_trajectory(arm, here), demo_trajectory(arm)
    trajectory = JointTrajectory((Waypoint(0.0, here, np.zeros(arm.nv)), *points))
    trajectory.check(arm)
    np.testing.assert_array_equal(points[0].q, arm.configuration("initial"))
    assert [p.q.tolist() for p in points[1:]] == [p.q.tolist() for p in round_]
    for time in np.linspace(0, points[0].time, 200):
        limit = np.minimum(arm.velocity_limit, 2.0)  # fast joints move slowly as well
        assert (np.abs(trajectory.at(time).v) <= VELOCITY_FRACTION * limit + 1e-9).all()


def test_a_demo_trajectory_moves_every_movable_joint():
    for make, moving in ((five_dof, [1] * 5), (still, [1, 0, 1]), (rail, [0, 1])):
        q = np.array([point.q for point in demo_trajectory(make())])
        assert (np.ptp(q, axis=0) > 0.1).tolist() == [bool(m) for m in moving]
