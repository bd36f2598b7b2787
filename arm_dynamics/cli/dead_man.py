"""A key that must be held: it counts while its repetitions keep coming."""

from __future__ import annotations

HOLD = 0.12
"""Time [s] that one press counts for; keyboards repeat every 0.03 to 0.1 s."""


class DeadMan:
    """The way (-1, 0 or 1) that the key pressed last stands for, for HOLD after each press."""

    def __init__(self, ways: dict[str, float]) -> None:
        self._ways = ways
        self._way, self._until = 0.0, 0.0

    def press(self, key: str, now: float) -> None:
        """A key at ``now`` [s]; any other than those of the ways stops at once."""
        self._way, self._until = self._ways.get(key, 0.0), now + HOLD

    def way(self, now: float) -> float:
        """The way at ``now`` [s]."""
        return self._way if now < self._until else 0.0
