"""The small vocabulary in which joint physics is written: one number in, one number out.

A law of a motor, a friction or a stop is a plain function of floats, marked ``@compiled``.
With numba it runs as machine code; without, as Python: same results, slower, said once.
Branches on a number go through ``where``, ``clip``, ``minimum`` and ``maximum``, so that the
same source also runs on symbols.
"""

from __future__ import annotations

import hashlib
import math
import os
import stat
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from arm_dynamics.arrays import Vector
from arm_dynamics.file_lock import locked

try:
    import numba
except ImportError:  # pragma: no cover - exercised in a process of its own
    numba = None

F = TypeVar("F", bound=Callable[..., object])
INF = float("inf")


def compiled(function: F) -> F:
    """Compile ``function`` with numba, kept on disk under a key of all laws' sources.

    Where no folder can be written, it is compiled anew in every process.
    """
    if numba is None:
        _say_slow_once()
        return function
    folder = cache_folder()
    # numba stamps a cached function with its own file only; a law called from another file
    # could change unseen. The folder is therefore keyed by every law's text.
    before, numba.config.CACHE_DIR = numba.config.CACHE_DIR, str(folder or "")
    try:
        kept = folder is not None
        # A law inside another is not worth a call: a step's laws take two thirds of the time.
        jit = numba.njit(cache=kept, error_model="numpy", forceinline=True)
        jitted: F = jit(function)
    finally:
        numba.config.CACHE_DIR = before
    if folder is not None and not numba.config.DISABLE_JIT:
        _keep_alone(jitted, folder / "lock")
    return jitted


def _keep_alone(jitted: Any, lock: Path) -> None:
    """One process at a time writes: of two at once, numba's index could name the other's code."""
    save = jitted._cache.save_overload

    def alone(*compiled_code: Any) -> None:
        with locked(lock):
            save(*compiled_code)

    jitted._cache.save_overload = alone


@cache
def cache_folder() -> Path | None:
    """The user's cache, else a private temporary folder, else None."""
    key = _sources_key()
    for root in (_user_cache, _private_temporary):
        try:
            folder = root() / key
            folder.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=folder).close()
        except (OSError, RuntimeError):  # RuntimeError: a user without a home
            continue
        return folder
    return None


def _sources_key() -> str:
    package = Path(__file__).parent
    digest = hashlib.sha256()
    rooms = ("actuators", "controllers", "integrators", "kinematics", "rollout", "safety")
    for folder in ("", *(f"{room}/" for room in rooms)):
        for source in sorted(package.glob(f"{folder}*.py")):
            digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "arm_dynamics"


def _private_temporary() -> Path:
    """A folder that nobody else can write: what lies in it is run."""
    folder = Path(tempfile.gettempdir()) / f"arm_dynamics-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()  # not through a link, which somebody else may have laid
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    if not ours or found.st_mode & 0o077:
        raise PermissionError(f"{folder} is not a private folder of this user")
    return folder


@cache
def _say_slow_once() -> None:
    warnings.warn(
        "numba is not installed: same results, slower (pip install numba)",
        RuntimeWarning,
        stacklevel=4,
    )


@compiled
def where(condition: bool, first: float, second: float) -> float:
    """``first`` if ``condition`` else ``second``."""
    return first if condition else second


@compiled
def minimum(x: float, y: float) -> float:
    """The smaller of two numbers."""
    return x if x < y else y


@compiled
def maximum(x: float, y: float) -> float:
    """The larger of two numbers."""
    return x if x > y else y


@compiled
def clip(x: float, lower: float, upper: float) -> float:
    """``x`` held within [lower, upper]."""
    return lower if x < lower else (upper if x > upper else x)


@compiled
def sign(x: float) -> float:
    """-1, 0 or 1."""
    return 1.0 if x > 0.0 else (-1.0 if x < 0.0 else 0.0)


@compiled
def exp(x: float) -> float:
    """e to the power ``x``."""
    return math.exp(x)


@compiled
def finite(x: Vector) -> bool:
    """Whether every entry (n,) is a finite number."""
    bad = 0
    for i in range(x.size):
        bad += not math.isfinite(x[i])
    return bad == 0


@compiled
def all_finite(q: Vector, v: Vector, z: Vector) -> bool:
    """Whether every entry of three vectors is a finite number."""
    return finite(q) and finite(v) and finite(z)
