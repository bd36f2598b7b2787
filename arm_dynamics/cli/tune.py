"""``arm-dynamics tune ARM``: controller gains by search, or the published search again."""

from __future__ import annotations

from collections.abc import Sequence

from arm_dynamics.cli import tune_published, tune_search

COMPATIBILITY = "--compatibility"


def run(arguments: Sequence[str]) -> int:
    """The published search where a compatibility is named, else the gain search."""
    published = any(one.split("=")[0] == COMPATIBILITY for one in arguments)
    return tune_published.run(arguments) if published else tune_search.run(arguments)
