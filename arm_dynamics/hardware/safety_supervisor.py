"""Supervisor of a physical arm: which command its motors execute in each control cycle."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from arm_dynamics.core.arrays import BoolArray, Vector
from arm_dynamics.core.state import Command, State
from arm_dynamics.core.timing import PeriodMeter
from arm_dynamics.hardware.driver import ArmFeedback, DriverState
from arm_dynamics.hardware.driver_lifecycle import DriverLifecycle
from arm_dynamics.hardware.feedback_buffer import FeedbackBuffer, Q, V
from arm_dynamics.hardware.transmission import joint_interface
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.safety.braking import BrakingMonitor
from arm_dynamics.safety.command_limiter import CommandLimiter
from arm_dynamics.safety.command_watchdog import CommandWatchdog
from arm_dynamics.safety.controlled_stop import StopMotion, make_stop, require_policy
from arm_dynamics.safety.events import Trip, Trips
from arm_dynamics.safety.limit_monitor import LimitMonitor
from arm_dynamics.safety.oscillation import OscillationMonitor, SettlingMonitor
from arm_dynamics.safety.safety_settings import SafetySettings


class SafetySupervisor:
    """Check feedback and commands; select the submitted command, a stop motion or torque off.

    Parameters
    ----------
    arm : ArmModel
        The arm with its joint limits.
    safety : SafetySettings
        Time-outs, limits and the stop policy.
    interface : str
        Interface of the submitted commands.
    feedback, limiter, period, lifecycle, trips
        Parts shared with the driver.

    """

    def __init__(
        self, arm: ArmModel, safety: SafetySettings, interface: str,
        *, feedback: FeedbackBuffer, limiter: CommandLimiter, period: PeriodMeter,
        lifecycle: DriverLifecycle, trips: Trips,
    ) -> None:  # fmt: skip
        self._safety, self._interface = safety, interface
        self._joint_interface = joint_interface(interface)
        self._feedback, self._limiter = feedback, limiter
        self._lifecycle, self._trips, self._events = lifecycle, trips, trips.events
        self._monitor = TripMonitor(arm, safety, self._joint_interface)
        self._stop = StopController(safety.stop_policy, self._joint_interface, arm, limiter, period)
        self._watchdog = CommandWatchdog(
            arm, safety.command_timeout, trips.events,
            extra_interfaces=(interface,), stop=self._stop.hold,
        )  # fmt: skip
        self.braking: BrakingMonitor | None = None
        """Finds contacts ahead; None: collisions are not checked."""
        self._good_cycles = 0
        self._missing = np.zeros(arm.nv, bool)
        self.command_epoch = 0
        """Number of times that commands began to be executed."""

    @property
    def commanded(self) -> bool:
        """Whether a command is active."""
        return self._watchdog.commanded

    def submit(self, command: Command, now: float) -> None:
        """Accept or reject a command that arrived at ``now`` [s]."""
        try:
            interface = getattr(command, "interface", self._interface)
            if interface == self._interface:
                self._watchdog.submit(command, now)
            else:
                self._watchdog.reject(
                    f"command: interface = '{interface}'; expected '{self._interface}'"
                )
        except Exception as error:  # an object that is not a Command
            self._watchdog.reject(f"{type(error).__name__}: {error}")

    def command(self, now: float) -> tuple[Command, State]:
        """Return the command to execute at ``now`` [s] and the state that it is computed for."""
        for trip in self._monitor.check_command_age(now, self._command_age(now)):
            self.trip(trip)
        state, missing = self._state(now), self._feedback.freshness.missing
        if self._stop.motion is not None and (back := self._missing & ~missing).any():
            self._stop.restart_joints(state, back)
        self._missing = missing.copy()
        return (self._stop.motion or self._watchdog).command(state), state

    def check(self, now: float, feedback: ArmFeedback) -> None:
        """Trip on the feedback; execute commands again once communication has recovered."""
        lifecycle, monitor = self._lifecycle, self._monitor
        if lifecycle.emergency_stop.engaged:
            lifecycle.request_torque_off(feedback.enabled)
        if not lifecycle.state.torque_enabled or lifecycle.torque_off.pending:
            return
        trips = monitor.check_feedback(now, feedback, self._limiter.last)
        if any(trip.kind == "oscillation" for trip in trips):
            self._stop.require_softer()
        trips += monitor.check_jumps(now, self._feedback)
        communication = monitor.check_freshness(now, self._feedback)
        communication += monitor.check_command_age(now, self._command_age(now))
        for trip in (*trips, *communication):
            self.trip(trip)
        self._stop_before_contact(now)
        self._check_settling(now, feedback.v)
        self._check_runaway(now)
        if all(on is False for on in feedback.enabled):
            lifecycle.request_torque_off()  # no motor is left to hold the arm
        self._good_cycles = 0 if communication else self._good_cycles + 1
        if lifecycle.state is DriverState.STOPPED:
            self._resume_if_recovered()

    def check_reset(self, now: float, feedback: ArmFeedback) -> list[Trip]:
        """Return the trips that no reset can clear."""
        return self._monitor.check_reset(now, feedback)

    def restart(self, now: float) -> None:
        """Start after an activation at ``now`` [s]: nothing is tripped, the arm is held."""
        self._trips.clear()
        self._monitor.restart(self._feedback.table[Q], now)
        self._stop.restart(now)
        self._good_cycles = 0
        self._execute_new_commands()

    def trip(self, trip: Trip, deceleration: Vector | None = None) -> None:
        """Add a trip; an active arm stops, with a ``deceleration`` (nv,) if given."""
        self._trips.add(trip)
        if self._lifecycle.stop():
            self._start_stop(trip.time, deceleration)

    def trip_on_emergency_stop(self, now: float) -> None:
        """Disable torque if the emergency stop has been pressed since the last call."""
        latch = self._lifecycle.emergency_stop
        if latch.engaged and not latch.seen:
            latch.seen = True
            self._lifecycle.request_torque_off()
            self.trip(Trip("emergency_stop", "", 0, 0, "", now, latch.source))

    def trip_on_error(self, error: Exception, now: float) -> None:
        """Disable torque: without a command the arm cannot be held."""
        self._lifecycle.request_torque_off()
        self.trip(Trip("control_error", "", 0, 0, "", now, str(error)))

    def _start_stop(self, now: float, deceleration: Vector | None = None) -> None:
        """Start the policy's stop; disable torque if that is the policy or no stop is possible."""
        try:
            self._stop.start(now, self._state, deceleration)
        except Exception as error:  # readings that no arm can have
            self._events.report("stop_failed", str(error))
            self._lifecycle.request_torque_off()
        if self._safety.stop_policy == "disable":
            self._lifecycle.request_torque_off()

    def _stop_before_contact(self, now: float) -> None:
        """Trip if a link would touch another one, or an object, where the arm would rest."""
        if self.braking is None or self._lifecycle.state is not DriverState.ACTIVE:
            return
        state = self._state(now)
        contact = self.braking.contact_ahead(state.q, state.v)
        if contact is not None:
            distance, clearance = contact.distance, contact.clearance
            trip = Trip("contact_ahead", "", distance, clearance, "", now, str(contact))
            self.trip(trip, self.braking.deceleration(state.q, state.v))

    def _check_settling(self, now: float, v: Vector) -> None:
        """Start a softer stop if the arm oscillates while it is held or stopped."""
        if self._stop.motion is None and not self._watchdog.stopping:
            return
        trips = self._stop.check_settling(now, v)
        for trip in trips:
            self.trip(trip)
        if trips:
            self._start_stop(now)
            if self._stop.exhausted:
                self._events.report("torque_off", "the arm oscillates in every stop motion")
                self._lifecycle.request_torque_off()

    def _check_runaway(self, now: float) -> None:
        """Disable torque if a joint accelerates in the stop that should brake it."""
        v, jumped = self._feedback.driven_velocity, self._feedback.plausibility.jumped
        if self._lifecycle.state is DriverState.STOPPED:
            limit = self._monitor.max_velocity
            for trip in self._stop.check_runaway(now, v, limit, jumped):
                self.trip(trip)
                self._lifecycle.request_torque_off()

    def _resume_if_recovered(self) -> None:
        """Execute commands again if communication has recovered, and the stopped arm is slow.

        Position commands continue, limited by the velocity limits: restarted from the measured
        position, servos that sag under their load would sink with every stop. The arm may be far
        from its trajectory now.
        """
        slow = np.abs(self._feedback.table[V]) <= self._safety.activation_max_velocity
        recovered = self._good_cycles >= self._safety.recovery_cycles
        if self._trips.latched or not recovered or not slow.all():
            return
        self._trips.clear_self_clearing()
        if self._joint_interface == "position":
            self._stop.motion = None
            self._lifecycle.execute_commands()
        else:
            self._execute_new_commands()

    def _execute_new_commands(self) -> None:
        """Hold the arm where it is until the first command of a restarted controller."""
        self._watchdog.restart()
        self._stop.motion = None
        self.command_epoch += 1
        self._lifecycle.execute_commands()

    def _state(self, now: float) -> State:
        """Last known state; joints without feedback are where the stop motion expects them.

        Without a stop motion they are where their last velocity has moved them.
        """
        table, freshness, motion = self._feedback.table, self._feedback.freshness, self._stop.motion
        q, v = table[Q], table[V]
        if not freshness.complete:
            age = np.minimum(freshness.age(now), freshness.feedback_timeout)
            path, velocity = (q + v * age, v) if motion is None else motion.path(now)
            q = np.where(freshness.missing, path, q)
            v = np.where(freshness.missing, velocity, v)
        return State(now, q, v, self._limiter.last)

    def _command_age(self, now: float) -> float:
        """Age [s] of the command while one is executed or its lack stops the arm, else 0."""
        stopped = self._stop.motion is not None
        if stopped and not self._trips.is_active("command_timeout"):
            return 0.0
        return self._watchdog.age(now)


