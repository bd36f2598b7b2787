"""Teleoperation of emulated arms on virtual time: approach, limits, silence, force feedback."""

import numpy as np
import pytest
from conftest import chain
from motor_rig import PERIOD, RATIO, SIGN, START, Rig, arm

from arm_dynamics import load_arm
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.controllers.force_feedback import ForceFeedback
from arm_dynamics.control.controllers.position import PositionController
from arm_dynamics.control.guided_arm import GuidedArm, sine_motion
from arm_dynamics.control.teleoperation import (
    FADE_TIME,
    MAX_LEADER_AGE,
    PassiveLeader,
    Teleoperation,
    WeightlessLeader,
)
from arm_dynamics.core.errors import ConfigError, DriverFault
from arm_dynamics.core.timing import LoopTiming

pytestmark = pytest.mark.hardware

AWAY = np.add(START, (0.5, -0.4, 0.3))


class Pair:
    """Leader and follower on one time; a hand moves a passive leader."""

    def __init__(self, leader=AWAY, bilateral=False, speed=0.5):
        self.leader, self.follower, self.now = Rig(q=leader), Rig("position"), 0.0
        self.loop = ControlLoop(self.follower.driver, PositionController(arm()))
        device = PassiveLeader(self.leader.driver)
        if bilateral:
            self.felt = ControlLoop(self.leader.driver, ForceFeedback(arm()))
            device = WeightlessLeader(self.felt)
        self.leader.driver.configure()
        self.follower.up()
        if bilateral:
            self.leader.up()
        self.pair = Teleoperation(device, self.loop, approach_speed=speed)

    def run(self, seconds, each=lambda: None):
        """Run cycles; return the largest speed of the follower [rad/s] in them."""
        self.follower.body.forget()
        for _ in range(round(seconds / PERIOD)):
            each()
            self.now += PERIOD
            self.leader.bus.pass_time(PERIOD)
            self.follower.bus.pass_time(PERIOD)
            self.pair.step(self.now)
        return self.follower.body.fastest.max()

    def guide(self, q):
        self.leader.body.hold_at(q)

    def push(self, effort):
        """Apply efforts (3,) to the joints of the leader, as a hand."""
        motors, shafts = type(self.leader.line), self.leader.shafts

        def step(now):
            motors.step(self.leader.line, now)
            for shaft, tau, sign, ratio in zip(shafts, effort, SIGN, RATIO, strict=True):
                shaft.effort += sign * tau / ratio

        self.leader.line.step = step

    def block(self):
        """Hold the follower with an immovable object."""
        self.follower.body.hold_at(self.follower.body.state.q, until=lambda on: False)

    @property
    def distance(self):
        return np.abs(self.follower.body.state.q - self.leader.body.state.q).max()

    @property
    def counts(self):
        return self.loop.events.counts


def test_the_leader_is_approached_slowly_then_followed():
    pair = Pair()
    assert pair.run(0.5) < 1.3 * 0.5
    assert pair.pair.is_approaching
    pair.run(1.0)
    assert not pair.pair.is_approaching
    assert pair.distance < 0.02
    target, at = AWAY + 0.6, [0.0]

    def guide():
        at[0] = min(1.0, at[0] + PERIOD / 0.4)
        pair.guide(AWAY + at[0] * (target - AWAY))

    assert pair.run(1.0, guide) > 1.2
    assert pair.distance < 0.02
    assert pair.leader.torque == [False] * 3


def test_the_follower_stays_within_its_limits():
    pair = Pair(leader=(2.9, *START[1:]), speed=4.0)
    pair.run(0.8)
    pair.guide((3.15, *START[1:]))
    pair.run(0.4)
    assert pair.follower.body.state.q[0] == pytest.approx(3.0, abs=0.01)
    assert not pair.follower.kinds


def test_a_silent_leader_is_held_then_approached():
    pair = Pair()
    pair.run(1.6)
    pair.leader.shafts[1].silent = True
    pair.run(0.1)  # five cycles without a reply are tolerated
    pair.guide(AWAY + 0.4)
    pair.run(1.0)
    assert pair.counts["leader_silent"] == 1
    assert pair.pair.is_leader_silent
    np.testing.assert_allclose(pair.follower.body.state.q, AWAY, atol=0.02)
    assert pair.follower.driver.inactive == ""
    pair.leader.shafts[1].silent = False
    assert pair.run(0.4) < 1.3 * 0.5
    pair.run(1.0)
    assert pair.distance < 0.02


def test_a_lost_connection_of_the_leader_is_silence():
    pair = Pair()
    pair.run(1.6)

    def lost():
        raise DriverFault("unplugged")

    pair.leader.bus.read = lost
    pair.run(MAX_LEADER_AGE + 0.1)
    assert "leader_silent" in pair.counts
    np.testing.assert_allclose(pair.follower.body.state.q, AWAY, atol=0.02)


def test_a_jump_of_the_leader_is_approached_slowly():
    pair = Pair()
    pair.run(1.6)
    pair.guide(AWAY + 0.5)
    assert pair.run(0.3) < 1.3 * 0.5
    assert pair.counts["leader_jumped"] >= 1


def test_after_a_reset_of_the_follower_it_approaches_again():
    pair = Pair()
    pair.run(1.6)
    pair.follower.driver.emergency_stop("a test")
    pair.run(0.1)
    assert not any(pair.follower.torque)
    pair.follower.body.hold_at(START)
    pair.run(0.1)
    pair.follower.driver.reset()
    pair.follower.driver.activate()
    assert pair.run(0.5) < 1.3 * 0.5
    pair.run(1.2)
    assert pair.distance < 0.02


