"""``arm-dynamics tune ARM``: controller gains by search."""

from __future__ import annotations

from collections.abc import Sequence

from arm_dynamics.cli import tune_search


def run(arguments: Sequence[str]) -> int:
    """The gain search."""
    return tune_search.run(arguments)
