"""The seam of emulated motors: bytes in, bytes out, and an effort on every shaft."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass
class Shaft:
    """One motor's output shaft, in SI at the shaft; plain state that both sides write.

    The arm sets ``q`` and ``v`` (and ``temperature``); the motor sets ``effort``. A motor that
    is ``silent`` answers nothing; ``model`` is what it says it is.
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
    """Motors of one maker on one line. Ids may repeat: two motors then answer at once."""

    def __init__(self, shafts: Sequence[Shaft]) -> None:
        self.shafts = tuple(shafts)

    @abstractmethod
    def receive(self, data: bytes, now: float) -> bytes:
        """Take bytes off the line (any split) at ``now`` [s]; the bytes that come back."""

    @abstractmethod
    def step(self, now: float) -> None:
        """Run the motors' own loops and watchdogs: sets every shaft's effort."""

    @abstractmethod
    def reboot(self, id: int) -> None:
        """Power off and on: volatile registers forgotten, torque off."""

    @abstractmethod
    def trip(self, id: int, fault: str) -> None:
        """Put a motor into a fault ("overload", "overheating", ...) as its data sheet has it."""

    @abstractmethod
    def torque_is_on(self, id: int) -> bool:
        """Whether the motor applies torque."""