RUNAWAY_SPEED, RUNAWAY_RATIO = 1.0, 1.1
"""Speed [rad/s or m/s] of a servo whose position jumped, and ratio to the speed at the start of a
stop, that trip."""


class StopController:
    """Create the stop motion of an arm; a softer one while the arm oscillates.

    Raises ConfigError if motors on ``interface`` cannot execute the stop ``policy``.

    Attributes
    ----------
    motion : StopMotion or None
        Stop motion in progress; None while commands are executed.

    """

    def __init__(
        self, policy: str, interface: str, arm: ArmModel, limiter: CommandLimiter,
        period: PeriodMeter,
    ) -> None:  # fmt: skip
        require_policy(policy, interface)
        self.policy, self.interface, self.arm = policy, interface, arm
        self._limiter, self._period = limiter, period
        self._settling = SettlingMonitor(arm)
        self.motion: StopMotion | None = None
        self._start_speed: Vector = np.zeros(arm.nv)

    def start(
        self, now: float, state: Callable[[float], State], deceleration: Vector | None = None
    ) -> None:
        """Start a stop by the policy at ``state(now)``, the last known state.

        ``deceleration`` (nv,) [rad/s² or m/s²] is that of a stop before a contact.
        """
        self._settling.start(now)
        measured = state(now)
        self._start_speed = np.abs(measured.v)
        self.motion = self._make(self.policy, measured, deceleration)

    def restart_joints(self, state: State, joints: BoolArray) -> None:
        """Continue the stop from the measured state of ``joints``, whose feedback is back."""
        if self.motion is not None:
            self._start_speed = np.where(joints, np.abs(state.v), self._start_speed)
            self.motion.restart(state, joints)

    def hold(self, state: State) -> StopMotion:
        """Return a motion that holds the arm at ``state``, for the time before a command."""
        return self._make("hold", state)

    def restart(self, now: float) -> None:
        """Use the stiffest stop again, after an activation at ``now`` [s]."""
        self._settling.restart(now)

    def require_softer(self) -> None:
        """Skip the stiffest stop: the efforts oscillate."""
        self._settling.stage = max(self._settling.stage, 1)

    def check_settling(self, now: float, v: Vector) -> list[Trip]:
        """Return the trips of joints that oscillate at velocities v (nv,); the next is softer."""
        return self._settling.update(now, v)

    def check_runaway(
        self, now: float, v: Vector, max_velocity: Vector, jumped: BoolArray
    ) -> list[Trip]:
        """Return the trips of joints that a stop has accelerated, at velocities v (nv,).

        Loads and hands may accelerate them up to ``max_velocity`` (nv,). Motors without effort
        commands may drive joints whose position ``jumped`` (nv,) to that position.
        """
        unknown = np.inf if self.interface == "effort" else RUNAWAY_SPEED
        allowed = np.where(jumped, unknown, max_velocity)
        limit = np.maximum(RUNAWAY_RATIO * self._start_speed, allowed)
        return [
            Trip(
                "runaway", self.arm.joint_names[i], float(v[i]), float(limit[i]),
                f"{self.arm.joints[i].unit}/s", now, "accelerated in a stop",
            )
            for i in np.flatnonzero(np.abs(v) > limit).tolist()
        ]  # fmt: skip

    @property
    def exhausted(self) -> bool:
        """Whether no softer stop exists: the next remedy is to disable torque."""
        return self._settling.exhausted or self.interface != "effort"

    def _make(self, policy: str, state: State, deceleration: Vector | None = None) -> StopMotion:
        timing = self._period.assumed_timing.longer(self._settling.softer)
        last = self._limiter.last
        return make_stop(policy, self.interface, self.arm, state, last, timing, deceleration)


