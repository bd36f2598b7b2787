"""Actuators of a few compiled functions, which the simulated step calls from compiled code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from arm_dynamics.core.arrays import Vector, check_float, check_vector
from arm_dynamics.core.compiled_math import compiled
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.simulation.actuators.actuator import Actuator

MAX_STATES, MAX_CONSTANTS = 4, 25
"""Actuator states and constants for which compiled code has memory."""


@compiled
def no_states(
    interface: int,
    command: float,
    q: float,
    v: float,
    act: Vector,
    constants: Vector,
    decay: Vector,
    source: Vector,
) -> None:
    """Write nothing: an actuator without states."""


@compiled
def no_damping(
    interface: int, command: float, q: float, v: float, act: Vector, constants: Vector
) -> float:
    """Return 0: the effort does not depend on the velocity."""
    return 0.0


@compiled
def no_dry_friction(direction: float, v: float, effort: float, constants: Vector) -> float:
    """Return 0."""
    return 0.0


class ActuatorEquations(NamedTuple):
    """Equations of one actuator: functions marked ``@compiled``.

    The arguments are the index of the command interface in ``interfaces``, the command, q [rad],
    v [rad/s], the actuator states (4,) in the order of ``states``, and the constants: the effort
    limit [N·m], then those of ``parameters``. Branches on a number go through ``where``, ``clip``,
    ``minimum`` and ``maximum`` of ``arm_dynamics.simulation``: rollouts trace the functions.
    """

    effort: Callable[..., float]
    """(interface, command, q, v, act, constants) -> effort at the joint [N·m]."""
    act_dot_terms: Callable[..., None] = no_states
    """(..., constants, decay, source): writes λ >= 0 and n of ż = n - λ z, one entry per state."""
    damping: Callable[..., float] = no_damping
    """(interface, command, q, v, act, constants) -> -∂τ/∂v [N·m·s/rad]."""
    dry_friction: Callable[..., float] = no_dry_friction
    """(direction ±1, v, effort, constants) -> largest dry friction [N·m] against that motion."""


class CompiledActuator(Actuator):
    """Actuator of ``equations``: simulated in compiled code, as the built-in ones are.

    A subclass declares ``interfaces``, ``parameters`` and ``equations``, and ``states`` if it has
    any. Without numba the same functions run in Python.

    Raises
    ------
    InvalidValue
        For more than 4 states or 24 parameters.

    """

    equations: ClassVar[ActuatorEquations]

    def __init__(self, joint: str, effort_limit: float, constants: Mapping[str, float]) -> None:
        super().__init__(joint, effort_limit, constants)
        for what, count, most in (
            ("states", len(self.states), MAX_STATES),
            ("parameters", len(self.parameters), MAX_CONSTANTS - 1),
        ):
            if count > most:
                raise InvalidValue(
                    f"actuator of joint '{joint}': {type(self).__name__} has {count} {what};"
                    f" expected at most {most}"
                )
        self._packed = np.array(self.kernel_constants(), dtype=float)

    @property
    def kernel_slots(self) -> tuple[int, ...]:
        """0, 1 ...: the states in their order."""
        return tuple(range(len(self.states)))

    def kernel_constants(self) -> tuple[float, ...]:
        """Return the effort limit [N·m], then the constants in the order of ``parameters``."""
        return (self.effort_limit, *self.constants.values())

    def effort(
        self, interface: str, value: float, q: float, v: float, act: Sequence[float] = ()
    ) -> float:
        """Return the effort at the joint [N·m]; raises UnknownName for another interface."""
        return float(self.equations.effort(*self._arguments(interface, value, q, v, act)))

    def act_dot_terms(
        self, interface: str, value: float, q: float, v: float, act: Sequence[float]
    ) -> tuple[Sequence[float], Sequence[float]]:
        """Return λ and n of ż = n - λ z, one entry per state."""
        decay, source, count = np.zeros(MAX_STATES), np.zeros(MAX_STATES), len(self.states)
        arguments = self._arguments(interface, value, q, v, act)
        self.equations.act_dot_terms(*arguments, decay, source)
        return decay[:count].tolist(), source[:count].tolist()

    def dry_friction_bounds(self, v: float, effort: float) -> tuple[float, float]:
        """Return the largest dry friction [N·m] against forward and against backward motion."""
        friction = self.equations.dry_friction
        return (
            float(friction(1.0, v, effort, self._packed)),
            float(friction(-1.0, v, effort, self._packed)),
        )

    @property
    def back_emf_damping(self) -> float:
        """Derivative -∂τ/∂v [N·m·s/rad] at rest, without command, by the first interface."""
        rest = self._arguments(self.interfaces[0], 0.0, 0.0, 0.0, ())
        return float(self.equations.damping(*rest))

    @property
    def breakaway_effort(self) -> float:
        """Dry friction at rest without load [N·m]."""
        return self.dry_friction_bounds(0.0, 0.0)[0]

    @property
    def has_dry_friction(self) -> bool:
        """Whether ``equations`` have dry friction."""
        return self.equations.dry_friction is not no_dry_friction

    def _arguments(
        self, interface: str, value: float, q: float, v: float, act: Sequence[float]
    ) -> tuple[int, float, float, float, Vector, Vector]:
        if interface not in self.interfaces:
            raise UnknownName(
                f"interface of {type(self).__name__}", interface, tuple(self.interfaces)
            )
        own, states = np.zeros(MAX_STATES), self.states
        count = len(states)
        own[:count] = (
            check_vector("act", act, count) if np.size(act) else [s.initial for s in states]
        )
        number = check_float(f"{interface} command", value)
        return self.interfaces.index(interface), number, float(q), float(v), own, self._packed
