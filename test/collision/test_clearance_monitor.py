"""Clearance of links along motions: bounds, first contact, stops, and a loop that avoids them."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest
from conftest import examples
from hook_arm import hooks, write_stl
from hypothesis import given, settings
from hypothesis import strategies as st

from arm_dynamics import load_arm
from arm_dynamics.collision.clearance_monitor import CLEARANCE, TOLERANCE, ClearanceMonitor
from arm_dynamics.control import ComputedTorque, ControlLoop, JointTrajectory, Waypoint
from arm_dynamics.core.errors import TrajectoryRejected
from arm_dynamics.hardware.simulation_driver import SimulationDriver
from arm_dynamics.model.load import parse_arm
from arm_dynamics.safety import Events
from arm_dynamics.safety.braking import BrakingMonitor

SEEDS = st.integers(0, 10_000)
GJK = 1e-5
"""Error of a distance [m]."""


class Exact:
    """Distances of the checked pairs of an arm by Pinocchio alone."""

    def __init__(self, arm):
        self.arm, monitor = arm, ClearanceMonitor(arm)
        self.shapes, self.margins = monitor.shapes, monitor.margins
        self.data, self.results = arm.model.createData(), self.shapes.createData()

    def slack(self, q):
        """Return the smallest distance at ``q`` less its clearance [m]."""
        pin.computeDistances(self.arm.model, self.data, self.shapes, self.results, q)
        distances = [result.min_distance for result in self.results.distanceResults]
        return float((np.array(distances) - self.margins).min())


@pytest.fixture(scope="module")
def arm():
    return load_arm("so101")


@pytest.fixture(scope="module")
def exact(arm):
    return Exact(arm)


@settings(max_examples=examples(100), deadline=None)
@given(seed=SEEDS)
def test_a_motion_without_a_contact_keeps_the_clearance_everywhere(arm, exact, seed):
    random, monitor = np.random.default_rng(seed), ClearanceMonitor(arm)
    for _ in range(5):  # the monitor keeps distances of earlier motions
        q, end = random.uniform(arm.lower, arm.upper, (2, arm.nv))
        motion = end - q
        found = monitor.first_contact(
            lambda s, q=q, motion=motion: q + s * motion, 0.0, 1.0, np.abs(motion)
        )
        slack = [exact.slack(q + s * motion) for s in np.linspace(0, 1, 41).tolist()]
        if exact.slack(q) < 0:
            continue
        if found is None:
            assert min(slack) > -0.002  # between two checks of 1 ms
        else:
            time, contact = found
            assert exact.slack(q + time * motion) < GJK
            assert contact.distance < contact.clearance <= CLEARANCE
            assert all(x > -0.002 for x in slack[: int(40 * time)])


def test_a_stop_that_ends_at_a_contact_is_found_before_the_arm_is_there(arm, exact):
    random, monitor, stops = np.random.default_rng(1), ClearanceMonitor(arm), 0
    for _ in range(60):
        q, end = random.uniform(arm.lower, arm.upper, (2, arm.nv))
        if exact.slack(q) < 1e-3:
            continue
        for s in np.linspace(0, 1, 200).tolist():
            here, rest = q + s * (end - q), q + min(s + 0.1, 1.0) * (end - q)
            if monitor.stop_contact(here, rest) is not None:
                stops += 1
                assert exact.slack(here) > 0
                assert exact.slack(rest) < GJK
                break
            assert exact.slack(rest) > -TOLERANCE - GJK
    assert stops > 5


def test_an_arm_in_a_contact_may_only_leave_it(arm, exact):
    random, monitor = np.random.default_rng(2), ClearanceMonitor(arm)
    checked = 0
    for _ in range(400):
        q, rest = random.uniform(arm.lower, arm.upper, (2, arm.nv))
        rest = q + 0.02 * (rest - q)
        before, after = exact.slack(q), exact.slack(rest)
        if before < 0 and abs(after - before) > 5e-3:
            checked += 1
            assert (monitor.stop_contact(q, rest) is not None) or after > before
            assert monitor.stop_contact(rest, rest) is None
    assert checked > 5


def test_hulls_of_whole_meshes_hide_no_contact(tmp_path):
    arm = hooks(tmp_path)
    random, monitor, exact, found = np.random.default_rng(4), ClearanceMonitor(arm), Exact(arm), 0
    for _ in range(600):
        q = random.uniform(arm.lower, arm.upper)
        rest = q + random.uniform(-0.05, 0.05, arm.nv)
        if exact.slack(q) > 0:
            contact = monitor.stop_contact(q, rest)
            nearest = min(exact.slack(q + s * (rest - q)) for s in np.linspace(0, 1, 11).tolist())
            found += contact is not None
            assert contact is not None or nearest > -TOLERANCE - GJK
            assert contact is None or nearest < 1e-3
    assert found > 2


def test_a_mesh_with_a_vertex_of_many_edges_is_covered_by_a_box(tmp_path):
    """A cone with 400 edges at its apex; coal stores at most 255."""
    angle = np.linspace(0, 2 * np.pi, 401)
    rim = np.column_stack((0.03 * np.cos(angle), 0.03 * np.sin(angle), np.zeros(401)))
    apex, center = np.full((400, 3), (0, 0, 0.2)), np.zeros((400, 3))
    side, base = np.stack((rim[:-1], rim[1:], apex), 1), np.stack((rim[1:], rim[:-1], center), 1)
    write_stl(tmp_path / "cone.stl", np.vstack((side, base)))
    text = load_arm("so101").urdf
    text = re.sub("<(box|cylinder|sphere) [^>]*/>", '<mesh filename="cone.stl"/>', text)
    monitor = ClearanceMonitor(parse_arm(text, tmp_path / "arm.urdf"))
    assert monitor.pairs > 10
    heights = []
    for shape in monitor.shapes.geometryObjects:
        shape.geometry.computeLocalAABB()
        box = shape.geometry.aabb_local
        heights.append(box.max_[2] - box.min_[2])
    assert max(heights) > 0.19


def test_an_arm_without_collision_geometry_uses_its_visual_geometry():
    text = load_arm("so101").urdf
    text = re.sub(r"<collision>.*?</collision>", "", text, flags=re.DOTALL)
    with pytest.warns(RuntimeWarning, match="no collision geometry; .* the visual geometry"):
        assert ClearanceMonitor(parse_arm(text)).pairs > 10


def test_an_arm_without_any_geometry_is_not_checked():
    text = re.sub(r"<(collision|visual)>.*?</\1>", "", load_arm("so101").urdf, flags=re.DOTALL)
    arm = parse_arm(text)
    assert ClearanceMonitor(arm).pairs == 0
    assert ClearanceMonitor(arm).stop_contact(np.zeros(arm.nv), np.ones(arm.nv)) is None
    moved(loop_of(arm), np.full(arm.nv, 1.0))


def loop_of(arm):
    events = Events(lambda kind, message: None)
    loop = ControlLoop(SimulationDriver(arm), ComputedTorque(arm), events)
    loop.step()
    return loop


def moved(loop, q, seconds=2.0):
    now = loop.state.time
    loop.follow(JointTrajectory((Waypoint(now + seconds, np.array(q), np.zeros(loop.arm.nv)),)))


def test_a_joint_with_velocity_limit_0_does_not_disable_the_check(arm):
    still = replace(arm, joints=(*arm.joints[:-1], replace(arm.joints[-1], velocity=0.0)))
    monitor, q = BrakingMonitor(still), np.full(arm.nv, 0.5)
    q[-1] = 0.0
    v = np.array([1.0] * (arm.nv - 1) + [0.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ahead = [monitor.contact_ahead(s * q, v) for s in (1.0, 1.8)]
    assert ahead[0] is None
    assert ahead[1] is not None


def test_a_trajectory_to_a_contact_is_rejected_with_links_distance_and_time(arm):
    loop = loop_of(arm)
    before = loop.trajectory
    text = (
        r"'base_link' and 'wrist_roll_link' would be \S+ mm; expected at least 6.0 mm, at"
        r" 1.\d+ s, 1.\d+ s from now"
    )
    with pytest.raises(TrajectoryRejected, match=text):
        moved(loop, np.full(arm.nv, 1.0))
    with pytest.raises(TrajectoryRejected, match="reference: distance of links 'base_link'"):
        loop.hold(np.full(arm.nv, 1.0))
    assert loop.trajectory is before
    assert not loop.reference_generator.pending


def test_without_the_check_the_same_trajectory_is_followed(arm):
    loop = ControlLoop(SimulationDriver(arm), ComputedTorque(arm), self_collision=False)
    loop.step()
    moved(loop, np.full(arm.nv, 1.0))


def test_random_steps_of_the_reference_never_bring_links_nearer_than_the_clearance(arm, exact):
    random, loop, rejected = np.random.default_rng(3), loop_of(arm), 0
    for _ in range(60):
        try:
            loop.hold(random.uniform(arm.lower, arm.upper))
        except TrajectoryRejected:
            rejected += 1
        for _ in range(random.integers(10, 60)):
            loop.step()
            assert exact.slack(loop.driver.simulation.state.q) > -1e-4
    assert rejected > 3


def test_an_arm_that_moves_to_a_contact_stops_before_it_and_can_go_back(arm, exact):
    loop = loop_of(arm)
    start = loop.state.q
    path = JointTrajectory((Waypoint(0.0, start), Waypoint(1.0, start + 1.0, np.zeros(arm.nv))))
    loop.reference_generator.start(path)  # without the check of ``follow``
    slack = []
    for _ in range(1000):
        loop.step()
        slack.append(exact.slack(loop.driver.simulation.state.q))
    assert min(slack) > -1e-4
    assert slack[-1] < 0.02
    assert np.abs(loop.state.v).max() < 1e-2
    assert loop.events.counts["control_restarted"] == 1
    assert "'base_link' and 'wrist_roll_link'" in loop.events.latest["control_restarted"]
    moved(loop, start)
    for _ in range(1200):
        loop.step()
    assert np.abs(loop.state.q - start).max() < 0.01
    assert loop.events.counts["control_restarted"] == 1
