"""Actuators of a few compiled functions, which the simulated step calls from compiled code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, ClassVar, NamedTuple

import numpy as np

from arm_dynamics.core.arrays import Vector, check_float, check_vector
from arm_dynamics.core.compiled_math import compiled
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.simulation.actuators.actuator import Actuator

MAX_STATES, MAX_CONSTANTS = 4, 25
"""Actuator states and constants for which compiled code has memory."""
REPLACED = [
    "effort",
    "act_dot_terms",
    "dry_friction_bounds",
    "damping_at",
    "back_emf_damping",
    "breakaway_effort",
    "has_dry_friction",
    "has_internal_friction",
    "apply_internal_friction",
    "kernel_id",
    "kernel_constants",
    "kernel_slots",
]
"""Members of ``Actuator`` that the compiled step replaces by ``equations``."""


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
    v [rad/s], the actuator states (n,) in the order of ``states``, and the constants: the effort
    limit [N·m], then those of ``parameters``. Branches on a number go through ``where``, ``clip``,
    ``minimum`` and ``maximum`` of ``arm_dynamics.simulation``: rollouts trace the functions.
    """

    effort: Callable[..., float]
    """(interface, command, q, v, act, constants) -> effort at the joint [N·m]."""
    act_dot_terms: Callable[..., None] = no_states
    """(..., constants, decay, source): writes λ >= 0 and n of ż = n - λ z, one entry per state.

    Both arrays contain zeros before the call.
    """
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
        For more than 4 states or 24 parameters; at its definition, for a subclass that overrides
        a method which the compiled step does not call.

    """

    equations: ClassVar[ActuatorEquations]

    def __init_subclass__(cls, **options: Any) -> None:
        """Reject a subclass whose methods the step would ignore."""
        super().__init_subclass__(**options)
        for name in REPLACED:
            if getattr(cls, name) is not getattr(CompiledActuator, name):
                raise InvalidValue(
                    f"class {cls.__name__}: {name} = an override; expected none, because the"
                    " compiled step does not call it; write it in `equations`, or subclass Actuator"
                )

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
        decay, source = np.zeros((2, len(self.states)))
        arguments = self._arguments(interface, value, q, v, act)
        self.equations.act_dot_terms(*arguments, decay, source)
        return decay.tolist(), source.tolist()

    def dry_friction_bounds(self, v: float, effort: float) -> tuple[float, float]:
        """Return the largest dry friction [N·m] against forward and against backward motion."""
        friction = self.equations.dry_friction
        return (
            float(friction(1.0, v, effort, self._packed)),
            float(friction(-1.0, v, effort, self._packed)),
        )

    def damping_at(
        self, interface: str, value: float, q: float, v: float, act: Sequence[float] = ()
    ) -> float:
        """Return -∂τ/∂v at a constant command [N·m·s/rad]."""
        return float(self.equations.damping(*self._arguments(interface, value, q, v, act)))

    @property
    def back_emf_damping(self) -> float:
        """Derivative -∂τ/∂v [N·m·s/rad] at rest, without command: the largest of an interface."""
        return max(self.damping_at(name, 0.0, 0.0, 0.0) for name in self.interfaces)

    @property
    def breakaway_effort(self) -> float:
        """Dry friction at rest without load [N·m]."""
        return self.dry_friction_bounds(0.0, 0.0)[0]

    @property
    def has_dry_friction(self) -> bool:
        """Whether ``equations`` have dry friction."""
        return self.equations.dry_friction is not no_dry_friction

    def require_indices(self) -> None:
        """Raise InvalidValue if an equation uses an index beyond its arrays.

        Compiled code does not check indices. The equations run once in Python, at rest and without
        command. Other errors are left to the step: arithmetic of Python raises where compiled code
        returns NaN or infinity.
        """
        decay, source = np.zeros((2, len(self.states)))
        states = np.array([state.initial for state in self.states], dtype=float)
        for index in range(len(self.interfaces)):
            rest = (index, *np.zeros(3), states, self._packed)
            for field, arguments in (
                ("effort", rest),
                ("act_dot_terms", (*rest, decay, source)),
                ("damping", rest),
                ("dry_friction", (1.0, *np.zeros(2), self._packed)),
            ):
                function = _in_python(getattr(self.equations, field))
                try:
                    with np.errstate(all="ignore"):
                        function(*arguments)
                except IndexError as error:
                    raise InvalidValue(
                        f"actuator of joint '{self.joint}': {field} of {type(self).__name__}: index"
                        f" = {error}; expected an index below {states.size} for states, below"
                        f" {self._packed.size} for constants"
                    ) from error
                except Exception:
                    continue

    def _arguments(
        self, interface: str, value: float, q: float, v: float, act: Sequence[float]
    ) -> tuple[int, float, float, float, Vector, Vector]:
        if interface not in self.interfaces:
            raise UnknownName(
                f"interface of {type(self).__name__}", interface, tuple(self.interfaces)
            )
        states = self.states
        where, count = f"actuator of joint '{self.joint}': states of", len(states)
        given = act if np.size(act) else [s.initial for s in states]
        own = check_vector(f"{where} {type(self).__name__}", given, count).copy()
        number = check_float(f"{interface} command", value)
        return self.interfaces.index(interface), number, float(q), float(v), own, self._packed


def _in_python(function: Callable[..., Any], converted: dict[Any, Any] | None = None) -> Any:
    """Return a compiled function without compilation, and those that it calls likewise."""
    converted = {} if converted is None else converted
    python = getattr(function, "py_func", function)
    if python in converted or not isinstance(python, FunctionType):
        return converted.get(python, python)
    scope = dict(python.__globals__)
    copy = FunctionType(
        python.__code__, scope, python.__name__, python.__defaults__, python.__closure__
    )
    copy.__kwdefaults__ = python.__kwdefaults__
    converted[python] = copy
    for name in python.__code__.co_names:
        if hasattr(scope.get(name), "py_func"):
            scope[name] = _in_python(scope[name], converted)
    return copy
