"""Interface of emulated motors: bytes in, bytes out, and an effort on each shaft."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class Shaft:
    """Output shaft of one motor, in SI units at the shaft.

    The arm writes ``q`` and ``v``, tests write ``temperature``, the motor writes ``effort``. A
    ``silent`` motor sends no replies. ``model`` is the model that the motor reports.
    """

    id: int
    model: str
    q: float = 0.0
    v: float = 0.0
    effort: float = 0.0
    temperature: float = 30.0
    supply: float = 12.0
    silent: bool = False


class EmulatedMotors(ABC):
    """Motors of one manufacturer on one bus. Motors with the same id reply simultaneously."""

    def __init__(self, shafts: Sequence[Shaft]) -> None:
        self.shafts = tuple(shafts)

    @abstractmethod
    def receive(self, data: bytes, now: float) -> bytes:
        """Return the replies to bytes that arrive at the time ``now`` [s], in parts of any size."""

    @abstractmethod
    def step(self, now: float) -> None:
        """Run the motors' control loops and watchdogs; set the effort of each shaft."""

    @abstractmethod
    def reboot(self, id: int) -> None:
        """Switch power off and on: volatile registers are reset and torque is disabled."""

    @abstractmethod
    def trip(self, id: int, fault: str) -> None:
        """Set a fault ("overload", ...) with the effects stated in the data sheet."""

    @abstractmethod
    def torque_is_on(self, id: int) -> bool:
        """Return whether the motor applies torque."""
