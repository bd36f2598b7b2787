"""The three values that travel between plant, controller and driver."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.core.argument_checks import check_type
from arm_dynamics.core.arrays import Vector, as_readonly, check_float, check_vector
from arm_dynamics.core.errors import CommandRejected, InvalidValue, UnknownName

MIXED = "mixed"
"""For an arm of different actuators: each joint takes the interface its actuator lists first."""
INTERFACES = ("effort", "voltage", "position", "velocity", MIXED)
"""What a command may ask of a joint: N·m (or N), V, rad (or m), rad/s (or m/s), or mixed."""

NO_STATES = as_readonly([])


@dataclass(frozen=True, slots=True, eq=False, init=False)
class State:
    """Time [s], position q (nv,), velocity v (nv,), applied actuator effort tau (nv,).

    tau is NaN where the arm does not tell its effort. ``act`` (na,) holds the actuators' own
    states (currents, temperatures); empty for actuators without any. Arrays are read-only.
    """

    time: float
    q: Vector
    v: Vector
    tau: Vector
    act: Vector

    def __init__(
        self, time: float, q: Vector, v: Vector, tau: Vector, act: Vector = NO_STATES
    ) -> None:
        # A plant makes one each step: half a microsecond less than by object.__setattr__.
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
        """Checked state from plain lists; velocity defaults to zero, effort to unknown.

        Without ``act`` a plant starts with its actuators' own states at rest.
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


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """What a controller should follow at one instant: q, v, a, each (nv,).

    ``effort`` (nv,) [N·m or N] is a feed-forward that is added to what the controller commands.
    """

    q: Vector
    v: Vector
    a: Vector
    effort: Vector | None = field(default=None, kw_only=True)

    @classmethod
    def hold(cls, q: ArrayLike) -> Reference:
        """Stand still at ``q``; raises InvalidValue for what is no list of finite numbers."""
        position = check_vector("q", q)
        zero = as_readonly(np.zeros(position.size))
        return cls(position, zero, zero)


@dataclass(frozen=True, slots=True, eq=False)
class TaskReference(Reference):
    """What the tool should follow at one instant, in the base's axes at the tool's origin.

    position (3,) [m], rotation (3, 3), twist (6,) [m/s, rad/s], acceleration (6,) [m/s², rad/s²]
    and wrench (6,) [N, N·m], linear parts first (LOCAL_WORLD_ALIGNED). q, v, a are the posture
    that joints keep as far as the tool lets them.
    """

    position: Vector
    rotation: Vector
    twist: Vector
    acceleration: Vector
    wrench: Vector


@dataclass(frozen=True, slots=True, eq=False)
class Command:
    """What goes to the motors: one ``value`` (nv,) per joint on one ``interface``.

    ``stamp`` is the time [s] of the state that the command answers.
    """

    interface: str
    value: Vector
    stamp: float = 0.0

    @classmethod
    def checked(cls, interface: str, value: ArrayLike, size: int, stamp: float = 0.0) -> Command:
        """Command of ``size`` finite values; raises CommandRefused or UnknownName."""
        if not isinstance(interface, str) or interface not in INTERFACES:
            raise UnknownName("command interface", interface, INTERFACES)
        try:
            told = check_vector(f"{interface} command", value, size)
            return cls(interface, told, check_float("command stamp [s]", stamp))
        except InvalidValue as error:
            raise CommandRejected(str(error)) from error


def require_state(state: object) -> State:
    """Return ``state`` when it is a State of float arrays; raises InvalidValue if not."""
    found = check_type(State, "state", state, "State.of(q, v) makes one")
    for name in ("q", "v", "act"):
        check_type(np.ndarray, f"state.{name}", getattr(found, name), "State.of(q, v) makes one")
        if getattr(found, name).dtype != np.float64:
            raise InvalidValue(f"state.{name} = {getattr(found, name)}: float64 is expected")
    return found


def require_command(command: object) -> Command:
    """Return ``command`` when it is a Command; raises InvalidValue if not."""
    return check_type(
        Command, "command", command, "Command.checked(interface, value, size) makes one"
    )
