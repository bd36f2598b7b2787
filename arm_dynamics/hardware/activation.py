"""Torque on where the arm stands: every doubt is a refusal, and a refusal leaves torque off."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.compiled_math import cold, warm_up
from arm_dynamics.core.errors import DriverFault
from arm_dynamics.core.state import State
from arm_dynamics.core.timing import LoopTiming
from arm_dynamics.hardware.feedback_buffer import WARM, FeedbackBuffer, Q, V
from arm_dynamics.hardware.motor_bus import MotorBus
from arm_dynamics.safety.command_limiter import CommandLimiter
from arm_dynamics.safety.controlled_stop import SAG, StopMotion, make_stop
from arm_dynamics.safety.emergency_stop import EmergencyStopLatch, TorqueOffRequest
from arm_dynamics.safety.limit_monitor import LimitMonitor

MAX_ATTEMPTS = 20
"""Cycles tried for each whole one that is asked for in a row, and for each confirmation."""
WATCHED = 0.2
"""Time [s] for which the arm is held and nothing may move, once torque is on."""
MAX_HOLD_CYCLES = 200
"""Cycles of that time at most: a bus whose clock hardly passes."""


class Activation:
    """The way from reading only to torque: look, judge, arm watchdogs, set goals, torque, look."""

    def __init__(
        self,
        bus: MotorBus,
        senses: FeedbackBuffer,
        limits: CommandLimiter,
        off: TorqueOffRequest,
        button: EmergencyStopLatch,
    ) -> None:
        self.arm, self.settings = limits.arm, limits.settings
        self.bus, self.senses, self.limits = bus, senses, limits
        self.off, self.button = off, button
        self._judgement = LimitMonitor(self.arm, self.settings)
        self._ids = senses.shafts.ids
        self._period = 0.0

    def run(self, interface: str) -> None:
        """Raises DriverFault saying what speaks against it; torque is off again then."""
        self._require_warm()
        self._look()
        self._judge()
        self._arm_watchdogs(interface)
        start = self.senses.table[Q].copy()
        goal = self._goal(interface)
        self.limits.start(goal)
        try:
            self._send(interface, goal)
            self._require_unpressed()
            self._require(self.bus.enable(self._ids), "did not confirm its torque")
            self._send(interface, goal)
            self._confirm(interface, start)
        except BaseException:
            self.off.request(self._ids)
            self.off.until_confirmed(self.bus.disable, MAX_ATTEMPTS)
            raise

    def _require_warm(self) -> None:
        """Nothing may be compiled while motors have torque: that takes longer than watchdogs do."""
        try:
            warm_up()  # what was imported since configure
        except Exception as error:
            raise DriverFault(f"not activated: compilation failed: {error}") from error
        missing = cold()
        if missing:
            raise DriverFault(
                f"not activated: functions not compiled = {', '.join(missing)}; expected none"
                " before torque is enabled; activate again"
            )

    def _look(self) -> None:
        """``activation_cycles`` in a row in which every joint told something new."""
        wanted, row, new = self.settings.activation_cycles, 0, np.zeros(self.arm.nv, bool)
        begun = self.bus.now()
        for cycle in range(1, 1 + MAX_ATTEMPTS * wanted):
            new = self.senses.update(self.bus.read(), self.bus.now())
            row = row + 1 if new.all() else 0
            if row == wanted:
                self._period = 2 * (self.bus.now() - begun) / cycle  # goals are sent later on
                return
        missing = [n for n, ok in zip(self.arm.joint_names, new, strict=True) if not ok]
        said = f"joints {', '.join(missing)} told nothing new" if missing else "answers were missed"
        said = f"{said}; {wanted} whole cycles in a row are expected"
        raise DriverFault(f"not activated: {said}; {self.bus.remedies}")

    def _judge(self) -> None:
        now, table = self.bus.now(), self.senses.table
        self._judgement.restart(table[Q])
        trips = self._judgement.check_faults(now, self.senses.fault)
        trips += self._judgement.check_limits(now, table[Q], table[V], table[WARM])
        if trips:
            said = "; ".join(str(trip) for trip in trips)
            raise DriverFault(f"not activated: {said}; a reset clears faults that can pass")
        for i, on in enumerate(self.senses.enabled):
            if on:
                raise DriverFault(f"not activated: joint '{self._name(i)}' has torque already")
        limit = self.settings.activation_max_velocity
        for i in np.flatnonzero(np.abs(table[V]) > limit).tolist():
            said = f"joint '{self._name(i)}' moves at {table[V, i]:.4g} rad/s"
            raise DriverFault(f"not activated: {said}; at most {limit:g} is allowed")

    def _arm_watchdogs(self, interface: str) -> None:
        """A servo that keeps its position by itself may go without, if it has none."""
        armed = set(self.bus.enable_watchdog(self.settings.motor_watchdog_timeout))
        if interface == "position":
            armed |= {id for id in self._ids if not self.bus.has_watchdog(id)}
        if self.bus.settings.get("unwatched") != "accept":
            why = "; ".join({self.bus.missing_watchdog_reason(id) for id in self._ids} - {""})
            said = f"has no watchdog{f': {why}' if why else ''}"
            self._require(armed, f"{said} (setting unwatched: accept goes without)")

    def _goal(self, interface: str) -> Vector:
        """What keeps the arm where it is."""
        q = self.senses.table[Q]
        if interface == "position":
            return np.array(q)
        if interface == "velocity":
            return np.zeros(self.arm.nv)
        return self.limits.gravity_effort(q, self.senses.table[WARM])

    def _send(self, interface: str, goal: Vector) -> None:
        (q, v, _, warm, _), shafts = self.senses.table, self.senses.shafts
        fed = self.limits.gravity_effort(q, warm) if shafts.feeds else None
        self.bus.write(shafts.motor_commands(interface, goal, v, warm, fed))

    def _confirm(self, interface: str, start: Vector) -> None:
        """The arm is held for WATCHED: every motor is heard, has torque, and nothing moves."""
        heard = np.zeros(self.arm.nv, bool)
        begun = before = self.bus.now()
        timing = LoopTiming(self._period, self.bus.feedback_delay)
        hold = make_stop("hold", interface, self.arm, self._state(), self.limits.last, timing)
        for cycle in range(MAX_HOLD_CYCLES):
            heard |= self.senses.update(self.bus.read(), self.bus.now())
            self._require_still(interface, start)
            self._require_unpressed()
            if cycle >= MAX_ATTEMPTS and self.bus.now() - begun >= WATCHED:
                break
            before = self._hold(interface, hold, before)
        heard &= ~self.senses.freshness.silent
        self._require([id for id, ok in zip(self._ids, heard, strict=True) if ok], "went silent")
        lost = [id for id, on in zip(self._ids, self.senses.enabled, strict=True) if on is False]
        self._require(set(self._ids) - set(lost), "has no torque")

    def _hold(self, interface: str, hold: StopMotion, before: float) -> float:
        """Goals that keep the arm where it is, after those of ``before``; when they were sent."""
        now, (q, v, _, warm, _) = self.bus.now(), self.senses.table
        wanted = hold.command(self._state()).value
        self._send(interface, self.limits.apply(interface, wanted, q, v, warm, now - before))
        return now

    def _state(self) -> State:
        q, v = self.senses.table[Q], self.senses.table[V]
        return State(self.bus.now(), q, v, self.limits.last)

    def _require_still(self, interface: str, start: Vector) -> None:
        """A position servo that is not told the weight gives way until its spring carries it."""
        moved, limit = np.abs(self.senses.table[Q] - start), self.settings.activation_max_motion
        if interface == "position" and not self.senses.shafts.feeds:
            limit += SAG
        if not (moved <= limit).all():
            i = int(np.argmax(moved))
            said = f"joint '{self._name(i)}' moved by {moved[i]:.4g} rad, limit {limit:g}"
            raise DriverFault(f"not activated: {said}")

    def _require_unpressed(self) -> None:
        if self.button.engaged:
            raise DriverFault(f"not activated: emergency stop by {self.button.source}")

    def _require(self, ids: Collection[int], said: str) -> None:
        for i, id in enumerate(self._ids):
            if id not in ids:
                raise DriverFault(f"not activated: joint '{self._name(i)}' (motor {id}) {said}")

    def _name(self, i: int) -> str:
        return self.arm.joint_names[i]