class TripMonitor:
    """Detect trips: motor faults, limits, following error, oscillation, communication.

    Parameters
    ----------
    arm : ArmModel
        The arm with its joint limits.
    safety : SafetySettings
        Limits and time-outs.
    interface : str
        Command interface of the joints: "effort", "position" or "velocity".

    """

    def __init__(self, arm: ArmModel, safety: SafetySettings, interface: str) -> None:
        self._arm, self._safety, self._interface = arm, safety, interface
        self._limits = LimitMonitor(arm, safety)
        self._oscillation = OscillationMonitor(arm, safety)

    def restart(self, q: Vector, now: float) -> None:
        """Start after an activation at q (nv,) [rad or m] and ``now`` [s]."""
        self._limits.restart(q)
        self._oscillation.restart(now)

    def check_feedback(self, now: float, feedback: ArmFeedback, sent: Vector) -> list[Trip]:
        """Return the trips by motor faults, limits, following error and oscillating efforts.

        ``sent`` (nv,) is the last command in the units of the interface.
        """
        limits = self._limits
        trips = limits.check_faults(now, feedback.fault, feedback.enabled)
        trips += limits.check_limits(now, feedback.q, feedback.v, feedback.temperature)
        if self._interface == "position":
            trips += limits.check_following_error(now, feedback.q, sent)
        elif self._interface == "effort":
            trips += self._oscillation.update(now, sent)
        return trips

    @property
    def max_velocity(self) -> Vector:
        """Velocity (nv,) that trips."""
        return self._limits.max_velocity

    def check_jumps(self, now: float, feedback: FeedbackBuffer) -> list[Trip]:
        """Return the trips of joints whose position changed by more than they can move."""
        jumped, reach = feedback.plausibility.jumped, feedback.plausibility.reach
        distance, names = feedback.plausibility.held - feedback.table[Q], self._arm.joint_names
        return [
            Trip(
                "position_jump", names[i], float(distance[i]), float(reach[i]),
                self._arm.joints[i].unit, now, "the position is unknown",
            )
            for i in np.flatnonzero(jumped & np.isfinite(distance)).tolist()
        ]  # fmt: skip

    def check_freshness(self, now: float, feedback: FeedbackBuffer) -> list[Trip]:
        """Return the trips by missing or stale feedback."""
        trips: list[Trip] = []
        freshness, jumped = feedback.freshness, feedback.plausibility.jumped
        missing = [] if freshness.complete else np.flatnonzero(freshness.missing & ~jumped).tolist()
        for i in missing:
            kind = "feedback_stale" if freshness.stale[i] else "feedback_missing"
            missed, limit = int(freshness.missed[i]), self._safety.max_missed_cycles
            age = f"last feedback {now - freshness.time[i]:.3f} s ago"
            trips.append(Trip(kind, self._arm.joint_names[i], missed, limit, "cycles", now, age))
        return trips

    def check_command_age(self, now: float, age: float) -> list[Trip]:
        """Return a trip if the command is older [s] than ``command_timeout``."""
        limit = self._safety.command_timeout
        return [Trip("command_timeout", "", age, limit, "s", now)] if age > limit else []

    def check_reset(self, now: float, feedback: ArmFeedback) -> list[Trip]:
        """Return the trips that no reset can clear: motor faults and temperatures."""
        trips = self._limits.check_limits(now, feedback.q, feedback.v, feedback.temperature)
        hot = [trip for trip in trips if trip.kind == "over_temperature"]
        return self._limits.check_faults(now, feedback.fault) + hot
