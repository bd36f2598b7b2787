"""Tells a motor's late answer from a fresh one by the clock in the motor.

An answer has no number of its question: one that comes a few cycles late would pass for a fresh
one. Its realtime tick [ms] gives it away. With host time t and tick k of the last answer that was
beyond doubt, a fresh one has  (t' - t) - (k' - k) ≤ TOLERANCE + latency + DRIFT (t' - t).
After MEMORY [s] that answer is forgotten, lest a motor be doubted for ever. Source: e-manual,
"Realtime Tick".
"""

from __future__ import annotations

from arm_dynamics.drivers.dynamixel.feedback_block import Block
from arm_dynamics.drivers.dynamixel.line import Line

UNIT = 1e-3
"""Of a tick [s]."""
TURN = 32.768
"""Time after which a tick begins again at 0 [s]."""
TOLERANCE = 2e-3
"""Of two ticks that are told in whole milliseconds [s]."""
MEMORY = 10.0
"""How long an answer beyond doubt is compared with [s]."""
DRIFT = 0.02
"""Of a motor's clock against the host's."""


class MotorClocks:
    """Host time and tick of the last answer beyond doubt, by id."""

    def __init__(self, line: Line) -> None:
        self._line = line
        self._known: dict[int, tuple[float, float]] = {}

    def forget(self, id: int | None = None) -> None:
        """A motor was restarted: its clock began anew; None for all motors."""
        if id is None:
            self._known.clear()
        else:
            self._known.pop(id, None)

    def trust(self, id: int, block: Block, arrived: float, doubtful: bool) -> bool:
        """Whether a block that ``arrived`` [s] is no late one, where that is ``doubtful``."""
        if block.tick is None:
            return True
        tick = block.tick * UNIT
        if doubtful and id in self._known and self._late(id, tick, arrived):
            return False
        self._known[id] = arrived, tick
        return True

    def _late(self, id: int, tick: float, arrived: float) -> bool:
        then, before = self._known[id]
        passed = arrived - then
        apart = (passed - (tick - before) + TURN / 2) % TURN - TURN / 2
        late = apart > TOLERANCE + self._line.latency + DRIFT * passed
        return late and passed < MEMORY
