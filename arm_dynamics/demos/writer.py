"""From a show to files: pictures that carry the digest of what they say."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from arm_dynamics.demos import animation
from arm_dynamics.demos.content import content, digest
from arm_dynamics.demos.show import Animation, Picture, Show
from arm_dynamics.demos.style import styled
from arm_dynamics.errors import ConfigError
from arm_dynamics.writing import writing

KEY = "Content"
"""Name of the digest among a PNG's texts."""


@dataclass(frozen=True, slots=True)
class Result:
    """The files of a demonstration, and the rows of its table."""

    title: str
    files: tuple[Path, ...]
    numbers: tuple[tuple[str, str], ...]


def prepare(folder: Path) -> Path:
    """``folder``, made where it was missing; raises ConfigError when nothing can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"folder {folder} cannot be made: {error.strerror}; name another one with --out"
        ) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"folder {folder} is not writable; name another one with --out")
    return folder


def write(show: Show, folder: Path) -> Result:
    """Every picture of ``show`` as a file in ``folder``; raises ConfigError when one fails."""
    files = tuple(_write(picture, prepare(folder)) for picture in show.pictures)
    return Result(show.title, files, show.numbers)


def report(result: Result, folder: Path) -> None:
    """Print the table of numbers, and where the pictures are."""
    table = Table("figure", "value", title=result.title, title_justify="left")
    for row in result.numbers:
        table.add_row(*row)
    Console().print(table)
    print(f"pictures in {folder.resolve()}:")
    for file in result.files:
        print(f"  {file.name}", flush=True)


def file_name(picture: Picture) -> str:
    """Name of the picture's file."""
    return picture.name + (".gif" if isinstance(picture, Animation) else ".png")


@styled
def _write(picture: Picture, folder: Path) -> Path:
    file, mark = folder / file_name(picture), digest(content(picture))
    with writing(file):
        if isinstance(picture, Animation):
            animation.save(picture, file, mark)
        else:
            picture.figure.savefig(file, metadata={KEY: mark})
    return file
