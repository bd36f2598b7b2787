"""The numbers and words behind a figure, so that pictures are compared by what they say.

From a show to files: pictures that carry the digest of what they say.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from rich.console import Console
from rich.table import Table

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.figure_style import styled
from arm_dynamics.core.files import output_file, prepare_folder
from arm_dynamics.demos import animation
from arm_dynamics.demos.demo_result import Animation, DemoFigure, DemoResult

POINT_CAPACITY = 24
"""Points kept of a line, about."""
DIGITS = 9
"""Significant digits kept of a number."""
MOMENTS = 5
"""Frames kept of an animation."""

Content = dict[str, Any]


def content(picture: DemoFigure) -> Content:
    """What the picture says: its caption, titles, labels and decimated curves."""
    if not isinstance(picture, Animation):
        return {"caption": picture.caption, **_figure(picture.figure)}
    moments = {}
    for frame in np.linspace(0, picture.frames - 1, MOMENTS).astype(int).tolist():
        picture.update(frame)
        moments[str(frame)] = _figure(picture.figure)
    return {"caption": picture.caption, "frames": picture.frames, "moments": moments}


def digest(said: Content) -> str:
    """SHA-256 of a content, in hexadecimal."""
    text = json.dumps(said, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _figure(figure: Figure) -> Content:
    return {"title": figure.get_suptitle(), "axes": [_axes(axes) for axes in figure.axes]}


def _axes(axes: Axes) -> Content:
    return {
        "title": axes.get_title(loc="left"),
        "x": axes.get_xlabel(),
        "y": axes.get_ylabel(),
        "texts": [text.get_text() for text in axes.texts],
        "lines": [_line(line) for line in axes.lines],
    }


def _line(line: Line2D) -> Content:
    named = str(line.get_label())
    data = getattr(line, "get_data_3d", line.get_data)()  # in space: not as seen
    points = {axis: _kept(np.asarray(d, float)) for axis, d in zip("xyz", data, strict=False)}
    return {"label": "" if named.startswith("_") else named, **points}


def _kept(values: Vector) -> list[float]:
    """About KEPT entries, the first and the last among them."""
    count = min(POINT_CAPACITY, values.size)
    chosen = values[np.linspace(0, values.size - 1, count).round().astype(int)]
    return [float(f"{value:.{DIGITS}g}") for value in chosen]


KEY = "Content"
"""Name of the digest among a PNG's texts."""


@dataclass(frozen=True, slots=True)
class Result:
    """The files of a demonstration, and the rows of its table."""

    title: str
    files: tuple[Path, ...]
    numbers: tuple[tuple[str, str], ...]


def write_figures(show: DemoResult, folder: Path) -> Result:
    """Every picture of ``show`` as a file in ``folder``; raises ConfigError when one fails."""
    files = tuple(_write(picture, prepare_folder(folder)) for picture in show.pictures)
    return Result(show.title, files, show.numbers)


def print_results(result: Result, folder: Path) -> None:
    """Print the table of numbers, and where the pictures are."""
    table = Table("figure", "value", title=result.title, title_justify="left")
    for row in result.numbers:
        table.add_row(*row)
    Console().print(table)
    print(f"pictures in {folder.resolve()}:")
    for file in result.files:
        print(f"  {file.name}", flush=True)


def file_name(picture: DemoFigure) -> str:
    """Name of the picture's file."""
    return picture.name + (".gif" if isinstance(picture, Animation) else ".png")


@styled
def _write(picture: DemoFigure, folder: Path) -> Path:
    file, mark = folder / file_name(picture), digest(content(picture))
    with output_file(file):
        if isinstance(picture, Animation):
            animation.save(picture, file, mark)
        else:
            picture.figure.savefig(file, metadata={KEY: mark})
    return file
