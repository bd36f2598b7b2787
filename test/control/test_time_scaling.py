"""Time-optimal scaling: closed forms, active limits, unchanged paths, rejected inputs."""

import sys

import numpy as np
import pytest
from conftest import chain, examples, five_dof
from hypothesis import given, settings
from hypothesis import strategies as st

from arm_dynamics import load_arm
from arm_dynamics.control.trajectories import joint_splines
from arm_dynamics.control.trajectories.time_scaling import time_optimal_trajectory
from arm_dynamics.core.errors import ArmDynamicsError, ConfigError
from arm_dynamics.dynamics import rigid_body
from arm_dynamics.dynamics.kinematics import frames

FLAT = chain({"axis": "0 0 1"}, {"axis": "0 0 1"})  # without gravity torque
FREE = [1e6, 1e6]
A, B = np.array([0.2, -0.5]), np.array([1.2, -0.9])


def limit_ratios(arm, trajectory, count=2001):
    """Return velocity and effort relative to their limits (n, nv), by RNEA at many times."""
    times = np.linspace(trajectory.start, trajectory.end, count)[1:-1]
    samples = [trajectory.at(t) for t in times]
    effort = [rigid_body.rnea(arm, r.q, r.v, r.a) / arm.effort_limit for r in samples]
    speed = [r.v / arm.velocity_limit for r in samples]
    return np.abs(speed), np.abs(effort)


@pytest.mark.parametrize("a", [0.1, 1.0, 100.0])
def test_a_double_integrator_takes_its_minimum_time(a):
    """Full acceleration, then full deceleration: 2 √(h / a)."""
    found = time_optimal_trajectory(FLAT, [A, B], acceleration=[a, a], effort=FREE, start=3.0)
    assert found.start == 3.0
    assert found.end - 3.0 == pytest.approx(2 * np.sqrt(1.0 / a), rel=1e-3)
    quarter = found.at(3.0 + (found.end - 3.0) / 4)
    np.testing.assert_allclose(quarter.q, A + (B - A) / 8, atol=2e-3)
    np.testing.assert_allclose(quarter.a, (B - A) * a, rtol=5e-3)


def test_a_straight_path_with_velocity_and_acceleration_limits_is_a_trapezoid():
    v, a = np.array([0.5, 0.7]), np.array([1.0, 2.0])
    expected = joint_splines.trapezoidal_trajectory([A, B], v, a)
    found = time_optimal_trajectory(FLAT, [A, B], velocity=v, acceleration=a, effort=FREE)
    assert found.end == pytest.approx(expected.end, rel=2e-3)
    for fraction in (0.1, 0.5, 0.8):
        reached, expected_q = (x.at(fraction * x.end).q for x in (found, expected))
        np.testing.assert_allclose(reached, expected_q, atol=3e-3)


def test_one_joint_without_gravity_takes_the_minimum_time_of_its_inertia():
    """h = 1 rad with full effort in both directions: 2 √(h I / tau)."""
    arm = chain({"axis": "0 0 1", "effort": 2.0})
    inertia = rigid_body.mass_matrix(arm, [0.0])[0, 0]
    found = time_optimal_trajectory(arm, [[0.0], [1.0]])
    assert found.end == pytest.approx(2 * np.sqrt(inertia / 2.0), rel=1e-3)


def test_a_pendulum_under_full_effort_satisfies_the_energy_balance():
    """Lifted with full effort until it brakes: kinetic energy = tau Δq - ΔU."""
    arm = chain({"effort": 5.0})
    found = time_optimal_trajectory(arm, [[0.5], [-0.8]])
    assert found.end > 2 * np.sqrt(1.3 * rigid_body.mass_matrix(arm, [0.0])[0, 0] / 5.0)
    early = found.at(found.end / 4)
    effort = rigid_body.rnea(arm, early.q, early.v, early.a)
    assert effort[0] == pytest.approx(-5.0, rel=1e-2)
    gained = rigid_body.potential_energy(arm, early.q) - rigid_body.potential_energy(arm, [0.5])
    work = -5.0 * (early.q[0] - 0.5)
    assert rigid_body.kinetic_energy(arm, early.q, early.v) == pytest.approx(
        work - gained, rel=1e-2
    )


