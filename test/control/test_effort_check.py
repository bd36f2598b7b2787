"""Effort of a trajectory by the controller's model, checked before it is followed."""

import re
from dataclasses import replace

import numpy as np
import pytest
from conftest import five_dof
from hypothesis import given
from hypothesis import strategies as st

from arm_dynamics.control.trajectories import effort_check, feasibility
from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
from arm_dynamics.control.trajectories.effort_check import (
    MAX_TOTAL_SAMPLES,
    SPACING,
    check_effort,
    check_path,
    check_wrench,
)
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.control.trajectories.profiles import quintic
from arm_dynamics.control.trajectories.trajectory_parsing import parse_trajectory
from arm_dynamics.core.errors import InvalidValue, TrajectoryRejected
from arm_dynamics.core.state import Reference
from arm_dynamics.dynamics.kinematics.frames import jacobian
from arm_dynamics.dynamics.rigid_body import gravity, rnea

ARM = five_dof()
HOME = ARM.configuration("initial")
REST = np.zeros((1, 5))


def to(q, seconds):
    return parse_trajectory(ARM, ARM.joint_names, [seconds], [q], REST, REST).starting_from(
        0.0, Reference.hold(HOME)
    )


def sampled_max_effort(trajectory, end):
    """Return the max effort by dense sampling."""
    found = []
    for time in np.linspace(1e-9, end - 1e-9, 4001):
        at = trajectory.at(time)
        found.append(np.abs(rnea(ARM, at.q, at.v, at.a)))
    return np.max(found, axis=0)


def test_the_available_effort_decreases_with_the_velocity():
    """R1 of five_dof: 120 N·m at rest, 20 N·m at 1 rad/s, none beyond 1.2 rad/s."""
    points = np.array([HOME, HOME])
    points[1, 0] += 0.5
    slow, fast = (to(points[1], seconds) for seconds in (1.2, 0.77))
    check_effort(ARM, slow, ARM.effort_limit)
    with pytest.raises(TrajectoryRejected, match=r"'R1': effort = .* expected .* of its motor at"):
        check_effort(ARM, fast, ARM.effort_limit)
    strong = ARM.with_motor("R1", supply_voltage=14.0)
    check_effort(strong, fast, ARM.effort_limit)


@pytest.mark.parametrize("seconds", [0.9, 1.0, 3.0])
def test_the_check_finds_the_largest_effort_of_the_trajectory(seconds):
    trajectory = to(HOME + np.array([0.3, 0.4, -0.5, 0.6, 0.3]), seconds)
    needed = sampled_max_effort(trajectory, seconds)
    check_effort(ARM, trajectory, needed * 1.001)
    for joint in range(5):
        limit = needed * 1.1
        limit[joint] = needed[joint] * 0.98
        with pytest.raises(
            TrajectoryRejected, match=f"joint 'R{joint + 1}': effort = .* expected within"
        ):
            check_effort(ARM, trajectory, limit)


def test_holding_a_configuration_requires_its_gravity_torque():
    hold = JointTrajectory.hold(HOME)
    weight = np.abs(gravity(ARM, HOME))
    check_effort(ARM, hold, weight * 1.001 + 1e-9)
    with pytest.raises(TrajectoryRejected, match=r"joint 'R2': effort = .* at 0\.000 s; expected"):
        check_effort(ARM, hold, weight * 0.99 + 1e-9)


def test_a_modeled_payload_counts():
    trajectory = to(HOME + 0.1, 1.0)
    limit = sampled_max_effort(trajectory, 1.0) * 1.05 + 0.1
    check_effort(ARM, trajectory, limit)
    with pytest.raises(TrajectoryRejected, match="expected within the limit"):
        check_effort(ARM.with_payload(1.0), trajectory, limit)


def test_the_number_of_samples_of_many_long_segments_is_bounded(monkeypatch):
    samples = []
    monkeypatch.setattr(effort_check, "rnea_batch", lambda _, q, *__: samples.extend(q) or 0 * q)
    times = 10.0 * np.arange(1, 5001)
    check_effort(ARM, parse_trajectory(ARM, ARM.joint_names, times, [HOME] * 5000), np.ones(5))
    assert 5000 < len(samples) < 2 * MAX_TOTAL_SAMPLES


@pytest.mark.parametrize("axis", range(6))
def test_a_wrench_is_rejected_above_an_effort_limit(axis):
    unit = np.eye(6)[axis]
    effort = np.abs(jacobian(ARM, HOME).T @ unit)
    sampled_max_effort = np.min(ARM.effort_limit[effort > 1e-9] / effort[effort > 1e-9])
    check_wrench(ARM, HOME, 0.999 * sampled_max_effort * unit)
    with pytest.raises(
        InvalidValue, match=r"wrench: joint 'R\d': effort = .* expected within the limit"
    ):
        check_wrench(ARM, HOME, -1.001 * sampled_max_effort * unit)


