"""The worst joint error over a stretch of time."""

from __future__ import annotations

import numpy as np

from arm_dynamics.arrays import Vector


class WorstError:
    """Keeps max |reference - position| per joint between two readings."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = names
        self._worst: Vector = np.zeros(len(names))

    def observe(self, reference: Vector, position: Vector) -> None:
        """Note one instant; both (nv,) [rad]."""
        self._worst = np.maximum(self._worst, np.abs(reference - position))

    def read(self) -> tuple[float, str]:
        """The largest error [rad] since the last reading, and its joint."""
        worst, self._worst = self._worst, np.zeros(len(self._names))
        index = int(np.argmax(worst))
        return float(worst[index]), self._names[index]
