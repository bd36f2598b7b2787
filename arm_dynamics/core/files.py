"""One process at a time in a room on disk; the others wait.

What cannot be written is told as an error of this package.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from arm_dynamics.core.errors import ConfigError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Hold the file ``path``, made where it is not, until the block ends or the process dies.

    Without effect where the system or the file system knows no such lock. Raises OSError where
    the file cannot be written.
    """
    with path.open("a") as file:
        if fcntl is not None:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def try_locked(path: Path, holder: str) -> Iterator[str]:
    """Hold the file ``path`` as ``holder`` until the block ends; "", or who holds it already.

    As ``file_lock``, without the wait.
    """
    with path.open("a+", encoding="utf-8") as file:
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            yield file.read().strip() or "another process"
            return
        except OSError:  # a file system without locks
            pass
        file.truncate(0)
        file.write(holder)
        file.flush()
        yield ""


@contextmanager
def output_file(file: str | Path) -> Iterator[Path]:
    """The file that the body writes; an OSError there becomes a ConfigError that names it."""
    try:
        yield Path(file)
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror or error}") from error


def prepare_folder(folder: Path) -> Path:
    """``folder``, made where it was missing; raises ConfigError when nothing can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"folder {folder} cannot be made: {error.strerror}; name another one with --output"
        ) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(f"folder {folder} is not writable; name another one with --output")
    return folder
