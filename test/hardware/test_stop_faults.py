"""Stops with faulty readings: no stop drives an arm, and torque ends where nothing is known.

The readings of one joint are wrong, lost, old, frozen, exchanged, negated, delayed or repeated
while the arm holds, moves, stops or falls. The environment variable CASES is the number of random
cases for each kind of motors.
"""

import os

import numpy as np
import pytest
from emulators.vendors import VENDORS
from stop_rig import KINDS, MotionAfterTrip, StoppingArm

from arm_dynamics.core.state import State
from arm_dynamics.hardware.driver import DriverState

pytestmark = pytest.mark.hardware

CASES = int(os.environ.get("CASES", "3"))
AMOUNTS = (0.03, 0.06, 0.09, 0.12, 0.3, 1.0, 2.0, 2 * np.pi)
PHASES = ("hold", "move", "stop", "moving stop", "fall")
OVER, MAX_EXCESS = 0.3, 0.1
"""Speed [rad/s] that efforts give until they reverse at the limit of their rate, and distance [rad]
from the path of the stop."""


def undetectable(kind, phase, cycles):
    """Return whether no reading differs from that of a healthy joint at rest.

    A lasting delay without stamps is an unstable loop: the oscillation monitors end it.
    """
    still = kind in ("frozen", "swap", "delay") and phase in ("hold", "stop")
    return still or (kind == "delay" and cycles > 20)


@pytest.mark.quick(4)
@pytest.mark.parametrize("motors", ["effort", "position", "velocity", *VENDORS])
def test_after_the_first_trip_no_motor_drives_its_joint(motors):
    rng = np.random.default_rng(sum(motors.encode()))
    for _ in range(CASES):
        period = float(rng.choice([2e-3, 5e-3]))
        kind, phase = str(rng.choice(KINDS)), str(rng.choice(PHASES))
        joint, cycles = int(rng.integers(3)), int(rng.choice([1, 2, 3, 6, 20, 100, 400]))
        amount = float(rng.choice(AMOUNTS) * rng.choice([-1, 1]))
        arm = StoppingArm(motors, period)
        fault, motion = arm.inject(kind, joint, cycles, amount), MotionAfterTrip(arm)
        arm.run(0.1)
        if phase in ("move", "moving stop"):
            arm.move(0.25 * float(rng.choice([-1, 1])), 0.6)
            arm.run(0.25)
        if phase in ("stop", "moving stop"):
            arm.driver.controlled_stop()
            arm.run(0.05, motion.observe)
        if phase == "fall":
            arm.push(joint, -1.5)
            arm.run(0.05, motion.observe)
        fault.begin()
        arm.run(cycles * arm.period + 1.5, motion.observe)
        case = f"{motors}, {period} s, {phase}, {kind} J{joint + 1}, {cycles} cycles, {amount:.2f}"
        if not undetectable(kind, phase, cycles):
            assert motion.over.max() <= OVER, case
            assert motion.outside.max() <= MAX_EXCESS, case


@pytest.mark.quick(3)
@pytest.mark.parametrize("amount", [2 * np.pi, -2 * np.pi, 2.0, 0.5])
@pytest.mark.parametrize("interface", ["effort", "position", "velocity"])
def test_a_position_that_is_wrong_for_two_cycles_stops_the_arm_where_it_is(interface, amount):
    arm = StoppingArm(interface, 5e-3)
    arm.run(0.3)
    arm.body.forget()
    arm.inject("jump", 1, 2, amount).begin()
    arm.run(0.1)
    assert [trip.kind for trip in arm.driver.trips] == ["position_jump"]
    assert arm.driver.trips[0].value == pytest.approx(amount, abs=0.05)
    arm.run(1.0)
    assert arm.driver.status is DriverState.STOPPED
    assert np.isfinite(arm.driver.feedback.q).all()  # measured again
    assert arm.body.moved.max() < 0.01
    assert arm.body.fastest.max() < 0.1


def test_the_effort_of_a_joint_whose_position_stays_unknown_ends():
    arm = StoppingArm("effort", 5e-3)
    arm.run(0.3)
    arm.inject("jump", 1, 10_000, 1.0).begin()
    arm.run(0.1)
    assert np.isnan(arm.driver.feedback.q[1])
    held = arm.effort[1]
    assert abs(held) > 1.0
    arm.run(1.1)
    assert arm.effort[1] == 0.0
    assert [trip.kind for trip in arm.driver.trips] == ["position_jump"]


def test_a_joint_that_sank_without_replies_is_not_pulled_back():
    arm = StoppingArm("effort", 5e-3)
    arm.run(0.3)
    arm.inject("loss", 1, 320, 0.0).begin()
    arm.run(1.6)
    sunk, speed = arm.body.state.q[1], abs(arm.body.state.v[1])
    assert abs(sunk - arm.body.start[1]) > 0.5
    motion = MotionAfterTrip(arm)
    motion.observe()
    arm.body.forget()
    arm.run(1.0, motion.observe)
    assert arm.body.fastest[1] <= 1.05 * speed + 0.05
    assert motion.outside[1] < 0.05
    assert abs(arm.body.state.v[1]) < 0.05


