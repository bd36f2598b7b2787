"""The seam of every motor: a command in, effort at the joint out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan
from typing import ClassVar, NamedTuple

from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.parameters import Parameter, with_defaults
from arm_dynamics.core.state import MIXED

NO_KERNEL = 0
"""Kernel of an actuator that has no compiled law: the plant asks its methods instead."""


@dataclass(frozen=True, slots=True)
class ActuatorState:
    """An actuator's own state: its name, unit and value at rest.

    ``group`` orders the states that a step updates one after the other, each from those before.
    """

    name: str
    unit: str
    initial: float = 0.0
    group: int = 0


class Inconsistency(NamedTuple):
    """A constant that goes ill with others; ``problem`` continues "stiction = 0.1 N·m ..."."""

    parameter: str
    problem: str
    remedy: str


class Actuator(ABC):
    """One joint's actuator. Subclasses list their ``parameters`` and ``interfaces``.

    ``constants`` holds one checked number per parameter, in the order of ``parameters``.
    ``act`` below are the actuator's own states, in the order of ``states``.
    """

    interfaces: ClassVar[tuple[str, ...]]
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    kernel_id: ClassVar[int] = NO_KERNEL
    prescribes_motion: ClassVar[bool] = False
    """Whether ``prescribed_motion`` places the joint, with whatever effort that takes, instead of ``effort``."""

    def __init__(self, joint: str, effort_limit: float, constants: Mapping[str, float]) -> None:
        owner = f"actuator of joint '{joint}'"
        self.joint = joint
        self.effort_limit = effort_limit
        self.constants = with_defaults(owner, self.parameters, constants)
        units = {p.name: p.unit for p in self.parameters}
        for name, problem, remedy in self.inconsistencies(self.constants):
            value = f"{name} = {self.constants[name]:g} {units[name]}"
            raise InvalidValue(f"{owner}: {value} {problem}; {remedy}")

    @classmethod
    def inconsistencies(cls, constants: Mapping[str, float]) -> Iterator[Inconsistency]:
        """What complete ``constants``, each within its range, say against each other."""
        return iter(())

    @abstractmethod
    def effort(
        self, interface: str, value: float, q: float, v: float, act: Sequence[float] = ()
    ) -> float:
        """Effort at the joint [N·m] for a command ``value``; 0 for one that ``prescribes_motion``."""

    def computed_effort(
        self, interface: str, value: float, q: float, v: float, act: Sequence[float] = ()
    ) -> float:
        """Effort [N·m] that the command asks for, before any limit of the actuator."""
        return value if interface == "effort" else self.effort(interface, value, q, v, act)

    def voltage(self, interface: str, value: float, v: float, act: Sequence[float] = ()) -> float:
        """Voltage [V] at the motor under a command, speed v [rad/s]; NaN where it has none."""
        return nan

    def effort_range(self, v: float) -> tuple[float, float]:
        """Least and largest effort at the joint [N·m] at speed v [rad/s]; here any."""
        del v
        return -inf, inf

    def temperature(self, act: Sequence[float] = ()) -> float:
        """Temperature of the motor [°C]; NaN where it has no thermal model."""
        return nan

    @property
    def states(self) -> tuple[ActuatorState, ...]:
        """The actuator's own states; none here."""
        return ()

    @property
    def kernel_slots(self) -> tuple[int, ...]:
        """Where the compiled law keeps each of the ``states``; empty without a compiled law."""
        return ()

    def act_dot_terms(
        self, interface: str, value: float, q: float, v: float, act: Sequence[float]
    ) -> tuple[Sequence[float], Sequence[float]]:
        """λ and n of ż = n - λ z, one entry a state, λ >= 0."""
        return (0.0,) * len(self.states), (0.0,) * len(self.states)

    def prescribed_motion(
        self, value: float, q: float, act: Sequence[float], elapsed: float
    ) -> tuple[float, Sequence[float]]:
        """Position [rad] and own states after ``elapsed`` [s], for one that ``prescribes_motion``."""
        raise InvalidValue(f"actuator of joint '{self.joint}' gives an effort: it places nothing")

    def resent(self, value: float, act: Sequence[float]) -> Sequence[float]:
        """Own states when the command ``value`` is sent, again where it equals the last one."""
        return act

    def hold_act(self, q: float, act: Sequence[float]) -> Sequence[float]:
        """Own states that hold the joint at ``q`` [rad], for one that ``prescribes_motion``."""
        return act

    def resolve_interface(self, interface: str) -> str:
        """The interface that a command on ``interface`` means here; "mixed": the first one."""
        return self.interfaces[0] if interface == MIXED else interface

    def dry_friction_bounds(self, v: float, effort: float) -> tuple[float, float]:
        """Largest dry friction at the joint [N·m] against forward and against backward motion."""
        return self.breakaway_effort, self.breakaway_effort

    def apply_internal_friction(
        self, before: Sequence[float], act: Sequence[float], decay: Sequence[float], dt: float
    ) -> Sequence[float]:
        """Own states after dt [s] of dry friction on them, for one that ``has_internal_friction``.

        ``before``: own states at the step's start; ``decay``: λ that the step used.
        """
        return act

    def step_damping(self, dt: float) -> float:
        """Damping at the joint [N·m·s/rad] that a step of dt [s] meets explicitly."""
        return self.viscous_friction + self.back_emf_damping

    def winding_damping(self, dt: float) -> float:
        """The share of ``step_damping`` that comes through a winding's current of its own."""
        return 0.0

    def require_stable(self, compliance: float, dt: float) -> None:
        """Refuse, as InvalidValue, own states that a step of dt [s] cannot follow.

        ``compliance`` is the joint's entry on the diagonal of M⁻¹ [1/(kg·m²)].
        """

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
    def back_emf_damping(self) -> float:
        """Slope of the effort over the velocity at a constant command [N·m·s/rad], positive."""
        return 0.0

    @property
    def breakaway_effort(self) -> float:
        """Reflected break-away effort at the joint [N·m]."""
        return 0.0

    @property
    def has_dry_friction(self) -> bool:
        """Whether the joint ever feels dry friction from here."""
        return self.breakaway_effort > 0

    @property
    def has_internal_friction(self) -> bool:
        """Whether dry friction acts on own states, see ``apply_internal_friction``."""
        return False

    def kernel_constants(self) -> tuple[float, ...]:
        """Constants of the compiled law, in its own order."""
        return ()
