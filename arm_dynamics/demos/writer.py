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
from matplotlib.animation import PillowWriter
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from PIL import Image
from rich.console import Console
from rich.table import Table

from arm_dynamics.core.figure_style import styled
from arm_dynamics.core.files import output_file, prepare_folder
from arm_dynamics.demos.demo_result import Animation, DemoFigure, DemoResult

POINT_CAPACITY = 24
"""Largest number of points of a line in the content."""
DIGITS = 9
"""Significant digits of a number in the content."""
SAMPLED_FRAMES = 5
"""Frames of an animation in the content."""
KEY = "Content"
"""Name of the digest among a PNG's texts."""

MAX_COLORS = 48
"""Colors of the palette of an animation."""
MIN_COLOR_DISTANCE = 12
"""Smallest difference of two colors of the palette in one channel, of 255."""
DPI = 100
"""Resolution of an animation [dots per inch]."""

Content = dict[str, Any]
"""Texts and decimated curves of a figure, for comparisons."""


def content(picture: DemoFigure) -> Content:
    """Return the content of a figure: caption, titles, labels and decimated curves."""
    if not isinstance(picture, Animation):
        return {"caption": picture.caption, **_figure(picture.figure)}
    moments = {}
    for frame in np.linspace(0, picture.frames - 1, SAMPLED_FRAMES).astype(int).tolist():
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
class WrittenFigures:
    """Title of a demonstration, files of its figures, and rows (quantity, value with unit)."""

    title: str
    files: tuple[Path, ...]
    key_figures: tuple[tuple[str, str], ...]


@styled
def write_figures(result: DemoResult, folder: Path) -> WrittenFigures:
    """Write each figure of ``result`` as a file in ``folder``.

    Raises
    ------
    ConfigError
        If a file cannot be written.

    """
    files = []
    for picture in result.figures:
        file, code = prepare_folder(folder) / file_name(picture), digest(content(picture))
        with output_file(file):
            if isinstance(picture, Animation):
                _save_gif(picture, file, code)
            else:
                picture.figure.savefig(file, metadata={KEY: code})
        files.append(file)
    return WrittenFigures(result.title, tuple(files), result.key_figures)


def print_results(written: WrittenFigures, folder: Path) -> None:
    """Print the table of key figures and the names of the files."""
    table = Table("quantity", "value", title=written.title, title_justify="left")
    for row in written.key_figures:
        table.add_row(*row)
    Console().print(table)
    print(f"figures in {folder.resolve()}:")
    for file in written.files:
        print(f"  {file.name}", flush=True)


def file_name(picture: DemoFigure) -> str:
    """Return the name of the figure's file."""
    return picture.name + (".gif" if isinstance(picture, Animation) else ".png")


class CompactWriter(PillowWriter):
    """Pillow writer of matplotlib with one small palette for all frames, and a comment."""

    _frames: list[Image.Image]

    def __init__(self, rate: int, comment: str) -> None:
        super().__init__(fps=rate)
        self._comment = comment

    def grab_frame(self, **_: Any) -> None:
        """Draw the figure and store its pixels as a frame."""
        canvas: Any = self.fig.canvas
        canvas.draw()
        self._frames.append(Image.fromarray(np.array(canvas.buffer_rgba())).convert("RGB"))

    def finish(self) -> None:
        """Write the frames, which repeat indefinitely.

        The palette is that of the first and the last frame, which contain every color.
        """
        first, last = self._frames[0], self._frames[-1]
        both = Image.new("RGB", (first.width, 2 * first.height))
        both.paste(first, (0, 0))
        both.paste(last, (0, first.height))
        palette = _palette(both)
        flat = [f.quantize(palette=palette, dither=Image.Dither.NONE) for f in self._frames]
        flat[0].save(
            self.outfile,
            save_all=True,
            append_images=flat[1:],
            duration=round(1000 / self.fps),
            loop=0,
            comment=self._comment,
        )


def _save_gif(animation: Animation, file: Path, comment: str) -> None:
    """Draw every frame into the GIF ``file``: flat drawings need few colors."""
    writer = CompactWriter(animation.rate, comment)
    animation.figure.set_dpi(DPI)
    with writer.saving(animation.figure, str(file), DPI):
        for frame in range(animation.frames):
            animation.update(frame)
            writer.grab_frame()


def _palette(image: Image.Image) -> Image.Image:
    """Return the most frequent colors of ``image``, at least MIN_COLOR_DISTANCE from each other.

    The distance keeps white from being replaced by a shade next to it.
    """
    counted: Any = image.getcolors(image.width * image.height)
    chosen: list[tuple[int, ...]] = []
    for _, color in sorted(counted, reverse=True):
        distances = (max(abs(a - b) for a, b in zip(color, c, strict=True)) for c in chosen)
        if len(chosen) < MAX_COLORS and not any(x < MIN_COLOR_DISTANCE for x in distances):
            chosen.append(color)
    palette = Image.new("P", (1, 1))
    palette.putpalette([value for color in chosen for value in color])
    return palette
