"""One process at a time in a room on disk; the others wait."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows
    fcntl = None  # type: ignore[assignment]


@contextmanager
def locked(path: Path) -> Iterator[None]:
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

    As ``locked``, without the wait.
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
