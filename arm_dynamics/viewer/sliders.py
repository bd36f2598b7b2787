"""One slider per joint, within its limits: the only control of a page that commands motion."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import floor, isfinite, log10, pi
from typing import Any

from arm_dynamics.viewer.table import short

Target = tuple[float, ...]
LOG = logging.getLogger(__name__)
MIN_STEPS = 1000
"""Smallest number of steps of a slider."""


class JointSliders:
    """Sliders of all joints [rad or m]; each change calls the callbacks with the whole target."""

    def __init__(
        self,
        gui: Any,
        names: Sequence[str],
        limits: Sequence[tuple[float, float]],
        initial: Sequence[float],
        units: Sequence[str] = (),
        *,
        poses: Mapping[str, Sequence[float]],
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
                    hint=self._hint(i, low, high),
                    marks=((low, f"{low:.3g}"), (high, f"{high:.3g}")),
                )
                for i, (name, (low, high), q) in enumerate(
                    zip(names, self.ranges, initial, strict=True)
                )
            ]  # fmt: skip
            go = gui.add_button_group("Go to", tuple(poses), hint="named configurations of the arm")
        # Values that callbacks have used; a browser has moved a slider with another value.
        self._handled = [slider.value for slider in self._sliders]
        self._touched = False
        for slider in self._sliders:
            slider.on_update(self._moved)
        go.on_click(lambda event: self.set(poses[event.target.value]))

    @property
    def target(self) -> Target:
        """Values of the sliders, clamped to their ranges: a browser can send any number."""
        return tuple(
            min(max(float(slider.value), low), high)
            for slider, (low, high) in zip(self._sliders, self.ranges, strict=True)
        )

    def on_target(self, callback: Callable[[Target], None]) -> None:
        """Call ``callback`` with the target, in a thread of the page, after each change."""
        self._callbacks.append(callback)

    def set(self, target: Sequence[float]) -> None:
        """Move the sliders to ``target``, clamped to their ranges; calls back."""
        for slider, value, (low, high) in zip(self._sliders, target, self.ranges, strict=True):
            slider.value = min(max(float(value), low), high)

    def show(self, target: Sequence[float]) -> None:
        """Move the sliders to ``target``, rounded to their steps; does not call back.

        A slider that a browser has moved stays there until its callback has used the value.
        """
        with self._quietly(), self._lock:
            self._show(target)

    def follow(self, shown: Sequence[float]) -> None:
        """Move the sliders with an arm, so that a touch of one does not move the other joints.

        After a touch they stay at their target until the arm has reached it.
        """
        with self._quietly(), self._lock:
            pairs = zip(self._sliders, shown, strict=True)
            if self._touched and any(abs(s.value - value) > s.step for s, value in pairs):
                return
            self._touched = False
            self._show(shown)

    def _show(self, target: Sequence[float]) -> None:
        for i, (slider, value) in enumerate(zip(self._sliders, target, strict=True)):
            rounded, (low, high) = round(value, -floor(log10(slider.step))), self.ranges[i]
            is_handled = slider.value == self._handled[i]
            if is_handled and abs(slider.value - value) > slider.step / 2:
                slider.value = min(max(rounded, low), high)
                self._handled[i] = slider.value

    def send_again(self) -> None:
        """Send the values to every browser again: a move and ``show`` may have crossed."""
        with self._quietly(), self._lock:
            for slider in self._sliders:
                value = slider.value
                slider.value = (
                    value + slider.step
                )  # viser sends only changes, and only the last one
                slider.value = value

    @contextmanager
    def _quietly(self) -> Iterator[None]:
        self._quiet.active = True  # per thread, because viser calls back in this thread
        try:
            yield
        finally:
            self._quiet.active = False

    def set_range(self, index: int, lower: float, upper: float) -> None:
        """Set the range of slider ``index``; a value outside is clamped."""
        slider, (low, high) = self._sliders[index], slider_range(lower, upper)
        self.ranges[index] = low, high
        slider.min, slider.max = low, high
        slider.hint, slider._marks = self._hint(index, low, high), None  # marks cannot be changed
        slider.value = min(max(float(slider.value), low), high)

    def _hint(self, index: int, low: float, high: float) -> str:
        return f"{self._names[index]}: {low:.4g} to {high:.4g} {self._units[index]}"

    def _moved(self, event: Any) -> None:
        if event.client is None and getattr(self._quiet, "active", False):
            return
        with self._lock:  # callbacks come from several threads: the last target is sent last
            with self._quietly():  # a typed number beyond the range is shown as it is used
                for slider, (low, high) in zip(self._sliders, self.ranges, strict=True):
                    if not low <= slider.value <= high and isfinite(slider.value):
                        slider.value = min(max(float(slider.value), low), high)
            self._handled, self._touched = [slider.value for slider in self._sliders], True
            target = self.target
            if not all(map(isfinite, target)):
                LOG.warning("target of a browser ignored: not finite")
                return
            for callback in self._callbacks:
                callback(target)


def slider_range(lower: float, upper: float) -> tuple[float, float]:
    """Return the limits; infinite ones are replaced by ±pi, or by pi beyond the finite limit."""
    if not isfinite(lower) and not isfinite(upper):
        return -pi, pi
    low = float(lower) if isfinite(lower) else min(-pi, upper - pi)
    high = float(upper) if isfinite(upper) else max(pi, lower + pi)
    return low, high


def _step(low: float, high: float) -> float:
    """Return the power of ten that divides the range into MIN_STEPS to 10 MIN_STEPS."""
    return 10.0 ** floor(log10((high - low) / MIN_STEPS)) if high > low else 1e-3
