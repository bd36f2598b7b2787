"""One joint of an arm: its limits, friction, stop, motor and initial position."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Joint:
    """A joint with one coordinate; rad, N·m (or m, N for a prismatic one).

    A continuous joint has infinite limits and counts its turns.
    """

    name: str
    kind: str
    lower: float
    upper: float
    velocity: float
    effort: float
    damping: float = 0.0
    friction: float = 0.0
    stop_stiffness: float = 0.0
    stop_damping: float = 0.0
    initial: float = 0.0
    actuator: str = "ideal"
    constants: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}), hash=False)

    @property
    def unit(self) -> str:
        """Unit of the joint's position: "m" for a prismatic one, else "rad"."""
        return "m" if self.kind == "prismatic" else "rad"
