"""Kernels on disk: made once for an arm and its options, loaded from then on."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numba
import numpy as np

from arm_dynamics import joint_physics as row
from arm_dynamics.errors import ArmDynamicsError
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.rollout.bodies import bodies
from arm_dynamics.scalar import cache_folder

DEEPEST = 5000
"""Python calls within calls: numba, compiling, makes two for every branch of a step."""


def fingerprint(arm: ArmModel, options: Sequence[Any]) -> str:
    """A hash of all numbers of the arm and of the options that decide a kernel's text."""
    text = repr((numbers_of(arm), *options, numba.__version__, np.__version__))
    return hashlib.sha256(text.encode()).hexdigest()[:20]


@lru_cache(maxsize=16)
def numbers_of(arm: ArmModel) -> str:
    """A hash of all numbers of the arm that a step or a law depends on."""
    digest = hashlib.sha256(repr((arm.joint_names, arm.act_names)).encode())
    for body in bodies(arm):
        numbers = (body.rotation, body.translation, body.mass, body.centre, body.inertia)
        digest.update(repr((body.parent, body.prismatic, body.armature)).encode())
        for number in numbers:
            digest.update(np.ascontiguousarray(number, dtype=float).tobytes())
    digest.update(row.pack(arm.joints, arm.actuators).tobytes())
    loads = (*arm.gravity, arm.payload.mass, *arm.payload.centre, *arm.effort_limit)
    digest.update(np.array(loads, dtype=float).tobytes())
    return digest.hexdigest()


def module(key: str, text: Callable[[], str], check: Callable[[Any], None]) -> Any:
    """The module stored under ``key``; else ``text()`` is stored, and loaded once ``check`` passed.

    The folder is keyed by the package's sources too. Raises what ``check`` raises.
    """
    path = _folder() / f"kernel_{key}.py"
    passed = path.with_suffix(".checked")
    if not path.is_file():
        partial = path.with_suffix(f".{os.getpid()}")
        partial.write_text(text(), encoding="utf-8")
        partial.replace(path)  # whole or not at all: another process may make it too
    made = _load(path)
    if not passed.exists():
        try:
            with _deep_calls():
                check(made)
        except ArmDynamicsError:
            path.unlink(missing_ok=True)
            raise
        passed.touch()
    return made


@contextmanager
def _deep_calls() -> Iterator[None]:
    """Let Python calls nest to DEEPEST."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, DEEPEST))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


@cache
def _folder() -> Path:
    """Where kernels lie: with the compiled laws, else for this process alone."""
    kept = cache_folder()
    folder = kept / "kernels" if kept else Path(tempfile.mkdtemp(prefix="arm_dynamics-"))
    folder.mkdir(exist_ok=True)
    return folder


@cache
def _load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = made  # numba's cache looks for its functions' module by name
    spec.loader.exec_module(made)
    return made
