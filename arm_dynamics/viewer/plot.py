"""What the page was shown during the last seconds, bounded in time and in number.

The joints' curves over the last seconds.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.viewer import layout

WINDOW = 10.0  # [s]
RATE = 30.0  # [1/s]


class HistorySample(NamedTuple):
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
        self._samples: deque[HistorySample] = deque(maxlen=int(WINDOW * RATE) + 1)

    def add(self, sample: HistorySample) -> None:
        """Keep ``sample``; a time that went back starts the history anew."""
        if self._samples:
            elapsed = sample.time - self._samples[-1].time
            if elapsed < 0:
                self._samples.clear()
            elif elapsed < 0.9 / RATE:
                return
        self._samples.append(sample)

    def __iter__(self) -> Iterator[HistorySample]:
        """Yield the samples within the window before the newest, oldest first."""
        samples = tuple(self._samples)  # another thread may add meanwhile
        return (s for s in samples if s.time >= samples[-1].time - WINDOW)

    def __len__(self) -> int:
        return len(self._samples)


COLORS = (
    "#4ea8ff", "#ffb02e", "#4cd38a", "#ff6b6b", "#b58cff", "#2ed3d6", "#ff8fc7", "#c9d14b",
)  # fmt: skip
VOLTAGE, TEMPERATURE = "voltage [V]", "temperature [°C]"
QUANTITIES = ("position", "velocity", "effort", "error", VOLTAGE, TEMPERATURE)
"""What can be plotted; of motors only what they report."""


def color(joint: int) -> str:
    """Return the colour of a joint's curve and of its mark in the table."""
    return COLORS[joint % len(COLORS)]


class JointPlot:
    """One chart of all joints; what it shows is chosen on the page."""

    def __init__(self, gui: Any, names: Sequence[str], units: Sequence[str]) -> None:
        self._size = len(names)
        self._labels = dict(zip(QUANTITIES, _labels(units), strict=True))
        offered = [self._labels[name] for name in QUANTITIES[:4]]
        self._choice = gui.add_dropdown("Plot", offered, order=layout.PLOT)
        axis: dict[str, Any] = {
            "stroke": "#9aa4b2",
            "grid": {"stroke": "rgba(140,150,170,.18)", "width": 1},
        }
        series: list[dict[str, Any]] = [{"label": "s"}]
        series += [{"label": n, "stroke": color(i), "width": 1.6} for i, n in enumerate(names)]
        self._chart = gui.add_uplot(
            data=tuple(np.zeros(2) for _ in series), series=tuple(series), height=230,
            scales={"x": {"time": False}}, axes=(axis, {**axis, "size": 48}),
            legend={"show": False}, padding=(12, 14, 0, 0), order=layout.PLOT + 0.1,
        )  # fmt: skip

    def choose(self, quantity: str) -> None:
        """Plot one of QUANTITIES, as a user would."""
        self._choice.value = self._labels[quantity]

    def draw(self, history: History) -> None:
        """Send the curves; samples without the chosen quantity leave a gap."""
        samples = list(history)
        if len(samples) < 2:
            return
        self._offer(samples[-1])
        pick = list(self._labels.values()).index(self._choice.value)
        values = np.array([_values(sample, pick, self._size) for sample in samples])
        times = np.array([sample.time for sample in samples])
        self._chart.data = (times, *values.T)

    def _offer(self, sample: HistorySample) -> None:
        """Offer what the motors report, once they do."""
        reported = {VOLTAGE: sample.voltage, TEMPERATURE: sample.temperature}
        for quantity, values in reported.items():
            label = self._labels[quantity]
            known = values is not None and np.isfinite(values).any()
            if known and label not in self._choice.options:
                self._choice.options = (*self._choice.options, label)


def _labels(units: Sequence[str]) -> tuple[str, ...]:
    """Labels of QUANTITIES with the units of these joints."""
    position = ", ".join(sorted({*units}, reverse=True))
    speed = ", ".join(f"{unit}/s" for unit in sorted({*units}, reverse=True))
    effort = ", ".join({"rad": "N·m", "m": "N"}[unit] for unit in sorted({*units}, reverse=True))
    texts = (f"position [{position}]", f"velocity [{speed}]", f"effort [{effort}]")
    return (*texts, f"error [{position}]", VOLTAGE, TEMPERATURE)


def _values(sample: HistorySample, pick: int, size: int) -> Vector:
    error = None if sample.reference is None else sample.reference - sample.q
    every = (sample.q, sample.v, sample.effort, error, sample.voltage, sample.temperature)
    value = every[pick]
    return np.full(size, np.nan) if value is None else value
