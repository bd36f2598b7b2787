"""How fast a tool is moved, and how long a word of a stream holds, as live parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rclpy.node import Node

from arm_dynamics.parameters import Parameter
from arm_dynamics.ros.parameters import declare_number
from arm_dynamics.trajectories.tool_paths import ToolLimits

LIMITS = (
    Parameter("speed", 0.25, "m/s", "of the tool", lower=1e-6, upper=100),
    Parameter("acceleration", 1.0, "m/s²", "of the tool", lower=1e-6, upper=1e4),
    Parameter("turning", 1.0, "rad/s", "of the tool", lower=1e-6, upper=1e3),
    Parameter("turning_acceleration", 4.0, "rad/s²", "of the tool", lower=1e-6, upper=1e5),
)
TIMEOUT = Parameter("timeout", 0.25, "s", "a twist or wrench holds this long", above=0, upper=10)


class ToolMotionParameters:
    """The limits and the timeout in force."""

    def __init__(self, node: Node) -> None:
        self._values = {
            spec.name: declare_number(node, spec.name, spec, spec.default or 0.0)
            for spec in (*LIMITS, TIMEOUT)
        }

    @property
    def limits(self) -> ToolLimits:
        """For the next motion."""
        return ToolLimits(**{spec.name: self._values[spec.name] for spec in LIMITS})

    @property
    def timeout(self) -> float:
        """Time [s] of states after which a twist or wrench counts no longer."""
        return self._values[TIMEOUT.name]

    def changed(self, values: Mapping[str, Any]) -> dict[str, float]:
        """Those of ``values`` that are among these; raises InvalidValue for one out of range."""
        specs = [spec for spec in (*LIMITS, TIMEOUT) if spec.name in values]
        return {spec.name: spec.check("tool", values[spec.name]) for spec in specs}

    def take(self, changed: Mapping[str, float]) -> None:
        """Put them in force."""
        self._values |= changed
