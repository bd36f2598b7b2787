"""Detection of oscillations: full-scale reversals of efforts, and reversals of velocities.

A held or stopped arm must come to rest: the reversals of each joint are counted. A reversal of a
quickly decaying oscillation does not count: such an arm comes to rest, as a damped hanging arm
does, and without torque it would continue to oscillate.
"""

from __future__ import annotations

import numpy as np

from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.compiled_math import NUMBER, VECTOR, VECTOR_OUT, compiled_for, maximum
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.safety.events import Trip
from arm_dynamics.safety.safety_settings import SafetySettings

FULL_SCALE = 0.7
"""Fraction of the effort limit that counts as full scale."""
WINDOW = 1.0
"""Time [s] in which reversals are counted."""


@compiled_for(VECTOR, VECTOR, VECTOR_OUT, VECTOR_OUT)
def count_effort_reversals(effort: Vector, end: Vector, side: Vector, count: Vector) -> float:
    """Count the reversals of each joint to the other ``end`` (nv,); return the largest count."""
    largest = 0.0
    for i in range(effort.size):
        at = 1.0 * (effort[i] >= end[i]) - 1.0 * (effort[i] <= -end[i])
        if at != 0.0:
            count[i] += at == -side[i]
            side[i] = at
        largest = maximum(largest, count[i])
    return largest


class OscillationMonitor:
    """Trips a loop whose gains are too high for its delay.

    It oscillates at a few hertz with full effort, below the velocity limit, where no other monitor
    detects it.
    """

    def __init__(self, arm: ArmModel, settings: SafetySettings) -> None:
        self.arm, self.limit = arm, settings.max_effort_reversals
        self._end = as_readonly(FULL_SCALE * settings.effort_limit_scale * arm.effort_limit)
        self.restart(0.0)

    def restart(self, time: float) -> None:
        """Restart the count at ``time`` [s]."""
        self._since = time
        self._side: Vector = np.zeros(self.arm.nv)
        self._count: Vector = np.zeros(self.arm.nv)

    def update(self, time: float, effort: Vector) -> list[Trip]:
        """Return trips of joints with ``max_effort_reversals`` of effort (nv,) within WINDOW."""
        if time - self._since > WINDOW:
            self._since = time
            self._count[:] = 0.0
        if count_effort_reversals(effort, self._end, self._side, self._count) < self.limit:
            return []
        detail = f"within {WINDOW:g} s from one end to the other: lower gains, or a faster loop"
        return [
            Trip("oscillation", name, count, self.limit, "reversals", time, detail)
            for name, count in zip(self.arm.joint_names, self._count.tolist(), strict=True)
            if count >= self.limit
        ]


SPEED = 0.4
"""Speed [rad/s or m/s] between which, in both directions, a reversal counts."""
GRACE = 0.25
"""Time [s] for each stage of a stop to brake the arm before reversals count."""
REVERSALS = 2
"""Reversals of one joint, in one stage of a stop, that are an oscillation."""
MIN_PEAK_RATIO = 0.8
"""Smallest ratio of successive peak speeds of an oscillation; with less it decays quickly."""
PAUSE = 0.5
"""Time [s] without a reversal after which the count restarts: a push, not an oscillation."""
SOFTER = (1.0, 5.0)
"""Factor on the control period that each stage of a stop assumes; after the last: torque off."""


@compiled_for(VECTOR, NUMBER, VECTOR_OUT, VECTOR_OUT, VECTOR_OUT, VECTOR_OUT)
def count_reversals(
    v: Vector, fast: float, side: Vector, count: Vector, peak: Vector, before: Vector
) -> float:
    """Count joints faster than ``fast`` in the reversed direction; return 1 if any is new.

    ``peak`` and ``before`` are the largest speeds since a joint's last reversal and up to it. A
    reversal does not count if ``peak`` is below MIN_PEAK_RATIO of ``before``. A velocity that is
    NaN counts as none.
    """
    new = 0.0
    for i in range(v.size):
        at = 1.0 * (v[i] >= fast) - 1.0 * (v[i] <= -fast)
        if at != 0.0:
            if at == -side[i]:
                turned = 1.0 * (peak[i] >= MIN_PEAK_RATIO * before[i])
                count[i] += turned
                new = maximum(new, turned)
                before[i], peak[i] = peak[i], 0.0
            side[i] = at
            peak[i] = maximum(peak[i], abs(v[i]))
    return new


class SettlingMonitor:
    """Trips a held or stopped arm that oscillates; ``stage`` of SOFTER then increases by one.

    Only velocities are evaluated: the effort and the first trip do not matter.
    """

    def __init__(self, arm: ArmModel) -> None:
        self.arm = arm
        self.stage = 0
        self.start(0.0)

    @property
    def softer(self) -> float:
        """Factor on the control period that the active stop assumes."""
        return SOFTER[min(self.stage, len(SOFTER) - 1)]

    @property
    def exhausted(self) -> bool:
        """Whether no softer stop exists."""
        return self.stage >= len(SOFTER)

    def restart(self, time: float) -> None:
        """Restart with the stiffest stop, after torque is enabled or a command arrives."""
        self.stage = 0
        self.start(time)

    def start(self, time: float) -> None:
        """Restart the count at ``time`` [s]."""
        self._started = self._last = time
        self._side: Vector = np.zeros(self.arm.nv)
        self._count: Vector = np.zeros(self.arm.nv)
        self._peak: Vector = np.zeros(self.arm.nv)
        self._before: Vector = np.zeros(self.arm.nv)

    def update(self, time: float, v: Vector) -> list[Trip]:
        """Return trips of joints with REVERSALS of velocity (nv,), each within PAUSE of another."""
        if time - self._started < GRACE:
            return []
        if time - self._last > PAUSE:
            self._last = time
            self._count[:] = 0.0
        if count_reversals(v, SPEED, self._side, self._count, self._peak, self._before):
            self._last = time
        joints = np.flatnonzero(self._count >= REVERSALS).tolist()
        if joints:
            self.stage += 1
            self.start(time)
        detail = f"at more than {SPEED:g}/s while held or stopped: lower gains, or a faster loop"
        name = self.arm.joint_names
        return [
            Trip("oscillation", name[i], REVERSALS, REVERSALS, "reversals", time, detail)
            for i in joints
        ]
