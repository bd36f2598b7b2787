"""Monitor of the limits that trip: position, velocity, temperature, following error."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from arm_dynamics.core.arrays import BoolArray, Vector
from arm_dynamics.core.compiled_math import MATRIX, VECTOR, compiled_for
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.safety.command_limiter import LOWER, SPEED, UPPER, CommandLimiter
from arm_dynamics.safety.events import Trip
from arm_dynamics.safety.safety_settings import SafetySettings


@compiled_for(VECTOR, VECTOR, VECTOR, MATRIX, VECTOR)
def within(q: Vector, v: Vector, temperature: Vector, table: Vector, margins: Vector) -> bool:
    """Return whether position, velocity and temperature of every joint are within limits."""
    bad = 0
    for i in range(q.size):
        bad += q[i] < table[LOWER, i] - margins[0] or q[i] > table[UPPER, i] + margins[0]
        bad += abs(v[i]) > margins[1] * table[SPEED, i]
        bad += temperature[i] >= margins[2]
    return bad == 0


class LimitMonitor:
    """Detects trips in the feedback of the joints; NaN, for no measurement, never trips."""

    def __init__(self, arm: ArmModel, settings: SafetySettings) -> None:
        self.arm = arm
        self.settings = s = settings
        self.table = CommandLimiter(arm, settings).table
        self._margins = np.array([s.position_margin, 1.0 + s.velocity_margin, s.max_temperature])
        self._error_since: Vector = np.full(arm.nv, np.inf)
        self._outside = False  # whether a joint returns from beyond its limit

    @property
    def max_velocity(self) -> Vector:
        """Velocity (nv,) [rad/s or m/s] that trips."""
        velocity: Vector = self._margins[1] * self.table[SPEED]
        return velocity

    def check_faults(
        self, time: float, fault: Sequence[str], enabled: Sequence[bool | None] = ()
    ) -> list[Trip]:
        """Return trips of motors with a fault, and of those that lost their torque."""
        names, trips = self.arm.joint_names, []
        if any(fault):
            trips = [
                Trip("motor_fault", name, 1, 0, "", time, text)
                for name, text in zip(names, fault, strict=True)
                if text
            ]
        if False in enabled:
            off = [n for n, on in zip(names, enabled, strict=True) if on is False]
            trips += [Trip("torque_lost", n, 0, 1, "", time) for n in off]
        return trips

    def check_limits(self, time: float, q: Vector, v: Vector, temperature: Vector) -> list[Trip]:
        """Return trips of joints (nv,) beyond a limit of position, speed or temperature."""
        if self._outside:  # the recovered limits follow joints that return
            lower, upper = self.table[LOWER], self.table[UPPER]
            self.table[LOWER] = np.minimum(np.fmax(lower, q), self.arm.lower)
            self.table[UPPER] = np.maximum(np.fmin(upper, q), self.arm.upper)
            self._outside = bool((lower < self.arm.lower).any() or (upper > self.arm.upper).any())
        if within(q, v, temperature, self.table, self._margins):
            return []
        margin, _, max_temperature = self._margins.tolist()
        lower, upper = self.table[LOWER] - margin, self.table[UPPER] + margin
        max_speed = self.max_velocity
        trips = []
        for i in _where((q < lower) | (q > upper)):
            limit, unit = lower[i] if q[i] < lower[i] else upper[i], self.arm.joints[i].unit
            trips.append(self._trip("position_limit", i, q[i], limit, unit, time))
        for i in _where(np.abs(v) > max_speed):
            unit = f"{self.arm.joints[i].unit}/s"
            trips.append(self._trip("velocity_limit", i, v[i], max_speed[i], unit, time))
        for i in _where(temperature >= max_temperature):
            limit = max_temperature
            trips.append(self._trip("over_temperature", i, temperature[i], limit, "°C", time))
        return trips

    def check_following_error(self, time: float, q: Vector, goal: Vector) -> list[Trip]:
        """Return trips of joints too far from their command (nv,) [rad] for too long."""
        s, error = self.settings, np.abs(goal - q)
        self._error_since = np.where(
            error > s.max_following_error, np.minimum(self._error_since, time), np.inf
        )
        joints = _where(time - self._error_since > s.following_error_timeout)
        limit = s.max_following_error
        return [self._trip("following_error", i, error[i], limit, "rad", time) for i in joints]

    def restart(self, q: Vector) -> None:
        """Start at q (nv,): joints at most ``limit_recovery_margin`` beyond a limit may return.

        lower = clip(q, q_min - margin, q_min), and the same above. The bound follows a joint that
        returns and does not recede; a joint further out trips.
        """
        arm, margin = self.arm, self.settings.limit_recovery_margin
        self._error_since = np.full(arm.nv, np.inf)
        self.table[LOWER] = np.minimum(np.maximum(q, arm.lower - margin), arm.lower)
        self.table[UPPER] = np.maximum(np.minimum(q, arm.upper + margin), arm.upper)
        self._outside = bool(((q < arm.lower) | (q > arm.upper)).any())

    def _trip(self, kind: str, i: int, value: float, limit: float, unit: str, time: float) -> Trip:
        return Trip(kind, self.arm.joint_names[i], float(value), float(limit), unit, time)


def _where(flags: BoolArray) -> list[int]:
    indices: list[int] = np.flatnonzero(flags).tolist()
    return indices
