"""One joint of an arm: its limits, friction, stop, motor and initial position."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any


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

    def __reduce__(self) -> tuple[Any, ...]:
        """Mapping proxies are not sent to other processes: the constants go as a dict."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return _restored, ({**values, "constants": dict(self.constants)},)

    @property
    def unit(self) -> str:
        """Unit of the joint's position: "m" for a prismatic one, else "rad"."""
        return "m" if self.kind == "prismatic" else "rad"


def _restored(values: dict[str, Any]) -> Joint:
    return Joint(**{**values, "constants": MappingProxyType(values["constants"])})
