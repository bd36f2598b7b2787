"""Warnings of each kind at most once a second; counters keep the whole tally."""

from __future__ import annotations

import inspect
import time
from typing import Any

PERIOD = 1.0


class Throttle:
    """A listener for ``Events`` that logs without flooding."""

    def __init__(self, logger: Any) -> None:
        self._logger = logger
        self._last: dict[str, float] = {}
        # rclpy looks its caller up, for 50 ms the first time: not when the first warning comes,
        # which the loop of an arm with torque may have to give.
        inspect.getframeinfo(inspect.stack()[0].frame)

    def warn(self, kind: str, message: str) -> None:
        """Log ``message`` unless one of its kind was logged less than PERIOD ago."""
        now = time.monotonic()
        if now - self._last.get(kind, -PERIOD) >= PERIOD:
            self._last[kind] = now
            self._logger.warning(f"{kind}: {message}")
