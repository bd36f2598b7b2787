"""Result of a demonstration: figures, animations and key figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.figure import Figure

from arm_dynamics.core.arrays import Vector


@dataclass(frozen=True, slots=True, eq=False)
class DemoFigure:
    """A figure, the name of its file without the suffix, and its caption."""

    name: str
    caption: str
    figure: Figure


@dataclass(frozen=True, slots=True, eq=False)
class Animation(DemoFigure):
    """A figure that ``update(frame)`` redraws for each of ``frames`` frames, at ``rate`` [1/s]."""

    update: Callable[[int], None]
    frames: int
    rate: int


@dataclass(frozen=True, slots=True, eq=False)
class DemoResult:
    """Title, figures and table rows (quantity, value with unit) of a demonstration."""

    title: str
    figures: tuple[DemoFigure, ...]
    key_figures: tuple[tuple[str, str], ...]


def format_row(values: Vector) -> str:
    """Return the numbers (n,) with two decimals as text; zero has no sign."""
    return ", ".join(f"{round(value, 2) + 0.0:.2f}" for value in values.tolist())
