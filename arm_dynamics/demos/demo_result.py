"""What a demonstration shows: pictures, animations and the numbers that matter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.figure import Figure

from arm_dynamics.core.arrays import Vector


@dataclass(frozen=True, slots=True, eq=False)
class DemoFigure:
    """A figure, the name of its file without the ending, and what it shows."""

    name: str
    caption: str
    figure: Figure


@dataclass(frozen=True, slots=True, eq=False)
class Animation(DemoFigure):
    """A figure that ``update(frame)`` draws anew for each of ``frames`` frames, ``rate`` [1/s]."""

    update: Callable[[int], None]
    frames: int
    rate: int


@dataclass(frozen=True, slots=True, eq=False)
class DemoResult:
    """A demonstration's title, its pictures, and rows (what, value with unit) of its table."""

    title: str
    pictures: tuple[DemoFigure, ...]
    numbers: tuple[tuple[str, str], ...]


def format_row(values: Vector) -> str:
    """Numbers (n,) with two decimals, as text; none is "-0.00"."""
    return ", ".join(f"{round(value, 2) + 0.0:.2f}" for value in values.tolist())
