"""What the page was shown during the last seconds, bounded in time and in number."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from arm_dynamics.arrays import Vector

WINDOW = 10.0  # [s]
RATE = 30.0  # [1/s]


class Sample(NamedTuple):
    """One state shown: time [s]; the rest of shape (n,), or None.

    Entries of ``voltage`` [V] and ``temperature`` [°C] are NaN for motors that report none.
    """

    time: float
    q: Vector
    v: Vector | None = None
    effort: Vector | None = None
    reference: Vector | None = None
    voltage: Vector | None = None
    temperature: Vector | None = None


class History:
    """The samples of the last ``WINDOW`` seconds, at most ``RATE`` of them a second."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=int(WINDOW * RATE) + 1)

    def add(self, sample: Sample) -> None:
        """Keep ``sample``; a time that went back starts the history anew."""
        if self._samples:
            elapsed = sample.time - self._samples[-1].time
            if elapsed < 0:
                self._samples.clear()
            elif elapsed < 0.9 / RATE:
                return
        self._samples.append(sample)

    def __iter__(self) -> Iterator[Sample]:
        """Yield the samples within the window before the newest, oldest first."""
        samples = tuple(self._samples)  # another thread may add meanwhile
        return (s for s in samples if s.time >= samples[-1].time - WINDOW)

    def __len__(self) -> int:
        return len(self._samples)
