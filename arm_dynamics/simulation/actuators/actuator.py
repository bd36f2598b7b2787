"""Interface of every motor model: a command in, effort at the joint out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, nan
from typing import ClassVar, NamedTuple

from arm_dynamics.core.arrays import check_int
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.parameters import Parameter, with_defaults
from arm_dynamics.core.state import MIXED

NO_KERNEL = 0
"""Kernel of an actuator without compiled equations: the plant calls its methods instead."""


@dataclass(frozen=True, slots=True)
class ActuatorState:
    """An actuator state: its name, unit and value at rest.

    A step updates the states in the order of ``group``, each group from those before.

    Raises
    ------
    InvalidValue
        For a group that is not an integer of at least 0.

    """

    name: str
    unit: str
    initial: float = 0.0
    group: int = 0

    def __post_init__(self) -> None:
        """Check the group: a step has none below 0."""
        check_int(f"actuator state '{self.name}': group", self.group)


class Inconsistency(NamedTuple):
    """A constant inconsistent with others; ``problem`` continues "stiction = 0.1 N·m ..."."""

    parameter: str
    problem: str
    remedy: str


class Actuator(ABC):
    """One joint's actuator. Subclasses list their ``parameters`` and ``interfaces``.

    ``constants`` holds one checked number per parameter, in the order of ``parameters``.
    In the methods ``act`` holds the actuator states in the order of ``states``, ``q`` [rad] and
    ``v`` [rad/s] are position and velocity of the joint, and efforts are those at the joint [N·m].
    """

    interfaces: ClassVar[tuple[str, ...]]
    parameters: ClassVar[tuple[Parameter, ...]] = ()
    kernel_id: ClassVar[int] = NO_KERNEL
    prescribes_motion: ClassVar[bool] = False
    """Whether ``prescribed_motion`` sets the joint position, whatever the effort."""

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
        """Yield the inconsistencies between complete ``constants``, each within its range."""
        return iter(())

    @abstractmethod
    def effort(
        self, interface: str, value: float, q: float, v: float, act: Sequence[float] = ()
    ) -> float:
        """Return the effort at the joint [N·m]; 0 for an actuator that ``prescribes_motion``."""

    def computed_effort(
        self, interface: str, value: float, q: float, v: float, act: Sequence[float] = ()
    ) -> float:
        """Return the effort [N·m] of the command before any limit of the actuator."""
        return value if interface == "effort" else self.effort(interface, value, q, v, act)

    def voltage(self, interface: str, value: float, v: float, act: Sequence[float] = ()) -> float:
        """Return the motor voltage [V] under a command at velocity v; NaN without a voltage."""
        return nan

    def effort_range(self, v: float) -> tuple[float, float]:
        """Return the smallest and largest effort [N·m] at velocity v; here unlimited."""
        del v
        return -inf, inf

    def temperature(self, act: Sequence[float] = ()) -> float:
        """Return the motor temperature [°C]; NaN without a thermal model."""
        return nan

    @property
    def continuous_effort(self) -> float:
        """Largest effort [N·m] that a joint at rest holds indefinitely; inf without that limit."""
        return inf

    @property
    def states(self) -> tuple[ActuatorState, ...]:
        """The actuator states; none by default."""
        return ()

    @property
    def kernel_slots(self) -> tuple[int, ...]:
        """Slot of each of the ``states`` in compiled code; empty for NO_KERNEL."""
        return ()

    def act_dot_terms(
        self, interface: str, value: float, q: float, v: float, act: Sequence[float]
    ) -> tuple[Sequence[float], Sequence[float]]:
        """Return λ >= 0 and n of ż = n - λ z, one entry per state."""
        return (0.0,) * len(self.states), (0.0,) * len(self.states)

    def prescribed_motion(
        self, value: float, q: float, act: Sequence[float], elapsed: float
    ) -> tuple[float, Sequence[float]]:
        """Return position [rad] and states after ``elapsed`` [s], if it ``prescribes_motion``."""
        raise InvalidValue(f"actuator of joint '{self.joint}' does not prescribe motion")

    def act_after_command(self, value: float, act: Sequence[float]) -> Sequence[float]:
        """Return the states after ``value`` is sent, also where it equals the last command."""
        return act

    def hold_act(self, q: float, act: Sequence[float]) -> Sequence[float]:
        """Return the states that hold the joint at ``q``, if it ``prescribes_motion``."""
        return act

    def resolve_interface(self, interface: str) -> str:
        """Return the interface that ``interface`` means here; for "mixed" the first one."""
        return self.interfaces[0] if interface == MIXED else interface

    def dry_friction_bounds(self, v: float, effort: float) -> tuple[float, float]:
        """Return the largest dry friction [N·m] against forward and against backward motion."""
        return self.breakaway_effort, self.breakaway_effort

    def apply_internal_friction(
        self, before: Sequence[float], act: Sequence[float], decay: Sequence[float], dt: float
    ) -> Sequence[float]:
        """Return the states after dt [s] of dry friction, if it ``has_internal_friction``.

        ``before`` are the states at the start of the step; ``decay`` is λ that the step used.
        """
        return act

    def step_damping(self, dt: float) -> float:
        """Return the damping [N·m·s/rad] that a step of dt [s] integrates explicitly."""
        return self.viscous_friction + self.back_emf_damping

    def winding_damping(self, dt: float) -> float:
        """Return the part of ``step_damping`` that acts through a winding current state."""
        return 0.0

    def require_stable(self, compliance: float, dt: float) -> None:
        """Raise InvalidValue if the states are unstable with a step of dt [s].

        ``compliance`` is the joint's entry on the diagonal of M⁻¹ [1/(kg·m²)].
        """

    def command_limit(self, interface: str) -> float:
        """Return the largest command on ``interface``: the effort limit [N·m] or infinity."""
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
        """Derivative -∂τ/∂v at a constant command [N·m·s/rad], positive."""
        return 0.0

    def damping_at(
        self, interface: str, value: float, q: float, v: float, act: Sequence[float] = ()
    ) -> float:
        """Return -∂τ/∂v at a constant command [N·m·s/rad]; here ``back_emf_damping``."""
        return self.back_emf_damping

    @property
    def breakaway_effort(self) -> float:
        """Reflected breakaway effort at the joint [N·m]."""
        return 0.0

    @property
    def has_dry_friction(self) -> bool:
        """Whether the actuator can cause dry friction at the joint."""
        return self.breakaway_effort > 0

    @property
    def has_internal_friction(self) -> bool:
        """Whether dry friction acts on actuator states, see ``apply_internal_friction``."""
        return False

    def kernel_constants(self) -> tuple[float, ...]:
        """Return the constants of the compiled equations, in their order."""
        return ()
