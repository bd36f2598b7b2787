"""Commands of other programs that lead to a contact: the driver stops the arm before it."""

import re

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_mit_can_arm import PERIOD
from test_mit_can_arm import Rig as MitRig
from test_so101_servos import Rig as ServoRig

from arm_dynamics import load_arm
from arm_dynamics.collision.clearance_monitor import CLEARANCE, ClearanceMonitor
from arm_dynamics.collision.scene import Scene, SceneObject, Shape
from arm_dynamics.core.state import Command, State
from arm_dynamics.dynamics import gravity, rnea, tool_position
from arm_dynamics.hardware.driver import DriverState
from arm_dynamics.model.load import parse_arm
from arm_dynamics.safety.braking import (
    HARD_STOP,
    MIN_BRAKING,
    BrakingMonitor,
    default_deceleration,
)
from arm_dynamics.safety.controlled_stop import make_stop

pytestmark = pytest.mark.hardware


class Distances:
    """Smallest distance of the checked pairs of an arm, less that of the initial configuration."""

    def __init__(self, arm, scene):
        self.arm, self.monitor = arm, ClearanceMonitor(arm, scene=scene)
        self.data, self.results = arm.model.createData(), self.monitor.shapes.createData()

    def margin(self, q):
        """Return the smallest distance less the required one [m]."""
        pin.computeDistances(self.arm.model, self.data, self.monitor.shapes, self.results, q)
        found = np.array([result.min_distance for result in self.results.distanceResults])
        return float((found - self.monitor.margins).min())


def drive(rig, value, cycles, distances):
    """Write ``value(q)`` in every cycle; return the smallest margin of the arm [m]."""
    least = np.inf
    for cycle in range(cycles):
        start, state = rig.port.now(), rig.driver.read()
        rig.driver.write(Command(rig.driver.interface, value(state.q)))
        rig.port.pass_until(start + PERIOD)
        if cycle % 4 == 0:
            least = min(least, distances.margin(rig.body.state.q))
    return least


def toward(goal, step):
    """Return positions that approach ``goal`` by ``step`` [rad] in a cycle."""
    return lambda q: q + np.clip(goal - q, -step, step)


@pytest.mark.parametrize("checked", [True, False])
def test_servos_stop_before_links_touch_and_continue_elsewhere_after_a_reset(checked):
    rig = ServoRig("position")
    arm = rig.driver.arm
    if checked:
        rig.driver.check_collisions()
    rig.up()
    distances, start = Distances(arm, Scene()), np.array(rig.body.state.q)
    least = drive(rig, toward(np.full(arm.nv, 1.0), 0.1), 1000, distances)
    if not checked:
        assert least < -2 * CLEARANCE  # the links overlap
        return
    assert least > -CLEARANCE / 2
    (trip,) = rig.driver.trips
    assert trip.kind == "contact_ahead"
    assert "links 'base_link' and 'wrist_roll_link'" in trip.detail
    assert rig.driver.status is DriverState.STOPPED
    rig.driver.reset()
    rig.driver.read()
    rig.driver.activate()
    rig.body.forget()
    drive(rig, toward(start, 0.02), 1000, distances)
    assert rig.driver.status is DriverState.ACTIVE, rig.driver.trips
    np.testing.assert_allclose(rig.body.state.q, start, atol=0.05)


@pytest.mark.parametrize("interface", ["velocity", "effort"])
def test_an_arm_stops_before_it_touches_an_object(interface):
    rig = MitRig(interface)
    arm, start = rig.driver.arm, np.array(rig.body.state.q)
    shoulder = np.eye(arm.nv)[1]
    ahead = tool_position(arm, start + 0.5 * shoulder)
    scene = Scene([SceneObject("ball", Shape("sphere", (0.03,)), ahead)])
    distances = Distances(arm, scene)
    rig.driver.check_collisions(scene)
    rig.up()
    if interface == "velocity":
        least = drive(rig, lambda q: 1.5 * shoulder, 800, distances)
    else:
        least = drive(rig, lambda q: gravity(arm, q) + 3.0 * shoulder, 800, distances)
    assert least > -CLEARANCE  # the clearance less the distance: no contact
    assert rig.driver.trips[0].kind == "contact_ahead"
    assert "object 'ball'" in rig.driver.trips[0].detail
    assert rig.driver.status is DriverState.STOPPED
    assert np.abs(rig.body.state.v).max() < 0.05
    assert rig.body.state.q[1] - start[1] > 0.1


@pytest.mark.parametrize("interface", ["velocity", "effort"])
def test_a_stop_ends_within_the_braking_distance(interface):
    arm = MitRig().driver.arm
    v = np.array(np.minimum(arm.velocity_limit, 5.0))
    q = np.array(arm.configuration("initial"))
    monitor = BrakingMonitor(arm)
    rate, distance = monitor.deceleration(q, v), monitor.distance(q, v)
    last = v if interface == "velocity" else np.zeros(arm.nv)
    stop = make_stop("hold", interface, arm, State.of(q, v), last, deceleration=rate)
    rest, speed = stop.path(2.0)
    np.testing.assert_allclose(rest - q, distance, rtol=1e-9)
    np.testing.assert_array_equal(speed, 0.0)
    half = stop.path(v[0] / rate[0] / 2)[1]
    np.testing.assert_allclose(half[0], v[0] / 2, rtol=1e-9)


@given(st.integers(0, 2**32 - 1))
def test_the_effort_of_a_stop_is_within_the_limits(seed):
    arm = load_arm("seven_dof_can")
    monitor, random = BrakingMonitor(arm), np.random.default_rng(seed)
    q, v = random.uniform(arm.lower, arm.upper), random.uniform(-3, 3, arm.nv)
    rate = monitor.deceleration(q, v)
    most = HARD_STOP * default_deceleration(arm)
    assert (rate <= most * (1 + 1e-12)).all()
    effort = np.abs(rnea(arm, q, v, -rate * np.sign(v)))
    if (rate > 1.001 * MIN_BRAKING * most).all():
        assert (effort <= arm.effort_limit * (1 + 1e-9)).all()
    np.testing.assert_allclose(monitor.distance(q, v), v * np.abs(v) / (2 * rate), rtol=1e-12)


def test_an_arm_without_masses_brakes_with_the_default():
    bare = re.sub(r"<inertial>.*?</inertial>", "", load_arm("so101").urdf, flags=re.DOTALL)
    with pytest.warns(RuntimeWarning):
        arm = parse_arm(bare)
    q = np.zeros(arm.nv)
    rate = BrakingMonitor(arm).deceleration(q, q + 1)
    np.testing.assert_array_equal(rate, HARD_STOP * default_deceleration(arm))


@pytest.mark.parametrize("interface", ["position", "velocity", "effort"])
def test_a_joint_with_velocity_limit_0_stops_at_finite_positions(interface):
    arm = load_arm("so101")
    q, v = np.array(arm.configuration("initial")), np.full(arm.nv, 0.1)
    rate = np.where(np.arange(arm.nv) == 2, 0.0, 5.0)
    last = v if interface == "velocity" else q
    stop = make_stop("hold", interface, arm, State.of(q, v), last, deceleration=rate)
    command = stop.command(State.of(q, v, time=1.0))
    assert np.isfinite(command.value).all()
    rest, speed = stop.path(3.0)
    assert np.abs(rest - q).max() < 0.02
    np.testing.assert_allclose(speed, 0.0, atol=1e-6)
