"""Exports of packages that are imported at their first use.

Importing a package loads nothing else: numpy, Pinocchio and ROS 2 are loaded with the first name
that requires them, and Ctrl-C ends a program at any moment before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_exports(
    package: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package (PEP 562).

    Parameters
    ----------
    package : str
        ``__name__`` of the package.
    modules : Mapping[str, str]
        Exported name to the module that defines it, relative to ``package``
        (``".plant"``) or absolute.

    Returns
    -------
    tuple of two callables
        To be assigned to ``__getattr__`` and ``__dir__``.

    """
    namespace = vars(import_module(package))

    def get(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = namespace[name] = getattr(import_module(modules[name], package), name)
        return value

    def listing() -> list[str]:
        return sorted({*namespace, *modules})

    return get, listing
