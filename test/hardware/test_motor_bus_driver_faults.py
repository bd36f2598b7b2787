"""Faults in any order: invariants of a driver of motors in random sequences."""

from contextlib import suppress

import numpy as np
import pytest
from conftest import examples
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from motor_rig import SAFETY, START, Rig, arm, weight

from arm_dynamics.core.errors import DriverFault
from arm_dynamics.core.state import State
from arm_dynamics.hardware.driver import DriverState
from arm_dynamics.safety.safety_settings import POLICIES, SafetySettings

pytestmark = pytest.mark.hardware
IDS = st.integers(1, 3)
MAX_SPEED = 25.0
"""Bound of the joint velocities [rad/s], also in a fall without torque or after a push."""


class AnyFaults(RuleBasedStateMachine):
    """Faults of port, motors and host in any order, on virtual time."""

    @initialize(policy=st.sampled_from(POLICIES), up=st.sampled_from([True, True, False]))
    def begin(self, policy, up):
        safety = SafetySettings(
            velocity_limit_scale=SAFETY.velocity_limit_scale, stop_policy=policy
        )
        self.rig = Rig(safety=safety)
        self.allowed = up  # whether torque may be enabled: after a request of activation
        self.confirmed = False  # whether an emergency stop has disabled torque
        if up:
            self.rig.up()

    def transition(self, method, *args):
        """Request a lifecycle transition; it may only raise a DriverFault."""
        with suppress(DriverFault):
            getattr(self.rig.driver, method)(*args)

    @rule()
    def configure(self):
        self.transition("configure")

    @rule()
    def activate(self):
        self.allowed = self.allowed or not self.rig.driver.emergency_stopped
        self.rig.body.hold_at(START)
        self.transition("activate")

    @rule()
    def deactivate(self):
        self.transition("deactivate")

    @rule()
    def safe_stop(self):
        self.transition("controlled_stop")

    @rule()
    def reset(self):
        self.transition("reset")
        self.confirmed = self.confirmed and self.rig.driver.emergency_stopped

    @rule()
    def close(self):
        self.rig.driver.close()

    @rule()
    def emergency_stop(self):
        self.rig.driver.emergency_stop("test")

    @rule(count=st.integers(1, 30), push=st.floats(-5, 5), joint=IDS)
    def commanded(self, count, push, joint):
        more = np.where(np.arange(1, 4) == joint, push, 0.0)
        self.rig.cycles(count, lambda: weight(self.rig, *more))

    @rule(count=st.integers(1, 120))
    def no_command(self, count):
        self.rig.cycles(count)

    @rule(value=st.lists(st.floats(), min_size=0, max_size=4))
    def invalid_command(self, value):
        self.rig.cycle(value)

    @rule(seconds=st.floats(0, 0.6))
    def host_stalls(self, seconds):
        self.rig.bus.pass_time(seconds)

    @rule(id=IDS, silent=st.booleans())
    def silence(self, id, silent):
        self.rig.line.shaft(id).silent = silent

    @rule(id=IDS, deaf=st.booleans())
    def ignored_writes(self, id, deaf):
        (self.rig.bus.deaf.add if deaf else self.rig.bus.deaf.discard)(id)

    @rule(id=IDS, frozen=st.booleans())
    def frozen_feedback(self, id, frozen):
        (self.rig.bus.frozen.add if frozen else self.rig.bus.frozen.discard)(id)

    @rule(gone=st.booleans())
    def port(self, gone):
        self.rig.bus.gone = gone

    @rule(id=IDS)
    def reboot(self, id):
        self.rig.line.reboot(id)

    @rule(id=IDS)
    def fault(self, id):
        self.rig.line.trip(id, "overload")

    @rule(id=IDS, warm=st.sampled_from([30.0, 70.0, 80.0]))
    def heat(self, id, warm):
        self.rig.line.shaft(id).temperature = warm

    @invariant()
    def torque_is_disabled_before_activation(self):
        assert self.allowed or not any(self.rig.torque)

    @invariant()
    def torque_stays_disabled_after_a_confirmed_emergency_stop(self):
        driver = self.rig.driver
        life = driver._lifecycle
        stopped = driver.emergency_stopped and driver.status is DriverState.INACTIVE
        if stopped and not life.torque_off.pending and life.emergency_stop.seen:
            self.confirmed = True
        assert not (self.confirmed and any(self.rig.torque))

    @invariant()
    def efforts_are_finite_and_within_limits(self):
        strongest = self.rig.body.strongest
        assert np.isfinite(strongest).all()
        assert (strongest <= arm().effort_limit + 1e-9).all()

    @invariant()
    def motion_is_bounded(self):
        assert (self.rig.body.fastest < MAX_SPEED).all()

    @invariant()
    def missing_feedback_is_nan(self):
        state, feedback = self.rig.state, self.rig.driver.feedback
        if state is not None:
            assert isinstance(state, State)
            old = np.isnan(feedback.q)
            assert np.array_equal(old, np.isnan(feedback.v))
            assert (feedback.age[~old] <= SAFETY.feedback_timeout + 1e-9).all()


AnyFaults.TestCase.settings = settings(
    max_examples=examples(150), stateful_step_count=30, deadline=None, derandomize=True
)
TestAnyFaults = AnyFaults.TestCase
