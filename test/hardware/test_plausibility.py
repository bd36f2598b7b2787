"""Plausibility filter: one corrupt reading has no effect; real motion is accepted."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from motor_rig import Rig, arm, weight
from test_motor_bus_driver_protocols import EmulatedLine

from arm_dynamics.core.state import State
from arm_dynamics.hardware.driver import DriverState
from arm_dynamics.hardware.feedback_buffer import (
    FADE_AGE,
    FROZEN_DISTANCE,
    FROZEN_TIME,
    MAX_VELOCITY_RATIO,
    POSITION_TOLERANCE,
    PlausibilityFilter,
)
from arm_dynamics.hardware.motor_bus import Reading

pytestmark = pytest.mark.hardware

V, DT = 4.0, 2e-3
ONE = np.ones(1)


class Joint:
    """Readings of one joint; ``accepted`` is the last accepted position."""

    def __init__(self, q=0.0):
        self.filter, self.time = PlausibilityFilter(V * ONE), 0.0
        self.accepted, self.at = np.nan, -np.inf
        self.add(q)

    def add(self, q, v=0.0, dt=DT, torque=False):
        """Filter a reading; return whether it is accepted."""
        self.time += dt
        times = self.filter.filter(
            self.time * ONE, q * ONE, v * ONE, self.at * ONE, self.accepted * ONE, torque
        )
        if not np.isnan(times[0]):
            self.accepted, self.at = q, times[0]
        return not np.isnan(times[0])


@given(st.floats(-50, 50), st.floats(-50, 50))
def test_one_implausible_reading_is_rejected_and_the_next_one_accepted(start, jump):
    joint = Joint(start)
    reach = MAX_VELOCITY_RATIO * V * DT + POSITION_TOLERANCE
    assert joint.add(start + jump) is (abs(start + jump - start) <= reach)
    assert joint.add(start)
    assert joint.accepted == start


@given(st.floats(0.11, 12), st.sampled_from([-1, 1]))
def test_a_position_that_does_not_change_with_its_velocity_is_old(speed, sign):
    """After FROZEN_DISTANCE + FROZEN_TIME v of motion, until the position changes."""
    joint = Joint()
    cycles = 0
    while not joint.filter.frozen[0]:
        joint.add(0.0, sign * speed)
        cycles += 1
    motion = FROZEN_DISTANCE + FROZEN_TIME * speed
    assert motion - speed * DT <= cycles * DT * speed <= motion + speed * DT
    assert joint.add(1e-6, sign * speed)
    assert not joint.filter.frozen[0]


def test_a_joint_at_rest_may_report_a_small_velocity():
    joint = Joint()
    assert all(joint.add(0.0, 0.09) and not joint.filter.frozen[0] for _ in range(5000))


@given(st.floats(-40, 40))
def test_no_two_successive_readings_are_rejected_for_any_motion(speed):
    joint = Joint()
    results = [joint.add(speed * DT * k, speed) for k in range(1, 50)]
    assert all(one or two for one, two in pairwise(results))
    assert abs(joint.accepted - speed * DT * 49) <= abs(speed) * DT + 1e-9
    if abs(speed) <= MAX_VELOCITY_RATIO * V:
        assert all(results)


@given(st.floats(-100, 100))
def test_an_impossible_velocity_is_rejected_once(v):
    joint = Joint()
    assert joint.add(0.0, v) is (abs(v) <= MAX_VELOCITY_RATIO * V)
    assert joint.add(0.0)


def test_after_missing_feedback_any_position_is_accepted():
    joint = Joint()
    assert joint.add(1.0, dt=1.0)


def test_with_torque_a_joint_stays_jumped_until_a_reading_is_near_in_time_and_position():
    """A gap alone is not a jump; after a jump no reading later than FADE_AGE is accepted."""
    joint = Joint()
    assert joint.add(0.0, dt=3 * FADE_AGE, torque=True)
    for q in (2.0, 2.0, 2.0):
        assert not joint.add(q, torque=True)
    assert joint.filter.jumped[0]
    assert joint.add(0.0, torque=True)
    assert not joint.filter.jumped[0]
    for dt in (DT, DT, 2 * FADE_AGE, DT):
        assert not joint.add(2.0, dt=dt, torque=True)
    assert not joint.add(0.0, torque=True)
    assert joint.add(0.0)


@pytest.mark.parametrize(("value", "amount"), [("q", 4.0), ("v", 1e3)])
@pytest.mark.parametrize("interface", ["effort", "position"])
def test_a_corrupt_reading_causes_neither_trip_nor_motion(interface, value, amount):
    rig = Rig(interface).up()
    rig.cycles(20)
    read = rig.bus.read

    def corrupt_read():
        readings = dict(read())
        results = readings[2]
        wrong = {"q": results.q, "v": results.v, value: amount}
        readings[2] = Reading(results.time, **wrong, fault="overload", enabled=False)
        return readings

    for _ in range(5):
        rig.bus.read = corrupt_read
        rig.cycle()
        rig.bus.read = read
        rig.cycles(3)
    assert rig.driver.status is DriverState.ACTIVE
    assert rig.body.moved.max() < (1e-3 if interface == "effort" else 0.02)
    assert rig.counts == {"implausible_reading": 5}
    assert "joint 'J2'" in rig.driver.events.latest["implausible_reading"]


def test_a_joint_without_a_velocity_limit_is_filtered_too():
    """The default limit is 100 rad/s: here 4 rad in 2 ms."""
    fast = tuple(replace(joint, velocity=1e6) for joint in arm().joints)
    rig = Rig(model=replace(arm(), joints=fast)).up()
    rig.cycles(20)
    read = rig.bus.read

    def corrupt_read():
        results = dict(read())
        results[2] = Reading(
            results[2].time, results[2].q + 8.0, results[2].v
        )  # two shaft turns per joint turn
        return results

    rig.bus.read = corrupt_read
    rig.cycle()
    rig.bus.read = read
    rig.cycles(3)
    assert rig.driver.status is DriverState.ACTIVE
    assert rig.counts == {"implausible_reading": 1}


def test_a_fast_joint_trips_at_the_second_reading():
    rig = Rig().up()
    rig.cycles(5, lambda: weight(rig))
    rig.body.state = State.of(rig.body.state.q, [0, 500.0, 0])
    rig.body._place()
    rig.driver.read()
    assert "J2" not in [trip.joint for trip in rig.driver.trips]
    rig.driver.read()
    assert ("velocity_limit", "J2") in [(trip.kind, trip.joint) for trip in rig.driver.trips]


def test_a_single_reading_of_another_turn_does_not_change_the_turn_count():
    line = EmulatedLine("feetech").up()
    line.cycles(20)
    turns = line.driver.bus._turns[2]
    before = turns.last
    turns.unwrap((before + 2000) % 4096)  # a corrupt reply with a valid checksum
    line.cycles(20)
    assert line.driver.status is DriverState.ACTIVE
    assert turns.count == 0
