"""History of the states on the page, and plots of the joints over the last seconds."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from arm_dynamics.core.arrays import Vector

WINDOW = 10.0
"""Duration [s] of the history."""
RATE = 30.0
"""Largest number of samples per second [Hz]."""


class HistorySample(NamedTuple):
    """One state: time [s]; vectors of shape (n,) or None in the units of ``ArmPage.show``.

    Entries of ``voltage`` [V] and ``temperature`` [°C] are NaN for motors without a measurement.
    """

    time: float
    q: Vector
    v: Vector | None = None
    effort: Vector | None = None
    reference: Vector | None = None
    voltage: Vector | None = None
    temperature: Vector | None = None

    @property
    def error(self) -> Vector | None:
        """Reference minus position [rad or m]; None without a reference."""
        return None if self.reference is None else self.reference - self.q


class History:
    """Samples of the last ``WINDOW`` seconds, at most ``RATE`` per second."""

    def __init__(self) -> None:
        self._samples: deque[HistorySample] = deque(maxlen=int(WINDOW * RATE) + 1)

    def add(self, sample: HistorySample) -> None:
        """Append ``sample``; a time before the last one clears the history first."""
        if self._samples:
            elapsed = sample.time - self._samples[-1].time
            if elapsed < 0:
                self._samples.clear()
            elif elapsed < 0.9 / RATE:
                return
        self._samples.append(sample)

    def __iter__(self) -> Iterator[HistorySample]:
        """Yield the samples within the window before the newest, oldest first."""
        samples = tuple(self._samples)  # another thread can append during the iteration
        return (s for s in samples if s.time >= samples[-1].time - WINDOW)

    def __len__(self) -> int:
        return len(self._samples)


COLORS = (
    "#4ea8ff", "#ffb02e", "#4cd38a", "#ff6b6b", "#b58cff", "#2ed3d6", "#ff8fc7", "#c9d14b",
)  # fmt: skip
VOLTAGE, TEMPERATURE = "voltage [V]", "temperature [°C]"
QUANTITIES = ("position", "velocity", "effort", "error", VOLTAGE, TEMPERATURE)
"""Quantities of the plot; those of motors only if the motors report them."""
FIELDS = ("q", "v", "effort", "error", "voltage", "temperature")
"""Field of a HistorySample for each of QUANTITIES."""


def color(joint: int) -> str:
    """Return the color of a joint's curve and of its mark in the table."""
    return COLORS[joint % len(COLORS)]


class JointPlot:
    """Chart of all joints; a menu of the page selects the quantity."""

    def __init__(
        self, gui: Any, names: Sequence[str], units: Sequence[str], *, order: float
    ) -> None:
        self._gap = np.full(len(names), np.nan)
        self._labels = dict(zip(QUANTITIES, _labels(units), strict=True))
        offered = [self._labels[name] for name in QUANTITIES[:4]]
        self._choice = gui.add_dropdown(f"Last {WINDOW:g} s", offered, order=order)
        axis: dict[str, Any] = {
            "stroke": "#9aa4b2",
            "grid": {"stroke": "rgba(140,150,170,.18)", "width": 1},
        }
        series: list[dict[str, Any]] = [{"label": "s"}]
        series += [{"label": n, "stroke": color(i), "width": 1.6} for i, n in enumerate(names)]
        # A fixed range: viser scales the time axis of data wrongly on a page opened later.
        self._chart = gui.add_uplot(
            data=tuple(np.zeros(2) for _ in series), series=tuple(series), height=230,
            scales={"x": {"time": False, "range": (-WINDOW, 0.0)}},
            axes=({"show": False}, {**axis, "size": 48}), legend={"show": False},
            padding=(12, 14, 0, 0), order=order + 0.1,
        )  # fmt: skip

    def choose(self, quantity: str) -> None:
        """Select one of QUANTITIES."""
        self._choice.value = self._labels[quantity]

    def draw(self, history: History) -> None:
        """Send the curves over the time before the newest sample.

        Samples without the chosen quantity leave a gap.
        """
        samples = list(history)
        if len(samples) < 2:
            return
        last = samples[-1]
        for quantity, values in {VOLTAGE: last.voltage, TEMPERATURE: last.temperature}.items():
            label = self._labels[quantity]
            measured = values is not None and np.isfinite(values).any()
            if measured and label not in self._choice.options:
                self._choice.options = (*self._choice.options, label)
        field = FIELDS[list(self._labels.values()).index(self._choice.value)]
        rows = (getattr(sample, field) for sample in samples)
        curves = np.array([self._gap if row is None else row for row in rows])
        times = np.array([sample.time - last.time for sample in samples])
        self._chart.data = (times, *curves.T)


def _labels(units: Sequence[str]) -> tuple[str, ...]:
    """Return the labels of QUANTITIES with the units of the joints."""
    position = ", ".join(sorted({*units}, reverse=True))
    speed = ", ".join(f"{unit}/s" for unit in sorted({*units}, reverse=True))
    effort = ", ".join({"rad": "N·m", "m": "N"}[unit] for unit in sorted({*units}, reverse=True))
    texts = (f"position [{position}]", f"velocity [{speed}]", f"effort [{effort}]")
    return (*texts, f"error [{position}]", VOLTAGE, TEMPERATURE)
