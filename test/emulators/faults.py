"""What a bad line does to the pieces of bytes on it: a seed makes it the same every time."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field


def whole(data: bytes) -> list[bytes]:
    """One piece, whatever is in it."""
    return [data]


def at(mark: bytes) -> Callable[[bytes], list[bytes]]:
    """Pieces that begin with ``mark``: frames with a header."""

    def split(data: bytes) -> list[bytes]:
        head, *rest = data.split(mark)
        return [piece for piece in (head, *(mark + r for r in rest)) if piece]

    return split


def after(mark: bytes) -> Callable[[bytes], list[bytes]]:
    """Pieces that end with ``mark``: lines."""

    def split(data: bytes) -> list[bytes]:
        *rest, tail = data.split(mark)
        return [piece for piece in (*(r + mark for r in rest), tail) if piece]

    return split


@dataclass
class Faults:
    """Shares of pieces that are lost, corrupted, cut short or doubled; times in seconds.

    ``noise`` is the share of pieces before which there are bytes of nobody. ``garbled``: another
    rate, nothing is understood. ``lag``: as many exchanges late comes what is handed to
    ``lagging``. All may be changed at any time. ``split`` tells where pieces begin.
    """

    seed: int = 0
    loss: float = 0.0
    corruption: float = 0.0
    truncation: float = 0.0
    duplication: float = 0.0
    noise: float = 0.0
    lag: int = 0
    garbled: bool = False
    delay: float = 0.0
    jitter: float = 0.0
    unplugged: bool = False
    split: Callable[[bytes], list[bytes]] = whole
    dice: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)
        self._kept: deque[bytes] = deque()

    def heal(self) -> None:
        """A good line again."""
        self.loss = self.corruption = self.truncation = self.duplication = 0.0
        self.noise = self.delay = self.jitter = 0.0
        self.unplugged = self.garbled = False
        self.lag = 0

    def late(self) -> float:
        """How much later than usual the next piece comes."""
        return self.delay + self.jitter * self.dice.random()

    def lagging(self, data: bytes) -> bytes:
        """What an adapter that is ``lag`` exchanges behind hands on instead of ``data``."""
        self._kept.append(data)
        while len(self._kept) > self.lag + 1:
            self._kept.popleft()
        return self._kept.popleft() if len(self._kept) > self.lag else b""

    def spoil(self, data: bytes) -> bytes:
        """What is left of ``data`` at the other end."""
        return b"".join(self._piece(piece) for piece in self.split(data))

    def _piece(self, piece: bytes) -> bytes:
        if not piece:
            return piece
        if self.garbled:
            return self.dice.randbytes(len(piece))
        if self._hit(self.loss):
            return b""
        if self._hit(self.corruption):
            i = self.dice.randrange(len(piece))
            piece = piece[:i] + bytes([piece[i] ^ self.dice.randrange(1, 256)]) + piece[i + 1 :]
        if self._hit(self.truncation):
            piece = piece[: self.dice.randrange(len(piece))]
        if self._hit(self.duplication):
            piece *= 2
        foreign = self.dice.randrange(1, 9) if self._hit(self.noise) else 0
        return self.dice.randbytes(foreign) + piece

    def _hit(self, share: float) -> bool:
        return share > 0 and self.dice.random() < share
