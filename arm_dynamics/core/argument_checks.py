"""Checks of arguments that are values of this package, or names."""

from __future__ import annotations

from collections.abc import Iterable
from reprlib import repr as short
from typing import TypeVar

from arm_dynamics.core.errors import InvalidValue

T = TypeVar("T")


def check_type(kind: type[T], name: str, value: object, instead: str = "") -> T:
    """Return ``value`` when it is of ``kind``.

    Raises InvalidValue with ``name`` and the value; ``instead`` is the remedy.
    """
    if isinstance(value, kind):
        return value
    article = "an" if kind.__name__[0] in "AEIOU" else "a"
    hint = f"; {instead}" if instead else ""
    raise InvalidValue(f"{name} = {short(value)}: {article} {kind.__name__} is expected{hint}")


def check_names(name: str, value: Iterable[str]) -> tuple[str, ...]:
    """Return ``value`` as a tuple of texts.

    Raises InvalidValue for anything but a list of texts, and for a single text.
    """
    found = None if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
    if found is None or not all(isinstance(entry, str) for entry in found):
        raise InvalidValue(f"{name} = {short(value)}: a list of names is expected")
    return found
