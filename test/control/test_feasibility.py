"""Infeasible parts of a Cartesian path are found, with times and position error."""

import re

import numpy as np
import pytest
from conftest import chain, five_dof

from arm_dynamics import load_arm
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.controllers.task_space import TaskSpace
from arm_dynamics.control.trajectories import feasibility, joint_splines
from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
from arm_dynamics.control.trajectories.profiles import quintic
from arm_dynamics.control.trajectories.tool_paths import ToolLimits
from arm_dynamics.core.errors import InvalidValue, TrajectoryRejected
from arm_dynamics.core.state import Reference
from arm_dynamics.dynamics.kinematics import frames
from arm_dynamics.hardware.simulation_driver import SimulationDriver
from arm_dynamics.simulation.simulation import Simulation

ARM = load_arm("two_link")  # both links 1 m long
BENT = np.array([0.6, 1.2])
BASE = frames.joint_origins(ARM, BENT)[0]


def tool(q=BENT):
    return frames.tool_position(ARM, q)


def rest(arm=ARM, q=BENT):
    return CartesianTrajectory.from_configuration(arm, q, start=2.0)


def radial_trajectory(far, speed=0.5):
    """Return a trajectory straight away from the base to a distance ``far`` [m] and back."""
    away = (tool() - BASE) / np.linalg.norm(tool() - BASE)
    limits = ToolLimits(speed, 1e6)
    return rest().line(BASE + far * away, limits).line(tool(), limits)


def test_the_joints_follow_a_reachable_path():
    path = rest().line(tool() + np.array([-0.3, 0.0, 0.2]), quintic(2.0))
    found = feasibility.solve_along(ARM, path)
    assert found.spans == ()
    path.check(ARM)
    joints = found.joints()
    assert (joints.start, joints.end) == (2.0, 4.0)
    for t in np.linspace(2.0, 4.0, 33):
        miss = frames.tool_position(ARM, joints.at(t).q) - path.at(t).position
        assert np.abs(miss).max() < 1e-5
    t = 3.1
    twist = frames.twist(ARM, joints.at(t).q, joints.at(t).v)
    np.testing.assert_allclose(twist[:3], path.at(t).twist[:3], atol=1e-3)


def test_an_unreachable_part_is_reported_with_times_and_position_error():
    """At constant velocity away from the base and back, the workspace limit of 2 m is passed at
    known times.
    """
    path, before = radial_trajectory(2.2), np.linalg.norm(tool() - BASE)
    crossing = 2.0 + (2.0 - before) / 0.5
    turning = 2.0 + (2.2 - before) / 0.5
    (part,) = feasibility.solve_along(ARM, path).faults
    assert part.kind == "out of reach"
    assert part.begin == pytest.approx(crossing, abs=5e-3)
    assert part.end == pytest.approx(2 * turning - crossing, abs=5e-3)
    assert part.at == pytest.approx(turning, abs=0.02)
    assert part.amount == pytest.approx(0.2, abs=0.01)
    with pytest.raises(
        TrajectoryRejected, match=r"from 2\.\d+ s to .* position error = 0\.\d+ m at"
    ):
        path.check(ARM)


def test_allow_unreachable_passes_the_check():
    path = radial_trajectory(2.2)
    type(path)(
        path.arm,
        path.position,
        path.rotation,
        path.posture,
        path.start_time,
        path.segments,
        allow_unreachable=True,
    ).check(ARM)


def test_a_stretched_arm_is_reported_as_singular_without_a_fault():
    q = np.array([0.6, 1e-3])
    parts = feasibility.solve_along(ARM, rest(q=q).hold(1.0)).spans
    assert [part.kind for part in parts] == ["singular"]
    assert parts[0].amount < feasibility.MIN_SINGULAR_RATIO


def test_the_most_singular_sample_is_reported_also_at_the_end_of_its_run():
    """Two equal links: σ_min / σ_max decreases with the angle of the elbow."""
    times = np.arange(5.0)
    rows = np.array([1, 0, 1, 0, 0, 0]) > 0
    for elbow in ([1.0, 0.03, 0.02, 0.01, 1.0], [1.0, 1.0, 1.0, 1.0, 0.01]):
        q = np.array([[0.6, angle] for angle in elbow])
        (part,) = feasibility.singular_spans(ARM, times, q, rows)
        assert part.begin == times[[angle < 1 for angle in elbow]].min()
        assert part.at == part.end == times[np.argmin(elbow)]


def test_a_joint_limit_on_the_path_is_named():
    """Two links of 0.5 m whose elbow range ends at 1 rad."""
    arm = chain({}, {"lower": 1.0}, more=TIP)
    q = np.array([0.2, 1.4])
    start, base = (frames.joint_origins(arm, q)[i] for i in (-1, 0))
    outward = start - base
    path = rest(arm, q).line(base + 1.2 * outward, quintic(2.0))
    (part,) = feasibility.solve_along(arm, path, weights=np.array([1.0, 0, 1, 0, 0, 0])).faults
    assert "'J2' at its limit" in part.text
    longest = np.sqrt(0.5 + 0.5 * np.cos(1.0))
    assert part.amount == pytest.approx(1.2 * np.linalg.norm(outward) - longest, abs=2e-3)


TIP = """<link name="tip"/><joint name="end" type="fixed"><origin xyz="0.5 0 0"/>
<parent link="J2_link"/><child link="tip"/></joint>"""


def test_joints_above_their_velocity_limit_are_named():
    path = rest().line(tool() + np.array([-0.3, 0.0, 0.2]), quintic(0.004))
    (part,) = feasibility.solve_along(ARM, path).faults
    assert (part.kind, part.at) == ("too fast", pytest.approx(2.002, abs=1e-3))
    assert part.amount > 1
    with pytest.raises(
        TrajectoryRejected, match=r"joint '\w+': velocity = .* expected within the limit 100"
    ):
        path.check(ARM)


