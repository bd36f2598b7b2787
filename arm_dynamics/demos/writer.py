"""Write the figures of a demonstration; each file contains a digest of its content.

The content of a figure is its texts and decimated curves, so that figures can be compared.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from rich.console import Console
from rich.table import Table

from arm_dynamics.core.figure_style import styled
from arm_dynamics.core.files import output_file, prepare_folder
from arm_dynamics.demos import animation
from arm_dynamics.demos.demo_result import Animation, DemoFigure, DemoResult

POINT_CAPACITY = 24
"""Largest number of points of a line in the content."""
DIGITS = 9
"""Significant digits of a number in the content."""
MOMENTS = 5
"""Frames of an animation in the content."""
KEY = "Content"
"""Name of the digest among a PNG's texts."""

Content = dict[str, Any]


def content(picture: DemoFigure) -> Content:
    """Return the content of a figure: caption, titles, labels and decimated curves."""
    if not isinstance(picture, Animation):
        return {"caption": picture.caption, **_figure(picture.figure)}
    moments = {}
    for frame in np.linspace(0, picture.frames - 1, MOMENTS).astype(int).tolist():
        picture.update(frame)
        moments[str(frame)] = _figure(picture.figure)
    return {"caption": picture.caption, "frames": picture.frames, "moments": moments}


def digest(figure_content: Content) -> str:
    """Return the SHA-256 digest of a content, in hexadecimal."""
    text = json.dumps(figure_content, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _figure(figure: Figure) -> Content:
    parts = [
        {
            "title": axes.get_title(loc="left"),
            "x": axes.get_xlabel(),
            "y": axes.get_ylabel(),
            "texts": [text.get_text() for text in axes.texts],
            "lines": [_line(line) for line in axes.lines],
        }
        for axes in figure.axes
    ]
    return {"title": figure.get_suptitle(), "axes": parts}


def _line(line: Line2D) -> Content:
    """Return the label and up to POINT_CAPACITY points, with the first and the last."""
    name, points = str(line.get_label()), {}
    data = getattr(line, "get_data_3d", line.get_data)()  # 3D, not as projected
    for axis, coordinates in zip("xyz", data, strict=False):
        values = np.asarray(coordinates, float)
        count = min(POINT_CAPACITY, values.size)
        chosen = values[np.linspace(0, values.size - 1, count).round().astype(int)]
        points[axis] = [float(f"{value:.{DIGITS}g}") for value in chosen]
    return {"label": "" if name.startswith("_") else name, **points}


@dataclass(frozen=True, slots=True)
class Result:
    """Files of a demonstration and rows (quantity, value with unit) of its table."""

    title: str
    files: tuple[Path, ...]
    numbers: tuple[tuple[str, str], ...]


def write_figures(show: DemoResult, folder: Path) -> Result:
    """Write each figure of ``show`` as a file in ``folder``.

    Raises
    ------
    ConfigError
        If a file cannot be written.

    """
    files = tuple(_write(picture, prepare_folder(folder)) for picture in show.pictures)
    return Result(show.title, files, show.numbers)


def print_results(result: Result, folder: Path) -> None:
    """Print the table of key figures and the names of the files."""
    table = Table("quantity", "value", title=result.title, title_justify="left")
    for row in result.numbers:
        table.add_row(*row)
    Console().print(table)
    print(f"figures in {folder.resolve()}:")
    for file in result.files:
        print(f"  {file.name}", flush=True)


def file_name(picture: DemoFigure) -> str:
    """Return the name of the figure's file."""
    return picture.name + (".gif" if isinstance(picture, Animation) else ".png")


@styled
def _write(picture: DemoFigure, folder: Path) -> Path:
    file, code = folder / file_name(picture), digest(content(picture))
    with output_file(file):
        if isinstance(picture, Animation):
            animation.save(picture, file, code)
        else:
            picture.figure.savefig(file, metadata={KEY: code})
    return file
