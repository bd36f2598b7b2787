"""One spoilt reading moves nothing and trips nothing; a joint that runs away is believed."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from motor_rig import Rig, arm, weight
from test_motor_arm_makers import Line

from arm_dynamics.core.state import State
from arm_dynamics.hardware.driver import DriverState
from arm_dynamics.hardware.feedback_buffer import (
    MAX_VELOCITY_RATIO,
    POSITION_TOLERANCE,
    PlausibilityFilter,
)
from arm_dynamics.hardware.motor_bus import Reading

pytestmark = pytest.mark.hardware

V, DT = 4.0, 2e-3
ONE = np.ones(1)


class Joint:
    """One joint's readings as they come; ``believed`` is the last that was."""

    def __init__(self, q=0.0):
        self.law, self.time = PlausibilityFilter(V * ONE), 0.0
        self.believed, self.at = np.nan, -np.inf
        self.told(q)

    def told(self, q, v=0.0, dt=DT):
        self.time += dt
        times = self.law.filter(
            self.time * ONE, q * ONE, v * ONE, self.at * ONE, self.believed * ONE
        )
        if not np.isnan(times[0]):
            self.believed, self.at = q, self.time
        return not np.isnan(times[0])


@given(st.floats(-50, 50), st.floats(-50, 50))
def test_one_reading_out_of_reach_is_held_back_and_the_way_on_is_not(start, jump):
    joint = Joint(start)
    reach = MAX_VELOCITY_RATIO * V * DT + POSITION_TOLERANCE
    assert joint.told(start + jump) is (abs(start + jump - start) <= reach)
    assert joint.told(start)
    assert joint.believed == start


@given(st.floats(-40, 40))
def test_no_joint_is_doubted_twice_in_a_row_however_it_moves(speed):
    joint = Joint()
    told = [joint.told(speed * DT * k, speed) for k in range(1, 50)]
    assert all(one or two for one, two in pairwise(told))
    assert abs(joint.believed - speed * DT * 49) <= abs(speed) * DT + 1e-9
    if abs(speed) <= MAX_VELOCITY_RATIO * V:
        assert all(told)


@given(st.floats(-100, 100))
def test_a_velocity_that_none_can_have_is_held_back_once(v):
    joint = Joint()
    assert joint.told(0.0, v) is (abs(v) <= MAX_VELOCITY_RATIO * V)
    assert joint.told(0.0)


def test_after_a_silence_a_joint_may_be_elsewhere():
    joint = Joint()
    assert joint.told(1.0, dt=1.0)


@pytest.mark.parametrize(("value", "amount"), [("q", 4.0), ("v", 1e3)])
@pytest.mark.parametrize("interface", ["effort", "position"])
def test_a_spoilt_reading_neither_trips_nor_moves_an_arm(interface, value, amount):
    rig = Rig(interface).up()
    rig.cycles(20)
    read = rig.bus.read

    def spoilt():
        readings = dict(read())
        told = readings[2]
        wrong = {"q": told.q, "v": told.v, value: amount}
        readings[2] = Reading(told.time, **wrong, fault="overload", enabled=False)
        return readings

    for _ in range(5):
        rig.bus.read = spoilt
        rig.cycle()
        rig.bus.read = read
        rig.cycles(3)
    assert rig.driver.status is DriverState.ACTIVE
    assert rig.body.moved.max() < (1e-3 if interface == "effort" else 0.02)
    assert rig.counts == {"implausible_reading": 5}
    assert "joint 'J2'" in rig.driver.events.latest["implausible_reading"]


def test_a_joint_without_a_velocity_limit_is_doubted_too():
    """Beyond 100 rad/s at most: 4 rad further after 2 ms."""
    fast = tuple(replace(joint, velocity=1e6) for joint in arm().joints)
    rig = Rig(model=replace(arm(), joints=fast)).up()
    rig.cycles(20)
    read = rig.bus.read

    def spoilt():
        told = dict(read())
        told[2] = Reading(told[2].time, told[2].q + 8.0, told[2].v)  # two turns of the shaft a turn
        return told

    rig.bus.read = spoilt
    rig.cycle()
    rig.bus.read = read
    rig.cycles(3)
    assert rig.driver.status is DriverState.ACTIVE
    assert rig.counts == {"implausible_reading": 1}


def test_a_joint_that_is_thrown_trips_by_the_second_reading():
    rig = Rig().up()
    rig.cycles(5, lambda: weight(rig))
    rig.body.state = State.of(rig.body.state.q, [0, 500.0, 0])
    rig.body._place()
    rig.driver.read()
    assert "J2" not in [trip.joint for trip in rig.driver.trips]
    rig.driver.read()
    assert ("velocity_limit", "J2") in [(trip.kind, trip.joint) for trip in rig.driver.trips]


def test_a_servo_that_tells_another_turn_once_keeps_its_own():
    line = Line("feetech").up()
    line.cycles(20)
    turns = line.driver.bus._turns[2]
    before = turns.last
    turns.unwrap((before + 2000) % 4096)  # a spoilt answer that the checksum let pass
    line.cycles(20)
    assert line.driver.status is DriverState.ACTIVE
    assert turns.count == 0
