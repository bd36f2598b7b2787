"""Folders of the package's URDFs, parameter files and RViz configurations."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from arm_dynamics.core.errors import UnknownName


def resource_folder(kind: str) -> Path:
    """Return the folder of ``kind`` ("urdf", "config", "launch"); UnknownName if missing."""
    for parent in _resource_parents():
        if (parent / kind).is_dir():
            return parent / kind
    raise UnknownName("resource folder", kind, tuple(str(p) for p in _resource_parents()))


def resource_names(kind: str, suffix: str) -> tuple[str, ...]:
    """Return the names, without ``suffix``, of the files of ``kind``."""
    return tuple(
        sorted(p.name.removesuffix(suffix) for p in resource_folder(kind).glob(f"*{suffix}"))
    )


def _resource_parents() -> Iterator[Path]:
    package = Path(__file__).resolve().parents[1]
    if (package.parent / "resource" / "arm_dynamics").is_file():
        yield package.parent  # the source tree
    for above in package.parents:  # <prefix>/lib/python3.x/site-packages/arm_dynamics
        yield above / "share/arm_dynamics"
    for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
        if prefix:
            yield Path(prefix) / "share/arm_dynamics"
    yield Path(sys.prefix) / "share/arm_dynamics"