@pytest.mark.parametrize("name", ["five_dof", "puma560", "two_link"])
def test_limits_are_reached_and_never_exceeded(name):
    arm = load_arm(name)
    q = np.array(arm.configuration("initial"))
    direction = np.where(arm.upper > q + 1, 1, -1)  # toward the more distant limit
    points = [
        q,
        q + direction * np.linspace(0.5, 0.2, arm.nv),
        q + direction * np.linspace(0.7, 0.8, arm.nv),
    ]
    found = time_optimal_trajectory(arm, points)
    found.check(arm)
    speed, effort = limit_ratios(arm, found)
    assert max(speed.max(), effort.max()) <= 1 + 1e-6
    used = np.maximum(speed.max(axis=1), effort.max(axis=1))
    assert np.mean(used > 0.95) > 0.95  # at any time one of them is at its limit


@settings(max_examples=examples(10))
@given(st.lists(st.lists(st.floats(-0.4, 0.4), min_size=5, max_size=5), min_size=1, max_size=3))
def test_any_path_is_kept_within_the_limits(offsets):
    arm, home = five_dof(), np.array([0.3, -0.4, -0.3, 0.2, 0.1])
    points = [
        home,
        *(home + np.array(direction) + 0.01 * k for k, direction in enumerate(offsets, 1)),
    ]
    if np.linalg.norm(np.diff(points, axis=0), axis=1).min() < 0.1:
        return
    acceleration = np.full(5, 4.0)
    found = time_optimal_trajectory(arm, points, acceleration=acceleration, grid=60)
    speed, effort = limit_ratios(arm, found, 601)
    assert max(speed.max(), effort.max()) <= 1 + 1e-6
    times = np.linspace(0, found.end, 601)[1:-1]
    assert np.abs([found.at(t).a for t in times]).max() <= 4.0 * (1 + 1e-6)
    q = np.array([found.at(t).q for t in times])
    for point in points:
        assert np.linalg.norm(q - point, axis=1).min() < 0.03
    np.testing.assert_allclose(found.at(found.end).q, points[-1], atol=1e-12)


def test_twice_the_effort_without_weight_is_faster_by_the_root_of_two():
    slow, fast = (time_optimal_trajectory(FLAT, [A, B], effort=[x, x]).end for x in (1.0, 2.0))
    assert slow / fast == pytest.approx(np.sqrt(2), rel=1e-6)


def test_a_tool_line_is_as_fast_as_the_joints_allow():
    """Inverse kinematics along a line, then time scaling: the tool stays on the line."""
    from arm_dynamics.control.trajectories import feasibility
    from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
    from arm_dynamics.control.trajectories.profiles import quintic

    arm, q = load_arm("two_link"), np.array([0.6, 1.2])
    start = frames.tool_position(arm, q)
    direction = np.array([-0.5, 0.0, 0.3])
    line = CartesianTrajectory.from_configuration(arm, q).line(start + direction, quintic(1.0))
    found = time_optimal_trajectory(arm, list(feasibility.solve_along(arm, line, period=0.05).q))
    assert found.end < 1.0
    for t in np.linspace(0, found.end, 41):
        off = frames.tool_position(arm, found.at(t).q) - start
        assert np.linalg.norm(np.cross(off, direction)) / np.linalg.norm(direction) < 1e-3


@pytest.mark.parametrize(
    ("points", "options", "text"),
    [
        ([A], {}, "number of points = 1; expected at least 2"),
        ([A, A], {}, "points 0 and 1 = .*; expected different"),
        ([A, B[:1]], {}, r"points\[1\]: shape"),
        ([A, [np.nan, 0]], {}, r"points\[1\]\[0\] = nan"),
        ([A, B], {"velocity": [1, 0]}, r"velocity\[1\] = 0"),
        ([A, B], {"effort": [1, -1]}, r"effort\[1\] = -1"),
        ([A, B], {"acceleration": [1]}, r"acceleration: shape"),
        ([A, B], {"acceleration": [1, np.nan]}, r"acceleration\[1\] = nan"),
        ([A, B], {"grid": 2}, "grid = 2; expected an integer of at least 4"),
        ([A, B + 3], {}, r"joint 'J1': position = 3.* rad at .* s; expected within \[-3, 3\]"),
    ],
)
def test_rejections_name_the_cause(points, options, text):
    with pytest.raises(ArmDynamicsError, match=text):
        time_optimal_trajectory(FLAT, points, **options)


def test_a_path_without_static_equilibrium_is_rejected():
    with pytest.raises(
        ArmDynamicsError, match=r"'J1': gravity torque at q = .* less than the limit 1"
    ):
        time_optimal_trajectory(chain({"effort": 1.0}), [[0.5], [-0.5]])


def test_without_toppra_the_required_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "toppra", None)
    with pytest.raises(ConfigError, match=r"toppra is not installed; .* -m pip install 'toppra"):
        time_optimal_trajectory(FLAT, [A, B])
