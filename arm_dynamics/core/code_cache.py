"""Compiled code on disk: stored and loaded only where no other user can write.

Loaded code is executed. Numba and Python load any file in their folders, regardless of its
author; here a folder or a file that another user could have written, or a damaged one, counts as
absent.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

from arm_dynamics.core.files import file_lock

try:
    import pwd
except ImportError:  # pragma: no cover - Windows
    pwd = None  # type: ignore[assignment]
try:
    import numba
    from numba.core.caching import IndexDataCacheFile
except ImportError:  # pragma: no cover - exercised in a separate process
    numba, IndexDataCacheFile = None, object

OTHERS = stat.S_IWGRP | stat.S_IWOTH
"""Permissions to write for anyone but the owner."""


@cache
def cache_folder() -> Path | None:
    """Return the user's cache, else a private temporary folder; None without a trusted one.

    The folder is keyed by the sources of all compiled functions. Where someone else can write to
    it, or to a folder above, a warning says so, and code is compiled in memory.
    """
    key = _sources_key()
    for root in (_user_cache, _private_temporary):
        try:
            folder = root() / key
            _make_private(folder)
            require_private(folder)
            tempfile.TemporaryFile(dir=folder).close()
        except UntrustedFolder as error:
            warnings.warn(str(error), RuntimeWarning, stacklevel=3)
            return None
        except (OSError, RuntimeError):  # RuntimeError: a user without a home
            continue
        return folder
    return None


class UntrustedFolder(PermissionError):
    """A folder in which another user could have written."""


def require_private(folder: Path) -> None:
    """Raise UntrustedFolder unless this user alone can change what lies in ``folder``.

    The folder must be this user's and closed to all others. Every folder and link on the path to
    it must belong to this user or to root, and be closed to others' writing or sticky, as sshd's
    StrictModes has it.
    """
    user = os.getuid()
    for place in _passed_on_the_way(folder):
        found = place.lstat()
        last = place == folder.resolve()
        mode = 0 if stat.S_ISLNK(found.st_mode) else stat.S_IMODE(found.st_mode)
        open_to = mode & 0o077 if last else mode & OTHERS
        trusted = found.st_uid == user or (found.st_uid == 0 and not last)
        if trusted and (not open_to or (mode & stat.S_ISVTX and not last)):
            continue
        owner, me = _name(found.st_uid), _name(user)
        others = me if me == "root" else f"{me} or root"
        expected = f"owner {me}, mode 0700" if last else f"owner {others}, no others' writing"
        remedy = f"chown {me}" if not trusted else "chmod go-rwx" if last else "chmod go-w"
        raise UntrustedFolder(
            f"compiled code cache {folder}: folder {place} has owner = {owner}, mode = {mode:04o};"
            f" expected {expected}; run `{remedy} {place}` after a look at what lies there, or set"
            " XDG_CACHE_HOME to another folder (until then code is compiled in memory)"
        )


def _passed_on_the_way(path: Path) -> Iterator[Path]:
    """Yield every folder and link of ``path``, itself included; links are followed."""
    path.resolve(strict=True)  # raises for links that lead in a circle
    at, left = Path("/"), list(reversed(path.absolute().parts[1:]))
    yield at
    while left:
        part = left.pop()
        at = at.parent if part == ".." else at / part
        yield at
        if at.is_symlink():
            target = at.readlink()
            at = Path("/") if target.is_absolute() else at.parent
            left += reversed(target.parts[1:] if target.is_absolute() else target.parts)


def _name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except (AttributeError, KeyError):  # a system or a container without names
        return str(uid)


def _make_private(folder: Path) -> None:
    """Make a folder and those above it, as far as they are missing, with mode 0700."""
    for place in reversed((folder, *folder.parents)):
        if not place.exists():
            place.mkdir(mode=0o700, exist_ok=True)


def _sources_key() -> str:
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for folder in ("core", "dynamics", "safety", "simulation", "hardware", "control", "batch"):
        for source in sorted((package / folder).rglob("*.py")):
            digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _user_cache() -> Path:
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (given if given.is_absolute() else Path.home() / ".cache") / "arm_dynamics"


def _private_temporary() -> Path:
    folder = Path(tempfile.gettempdir()) / f"arm_dynamics-{os.getuid()}"
    if folder.is_symlink():  # another user may have created it
        raise PermissionError(f"{folder} is a link")
    return folder


@contextmanager
def numba_keeps_in(folder: Path | None) -> Iterator[None]:
    """Have functions that are decorated here, with ``cache=True``, kept in ``folder``."""
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(folder or "")
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


def guard(jitted: Any, lock: Path) -> None:
    """Have numba load what ``CheckedFile`` accepts alone, and one process at a time write.

    Of two that write at once, numba's index could name the other's code. What cannot be written
    is compiled again in the next process.
    """
    kept, save = jitted._cache, jitted._cache.save_overload
    kept._cache_file.__class__ = CheckedFile

    def alone(*compiled_code: Any) -> None:
        try:
            with file_lock(lock):
                save(*compiled_code)
        except OSError as error:
            _warn_once(f"compiled code is not kept in {lock.parent}: {error}; free space there")

    kept.save_overload = alone


class CheckedFile(IndexDataCacheFile):  # type: ignore[misc]
    """Numba's index and code of one function, each with its SHA-256 at the end.

    Numba unpickles both; a pickle marks its end, so that the digest does not disturb it.
    """

    def load(self, key: Any) -> Any:
        """Return the code of one signature; None if none can be loaded."""
        try:
            return super().load(key)
        except Exception as error:  # what a pickle of another version may raise
            _say_absent(self._index_path, error)
            return None

    def _load_index(self) -> Any:
        try:
            require_sound(Path(self._index_path))
            return super()._load_index()
        except FileNotFoundError:
            return {}
        except Exception as error:
            _say_absent(self._index_path, error)
            return {}

    def _load_data(self, name: str) -> Any:
        require_sound(Path(self._data_path(name)))
        return super()._load_data(name)

    @contextmanager
    def _open_for_write(self, filepath: str) -> Iterator[BytesIO]:
        with BytesIO() as content:
            yield content
            write_private(Path(filepath), sealed(content.getvalue()))


def sealed(content: bytes) -> bytes:
    """Return the content with its digest behind it."""
    return content + hashlib.sha256(content).digest()


def require_sound(path: Path) -> None:
    """Raise ValueError for a file that is not as it was written; errors as ``require_owned``."""
    require_owned(path)
    whole = path.read_bytes()
    if sealed(whole[:-32]) != whole:
        raise ValueError("its content is not what was written")


def require_owned(path: Path) -> None:
    """Raise PermissionError for a file that this user does not own or that others can write."""
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & OTHERS:
        raise PermissionError(
            f"owner = {_name(found.st_uid)}, mode = {stat.S_IMODE(found.st_mode):04o}; expected a"
            f" file of {_name(os.getuid())} that nobody else can write"
        )


def write_private(path: Path, content: bytes) -> None:
    """Write a file with mode 0600, whole or not at all: another process may write it too."""
    partial = path.with_name(f"{path.name}.{uuid.uuid4().hex[:16]}")
    try:
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _say_absent(path: str, error: Exception) -> None:
    said = f"{type(error).__name__}: {error}"
    _warn_once(f"compiled code {path} is not loaded ({said}); it is compiled again")


@cache
def _warn_once(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=2)
