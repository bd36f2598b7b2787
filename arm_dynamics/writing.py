"""What cannot be written is told as an error of this package."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from arm_dynamics.errors import ConfigError


@contextmanager
def writing(file: str | Path) -> Iterator[Path]:
    """The file that the body writes; an OSError there becomes a ConfigError that names it."""
    try:
        yield Path(file)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror or error}") from error
