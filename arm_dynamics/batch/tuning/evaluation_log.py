"""Costs of a search in the order of their evaluation, from which a search is resumed.

Both optimizers are functions of a seed and of these numbers: running them over the log restores
their state exactly.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.files import replace_text

VERSION = 1
POINT_TOLERANCE = 1e-9
"""Relative difference of the sums of points above which they differ."""


class EvaluationLog:
    """Blocks (mark, sum over the points, costs), read from the front, then appended.

    The mark is the optimizer and its start.
    """

    def __init__(self, blocks: list[tuple[str, float, list[float]]] | None = None) -> None:
        self._blocks = blocks or []
        self._next = 0

    @property
    def replaying(self) -> bool:
        """Whether the next costs are in the log."""
        return self._next < len(self._blocks)

    def read(self, mark: str, points: Vector) -> Vector | None:
        """Return the logged costs of ``points`` (m, n), or None at the end of the log.

        A block with another mark ends the log: the logged search changed its optimizer earlier.
        Raises ConfigError if the logged points differ.
        """
        if not self.replaying:
            return None
        known, total, costs = self._blocks[self._next]
        if known != mark:
            del self._blocks[self._next :]
            return None
        here = float(points.sum())
        if len(costs) != len(points) or abs(here - total) > POINT_TOLERANCE * (1 + abs(total)):
            raise ConfigError(
                f"resume: sum of points = {here:.9g}; expected {total:.9g} as saved in the state,"
                " written with other versions of package or libraries; start without --resume"
            )
        self._next += 1
        return np.array(costs)

    def write(self, mark: str, points: Vector, costs: Vector) -> None:
        """Append evaluated costs."""
        self._blocks.append((mark, float(points.sum()), costs.tolist()))
        self._next += 1

    def save(self, file: Path, settings: Mapping[str, Any]) -> None:
        """Write the log and its ``settings`` atomically; raises ConfigError if that fails."""
        whole = {"version": VERSION, "settings": dict(settings), "blocks": self._blocks}
        replace_text(file, json.dumps(whole))


def load_log(file: Path, settings: Mapping[str, Any]) -> EvaluationLog:
    """Load the log of a search with the same ``settings``.

    Raises
    ------
    ConfigError
        If the file does not exist or cannot be read, or a setting differs.

    """
    try:
        whole = json.loads(file.read_text(encoding="utf-8"))
        then, version = dict(whole["settings"]), whole["version"]
        blocks = [(str(m), float(s), [float(c) for c in costs]) for m, s, costs in whole["blocks"]]
    except FileNotFoundError as error:
        raise ConfigError(
            f"resume: {file} does not exist; start without --resume, or select the folder of the"
            " search with --output"
        ) from error
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ConfigError(f"{file}: {error}; expected the state of a search") from error
    if version != VERSION:
        raise ConfigError(
            f"{file}: version = {version}; expected {VERSION}; start without --resume"
        )
    for name, value in json.loads(json.dumps(dict(settings))).items():
        if then.get(name) != value:
            raise ConfigError(
                f"resume: {name} = {value}; expected {then.get(name)} as in {file.parent}; use the"
                " same options, or start without --resume"
            )
    return EvaluationLog(blocks)
