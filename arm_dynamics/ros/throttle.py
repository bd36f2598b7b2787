"""The throttled listener for rclpy's loggers."""

from __future__ import annotations

import inspect
from typing import Any

from arm_dynamics.safety import events


class Throttle(events.Throttle):
    """A listener for ``Events`` that is fast from its first warning on."""

    def __init__(self, logger: Any) -> None:
        super().__init__(logger)
        # rclpy looks its caller up, for 50 ms the first time: not when the first warning comes,
        # which the loop of an arm with torque may have to give.
        inspect.getframeinfo(inspect.stack()[0].frame)
