"""Activation of a physical arm: torque at the measured configuration, or a reason why not."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from arm_dynamics.core.arrays import BoolArray, Vector
from arm_dynamics.core.compiled_math import cold, warm_up
from arm_dynamics.core.errors import DriverFault
from arm_dynamics.core.state import State
from arm_dynamics.core.timing import LoopTiming
from arm_dynamics.hardware.feedback_buffer import TEMPERATURE, FeedbackBuffer, Q, V
from arm_dynamics.hardware.motor_bus import MotorBus
from arm_dynamics.hardware.transmission import Transmission
from arm_dynamics.safety.command_limiter import CommandLimiter
from arm_dynamics.safety.controlled_stop import SAG, make_stop
from arm_dynamics.safety.emergency_stop import EmergencyStopLatch, TorqueOffRequest
from arm_dynamics.safety.limit_monitor import LimitMonitor

MAX_ATTEMPTS = 20
"""Cycles tried for each complete one that is required in a row, and for each confirmation."""
HOLD_TIME = 0.2
"""Time [s] for which the arm is held and must not move, once torque is enabled."""
MAX_HOLD_CYCLES = 200
"""Most cycles of that time, in case the clock of a bus hardly advances."""


class Activation:
    """Steps from reading to torque; each one rejects the activation on any inconsistency.

    Read complete cycles -> check limits, faults and velocities -> enable watchdogs -> send commands
    that hold the arm -> enable torque -> hold and check for HOLD_TIME. ``between`` is called after
    each reading: another arm of this thread must not remain without commands.
    """

    def __init__(
        self, bus: MotorBus, transmission: Transmission, feedback: FeedbackBuffer,
        limiter: CommandLimiter, torque_off: TorqueOffRequest, emergency_stop: EmergencyStopLatch,
        between: Callable[[], object],
    ) -> None:  # fmt: skip
        self._between = between
        self.arm, self.settings = limiter.arm, limiter.settings
        self.bus, self.transmission, self.feedback = bus, transmission, feedback
        self.limiter, self.torque_off, self.emergency_stop = limiter, torque_off, emergency_stop
        self._monitor = LimitMonitor(self.arm, self.settings)
        self._ids = transmission.ids
        self._period = 0.0

    def run(self, interface: str) -> None:
        """Enable torque; raises DriverFault with the reason and disables torque if rejected."""
        self._require_compiled()
        self._require_complete_cycles()
        self._require_within_limits()
        self._enable_watchdogs(interface)
        start = self.feedback.table[Q].copy()
        value = start.copy()  # the command that holds the arm
        if interface == "velocity":
            value = np.zeros(self.arm.nv)
        elif interface == "effort":
            value = self.limiter.gravity_effort(start, self.feedback.table[TEMPERATURE])
        self.limiter.start(value)
        try:
            self._send(interface, value)
            self._require_no_emergency_stop()
            self._require(self.bus.enable(self._ids), "did not confirm its torque")
            self._send(interface, value)
            self._hold(interface, start)
        except BaseException:
            self.torque_off.request(self._ids)
            self.torque_off.until_confirmed(self.bus.disable, MAX_ATTEMPTS)
            raise

    def _require_compiled(self) -> None:
        """Compile before torque is enabled: that takes longer than watchdogs allow."""
        try:
            warm_up()  # modules imported since configure
        except Exception as error:
            raise DriverFault(f"not activated: compilation failed: {error}") from error
        missing = cold()
        if missing:
            raise DriverFault(
                f"not activated: functions not compiled = {', '.join(missing)}; expected none"
                " before torque is enabled; activate again"
            )

    def _require_complete_cycles(self) -> None:
        """Require ``activation_cycles`` in a row with a new reading of every joint."""
        required, complete = self.settings.activation_cycles, 0
        new = np.zeros(self.arm.nv, bool)
        start = self.bus.now()
        for cycle in range(1, 1 + MAX_ATTEMPTS * required):
            new = self._update(torque_enabled=False)
            complete = complete + 1 if new.all() else 0
            if complete == required:
                self._period = 2 * (self.bus.now() - start) / cycle  # commands are sent later
                return
        missing = [n for n, ok in zip(self.arm.joint_names, new, strict=True) if not ok]
        cause = f"no new feedback of joints {', '.join(missing)}" if missing else "missed replies"
        raise DriverFault(
            f"not activated: {cause}; expected {required} complete cycles in a row;"
            f" {self.bus.remedies}"
        )

    def _require_within_limits(self) -> None:
        now, table = self.bus.now(), self.feedback.table
        self._monitor.restart(table[Q])
        trips = self._monitor.check_faults(now, self.feedback.fault)
        trips += self._monitor.check_limits(now, table[Q], table[V], table[TEMPERATURE])
        if trips:
            causes = "; ".join(str(trip) for trip in trips)
            raise DriverFault(f"not activated: {causes}; reset to clear motor faults")
        for i, enabled in enumerate(self.feedback.enabled):
            if enabled:
                raise DriverFault(f"not activated: joint '{self._name(i)}' already has torque")
        limit = self.settings.activation_max_velocity
        for i in np.flatnonzero(np.abs(table[V]) > limit).tolist():
            joint, unit = self._name(i), self.arm.joints[i].unit
            raise DriverFault(
                f"not activated: joint '{joint}': velocity = {table[V, i]:.4g} {unit}/s;"
                f" expected at most {limit:g}"
            )

    def _enable_watchdogs(self, interface: str) -> None:
        """Enable the watchdog of each motor; position servos without one may go without."""
        covered = set(self.bus.enable_watchdog(self.settings.motor_watchdog_timeout))
        if interface == "position":
            covered |= {id for id in self._ids if not self.bus.has_watchdog(id)}
        if self.bus.settings.get("allow_missing_watchdog") != "true":
            reasons = {self.bus.missing_watchdog_reason(id) for id in self._ids} - {""}
            reason = f": {'; '.join(sorted(reasons))}" if reasons else ""
            remedy = "set allow_missing_watchdog=true to activate without"
            self._require(covered, f"has no watchdog{reason}; {remedy}")

    def _send(self, interface: str, value: Vector) -> None:
        q, v, _, temperature, _ = self.feedback.table
        feeds = self.transmission.accepts_feedforward
        gravity = self.limiter.gravity_effort(q, temperature) if feeds else None
        self.bus.write(self.transmission.motor_commands(interface, value, v, temperature, gravity))

    def _hold(self, interface: str, start: Vector) -> None:
        """Hold for HOLD_TIME: every motor replies, has torque, and no joint moves."""
        seen = np.zeros(self.arm.nv, bool)
        begin = sent = self.bus.now()
        timing = LoopTiming(self._period, self.bus.feedback_delay)
        hold = make_stop("hold", interface, self.arm, self._state(), self.limiter.last, timing)
        for cycle in range(MAX_HOLD_CYCLES):
            seen |= self._update(torque_enabled=True)
            self._require_still(interface, start)
            self._require_no_emergency_stop()
            if cycle >= MAX_ATTEMPTS and self.bus.now() - begin >= HOLD_TIME:
                break
            now, (q, v, _, temperature, _) = self.bus.now(), self.feedback.table
            value = hold.command(self._state()).value
            self._send(
                interface, self.limiter.apply(interface, value, q, v, temperature, now - sent)
            )
            sent = now
        seen &= ~self.feedback.freshness.missing
        self._require(
            [id for id, ok in zip(self._ids, seen, strict=True) if ok], "stopped replying"
        )
        lost = [id for id, on in zip(self._ids, self.feedback.enabled, strict=True) if on is False]
        self._require(set(self._ids) - set(lost), "has no torque")

    def _update(self, *, torque_enabled: bool) -> BoolArray:
        """Read all motors; return the joints (nv,) with a new reading."""
        new = self.feedback.update(self.bus.read(), self.bus.now(), torque_enabled=torque_enabled)
        self._between()
        return new

    def _state(self) -> State:
        q, v = self.feedback.table[Q], self.feedback.table[V]
        return State(self.bus.now(), q, v, self.limiter.last)

    def _require_still(self, interface: str, start: Vector) -> None:
        """Require no motion; a position servo without feedforward sags until its spring holds."""
        moved, limit = np.abs(self.feedback.table[Q] - start), self.settings.activation_max_motion
        if interface == "position" and not self.transmission.accepts_feedforward:
            limit += SAG
        if not (moved <= limit).all():
            i = int(np.argmax(moved))
            joint, unit = self._name(i), self.arm.joints[i].unit
            raise DriverFault(
                f"not activated: joint '{joint}': motion = {moved[i]:.4g} {unit};"
                f" expected at most {limit:g}"
            )

    def _require_no_emergency_stop(self) -> None:
        if self.emergency_stop.engaged:
            raise DriverFault(f"not activated: emergency stop by {self.emergency_stop.source}")

    def _require(self, ids: Collection[int], cause: str) -> None:
        for i, id in enumerate(self._ids):
            if id not in ids:
                raise DriverFault(f"not activated: joint '{self._name(i)}' (motor {id}) {cause}")

    def _name(self, i: int) -> str:
        return self.arm.joint_names[i]
