"""Compiled code on disk: stored and loaded only in folders in which no other user can write.

Loaded code is executed. Numba and Python load any file in their folders, regardless of its
author. Here a folder or file that another user could have written, or a damaged file, counts as
absent.

Three things have no public interface in numba, so that ``guard`` and ``CheckedFile`` replace
private methods of its file cache. Processes that start together compile each function once: for
the first ``Plant`` of two processes this takes 19 s of processor time, 30 s without. A damaged
file, or one of another user, is compiled again; numba would raise at each start, or run it. A full
disk disables the storage; numba would raise from the call.
"""

from __future__ import annotations

import hashlib
import os
import stat
import tempfile
import uuid
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
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
    from numba.core.compiler_lock import global_compiler_lock
except ImportError:  # pragma: no cover - exercised in a separate process
    numba, IndexDataCacheFile = None, object

OTHERS = stat.S_IWGRP | stat.S_IWOTH
"""Permissions to write for all users but the owner."""
MAX_COMPILATION_TIME = 60.0
"""Time [s] after which a process no longer waits for another one, perhaps stopped, to compile."""
PACKAGE = Path(__file__).resolve().parents[1]
COMPILED_PACKAGES = (
    "core", "dynamics", "simulation", "collision", "safety", "hardware", "control", "batch",
)  # fmt: skip
"""Packages with compiled functions: their sources are the key of the folder."""


@cache
def cache_folder() -> Path | None:
    """Return the user's cache, else a private temporary folder; None without a trusted one.

    The folder is keyed by the sources of all compiled functions. If another user can write to it,
    or to a folder above, a warning is issued, and code is compiled in memory.
    """
    digest = hashlib.sha256()
    for name in COMPILED_PACKAGES:
        for source in sorted((PACKAGE / name).rglob("*.py")):
            digest.update(source.read_bytes())
    for root in (_user_cache, _private_temporary):
        try:
            folder = root() / digest.hexdigest()[:16]
            for place in reversed((folder, *folder.parents)):
                if not place.exists():
                    place.mkdir(mode=0o700, exist_ok=True)
            require_private(folder)
            tempfile.TemporaryFile(dir=folder).close()
        except UntrustedFolder as error:
            warnings.warn(str(error), RuntimeWarning, stacklevel=3)
            return None
        except (OSError, RuntimeError):  # RuntimeError: a user without a home
            continue
        return folder
    return None


def is_keyed(source: Path) -> bool:
    """Return whether the key of ``cache_folder`` contains the text of ``source``."""
    path = source.resolve()
    keyed = any(path.is_relative_to(PACKAGE / name) for name in COMPILED_PACKAGES)
    return keyed and path.is_file()  # a function typed into an interpreter has no file


class UntrustedFolder(PermissionError):
    """A folder in which another user could have written."""


def require_private(folder: Path) -> None:
    """Raise UntrustedFolder unless only this user can change the content of ``folder``.

    The folder must be this user's and closed to all others. Every folder and link on the path to
    it must belong to this user or to root. Others must not be able to write to it unless it is
    sticky: the rule of sshd's StrictModes.
    """
    user = os.getuid()
    for place in _folders_and_links(folder):
        status = place.lstat()
        last = place == folder.resolve()
        mode = 0 if stat.S_ISLNK(status.st_mode) else stat.S_IMODE(status.st_mode)
        open_to = mode & 0o077 if last else mode & OTHERS
        trusted = status.st_uid == user or (status.st_uid == 0 and not last)
        if trusted and (not open_to or (mode & stat.S_ISVTX and not last)):
            continue
        owner, me = _user_name(status.st_uid), _user_name(user)
        others = me if me == "root" else f"{me} or root"
        expected = f"owner {me}, mode 0700" if last else f"owner {others}, no others' writing"
        remedy = f"chown {me}" if not trusted else "chmod go-rwx" if last else "chmod go-w"
        raise UntrustedFolder(
            f"compiled code cache {folder}: folder {place} has owner = {owner}, mode = {mode:04o};"
            f" expected {expected}; inspect its files and run `{remedy} {place}`, or set"
            " XDG_CACHE_HOME to another folder (until then code is compiled in memory)"
        )


def _folders_and_links(path: Path) -> Iterator[Path]:
    """Yield every folder and link of ``path``, ``path`` included; links are followed."""
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


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except (AttributeError, KeyError):  # a system or a container without names
        return str(uid)


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
    """Store functions that are decorated in the block, with ``cache=True``, in ``folder``."""
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(folder or "")
    try:
        yield
    finally:
        numba.config.CACHE_DIR = before


def guard(jitted: Any, lock: Path) -> None:
    """Let numba load only what ``CheckedFile`` accepts; one process compiles a function.

    Other processes wait for it and load its code. One process at a time writes: if two did,
    numba's index could name the other's code. Code that cannot be written is compiled again in the
    next process.
    """
    function_cache, save = jitted._cache, jitted._cache.save_overload
    function_cache._cache_file.__class__ = CheckedFile
    compile_function = jitted.compile
    own_lock = Path(function_cache._cache_file._index_path).with_suffix(".lock")

    def compile_once(signature: Any) -> Any:
        with ExitStack() as locks:
            # The lock of this process first, in every thread: two locks in two orders block.
            locks.enter_context(global_compiler_lock)
            if not jitted._compiling_counter:
                with suppress(OSError):
                    locks.enter_context(file_lock(own_lock, MAX_COMPILATION_TIME))
            return compile_function(signature)

    def save_locked(*compiled_code: Any) -> None:
        try:
            with file_lock(lock):
                save(*compiled_code)
        except OSError as error:
            _warn_once(f"compiled code is not kept in {lock.parent}: {error}; free space there")

    function_cache.save_overload = save_locked
    jitted.compile = compile_once


class CheckedFile(IndexDataCacheFile):  # type: ignore[misc]
    """Numba's index and code of one function, each with its SHA-256 at the end.

    Numba unpickles both; a pickle marks its end, so that the digest does not disturb it.
    """

    def load(self, key: Any) -> Any:
        """Return the code of one signature; None if none can be loaded."""
        try:
            return super().load(key)
        except Exception as error:  # what a pickle of another version may raise
            _warn_not_loaded(self._index_path, error)
            return None

    def _load_index(self) -> Any:
        try:
            require_sound(Path(self._index_path))
            return super()._load_index()
        except FileNotFoundError:
            return {}
        except Exception as error:
            _warn_not_loaded(self._index_path, error)
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
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & OTHERS:
        raise PermissionError(
            f"owner = {_user_name(status.st_uid)}, mode = {stat.S_IMODE(status.st_mode):04o};"
            f" expected a file of {_user_name(os.getuid())} that no other user can write"
        )


def write_private(path: Path, content: bytes) -> None:
    """Write a complete file with mode 0600, or none: another process may also write it."""
    partial = path.with_name(f"{path.name}.{uuid.uuid4().hex[:16]}")
    try:
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _warn_not_loaded(path: str, error: Exception) -> None:
    cause = f"{type(error).__name__}: {error}"
    _warn_once(f"compiled code {path} is not loaded ({cause}); it is compiled again")


@cache
def _warn_once(message: str) -> None:
    warnings.warn(message, RuntimeWarning, stacklevel=2)