@pytest.mark.parametrize("motors", ["position", "feetech", "feetech_pwm"])
def test_a_joint_in_motion_whose_position_does_not_change_has_no_feedback(motors):
    arm = StoppingArm(motors, 5e-3)
    motion = MotionAfterTrip(arm)
    arm.run(0.1)
    arm.move(0.25, 0.6)
    arm.run(0.25)
    arm.inject("frozen", 0, 60, 0.0).begin()
    arm.run(0.25, motion.observe)
    assert [(trip.kind, trip.joint) for trip in arm.driver.trips] == [
        ("feedback_stale", arm.driver.arm.joint_names[0])
    ]
    arm.run(0.5, motion.observe)
    assert np.isfinite(arm.driver.feedback.q).all()
    assert motion.over.max() < 0.1
    assert motion.outside.max() < 0.05


@pytest.mark.parametrize(
    ("motors", "joint", "amount"),
    [("effort", 0, 2.0), ("effort", 1, 1.0), ("mit_can", 0, 2.0), ("mit_can", 1, 1.0)],
)
def test_no_effort_drives_a_joint_that_is_not_where_it_was_measured(motors, joint, amount):
    """Readings of another position end. Gravity there is not that of the last known position."""
    arm = StoppingArm(motors, 5e-3)
    motion = MotionAfterTrip(arm)
    arm.run(0.3, motion.observe)
    state = arm.body.state
    q = state.q + np.where(np.arange(state.nv) == joint, amount, 0.0)
    arm.body.state = State.of(q, np.zeros(state.nv), time=state.time)
    arm.body._place()
    arm.run(0.4, motion.observe)
    assert [trip.kind for trip in arm.driver.trips] == ["position_jump"]
    assert motion.over[joint] < 0.1
    assert motion.outside[joint] < 0.05


@pytest.mark.parametrize("amount", [0.03, 0.06, 0.09])
def test_a_small_jump_in_a_stop_causes_only_a_small_step_of_the_effort(amount):
    """Below the thresholds of plausibility and trips. The stiffness alone: 193 N·m/rad in J1."""
    arm = StoppingArm("effort", 5e-3)
    arm.run(0.2)
    arm.driver.controlled_stop()
    arm.run(0.3)
    arm.body.forget()
    before = arm.effort
    arm.inject("jump", 0, 10_000, amount).begin()
    arm.run(0.02)
    assert np.abs(arm.effort - before).max() < (6.0 if amount < 0.05 else 1.5)
    arm.run(0.5)
    assert arm.body.fastest.max() < 0.25
    assert arm.body.moved.max() < 0.05


def test_torque_ends_if_a_stop_accelerates_a_joint():
    """The velocity has the wrong sign: damping drives the joint."""
    arm = StoppingArm("effort", 2e-3)
    arm.run(0.1)
    arm.move(0.25, 0.6)
    arm.run(0.3)
    read = arm.driver.bus.read

    def negated():
        readings = dict(read())
        for id, r in readings.items():
            readings[id] = r.__class__(
                r.time, r.q, -r.v, r.tau, r.temperature, r.supply, r.fault, r.enabled
            )
        return readings

    arm.driver.bus.read = negated
    arm.driver.controlled_stop()
    arm.run(1.0)
    assert "runaway" in [trip.kind for trip in arm.driver.trips]
    assert arm.driver.status is DriverState.INACTIVE
    assert (arm.effort == 0).all()


def test_torque_ends_if_a_servo_turns_to_where_its_own_position_jumped():
    """The encoder of the servo loses a turn: its position loop drives the joint."""
    arm = StoppingArm("position", 5e-3)
    arm.run(0.3)
    motors, turn = arm.body.motors, 2 * np.pi
    step = type(arm.body)._place

    def lost_turn():
        step(arm.body)
        motors.shafts[1].q -= turn

    arm.body._place = lost_turn
    arm.run(0.2)
    kinds = [trip.kind for trip in arm.driver.trips]
    assert kinds[0] == "position_jump"
    assert "runaway" in kinds
    assert not any(motors.torque_is_on(shaft.id) for shaft in motors.shafts)


def test_a_jump_without_torque_is_accepted_at_the_second_reading():
    arm = StoppingArm("effort")
    arm.driver.deactivate()
    arm.body.state = State.of(arm.body.state.q + 1.0, time=arm.body.state.time)
    arm.body.hold_at(arm.body.state.q)
    arm.driver.bus.pass_time(2e-3)
    arm.driver.read()
    before = arm.driver.feedback.q
    arm.driver.bus.pass_time(2e-3)
    arm.driver.read()
    np.testing.assert_allclose(arm.driver.feedback.q - before, 1.0, atol=1e-9)
    assert arm.driver.trips == ()
