"""One slider a joint, within its limits: the only part of a page that can ask for motion."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from math import isfinite, pi
from typing import Any

Target = tuple[float, ...]
LOG = logging.getLogger(__name__)


class JointSliders:
    """Sliders in radians; ``on_target`` is called with all joints after each change."""

    def __init__(
        self,
        gui: Any,
        names: Sequence[str],
        limits: Sequence[tuple[float, float]],
        initial: Sequence[float],
    ) -> None:
        self.ranges = [slider_range(lower, upper) for lower, upper in limits]
        self._callbacks: list[Callable[[Target], None]] = []
        self._lock = threading.Lock()
        folder = gui.add_folder("Joint targets [rad]")
        self.order = float(folder.order)
        """Place of the sliders on the panel."""
        with folder:
            self._sliders = [
                gui.add_slider(name, low, high, 0.001, min(max(q, low), high))
                for name, (low, high), q in zip(names, self.ranges, initial, strict=True)
            ]
            zero = gui.add_button("Zero")
        for slider in self._sliders:
            slider.on_update(self._moved)
        zero.on_click(lambda _: self.set((0.0,) * len(names)))

    @property
    def target(self) -> Target:
        """The sliders' values, clamped: a browser may send any number."""
        return tuple(
            min(max(float(slider.value), low), high)
            for slider, (low, high) in zip(self._sliders, self.ranges, strict=True)
        )

    def on_target(self, callback: Callable[[Target], None]) -> None:
        """Call ``callback`` with the target, in a thread of the page, after each change."""
        self._callbacks.append(callback)

    def set(self, target: Sequence[float]) -> None:
        """Move the sliders to ``target``, clamped into their ranges."""
        for slider, value, (low, high) in zip(self._sliders, target, self.ranges, strict=True):
            slider.value = min(max(float(value), low), high)

    def set_range(self, index: int, lower: float, upper: float) -> None:
        """Let slider ``index`` run from ``lower`` to ``upper``; it moves into them if outside."""
        slider, (low, high) = self._sliders[index], slider_range(lower, upper)
        self.ranges[index] = low, high
        slider.min, slider.max = low, high
        slider.value = min(max(float(slider.value), low), high)

    def _moved(self, _event: Any) -> None:
        with self._lock:  # callbacks come from a pool of threads: keep the last one last
            target = self.target
            if not all(map(isfinite, target)):
                LOG.warning("a browser sent a target that is not finite: ignored")
                return
            for callback in self._callbacks:
                callback(target)


def slider_range(lower: float, upper: float) -> tuple[float, float]:
    """Return the limits, with -pi and pi in place of infinite ones."""
    if not isfinite(lower) and not isfinite(upper):
        return -pi, pi
    low = float(lower) if isfinite(lower) else min(-pi, upper - pi)
    high = float(upper) if isfinite(upper) else max(pi, lower + pi)
    return low, high
