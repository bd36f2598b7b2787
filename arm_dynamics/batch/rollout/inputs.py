"""What a batch is asked to do, checked: states, commands and time steps by lane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.core.argument_checks import check_type
from arm_dynamics.core.arrays import Vector, as_readonly, check_float, check_vector
from arm_dynamics.core.errors import CommandRejected, InvalidValue, UnknownName
from arm_dynamics.core.state import State, require_state
from arm_dynamics.model.arm_model import ArmModel

States = Any
"""One state for all lanes, one a lane, or an array (lanes, 2 nv + na) of [q, v, z]."""


@dataclass(frozen=True, eq=False)
class InitialStates:
    """Where the lanes begin: q, v (lanes, nv), z (lanes, na), effort (lanes, nv), time (lanes,)."""

    q: Vector
    v: Vector
    z: Vector
    effort: Vector
    time: Vector

    @property
    def lanes(self) -> int:
        """How many."""
        return len(self.q)

    def part(self, lanes: Any) -> InitialStates:
        """The same of some lanes."""
        return InitialStates(*(x[lanes] for x in (self.q, self.v, self.z, self.effort, self.time)))


def initial_states(arm: ArmModel, states: States) -> InitialStates:
    """States as arrays; raises InvalidValue naming the lane, or the shape that is expected.

    The actuators' own states are at rest where a state has none.
    """
    if isinstance(states, State):
        states = [states]
    if isinstance(states, Sequence) and states and isinstance(states[0], State):
        return _from_states(arm, states)
    return _from_array(arm, states)


def _from_states(arm: ArmModel, states: Sequence[State]) -> InitialStates:
    n, na, rest = arm.nv, arm.na, arm.initial_act
    for lane, state in enumerate(states):
        _require_whole(lane, state, n)
        sizes = (state.q.size, state.v.size, state.act.size)
        if sizes not in ((n, n, na), (n, n, 0)):
            raise InvalidValue(
                f"lane {lane}: state of {sizes[0]} positions, {sizes[1]} velocities and {sizes[2]}"
                f" own states of actuators; arm '{arm.name}' has {n}, {n} and {na}"
            )
    own = [state.act if state.act.size else rest for state in states]
    flat = np.array([[*s.q, *s.v, *z] for s, z in zip(states, own, strict=True)])
    start = _from_array(arm, flat)
    effort, time = np.array([s.tau for s in states]), np.array([s.time for s in states])
    return replace(start, effort=effort, time=time)


def _require_whole(lane: int, state: State, size: int) -> None:
    """Raises InvalidValue, naming the lane, for what is no State with a time and efforts."""
    try:
        require_state(state)
        check_float("time [s]", state.time)
        check_vector("tau, where known,", np.nan_to_num(as_readonly(state.tau)), size)
    except InvalidValue as error:
        raise InvalidValue(f"lane {lane}: {error}") from error


def _from_array(arm: ArmModel, states: ArrayLike) -> InitialStates:
    n, na = arm.nv, arm.na
    x = check_array("states", states)
    if x.ndim != 2 or x.shape[1] != 2 * n + na or not len(x):
        raise InvalidValue(
            f"states: shape {x.shape} given, (lanes, {2 * n + na}) expected:"
            f" {n} positions, {n} velocities, {na} own states of actuators"
        )
    unknown = np.full((len(x), n), np.nan)
    return InitialStates(x[:, :n], x[:, n : 2 * n], x[:, 2 * n :], unknown, np.zeros(len(x)))


def commands_of(arm: ArmModel, interface: str, commands: ArrayLike, lanes: int) -> Vector:
    """Commands (lanes or 1, periods, nv) from (nv,), (lanes, nv), (periods, nv) or all three.

    Raises CommandRefused for another shape or an entry that is not finite, UnknownName for an
    interface that a joint does not take.
    """
    for actuator in arm.actuators:
        if actuator.resolve_interface(interface) not in actuator.interfaces:
            raise UnknownName(
                f"interface of joint '{actuator.joint}'", interface, actuator.interfaces
            )
    try:
        return broadcast_commands(f"{interface} commands", commands, lanes, arm.nv)
    except InvalidValue as error:
        raise CommandRejected(str(error)) from error


def command_numbers(interface: str, commands: ArrayLike) -> Vector:
    """``commands`` as an array; raises CommandRefused."""
    check_type(str, "interface", interface)
    try:
        return check_array(f"{interface} commands", commands)
    except InvalidValue as error:
        raise CommandRejected(str(error)) from error


def broadcast_commands(name: str, values: ArrayLike, lanes: int, size: int) -> Vector:
    """(lanes or 1, periods, size); two dimensions are (lanes, size) where as many as lanes."""
    x = check_array(name, values)
    if x.ndim == 1:
        x = x[None, None, :]
    elif x.ndim == 2:
        x = x[:, None, :] if len(x) == lanes else x[None, :, :]
    if x.ndim != 3 or x.shape[2] != size or len(x) not in (1, lanes) or not x.shape[1]:
        raise InvalidValue(
            f"{name}: shape {np.shape(values)} given; ({size},), ({lanes}, {size}), (periods,"
            f" {size}) or ({lanes}, periods, {size}) expected"
        )
    return x


def time_steps(dt: ArrayLike, lanes: int) -> Vector:
    """dt [s] of each lane, (lanes,); raises InvalidValue unless all are above 0."""
    x = check_array("dt [s]", dt)
    if not x.size or x.shape not in ((), (1,), (lanes,)):
        raise InvalidValue(f"dt [s]: shape {x.shape} given, a number or ({lanes},) expected")
    if not (x > 0).all():
        raise InvalidValue(f"dt [s]: {x.min():g} given, all must be above 0")
    return np.array(np.broadcast_to(x, lanes))


def check_array(name: str, values: ArrayLike) -> Vector:
    """An array of finite numbers; raises InvalidValue naming the first that is none."""
    try:
        x = as_readonly(values)
    except InvalidValue as error:
        said = f"{name} = {short(values)}: an array of real numbers is expected"
        raise InvalidValue(said) from error
    if not np.isfinite(x).all():
        at = tuple(np.argwhere(~np.isfinite(x))[0].tolist())
        raise InvalidValue(f"{name}{list(at)} = {x[at]}: a finite number is expected")
    return x
