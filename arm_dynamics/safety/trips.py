"""What tripped: which joint, which value, which limit and when."""

from __future__ import annotations

from dataclasses import dataclass

LINK = ("silent", "stale", "command_timeout")
"""Trips that pass by themselves once the link is good again."""


@dataclass(frozen=True, slots=True)
class Trip:
    """``kind`` at ``time`` [s]: ``value`` of ``joint`` against ``limit``, both in ``unit``.

    ``joint`` is "" for what concerns the whole arm; ``detail`` is a motor's or port's own word.
    """

    kind: str
    joint: str
    value: float
    limit: float
    unit: str
    time: float
    detail: str = ""

    def __str__(self) -> str:
        """One line: joint, what, value, limit, time."""
        owner = f"joint '{self.joint}': " if self.joint else ""
        said = f" ({self.detail})" if self.detail else ""
        numbers = f" {self.value:.4g} {self.unit}, limit {self.limit:.4g}" if self.unit else ""
        return f"{owner}{self.kind}{numbers}{said} at {self.time:.3f} s"

    @property
    def passes(self) -> bool:
        """Whether it goes by itself with its cause; the others latch until a reset."""
        return self.kind in LINK
