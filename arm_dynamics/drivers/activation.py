"""Torque on where the arm stands: every doubt is a refusal, and a refusal leaves torque off."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.drivers.motor_bus import MotorBus
from arm_dynamics.drivers.senses import WARM, Q, Senses, V
from arm_dynamics.dynamics import gravity
from arm_dynamics.errors import DriverFault
from arm_dynamics.safety.emergency_stop import EmergencyStop, TorqueOff
from arm_dynamics.safety.judgement import Judgement
from arm_dynamics.safety.limits import Limits

TRIES = 20
"""Cycles tried for each whole one that is asked for in a row, and for each confirmation."""


class Activation:
    """The way from reading only to torque: look, judge, arm watchdogs, set goals, torque, look."""

    def __init__(
        self, bus: MotorBus, senses: Senses, limits: Limits, off: TorqueOff, button: EmergencyStop
    ) -> None:
        self.arm, self.settings = limits.arm, limits.settings
        self.bus, self.senses, self.limits = bus, senses, limits
        self.off, self.button = off, button
        self._judgement = Judgement(self.arm, self.settings)
        self._ids = senses.shafts.ids

    def run(self, interface: str) -> None:
        """Raises DriverFault saying what speaks against it; torque is off again then."""
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
            self._confirm(start)
        except BaseException:
            self.off.ask(self._ids)
            self.off.until_confirmed(self.bus.disable, TRIES)
            raise

    def _look(self) -> None:
        """``fresh_cycles`` in a row in which every joint told something new."""
        wanted, row, new = self.settings.fresh_cycles, 0, np.zeros(self.arm.nv, bool)
        for _ in range(TRIES * wanted):
            new = self.senses.take(self.bus.read(), self.bus.now())
            row = row + 1 if new.all() else 0
            if row == wanted:
                return
        missing = [n for n, ok in zip(self.arm.joint_names, new, strict=True) if not ok]
        said = f"joints {', '.join(missing)} told nothing new" if missing else "answers were missed"
        raise DriverFault(f"not activated: {said}; {wanted} whole cycles in a row are expected")

    def _judge(self) -> None:
        now, table = self.bus.now(), self.senses.table
        self._judgement.restart(table[Q])
        trips = self._judgement.faults(now, self.senses.fault)
        trips += self._judgement.limits(now, table[Q], table[V], table[WARM])
        if trips:
            said = "; ".join(str(trip) for trip in trips)
            raise DriverFault(f"not activated: {said}; a reset clears faults that can pass")
        for i, on in enumerate(self.senses.enabled):
            if on:
                raise DriverFault(f"not activated: joint '{self._name(i)}' has torque already")
        limit = self.settings.activation_speed
        for i in np.flatnonzero(np.abs(table[V]) > limit).tolist():
            said = f"joint '{self._name(i)}' moves at {table[V, i]:.4g} rad/s"
            raise DriverFault(f"not activated: {said}; at most {limit:g} is allowed")

    def _arm_watchdogs(self, interface: str) -> None:
        armed = self.bus.arm_watchdog(self.settings.watchdog)
        accepted = self.bus.settings.get("unwatched") == "accept"
        if interface != "position" and not accepted:
            self._require(armed, "has no watchdog (setting unwatched: accept goes without)")

    def _goal(self, interface: str) -> Vector:
        """What keeps the arm where it is."""
        q = self.senses.table[Q]
        if interface == "position":
            return np.array(q)
        if interface == "velocity":
            return np.zeros(self.arm.nv)
        bound = self.limits.effort_bound(self.senses.table[WARM])
        held: Vector = np.minimum(np.maximum(gravity(self.arm, q), -bound), bound)
        return held

    def _send(self, interface: str, goal: Vector) -> None:
        table = self.senses.table
        self.bus.write(self.senses.shafts.goals(interface, goal, table[V], table[WARM]))

    def _confirm(self, start: Vector) -> None:
        """Every motor heard once more: torque on, and nothing moved."""
        heard = np.zeros(self.arm.nv, bool)
        for _ in range(TRIES):
            heard |= self.senses.take(self.bus.read(), self.bus.now())
            self._require_still(start)
            self._require_unpressed()
            if heard.all():
                break
        self._require([id for id, ok in zip(self._ids, heard, strict=True) if ok], "went silent")
        lost = [id for id, on in zip(self._ids, self.senses.enabled, strict=True) if on is False]
        self._require(set(self._ids) - set(lost), "has no torque")

    def _require_still(self, start: Vector) -> None:
        moved = np.abs(self.senses.table[Q] - start)
        if not (moved <= self.settings.activation_motion).all():
            i = int(np.argmax(moved))
            limit = self.settings.activation_motion
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