def test_a_wrench_that_is_not_finite_is_rejected():
    with pytest.raises(InvalidValue, match=r"wrench\[2\] = nan"):
        check_wrench(ARM, HOME, [0, 0, float("nan"), 0, 0, 0])


def tool_line(seconds):
    """Return a straight Cartesian trajectory."""
    rest = CartesianTrajectory.from_configuration(ARM, HOME, 2.0)
    return rest.line(rest.position + np.array([0.0, 0.15, -0.1]), quintic(seconds))


@pytest.mark.parametrize("seconds", [0.6, 1.0, 4.0])
def test_cartesian_trajectories_need_the_effort_of_their_joint_trajectories(seconds):
    path = tool_line(seconds)
    joints = feasibility.solve_along(ARM, path).joints()
    times = np.linspace(path.start, path.end, 4001)[1:-1]
    at = [joints.at(t) for t in times]
    needed = np.max([np.abs(rnea(ARM, x.q, x.v, x.a)) for x in at], axis=0)
    assert check_path(ARM, path, needed * 1.01 + 1e-3).allow_unreachable
    check_effort(ARM, path, needed * 1.01 + 1e-3)
    for joint in range(3):
        limit = needed * 1.1 + 1e-3
        limit[joint] = needed[joint] * 0.95
        for check in (check_path, check_effort):
            with pytest.raises(TrajectoryRejected, match=f"joint 'R{joint + 1}': effort .* at 2|3"):
                check(ARM, path, limit)


def test_a_wrench_along_the_trajectory_counts():
    still = CartesianTrajectory.from_configuration(ARM, HOME, 0.0).hold(1.0)
    wrench = np.array([0.0, 0.0, -50.0, 0.0, 0.0, 0.0])
    needed = np.abs(gravity(ARM, HOME) + jacobian(ARM, HOME).T @ wrench)
    pushing = replace(still, wrench=wrench)
    check_path(ARM, pushing, needed * 1.001 + 1e-6)
    with pytest.raises(TrajectoryRejected, match="joint 'R2': effort"):
        check_path(ARM, pushing, needed * 0.99 + 1e-6)


@given(st.integers(0, 2**32 - 1))
def test_differences_of_a_parabola_are_exact_at_inner_points(seed):
    random = np.random.default_rng(seed)
    times = np.cumsum(random.uniform(0.01, 0.2, 7))
    q0, v0, a = random.uniform(-1, 1, (3, 2))
    q = q0 + np.outer(times, v0) + np.outer(times**2 / 2, a)
    v, found = effort_check._differences(times, q)
    np.testing.assert_allclose(found, np.tile(a, (7, 1)), atol=1e-9)
    np.testing.assert_allclose(v[1:-1], (v0 + np.outer(times, a))[1:-1], atol=1e-9)


def test_joint_velocities_of_a_path_are_checked_before_efforts():
    with pytest.raises(TrajectoryRejected, match=r"velocity = .* expected"):
        check_path(ARM, tool_line(0.02), np.zeros(5))
    paused = []
    found = check_path(ARM, tool_line(1.0), np.full(5, np.inf), lambda: paused.append(1))
    assert len(paused) == 2 * len(feasibility.solve_feasible(ARM, found).times)


@pytest.mark.quick(1)
@pytest.mark.parametrize("which", [{}, {"velocities"}, {"velocities", "accelerations"}])
def test_the_fault_of_one_waypoint_among_many_is_found_at_its_time(which):
    """For each set of given derivatives; where waypoints differ in it, segments are checked
    separately.
    """
    random, n = np.random.default_rng(0), 60
    times, q = np.arange(1, n + 1) * 0.1, HOME + 1e-3 * random.uniform(-1, 1, (n, 5))
    rest = {name: np.zeros((n, 5)) for name in which}
    whole = parse_trajectory(ARM, ARM.joint_names, times, q, **rest).starting_from(
        0.0, Reference.hold(HOME)
    )
    mixed = JointTrajectory((replace(whole.waypoints[0], v=np.zeros(5)), *whole.waypoints[1:]))
    if which:
        mixed = JointTrajectory((replace(whole.waypoints[0], v=None, a=None), *whole.waypoints[1:]))
    assert (whole.splines is None, mixed.splines is None) == (False, True)
    for each in (whole, mixed):
        samples = np.linspace(1e-6, times[-1] - 1e-6, 20001)
        at = [each.at(t) for t in samples]
        efforts = np.array([rnea(ARM, x.q, x.v, x.a) for x in at])
        limit = np.abs(efforts).max(axis=0) + 1e-2
        check_effort(ARM, each, limit)
        limit[1] = 0.97 * np.abs(efforts[:, 1]).max()
        first = samples[(np.abs(efforts[:, 1]) > limit[1]).argmax()]
        with pytest.raises(TrajectoryRejected, match="joint 'R2': effort") as rejected:
            check_effort(ARM, each, limit)
        time = float(re.search(r"at (\S+) s", str(rejected.value))[1])
        assert time == pytest.approx(first, abs=1.1 * SPACING)
