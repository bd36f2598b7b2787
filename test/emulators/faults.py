"""Communication faults on a bus: loss, corruption, delay; repeatable by a seed."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field


def whole(data: bytes) -> list[bytes]:
    """Return all bytes as one frame."""
    return [data]


def at(mark: bytes) -> Callable[[bytes], list[bytes]]:
    """Return a function that cuts bytes into frames that begin with ``mark``."""

    def split(data: bytes) -> list[bytes]:
        head, *rest = data.split(mark)
        return [piece for piece in (head, *(mark + r for r in rest)) if piece]

    return split


def after(mark: bytes) -> Callable[[bytes], list[bytes]]:
    """Return a function that cuts bytes into frames that end with ``mark``."""

    def split(data: bytes) -> list[bytes]:
        *rest, tail = data.split(mark)
        return [piece for piece in (*(r + mark for r in rest), tail) if piece]

    return split


@dataclass
class Faults:
    """Fractions of frames that are lost, corrupted, truncated or duplicated; times in seconds.

    ``noise`` is the fraction of frames that follow random bytes. With ``corrupt`` every frame is
    random, as with a wrong baud rate. ``lag`` is the number of exchanges by which ``lagging``
    delays its data. All fields may change at any time. ``split`` cuts bytes into frames.
    """

    seed: int = 0
    loss: float = 0.0
    corruption: float = 0.0
    truncation: float = 0.0
    duplication: float = 0.0
    noise: float = 0.0
    lag: int = 0
    corrupt: bool = False
    delay: float = 0.0
    jitter: float = 0.0
    unplugged: bool = False
    split: Callable[[bytes], list[bytes]] = whole
    dice: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.dice = random.Random(self.seed)
        self._kept: deque[bytes] = deque()

    def heal(self) -> None:
        """Remove all faults."""
        self.loss = self.corruption = self.truncation = self.duplication = 0.0
        self.noise = self.delay = self.jitter = 0.0
        self.unplugged = self.corrupt = False
        self.lag = 0

    def late(self) -> float:
        """Return the additional delay [s] of the next frame."""
        return self.delay + self.jitter * self.dice.random()

    def lagging(self, data: bytes) -> bytes:
        """Return the data of ``lag`` exchanges ago, or nothing before they exist."""
        self._kept.append(data)
        while len(self._kept) > self.lag + 1:
            self._kept.popleft()
        return self._kept.popleft() if len(self._kept) > self.lag else b""

    def distort(self, data: bytes) -> bytes:
        """Return ``data`` as received at the other end of the bus."""
        return b"".join(self._piece(piece) for piece in self.split(data))

    def _piece(self, piece: bytes) -> bytes:
        if not piece:
            return piece
        if self.corrupt:
            return self.dice.randbytes(len(piece))
        if self._occurs(self.loss):
            return b""
        if self._occurs(self.corruption):
            i = self.dice.randrange(len(piece))
            piece = piece[:i] + bytes([piece[i] ^ self.dice.randrange(1, 256)]) + piece[i + 1 :]
        if self._occurs(self.truncation):
            piece = piece[: self.dice.randrange(len(piece))]
        if self._occurs(self.duplication):
            piece *= 2
        foreign = self.dice.randrange(1, 9) if self._occurs(self.noise) else 0
        return self.dice.randbytes(foreign) + piece

    def _occurs(self, probability: float) -> bool:
        return probability > 0 and self.dice.random() < probability
