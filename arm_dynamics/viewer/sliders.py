"""One slider a joint, within its limits: the only part of a page that can ask for motion."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import floor, isfinite, log10, pi
from typing import Any

from arm_dynamics.viewer.table import short

Target = tuple[float, ...]
LOG = logging.getLogger(__name__)
PARTS = 1000
"""Least number of steps from one end of a slider to the other."""


class JointSliders:
    """Sliders in radians or meters; ``on_target`` is called with all joints after each change."""

    def __init__(
        self,
        gui: Any,
        names: Sequence[str],
        limits: Sequence[tuple[float, float]],
        initial: Sequence[float],
        units: Sequence[str] = (),
        *,
        order: float | None = None,
    ) -> None:
        self._names, self._units = names, tuple(units) or ("rad",) * len(names)
        self.ranges = [slider_range(lower, upper) for lower, upper in limits]
        self._callbacks: list[Callable[[Target], None]] = []
        self._lock = threading.Lock()
        self._quiet = threading.local()
        title = f"Joint targets [{', '.join(sorted({*self._units}, reverse=True))}]"
        with gui.add_folder(title, order=order):
            self._sliders = [
                gui.add_slider(
                    short(name), low, high, _step(low, high), min(max(q, low), high),
                    hint=self._hint(i, low, high), marks=_ends(low, high),
                )
                for i, (name, (low, high), q) in enumerate(
                    zip(names, self.ranges, initial, strict=True)
                )
            ]  # fmt: skip
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
        """Move the sliders to ``target``, clamped into their ranges, as a user would."""
        for slider, value, (low, high) in zip(self._sliders, target, self.ranges, strict=True):
            slider.value = min(max(float(value), low), high)

    def show(self, target: Sequence[float]) -> None:
        """Move the sliders to ``target``, rounded to their steps, without a call back."""
        with self._quietly():
            for slider, value, (low, high) in zip(self._sliders, target, self.ranges, strict=True):
                rounded = round(value, -floor(log10(slider.step)))
                if abs(slider.value - value) > slider.step / 2:
                    slider.value = min(max(rounded, low), high)

    def send_again(self) -> None:
        """Have every page show the values of here: a move and ``show`` may have crossed."""
        with self._quietly():
            for slider in self._sliders:
                value = slider.value
                slider.value = value + slider.step  # viser sends what differs, the last alone
                slider.value = value

    @contextmanager
    def _quietly(self) -> Iterator[None]:
        self._quiet.active = True  # viser calls back in this thread
        try:
            yield
        finally:
            self._quiet.active = False

    def set_range(self, index: int, lower: float, upper: float) -> None:
        """Let slider ``index`` run from ``lower`` to ``upper``; it moves into them if outside."""
        slider, (low, high) = self._sliders[index], slider_range(lower, upper)
        self.ranges[index] = low, high
        slider.min, slider.max = low, high
        slider.hint, slider._marks = self._hint(index, low, high), None  # marks cannot be moved
        slider.value = min(max(float(slider.value), low), high)

    def _hint(self, index: int, low: float, high: float) -> str:
        return f"{self._names[index]}: {low:.4g} to {high:.4g} {self._units[index]}"

    def _moved(self, event: Any) -> None:
        if event.client is None and getattr(self._quiet, "active", False):
            return
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


def _step(low: float, high: float) -> float:
    """The power of ten that divides the range into PARTS or more, at most 10 PARTS."""
    return 10.0 ** floor(log10((high - low) / PARTS)) if high > low else 1e-3


def _ends(low: float, high: float) -> tuple[tuple[float, str], ...]:
    """Marks with short numbers at both ends."""
    return (low, f"{low:.3g}"), (high, f"{high:.3g}")
