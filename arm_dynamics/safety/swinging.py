"""Efforts that go from one end of their range to the other, again and again."""

from __future__ import annotations

import numpy as np

from arm_dynamics.arrays import Vector, frozen
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.safety.settings import SafetySettings
from arm_dynamics.safety.trips import Trip
from arm_dynamics.scalar import VECTOR, VECTOR_OUT, compiled_for, maximum

END = 0.7
"""Share of the effort limit that counts as the end of the range."""
WINDOW = 1.0
"""Time [s] in which turns are counted."""


@compiled_for(VECTOR, VECTOR, VECTOR_OUT, VECTOR_OUT)
def count_turns(effort: Vector, end: Vector, side: Vector, turns: Vector) -> float:
    """Count joints whose effort is at the other ``end`` (nv,) than before; the largest count."""
    most = 0.0
    for i in range(effort.size):
        at = 1.0 * (effort[i] >= end[i]) - 1.0 * (effort[i] <= -end[i])
        if at != 0.0:
            turns[i] += at == -side[i]
            side[i] = at
        most = maximum(most, turns[i])
    return most


class Swinging:
    """Trips a loop whose gains are too high for its delay.

    It swings at a few hertz with all that the motors have, and below the limit of velocity, where
    nothing else tells of it.
    """

    def __init__(self, arm: ArmModel, settings: SafetySettings) -> None:
        self.arm, self.most = arm, settings.swing_turns
        self._end = frozen(END * settings.effort_share * arm.effort_limit)
        self.restart(0.0)

    def restart(self, time: float) -> None:
        """Count from ``time`` [s] on."""
        self._since = time
        self._side: Vector = np.zeros(self.arm.nv)
        self._turns: Vector = np.zeros(self.arm.nv)

    def look(self, time: float, effort: Vector) -> list[Trip]:
        """Joints whose efforts (nv,) [N·m] turned ``swing_turns`` times within WINDOW."""
        if time - self._since > WINDOW:
            self._since = time
            self._turns[:] = 0.0
        if count_turns(effort, self._end, self._side, self._turns) < self.most:
            return []
        said = f"within {WINDOW:g} s from one end to the other: lower gains, or a faster loop"
        return [
            Trip("swinging", self.arm.joint_names[i], turns, self.most, "turns", time, said)
            for i, turns in enumerate(self._turns.tolist())
            if turns >= self.most
        ]
