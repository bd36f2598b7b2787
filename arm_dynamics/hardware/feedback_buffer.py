"""What an arm knows of its joints: the newest reading of each, with its age."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.state import State
from arm_dynamics.hardware.driver import ArmFeedback
from arm_dynamics.hardware.motor_bus import Reading
from arm_dynamics.hardware.transmission import Transmission
from arm_dynamics.safety.command_limiter import MAX_VELOCITY
from arm_dynamics.safety.feedback_checks import Flags, Freshness, PlausibilityFilter
from arm_dynamics.safety.safety_settings import SafetySettings

NO_READING = (nan,) * 6
Q, V, TAU, WARM, SUPPLY = range(5)


class FeedbackBuffer:
    """Readings of motors by id become joints' values; the last ones are kept, never shown as new.

    ``table`` (5, nv) has q, v, tau, temperature and supply of the last reading of every joint.
    """

    def __init__(self, shafts: Transmission, safety: SafetySettings) -> None:
        size = len(shafts.ids)
        self.shafts = shafts
        self.freshness = Freshness(size, safety.max_missed_cycles, safety.feedback_timeout)
        speed = np.minimum(shafts.arm.velocity_limit, MAX_VELOCITY)
        self.plausibility = PlausibilityFilter(speed)
        self.table: Vector = np.full((5, size), nan)
        self.fault = [""] * size
        self.enabled: list[bool | None] = [None] * size

    @property
    def complete(self) -> bool:
        """Whether every joint has been heard at least once."""
        return bool(np.isfinite(self.freshness.time).all())

    def update(self, readings: Mapping[int, Reading], now: float) -> Flags:
        """One cycle's answers at ``now`` [s]; which joints (nv,) told something new."""
        found = [readings.get(id) for id in self.shafts.ids]
        rows = np.array([NO_READING if r is None else _row(r) for r in found])
        self.shafts.to_joints(rows)
        times, *told = columns = rows.T.copy()
        usable = np.isfinite(told[Q] + told[V])
        times = np.where(usable, times, nan)
        before, fresh = self.table[Q], self.freshness
        times = self.plausibility.filter(times, told[Q], told[V], fresh.time, before)
        new = fresh.update(times, now)
        self.table = np.where(new, columns[1:], self.table)
        for i, r in enumerate(found):
            if r is not None and not self.plausibility.doubted[i]:
                self.fault[i], self.enabled[i] = r.fault, r.enabled
        if self.shafts.uses_voltage:
            self._estimate()
        return new

    def state(self) -> State:
        """The newest state; NaN for joints that are silent for too long."""
        shown = self._shown()
        return State(self.freshness.newest, shown[Q], shown[V], shown[TAU])

    def feedback(self, now: float) -> ArmFeedback:
        """Everything that is known at ``now`` [s]."""
        age = self.freshness.age(now)
        age.setflags(write=False)
        q, v, tau, temperature, supply = self._shown()
        fault, enabled = tuple(self.fault), tuple(self.enabled)
        time = self.freshness.newest
        return ArmFeedback(time, q, v, tau, temperature, supply, age, fault, enabled)

    def _shown(self) -> tuple[Vector, ...]:
        table = self.table.copy()
        if not self.freshness.complete:
            table[:, self.freshness.silent] = nan
        table.setflags(write=False)
        return tuple(table)

    def _estimate(self) -> None:
        """Efforts that a motor does not tell, from the voltages sent last."""
        unknown = np.isnan(self.table[TAU])
        if unknown.any():
            guess = self.shafts.estimated(self.table[V], self.table[WARM])
            self.table[TAU, unknown] = guess[unknown]


def _row(r: Reading) -> tuple[float, ...]:
    return r.time, r.q, r.v, r.tau, r.temperature, r.supply