def test_a_hold_is_feasible_and_a_transition_to_a_later_start_is_checked():
    assert feasibility.solve_along(ARM, rest()).times.tolist() == [2.0]
    rest().check(ARM)
    arm = five_dof()  # the first joint's velocity limit is 1.2 rad/s
    home = np.array(arm.configuration("initial"))
    entered = rest(arm, home).starting_from(1.9, Reference.hold(home + 0.5 * np.eye(5)[0]))
    assert feasibility.solve_along(arm, entered).times[0] == 1.9
    with pytest.raises(TrajectoryRejected, match=r"'R1': velocity = .* at 1\.9\d* s; expected"):
        entered.check(arm)


def test_joint_trajectories_and_invalid_periods_are_rejected():
    with pytest.raises(TrajectoryRejected, match="expected a Cartesian trajectory"):
        feasibility.solve_along(ARM, joint_splines.cubic_trajectory([BENT, BENT + 0.1], [0.0, 1.0]))
    with pytest.raises(InvalidValue, match="period"):
        feasibility.solve_along(ARM, rest(), period=0.0)


def test_a_loop_rejects_an_unreachable_path_before_its_start_and_follows_a_reachable_one():
    sim = Simulation(ARM, q=BENT, period=2e-3)
    loop = ControlLoop(SimulationDriver(ARM, sim), TaskSpace(ARM))
    loop.step()
    with pytest.raises(TrajectoryRejected, match="trajectory out of reach from"):
        loop.follow(radial_trajectory(2.2))
    to = tool() + np.array([-0.3, 0.0, 0.2])
    loop.follow(CartesianTrajectory.from_configuration(ARM, BENT, start=0.1).line(to, quintic(0.8)))
    far = 0.0
    while sim.state.time < 1.2:
        loop.step()
        miss = frames.tool_position(ARM, sim.state.q) - loop.reference.position
        far = max(far, np.abs(miss[[0, 2]]).max()) if sim.state.time > 0.01 else far
    assert far < 5e-3
    np.testing.assert_allclose(tool(sim.state.q), to, atol=1e-3)
    assert not loop.events.counts


def test_a_far_unreachable_path_is_reported_with_time_and_position_error():
    """5 m away: joints are too fast at the workspace limit, but this is not the cause."""
    path, before = radial_trajectory(5.0, speed=60.0), np.linalg.norm(tool() - BASE)
    faults = feasibility.solve_along(ARM, path).faults
    assert "too fast" in {part.kind for part in faults}  # shortly before full extension
    crossing = 2.0 + (2.0 - before) / 60.0
    with pytest.raises(TrajectoryRejected, match="error = ") as rejected:
        path.check(ARM)
    times = [float(x) for x in re.findall(r"(\d+\.\d+) s", str(rejected.value))]
    assert times[0] == pytest.approx(crossing, abs=3e-3)
    assert times[1] == pytest.approx(path.end - (crossing - 2.0), abs=3e-3)
    distance = float(re.search(r"error = (\S+) m at", str(rejected.value))[1])
    assert distance == pytest.approx(3.0, rel=0.15)


def test_the_check_stops_at_the_first_fault(monkeypatch):
    sampled = []
    plain = CartesianTrajectory.at
    monkeypatch.setattr(CartesianTrajectory, "at", lambda s, t: sampled.append(t) or plain(s, t))
    path = radial_trajectory(2.2).hold(900.0)
    with pytest.raises(TrajectoryRejected, match="error = "):
        feasibility.require_feasible(ARM, path)
    assert len(sampled) < 300


def test_sampling_is_sparse_at_rest_and_dense_in_motion():
    to = tool() + np.array([-0.3, 0.0, 0.2])
    path = rest().line(to, quintic(1.0)).hold(20.0).line(tool(), quintic(1.0))
    times = feasibility.solve_along(ARM, path).times
    still = (times > 3.0) & (times < 23.0)
    assert still.sum() < 20.0 / 0.15
    moving = np.diff(times)[~still[1:] & ~still[:-1]]
    assert moving.size >= 80
    places = np.array([path.at(t).position for t in times])
    assert np.linalg.norm(np.diff(places, axis=0), axis=1).max() < 0.02


def test_pause_is_called_after_every_sample():
    pauses = []
    path = rest().line(tool() + np.array([-0.3, 0.0, 0.2]), quintic(2.0))
    found = feasibility.solve_feasible(ARM, path, pause=lambda: pauses.append(1))
    assert len(pauses) == len(found.times)
    np.testing.assert_array_equal(found.q, feasibility.solve_along(ARM, path).q)


def test_a_very_long_trajectory_is_rejected_immediately():
    path = radial_trajectory(0.3, speed=1e-9)
    with pytest.raises(TrajectoryRejected, match=r"duration = .* expected at most 1000 s"):
        feasibility.solve_along(ARM, path)


def test_rotation_about_the_only_axis_that_counts_is_followed():
    arm, q = chain({}, {}, {}), np.array([0.3, 0.8, -0.5])
    to, angle = frames.tool_position(arm, q) + np.array([-0.1, 0.0, 0.1]), q.sum() + 0.4
    turned = [[np.cos(angle), 0, np.sin(angle)], [0, 1, 0], [-np.sin(angle), 0, np.cos(angle)]]
    path = CartesianTrajectory.from_configuration(arm, q).line(to, quintic(1.0), turned)
    found = feasibility.solve_along(arm, path, weights=np.array([1.0, 0, 1, 0, 1, 0]))
    assert found.spans == ()
    assert found.joints().at(1.0).q.sum() == pytest.approx(angle, abs=1e-5)
