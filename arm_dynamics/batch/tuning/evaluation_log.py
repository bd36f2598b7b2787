"""The costs of a search in the order in which they were asked for: all that resuming needs.

Both optimisers are functions of a seed and of these numbers; running them again over the tape
brings them to where they were, exactly.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from arm_dynamics.batch.tuning.parameter_file import replace_text
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import ConfigError

VERSION = 1
POINT_TOLERANCE = 1e-9
"""Relative difference of a sum over points above which they are other points."""


class EvaluationLog:
    """Blocks (mark, sum over the points, costs); read from the front, then written to.

    mark says which optimiser asked, and what it started from.
    """

    def __init__(self, blocks: list[tuple[str, float, list[float]]] | None = None) -> None:
        self._blocks = blocks or []
        self._next = 0

    @property
    def replaying(self) -> bool:
        """Whether the next costs are known already."""
        return self._next < len(self._blocks)

    def read(self, mark: str, points: Vector) -> Vector | None:
        """The known costs of ``points`` (m, n), or None where the tape ends.

        A block with another mark ends the tape there: what follows belonged to a search that
        changed over earlier. Raises ConfigError for other points than were asked about.
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
                "the state was written by a search that goes another way (another version of this"
                " package or its libraries): start anew without --resume"
            )
        self._next += 1
        return np.array(costs)

    def write(self, mark: str, points: Vector, costs: Vector) -> None:
        """Append what was just found."""
        self._blocks.append((mark, float(points.sum()), costs.tolist()))
        self._next += 1

    def save(self, file: Path, settings: Mapping[str, Any]) -> None:
        """Write the tape and the ``settings`` that it holds for, whole or not at all.

        Raises ConfigError when the file cannot be written.
        """
        whole = {"version": VERSION, "settings": dict(settings), "blocks": self._blocks}
        replace_text(file, json.dumps(whole))


def load_log(file: Path, settings: Mapping[str, Any]) -> EvaluationLog:
    """The tape of a search with the same ``settings``.

    Raises ConfigError when there is none, it cannot be read, or a setting differs (by name).
    """
    try:
        whole = json.loads(file.read_text(encoding="utf-8"))
        then, version = dict(whole["settings"]), whole["version"]
        blocks = [(str(m), float(s), [float(c) for c in costs]) for m, s, costs in whole["blocks"]]
    except FileNotFoundError as error:
        raise ConfigError(
            f"nothing to resume: {file} does not exist; start without --resume, or name the"
            " folder of the search with --out"
        ) from error
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise ConfigError(f"{file} is not the state of a search: {error}") from error
    if version != VERSION:
        raise ConfigError(f"{file}: version {version}, {VERSION} expected: start anew")
    for name, value in json.loads(json.dumps(dict(settings))).items():
        if then.get(name) != value:
            raise ConfigError(
                f"resume: {name} = {value}, the search in {file.parent} has {then.get(name)}:"
                " give the same options, or start without --resume"
            )
    return EvaluationLog(blocks)
