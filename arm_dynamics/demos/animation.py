"""Write animations as compact GIF files: flat drawings need few colors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.animation import PillowWriter
from PIL import Image

from arm_dynamics.demos.demo_result import Animation

MAX_COLORS = 48
MIN_COLOR_DISTANCE = 12
"""Smallest difference of two colors of the palette in one channel, of 255."""
DPI = 100


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


def save(animation: Animation, file: Path, comment: str) -> None:
    """Draw every frame into the GIF ``file`` with a ``comment``."""
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
