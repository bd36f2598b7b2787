"""Style of all figures: one size, one palette, units on the axes. No window is opened.

Figures do not use pyplot, and the style applies only within ``@styled`` functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.files import output_file

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Colors that also differ for color-blind readers. Source: M. Okabe, K. Ito (2008)."""
INK, FAINT = "#222222", "#9A9A9A"
WIDTH = 8.0
"""Width of a figure [inch]."""
DPI = 140
"""Pixels per inch of a picture; text stays readable at half the size."""

STYLE: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": FAINT,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "figure.titlesize": 13,
    "figure.titleweight": "bold",
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "grid.color": "#E4E4E4",
    "grid.linewidth": 0.8,
    "legend.fontsize": 9,
    "legend.handlelength": 1.2,
    "legend.handletextpad": 0.4,
    "lines.linewidth": 1.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "arm_dynamics",
    "xtick.color": INK,
    "ytick.color": INK,
}

styled = rc_context(STYLE)
"""Decorator of functions that draw."""


@styled
def figure(
    title: str, rows: int, columns: int, height: float, **options: Any
) -> tuple[Figure, Any]:
    """Return a figure of ``rows`` by ``columns`` axes, ``height`` [inch], and their array."""
    drawn = Figure(figsize=(WIDTH, height), dpi=DPI, layout="constrained")
    FigureCanvasAgg(drawn)
    drawn.suptitle(title)
    return drawn, drawn.subplots(rows, columns, squeeze=False, **options)


@styled
def curves(axes: Axes, x: Vector, ys: Matrix, labels: Sequence[str], **options: Any) -> None:
    """Draw the columns of ``ys`` (n, m) over ``x`` (n,), each in another color, with a legend."""
    for y, name, color in zip(ys.T, labels, PALETTE, strict=False):
        axes.plot(x, y, label=name, **{"color": color, **options})
    legend(axes)


@styled
def legend(axes: Axes) -> None:
    """Draw the names of the curves in one line above the axes, at the right, clear of curves."""
    handles, names = axes.get_legend_handles_labels()
    place: Any = {"loc": "lower right", "bbox_to_anchor": (1.0, 1.0), "borderaxespad": 0.2}
    axes.legend(handles, names, ncols=len(names), frameon=False, columnspacing=1.0, **place)


def heading(axes: Axes, title: str) -> None:
    """Draw the title of a column of axes, above the legend of its first axes."""
    axes.set_title(title, fontweight="bold", pad=24)


def label(axes: Axes, x: str, y: str) -> None:
    """Draw the quantities of both axes, with units."""
    axes.set_xlabel(x)
    axes.set_ylabel(y)


def save(drawn: Figure, file: Path) -> None:
    """Write a figure; raises ConfigError for a format or path that cannot be written."""
    try:
        with output_file(file) as place:
            drawn.savefig(place)
    except ValueError as error:  # a format that matplotlib does not write
        raise ConfigError(f"figure = {file}: {error}") from error
