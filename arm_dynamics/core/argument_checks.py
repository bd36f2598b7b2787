"""Checks of the types of arguments: values of this package, and names."""

from __future__ import annotations

from collections.abc import Iterable
from reprlib import repr as short
from typing import TypeVar

from arm_dynamics.core.errors import InvalidValue

T = TypeVar("T")


def check_type(kind: type[T], name: str, value: object, instead: str = "") -> T:
    """Return ``value`` if it is of ``kind``.

    Raises InvalidValue with ``name`` and the value; ``instead`` is the remedy.
    """
    if isinstance(value, kind):
        return value
    article = "an" if kind.__name__[0] in "AEIOU" else "a"
    remedy = f"; {instead}" if instead else ""
    raise InvalidValue(f"{name} = {short(value)}; expected {article} {kind.__name__}{remedy}")


def check_names(name: str, value: Iterable[str]) -> tuple[str, ...]:
    """Return ``value`` as a tuple of texts.

    Raises InvalidValue for a value other than a list of texts, for example a single text.
    """
    names = None if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
    if names is None or not all(isinstance(entry, str) for entry in names):
        raise InvalidValue(f"{name} = {short(value)}; expected a list of names")
    return names
