"""Files and folders on disk: locks between processes, atomic writes, errors of writing."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from math import inf
from pathlib import Path

from arm_dynamics.core.errors import ConfigError

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]

POLL = 0.01
"""Time [s] between two attempts to lock a file."""


@contextmanager
def file_lock(path: Path, timeout: float = inf) -> Iterator[None]:
    """Lock the file ``path``, created if missing, until the block ends or the process dies.

    After ``timeout`` seconds the block runs without the lock. No effect if the system or the file
    system does not support locks. Raises OSError if the file cannot be written.
    """
    until = time.monotonic() + timeout
    with path.open("a") as file:
        with suppress(OSError):  # a file system without locks
            while fcntl is not None:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > until:
                        break
                    time.sleep(POLL)
        yield


@contextmanager
def try_locked(path: Path, holder: str) -> Iterator[str]:
    """Lock the file ``path`` as ``holder`` until the block ends; yield "" or the other holder.

    As ``file_lock``, without waiting.
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
    """Yield the path to write; an OSError in the block becomes a ConfigError with the path."""
    try:
        yield Path(file)
    except OSError as error:
        cause = error.strerror or error
        raise ConfigError(f"{file}: {cause}; expected a path that can be written") from error


def replace_text(file: Path, text: str) -> Path:
    """Write ``text`` to ``file`` atomically; raises ConfigError if that fails."""
    fresh = file.with_name(f".{file.name}.new")
    try:
        with output_file(file):
            fresh.write_text(text, encoding="utf-8")
            os.replace(fresh, file)
    finally:
        with suppress(OSError):  # already renamed if writing succeeded
            fresh.unlink()
    return file


@contextmanager
def results_folder(folder: Path) -> Iterator[Path]:
    """Create ``folder`` as ``prepare_folder`` does; after an exception remove it if it is empty."""
    created = [path for path in (folder, *folder.parents) if not path.exists()]
    prepare_folder(folder)
    try:
        yield folder
    except BaseException:
        with suppress(OSError):  # not empty: it contains results
            for path in created:
                path.rmdir()
        raise


def prepare_folder(folder: Path) -> Path:
    """Return ``folder``, created if missing; raises ConfigError if it cannot be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"folder {folder}: {error.strerror}; expected a folder that can be created; name"
            " another one with --output"
        ) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise ConfigError(
            f"folder {folder}: not writable; expected a writable folder; name another one with"
            " --output"
        )
    return folder