def test_an_emergency_stop_within_a_cycle_ends_the_commands():
    """A signal arrives between two instructions of the cycle."""
    pair = Pair()
    pair.run(0.1)
    follow = pair.loop.follow

    def interrupted(trajectory):
        pair.follower.driver.emergency_stop("a test")
        follow(trajectory)

    pair.loop.follow = interrupted
    pair.run(0.1)
    assert not any(pair.follower.torque)


def test_a_leader_needs_the_joints_of_the_follower():
    names = chain({"name": "A", "effort": 40.0}, {"name": "J2", "effort": 40.0})
    loop = ControlLoop(Rig("position").driver, PositionController(arm()))
    with pytest.raises(ConfigError, match="expected also J1, J3"):
        Teleoperation(PassiveLeader(GuidedArm(names)), loop)


# --- force feedback


def test_a_leader_with_force_feedback_is_weightless():
    pair = Pair(leader=START, bilateral=True)
    pair.run(1.0)
    assert pair.pair.coupling.value == 1.0
    start = pair.leader.body.state.q  # without support it falls by more than 1 rad
    np.testing.assert_allclose(start, START, atol=0.15)
    pair.push((2.0, 0.0, 0.0))
    pair.run(0.5)
    assert pair.leader.body.state.q[0] > start[0] + 0.05
    assert pair.distance < 0.05


def test_a_blocked_follower_is_felt_as_a_spring():
    pair = Pair(leader=START, bilateral=True)
    pair.run(1.0)
    pair.block()
    pair.push((2.0, 0.0, 0.0))
    pair.run(1.5)
    stiffness, held = pair.felt.controller.gains["p"], pair.follower.body.state.q
    moved = pair.leader.body.state.q - held
    np.testing.assert_allclose(stiffness * moved, (2.0, 0.0, 0.0), atol=0.1)
    pair.push((0.0, 0.0, 0.0))
    pair.run(1.5)
    np.testing.assert_allclose(pair.leader.body.state.q, held, atol=1e-3)
    assert np.abs(pair.leader.body.state.v).max() < 0.01


def test_the_force_is_limited_and_fades():
    """A hand overcomes it: 28 N·m against half of the effort limit of 40 N·m."""
    pair = Pair(leader=START, bilateral=True)
    pair.run(1.0)
    pair.block()
    pair.push((28.0, 0.0, 0.0))
    pair.run(0.8)
    assert pair.distance > 0.5
    pair.push((0.0, 0.0, 0.0))
    pair.follower.driver.emergency_stop("a test")
    pair.run(FADE_TIME + 0.1)
    assert pair.pair.coupling.value == 0.0
    effort = pair.felt.command.value
    weight = pair.felt.controller.dynamics.gravity(pair.felt.state.q)
    np.testing.assert_allclose(effort, weight, atol=1e-9)


def test_the_force_is_off_until_the_follower_has_approached():
    pair = Pair(leader=AWAY, bilateral=True)
    pair.run(0.5)
    assert pair.pair.is_approaching
    assert pair.pair.coupling.value == 0.0
    np.testing.assert_allclose(pair.leader.body.state.q, AWAY, atol=0.01)


def test_a_pushed_pair_comes_to_rest():
    pair = Pair(leader=START, bilateral=True)
    pair.run(1.0)
    pair.push((3.0, -2.0, 1.0))
    pair.run(0.2)
    pair.push((0.0, 0.0, 0.0))
    pair.run(2.0)
    assert np.abs(pair.leader.body.state.v).max() < 0.15
    assert pair.distance < 0.01
    assert not pair.leader.kinds
    assert not pair.follower.kinds


@pytest.mark.parametrize("timing", [LoopTiming(2e-3, 1.0), LoopTiming(0.02, 1.0)])
def test_the_default_stiffness_is_below_the_stability_limit(timing):
    """w (d + 1/2) T < 0.6 for the default; four times its stiffness is rejected at 20 ms."""
    rig = Rig()
    rig.driver._period._configured, rig.driver._period._feedback_delay = timing.period, timing.delay
    controller = ForceFeedback(arm())
    ControlLoop(rig.driver, controller)
    usual = ForceFeedback(arm()).gains["p"]
    factor = np.sqrt(controller.gains["p"] / usual)
    w = 15.0 * factor.max()
    assert w * (timing.delay + 0.5) * timing.period < 0.6
    assert (factor > 0.5).all() if timing.period < 0.01 else (factor < 0.2).all()


def test_unstable_gains_are_rejected():
    rig = Rig()
    stiff = {name: {"p": 4000.0, "d": 200.0} for name in arm().joint_names}
    with pytest.raises(ValueError, match="ForceFeedback: gains unstable"):
        ControlLoop(rig.driver, ForceFeedback(arm(), stiff))


# --- simulated leader


def test_a_simulated_hand_moves_the_leader_on_a_sine():
    leader = GuidedArm(load_arm("so101"))
    for _ in range(1000):
        leader.idle()
    state = leader.read()
    goal = sine_motion(leader.arm, state.time)
    np.testing.assert_allclose(state.q, goal.q, atol=0.03)
    assert np.abs(state.q - sine_motion(leader.arm, 0.0).q).max() > 0.3
