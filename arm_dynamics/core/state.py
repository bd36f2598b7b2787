"""State, Reference and Command: the values that plant, controller and driver exchange."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.core.argument_checks import check_type
from arm_dynamics.core.arrays import Matrix, Vector, as_readonly, check_float, check_vector
from arm_dynamics.core.errors import CommandRejected, InvalidValue, UnknownName

MIXED = "mixed"
"""Interface of an arm with different actuators: each joint uses its first interface."""
INTERFACES = ("effort", "voltage", "position", "velocity", MIXED)
"""Command interfaces: N·m (or N), V, rad (or m), rad/s (or m/s), or mixed."""

NO_STATES = as_readonly([])


@dataclass(frozen=True, slots=True, eq=False, init=False)
class State:
    """Time [s], position q (nv,), velocity v (nv,), applied actuator effort tau (nv,).

    tau is NaN if the effort is not measured. ``act`` (na,) holds the actuator states (currents,
    temperatures); it is empty without any. Arrays are read-only.
    """

    time: float
    q: Vector
    v: Vector
    tau: Vector
    act: Vector

    def __init__(
        self, time: float, q: Vector, v: Vector, tau: Vector, act: Vector = NO_STATES
    ) -> None:
        # A plant creates one each step: 0.5 µs faster than object.__setattr__.
        _set_time(self, time)
        _set_q(self, q)
        _set_v(self, v)
        _set_tau(self, tau)
        _set_act(self, act)

    @classmethod
    def of(
        cls,
        q: ArrayLike,
        v: ArrayLike | None = None,
        tau: ArrayLike | None = None,
        time: float = 0,
        act: ArrayLike = (),
    ) -> State:
        """Return a checked state from lists; velocity defaults to 0, effort to NaN.

        Without ``act`` a plant starts with the actuator states at rest.
        """
        position = check_vector("q", q)
        size = position.size
        return cls(
            check_float("time [s]", time),
            position,
            check_vector("v", np.zeros(size) if v is None else v, size),
            as_readonly(np.full(size, np.nan)) if tau is None else check_vector("tau", tau, size),
            check_vector("act", act),
        )

    @property
    def nv(self) -> int:
        """Number of joints."""
        return int(self.q.size)


_set_time, _set_q, _set_v, _set_tau, _set_act = (
    getattr(State, name).__set__ for name in ("time", "q", "v", "tau", "act")
)


class _StateFields:
    """The fields of a State, not frozen."""

    __slots__ = ("act", "q", "tau", "time", "v")


def new_state(time: float, q: Vector, v: Vector, tau: Vector, act: Vector) -> State:
    """Return ``State(time, q, v, tau, act)`` in half the time, for control cycles."""
    fields: Any = _StateFields()
    fields.time, fields.q, fields.v, fields.tau, fields.act = time, q, v, tau, act
    fields.__class__ = State  # frozen from here
    state: State = fields
    return state


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """Reference of a controller at one instant: q, v, a, each (nv,).

    ``effort`` (nv,) [N·m or N] is a feedforward that is added to the command of the controller.
    """

    q: Vector
    v: Vector
    a: Vector
    effort: Vector | None = field(default=None, kw_only=True)

    @classmethod
    def hold(cls, q: ArrayLike) -> Reference:
        """Return a reference at rest at ``q``; raises InvalidValue for non-finite entries."""
        position = check_vector("q", q)
        zero = as_readonly(np.zeros(position.size))
        return cls(position, zero, zero)


@dataclass(frozen=True, slots=True, eq=False)
class TaskReference(Reference):
    """Task-space reference at one instant, in base axes at the tool center point.

    Position (3,) [m], rotation (3, 3), twist (6,) [m/s, rad/s], acceleration (6,) [m/s², rad/s²]
    and wrench (6,) [N, N·m], linear parts first (LOCAL_WORLD_ALIGNED). q, v, a are the
    null-space posture.
    """

    position: Vector
    rotation: Matrix
    twist: Vector
    acceleration: Vector
    wrench: Vector


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Command:
    """Command to the motors: one ``value`` (nv,) per joint on one ``interface``.

    ``stamp`` is the time [s] of the state that the command answers.
    """

    interface: str
    value: Vector
    stamp: float

    def __init__(self, interface: str, value: Vector, stamp: float = 0.0) -> None:
        _set_interface(self, interface)  # as in State
        _set_value(self, value)
        _set_stamp(self, stamp)

    @staticmethod
    def checked(interface: str, value: ArrayLike, size: int, stamp: float = 0.0) -> CheckedCommand:
        """Return a command of ``size`` finite values; raises CommandRejected or UnknownName."""
        return CheckedCommand(interface, value, stamp, size)


_set_interface, _set_value, _set_stamp = (
    getattr(Command, name).__set__ for name in ("interface", "value", "stamp")
)


class _CommandFields:
    """The fields of a Command, not frozen."""

    __slots__ = ("interface", "stamp", "value")


def new_command(interface: str, value: Vector, stamp: float) -> Command:
    """Return ``Command(interface, value, stamp)`` in half the time, for control cycles."""
    fields: Any = _CommandFields()
    fields.interface, fields.value, fields.stamp = interface, value, stamp
    fields.__class__ = Command  # frozen from here
    command: Command = fields
    return command


class CheckedCommand(Command):
    """A command on a known interface with finite, read-only values.

    Its constructor is the check, so that no other one exists: a copy by ``replace`` and an
    unpickled one are checked too. What receives it does not check the values again.
    """

    __slots__ = ()  # those of a dataclass would hide the inherited ones in Python 3.10

    def __init__(
        self, interface: str, value: ArrayLike, stamp: float = 0.0, size: int | None = None
    ) -> None:
        """Check ``size`` values, any number by default."""
        if not isinstance(interface, str) or interface not in INTERFACES:
            raise UnknownName("command interface", interface, INTERFACES)
        try:
            _set_value(self, check_vector(f"{interface} command", value, size))
            _set_stamp(self, check_float("command stamp [s]", stamp))
        except InvalidValue as error:
            raise CommandRejected(str(error)) from error
        _set_interface(self, interface)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle by the check: a copied array is writeable."""
        return type(self), (self.interface, self.value, self.stamp)


def require_state(state: object) -> State:
    """Return ``state`` if it is a State of float arrays; raises InvalidValue if not."""
    checked = check_type(State, "state", state, "State.of(q, v) returns one")
    for name in ("q", "v", "act"):
        array = getattr(checked, name)
        check_type(np.ndarray, f"state.{name}", array, "State.of(q, v) returns one")
        if array.dtype != np.float64:
            raise InvalidValue(f"state.{name}: dtype = {array.dtype}; expected float64")
    return checked


def require_command(command: object) -> Command:
    """Return ``command`` if it is a Command; raises InvalidValue if not."""
    remedy = "Command.checked(interface, value, size) returns one"
    return check_type(Command, "command", command, remedy)


def check_command(command: object, size: int) -> CheckedCommand:
    """Return ``command`` as a CheckedCommand of ``size`` values; one that is is not checked again.

    Raises InvalidValue if it is not a Command, and as ``Command.checked``.
    """
    given = require_command(command)
    if type(given) is CheckedCommand and given.value.size == size:
        return given
    return Command.checked(given.interface, given.value, size, given.stamp)
