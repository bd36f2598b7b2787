"""Kernels on disk: made once for an arm and its options, loaded from then on."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from threading import RLock
from typing import Any

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher

from arm_dynamics.core.code_cache import (
    cache_folder,
    guard,
    numba_keeps_in,
    require_owned,
    write_private,
)
from arm_dynamics.core.errors import ArmDynamicsError, ConfigError
from arm_dynamics.core.files import file_lock
from arm_dynamics.dynamics.bodies import bodies
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation import joint_physics as row

_LOADED: dict[Path, Any] = {}
_MAKING = RLock()
"""Held while a kernel is made or loaded: one thread makes it, the others wait for it."""
MAX_RECURSION_DEPTH = 5000
"""Python calls within calls: numba, compiling, makes two for every branch of a step."""


def fingerprint(arm: ArmModel, options: Sequence[Any]) -> str:
    """A hash of all numbers of the arm and of the options that decide a kernel's text."""
    text = repr((arm_fingerprint(arm), *options, numba.__version__, np.__version__))
    return hashlib.sha256(text.encode()).hexdigest()[:20]


@lru_cache(maxsize=16)
def arm_fingerprint(arm: ArmModel) -> str:
    """A hash of all numbers of the arm that a step or a law depends on."""
    digest = hashlib.sha256(repr((arm.joint_names, arm.act_names)).encode())
    for body in bodies(arm):
        numbers = (body.rotation, body.translation, body.mass, body.centre, body.inertia)
        digest.update(repr((body.parent, body.prismatic, body.armature)).encode())
        for number in numbers:
            digest.update(np.ascontiguousarray(number, dtype=float).tobytes())
    digest.update(row.pack_joint_table(arm.joints, arm.actuators).tobytes())
    loads = (*arm.gravity, arm.payload.mass, *arm.payload.centre, *arm.effort_limit)
    digest.update(np.array(loads, dtype=float).tobytes())
    return digest.hexdigest()


def cached_module(key: str, text: Callable[[], str], check: Callable[[Any], None]) -> Any:
    """The module stored under ``key``; else ``text()`` is stored, and loaded once ``check`` passed.

    The folder is keyed by the package's sources too. A file that is not as it was when it passed
    is made anew. Raises what ``check`` raises, and ConfigError where nothing can be written.
    """
    path = _folder() / f"kernel_{key}.py"
    with _MAKING:
        if path not in _LOADED:
            _LOADED[path] = _load(path) if _intact(path) else _made_once(path, text, check)
        return _LOADED[path]


def _made_once(path: Path, text: Callable[[], str], check: Callable[[Any], None]) -> Any:
    """By one process, while others wait for it."""
    try:
        with file_lock(path.with_suffix(".lock")):
            return _load(path) if _intact(path) else _made(path, text(), check)
    except OSError as error:
        raise ConfigError(
            f"kernel {path} cannot be written: {error}; free room there, or another folder in"
            " XDG_CACHE_HOME, is expected"
        ) from error


def _made(path: Path, text: str, check: Callable[[Any], None]) -> Any:
    try:
        write_private(path, text.encode())
        made = _load(path)
        with _deep_calls():
            check(made)
        write_private(_passed(path), _digest(path).encode())
    except ArmDynamicsError:
        path.unlink(missing_ok=True)
        raise
    return made


def _intact(path: Path) -> bool:
    """Whether the file is the one that passed, and nobody else could have written it."""
    try:
        require_owned(path)
        require_owned(_passed(path))
        return _passed(path).read_text(encoding="utf-8") == _digest(path)
    except (OSError, UnicodeDecodeError):
        return False


def _passed(path: Path) -> Path:
    return path.with_suffix(".checked")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@contextmanager
def _deep_calls() -> Iterator[None]:
    """Let Python calls nest to DEEPEST."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, MAX_RECURSION_DEPTH))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


@cache
def _folder() -> Path:
    """Where kernels lie: with the compiled laws, else for this process alone."""
    kept = cache_folder()
    folder = kept / "kernels" if kept else Path(tempfile.mkdtemp(prefix="arm_dynamics-"))
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = made  # numba's cache looks for its functions' module by name
    with numba_keeps_in(path.parent):
        spec.loader.exec_module(made)
    for function in vars(made).values():
        if isinstance(function, Dispatcher):
            guard(function, path.parent / "lock")
    return made
