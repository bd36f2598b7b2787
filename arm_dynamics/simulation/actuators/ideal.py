"""Ideal actuator: the commanded effort within the effort limit of the joint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from arm_dynamics.core.arrays import check_float
from arm_dynamics.core.compiled_math import clip, compiled
from arm_dynamics.core.errors import UnknownName
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.simulation.actuators.actuator import Actuator


@compiled
def ideal_effort(command: float, limit: float) -> float:
    """Return clip(command, -limit, limit); all in N·m."""
    return clip(command, -limit, limit)


class Ideal(Actuator):
    """tau = clip(command, ±effort limit of the joint), with an optional reflected rotor inertia."""

    interfaces: ClassVar[tuple[str, ...]] = ("effort",)
    kernel_id: ClassVar[int] = 1
    parameters: ClassVar[tuple[Parameter, ...]] = (
        Parameter("armature", 0.0, "kg·m²", "reflected rotor inertia at the joint", lower=0),
    )

    def effort(
        self, interface: str, value: float, q: float, v: float, act: Sequence[float] = ()
    ) -> float:
        """Return the effort [N·m]; raises UnknownName for an interface other than "effort"."""
        if interface not in self.interfaces:
            raise UnknownName("interface of actuator ideal", interface, self.interfaces)
        return ideal_effort(check_float("effort command", value), self.effort_limit)

    @property
    def armature(self) -> float:
        """Reflected rotor inertia at the joint [kg·m²]."""
        return self.constants["armature"]

    def kernel_constants(self) -> tuple[float, ...]:
        """Return the effort limit [N·m]."""
        return (self.effort_limit,)
