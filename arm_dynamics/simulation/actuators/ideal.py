"""An actuator that gives the commanded effort, up to the joint's limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from arm_dynamics.core.arrays import check_float
from arm_dynamics.core.compiled_math import clip, compiled
from arm_dynamics.core.errors import UnknownName
from arm_dynamics.simulation.actuators.actuator import Actuator


@compiled
def ideal_effort(command: float, limit: float) -> float:
    """tau = clip(command, -limit, limit); all in N·m."""
    return clip(command, -limit, limit)


class Ideal(Actuator):
    """tau = clip(command, ±effort limit of the joint)."""

    interfaces: ClassVar[tuple[str, ...]] = ("effort",)
    kernel_id: ClassVar[int] = 1

    def effort(
        self, interface: str, value: float, q: float, v: float, act: Sequence[float] = ()
    ) -> float:
        """Effort [N·m]; raises UnknownName but for "effort", InvalidValue for no number."""
        if interface not in self.interfaces:
            raise UnknownName("interface of actuator ideal", interface, self.interfaces)
        return ideal_effort(check_float("effort command", value), self.effort_limit)

    def kernel_constants(self) -> tuple[float, ...]:
        """The effort limit [N·m]."""
        return (self.effort_limit,)
