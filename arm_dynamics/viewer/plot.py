"""History of the states on the page, and plots of the joints over the last seconds."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.viewer.skeleton import Link, tip

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
    signals: Mapping[str, Vector] = MappingProxyType({})
    """Further signals (n,) by name."""

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
QUANTITIES = ("position", "velocity", "effort", "error", "reference", VOLTAGE, TEMPERATURE)
"""Quantities of the plot; those that are not always known only once they are reported."""
FIELDS = ("q", "v", "effort", "error", "reference", "voltage", "temperature")
"""Field of a HistorySample for each of QUANTITIES."""
ALWAYS = 4
"""Number of QUANTITIES that are always offered."""
TOOL = "tool x, y, z [m]"
"""Position of the tool in the base frame, in the colors of the first three joints."""
ALL = "all joints"
CHART: dict[str, Any] = {
    # A fixed range: viser scales the time axis of data wrongly on a page opened later.
    "scales": {"x": {"time": False, "range": (-WINDOW, 0.0)}},
    "axes": (
        {"show": False},
        {
            "stroke": "#8a94a2",
            "grid": {"stroke": "rgba(140,150,170,.18)", "width": 1},
            "size": 48,
        },
    ),
    "legend": {"show": False},
    "padding": (12, 14, 0, 0),
    "height": 230,
}
"""Appearance of the chart. A drag zooms into a time range, a double click shows all of it."""


def color(joint: int) -> str:
    """Return the color of a joint's curve and of its mark in the table."""
    return COLORS[joint % len(COLORS)]


class JointPlot:
    """Chart of a quantity over the last seconds; menus of the page select quantity and joint."""

    def __init__(
        self,
        gui: Any,
        names: Sequence[str],
        units: Sequence[str],
        chain: tuple[Link, ...] = (),
        *,
        order: float,
    ) -> None:
        self._names, self._chain = tuple(names), chain
        self._gap = np.full(len(names), np.nan)
        self._labels = dict(zip(QUANTITIES, _labels(units), strict=True))
        offered = [self._labels[name] for name in QUANTITIES[:ALWAYS]]
        self._choice = gui.add_dropdown(f"Last {WINDOW:g} s", (*offered, TOOL), order=order)
        self._joint = gui.add_dropdown("Joint", (ALL, *names), order=order + 0.1)
        colors = max(len(names), 3)
        series: list[dict[str, Any]] = [{"label": "s"}]
        series += [{"label": f"{i}", "stroke": color(i), "width": 1.6} for i in range(colors)]
        self._chart = gui.add_uplot(
            data=tuple(np.zeros(2) for _ in series),
            series=tuple(series),
            order=order + 0.2,
            **CHART,
        )
        self._row = gui.add_button_group("Plot", (PAUSE_PLOT, EXPORT), order=order + 0.3)
        self._row.on_click(self._pressed)
        self._shown: tuple[HistorySample, ...] = ()
        self._paused = False

    def choose(self, quantity: str) -> None:
        """Select one of QUANTITIES or TOOL."""
        self._choice.value = self._labels.get(quantity, quantity)

    def draw(self, history: History) -> None:
        """Send the curves over the time before the newest sample, unless the plot is paused.

        Samples without the chosen quantity leave a gap.
        """
        if not self._paused:
            self._shown = tuple(history)
        samples = self._shown
        if len(samples) < 2:
            return
        last = samples[-1]
        for quantity, field in zip(QUANTITIES[ALWAYS:], FIELDS[ALWAYS:], strict=True):
            self._offer(self._labels[quantity], getattr(last, field))
        for name, values in last.signals.items():
            self._offer(name, values)
        curves = np.array([self._values(sample) for sample in samples])
        if self._joint.value in self._names and self._choice.value != TOOL:
            hidden = np.arange(len(self._names)) != self._names.index(self._joint.value)
            curves[:, hidden] = np.nan
        times = np.array([sample.time - last.time for sample in samples])
        empty = np.full((len(samples), len(self._chart.data) - 1 - curves.shape[1]), np.nan)
        self._chart.data = (times, *curves.T, *empty.T)

    def csv(self) -> str:
        """Return all quantities of the plotted time as CSV, one row per sample."""
        samples = self._shown
        columns: dict[str, Sequence[Vector | None]] = {
            name: [getattr(s, field) for s in samples]
            for name, field in zip(QUANTITIES, FIELDS, strict=True)
        }
        columns |= {
            name: [s.signals.get(name) for s in samples]
            for name in dict.fromkeys(name for s in samples for name in s.signals)
        }
        known = {n: rows for n, rows in columns.items() if any(row is not None for row in rows)}
        heads = ["time [s]", *(f"{n}.{joint}" for n in known for joint in self._names)]
        lines = [",".join([*heads, *(f"tool.{axis} [m]" for axis in "xyz")])]
        for i, sample in enumerate(samples):
            rows = (self._gap if rows[i] is None else rows[i] for rows in known.values())
            numbers = [x for row in rows if row is not None for x in row.tolist()]
            tool = tip(self._chain, sample.q.tolist())
            lines.append(",".join(map(repr, [sample.time, *numbers, *tool])))
        return "\n".join(lines) + "\n"

    def _offer(self, label: str, values: Vector | None) -> None:
        measured = values is not None and np.isfinite(values).any()
        if measured and label not in self._choice.options:
            self._choice.options = (*self._choice.options, label)

    def _values(self, sample: HistorySample) -> Vector:
        """Return the chosen quantity of a sample; NaN if it is not known."""
        label = self._choice.value
        if label == TOOL:
            return np.array(tip(self._chain, sample.q.tolist()))
        labels = list(self._labels.values())
        if label in labels:
            row = getattr(sample, FIELDS[labels.index(label)])
        else:
            row = sample.signals.get(label)
        return self._gap if row is None else row

    def _pressed(self, event: Any) -> None:
        name = event.target.value
        if name != EXPORT:
            self._paused = name == PAUSE_PLOT
            self._row.options = (CONTINUE_PLOT if self._paused else PAUSE_PLOT, EXPORT)
        elif event.client is not None:
            event.client.send_file_download("arm.csv", self.csv().encode(), save_immediately=True)


PAUSE_PLOT, CONTINUE_PLOT, EXPORT = "Pause plot", "Continue plot", "Export CSV"


def _labels(units: Sequence[str]) -> tuple[str, ...]:
    """Return the labels of QUANTITIES with the units of the joints."""
    position = ", ".join(sorted({*units}, reverse=True))
    speed = ", ".join(f"{unit}/s" for unit in sorted({*units}, reverse=True))
    effort = ", ".join({"rad": "N·m", "m": "N"}[unit] for unit in sorted({*units}, reverse=True))
    texts = (f"position [{position}]", f"velocity [{speed}]", f"effort [{effort}]")
    return (*texts, f"error [{position}]", f"reference [{position}]", VOLTAGE, TEMPERATURE)
