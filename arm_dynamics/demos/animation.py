"""Animations as compact GIF files: flat drawings need few colours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.animation import PillowWriter
from PIL import Image

from arm_dynamics.demos.demo_result import Animation

COLOURS = 48
APART = 12
"""Least difference of two colours, of 255."""
DPI = 100


class CompactWriter(PillowWriter):
    """Matplotlib's Pillow writer with one small palette for all frames, and a comment."""

    _frames: list[Image.Image]

    def __init__(self, rate: int, comment: str) -> None:
        super().__init__(fps=rate)
        self._comment = comment

    def grab_frame(self, **_: Any) -> None:
        """Draw the figure once more and keep what is seen."""
        canvas: Any = self.fig.canvas
        canvas.draw()
        self._frames.append(Image.fromarray(np.array(canvas.buffer_rgba())).convert("RGB"))

    def finish(self) -> None:
        """Write the frames; they repeat without end."""
        palette = _palette(_together(self._frames))
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
    """Draw every frame into the GIF ``file``, which carries ``comment``."""
    writer = CompactWriter(animation.rate, comment)
    animation.figure.set_dpi(DPI)
    with writer.saving(animation.figure, str(file), DPI):
        for frame in range(animation.frames):
            animation.update(frame)
            writer.grab_frame()


def _palette(image: Image.Image) -> Image.Image:
    """The most frequent colours of ``image``, APART from each other, so that white stays white."""
    counted: Any = image.getcolors(image.width * image.height)
    chosen: list[tuple[int, ...]] = []
    for _, colour in sorted(counted, reverse=True):
        near = (max(abs(a - b) for a, b in zip(colour, c, strict=True)) < APART for c in chosen)
        if len(chosen) < COLOURS and not any(near):
            chosen.append(colour)
    palette = Image.new("P", (1, 1))
    palette.putpalette([value for colour in chosen for value in colour])
    return palette


def _together(frames: list[Image.Image]) -> Image.Image:
    """First and last frame above each other: every colour is in one of them."""
    first, last = frames[0], frames[-1]
    both = Image.new("RGB", (first.width, 2 * first.height))
    both.paste(first, (0, 0))
    both.paste(last, (0, first.height))
    return both
