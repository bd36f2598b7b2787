"""The seam of every motor: a command in, effort at the joint out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from math import inf
from typing import ClassVar

from arm_dynamics.parameters import Parameter, complete

GIVEN = 0
"""Kernel of an actuator that has no compiled law: the plant asks its ``effort`` instead."""


class Actuator(ABC):
    """One joint's actuator. Subclasses list their ``parameters`` and ``interfaces``.

    ``constants`` holds one checked number per parameter, in the order of ``parameters``.
    """

    interfaces: ClassVar[tuple[str, ...]]
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    kernel: ClassVar[int] = GIVEN

    def __init__(self, joint: str, effort_limit: float, constants: Mapping[str, float]) -> None:
        owner = f"actuator of joint '{joint}'"
        self.joint = joint
        self.effort_limit = effort_limit
        self.constants = complete(owner, self.parameters, constants)

    @abstractmethod
    def effort(self, interface: str, value: float, q: float, v: float) -> float:
        """Effort at the joint [N·m] for a command ``value`` on ``interface``."""

    def command_limit(self, interface: str) -> float:
        """Largest command that makes sense on ``interface``: the effort limit [N·m] or none."""
        return self.effort_limit if interface == "effort" else inf

    @property
    def armature(self) -> float:
        """Reflected rotor inertia at the joint [kg·m²]."""
        return 0.0

    @property
    def viscous_friction(self) -> float:
        """Reflected viscous friction at the joint [N·m·s/rad]."""
        return 0.0

    @property
    def electric_damping(self) -> float:
        """Slope of the effort over the velocity at a constant command [N·m·s/rad], positive."""
        return 0.0

    @property
    def dry_friction(self) -> float:
        """Reflected Coulomb friction, also the break-away effort, at the joint [N·m]."""
        return 0.0

    def packed(self) -> tuple[float, ...]:
        """Constants of the compiled law, in its own order."""
        return ()
