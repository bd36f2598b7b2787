"""Checked inputs of a batch: initial states, commands, time steps and variations by rollout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from reprlib import repr as short
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.batch import variation
from arm_dynamics.collision.scene import Scene
from arm_dynamics.core.argument_checks import check_type
from arm_dynamics.core.arrays import (
    FloatArray,
    Matrix,
    Vector,
    as_readonly,
    check_float,
    check_vector,
)
from arm_dynamics.core.errors import CommandRejected, InvalidValue, UnknownName
from arm_dynamics.core.state import State, require_state
from arm_dynamics.model.arm_model import ArmModel

States = Any
"""One State for all rollouts, one per rollout, or an array (batch, 2 nv + na) of [q, v, act]."""


@dataclass(frozen=True, eq=False)
class InitialStates:
    """Initial states.

    Attributes
    ----------
    q, v, effort : Matrix
        Positions, velocities and efforts (NaN: unknown), shape (batch, nv).
    act : Matrix
        Actuator states, shape (batch, na).
    time : Vector
        Time [s], shape (batch,).

    """

    q: Matrix
    v: Matrix
    act: Matrix
    effort: Matrix
    time: Vector

    @property
    def size(self) -> int:
        """Number of rollouts."""
        return len(self.q)

    def part(self, rollouts: Any) -> InitialStates:
        """Return the states of some rollouts."""
        arrays = (self.q, self.v, self.act, self.effort, self.time)
        return InitialStates(*(x[rollouts] for x in arrays))


def initial_states(arm: ArmModel, states: States) -> InitialStates:
    """Return ``states`` as arrays; actuator states that a State omits are those at rest.

    Raises
    ------
    InvalidValue
        Naming the rollout, or the expected shape.

    """
    if isinstance(states, State):
        states = [states]
    if not (isinstance(states, Sequence) and states and isinstance(states[0], State)):
        return _from_array(arm, states)
    n, na, rest = arm.nv, arm.na, arm.initial_act
    for k, state in enumerate(states):
        try:
            require_state(state)
            check_float("time [s]", state.time)
            check_vector("tau, if known,", np.nan_to_num(as_readonly(state.tau)), n)
        except InvalidValue as error:
            raise InvalidValue(f"rollout {k}: {error}") from error
        sizes = (state.q.size, state.v.size, state.act.size)
        if sizes not in ((n, n, na), (n, n, 0)):
            raise InvalidValue(
                f"rollout {k}, arm '{arm.name}': sizes of q, v and act = {sizes};"
                f" expected ({n}, {n}, {na})"
            )
    acts = [state.act if state.act.size else rest for state in states]
    rows = np.array([[*s.q, *s.v, *act] for s, act in zip(states, acts, strict=True)])
    start = _from_array(arm, rows)
    effort, time = np.array([s.tau for s in states]), np.array([s.time for s in states])
    return replace(start, effort=effort, time=time)


def _from_array(arm: ArmModel, states: ArrayLike) -> InitialStates:
    n, na = arm.nv, arm.na
    x = check_array("states", states)
    if x.ndim != 2 or x.shape[1] != 2 * n + na or not len(x):
        raise InvalidValue(
            f"states: shape = {x.shape}; expected (batch, {2 * n + na}): {n} positions,"
            f" {n} velocities, {na} actuator states"
        )
    unknown = np.full((len(x), n), np.nan)
    return InitialStates(x[:, :n], x[:, n : 2 * n], x[:, 2 * n :], unknown, np.zeros(len(x)))


def check_commands(arm: ArmModel, interface: str, commands: ArrayLike, size: int) -> FloatArray:
    """Return commands (size or 1, periods, nv), see ``broadcast_commands``.

    Raises
    ------
    CommandRejected
        If the shape is another one, or an entry is not finite.
    UnknownName
        If a joint does not accept ``interface``.

    """
    for actuator in arm.actuators:
        if actuator.resolve_interface(interface) not in actuator.interfaces:
            raise UnknownName(
                f"interface of joint '{actuator.joint}'", interface, actuator.interfaces
            )
    try:
        return broadcast_commands(f"{interface} commands", commands, size, arm.nv)
    except InvalidValue as error:
        raise CommandRejected(str(error)) from error


def command_array(interface: str, commands: ArrayLike) -> FloatArray:
    """Return ``commands`` as an array of finite values; raises CommandRejected."""
    check_type(str, "interface", interface)
    try:
        return check_array(f"{interface} commands", commands)
    except InvalidValue as error:
        raise CommandRejected(str(error)) from error


def broadcast_commands(name: str, values: ArrayLike, batch: int, size: int) -> FloatArray:
    """Return (batch or 1, periods, size) from (size,), (batch, size), (periods, size) or all three.

    Two dimensions are (batch, size) if there are as many rows as rollouts. Raises InvalidValue.
    """
    x = check_array(name, values)
    if x.ndim == 1:
        x = x[None, None, :]
    elif x.ndim == 2:
        x = x[:, None, :] if len(x) == batch else x[None, :, :]
    if x.ndim != 3 or x.shape[2] != size or len(x) not in (1, batch) or not x.shape[1]:
        raise InvalidValue(
            f"{name}: shape = {np.shape(values)}; expected ({size},), ({batch}, {size}), (periods,"
            f" {size}) or ({batch}, periods, {size})"
        )
    return x


def time_steps(dt: ArrayLike, batch: int) -> Vector:
    """Return dt [s] of each rollout, shape (batch,); raises InvalidValue unless all are above 0."""
    x = check_array("dt [s]", dt)
    if not x.size or x.shape not in ((), (1,), (batch,)):
        raise InvalidValue(f"dt [s]: shape = {x.shape}; expected () or ({batch},)")
    if not (x > 0).all():
        raise InvalidValue(f"dt = {x.min():g} s; expected above 0")
    return np.array(np.broadcast_to(x, batch))


def check_array(name: str, values: ArrayLike) -> FloatArray:
    """Return an array of finite values; raises InvalidValue naming the first other entry."""
    try:
        x = as_readonly(values)
    except InvalidValue as error:
        message = f"{name} = {short(values)}; expected an array of real numbers"
        raise InvalidValue(message) from error
    if not np.isfinite(x).all():
        index = tuple(np.argwhere(~np.isfinite(x))[0].tolist())
        raise InvalidValue(f"{name}{list(index)} = {x[index]}; expected a finite number")
    return x


def variations(
    arm: ArmModel, vary: Mapping[str, ArrayLike] | None, batch: int
) -> dict[str, Matrix]:
    """Return what differs between rollouts: name to (batch, size).

    Parameters
    ----------
    arm : ArmModel
        Nominal arm.
    vary : Mapping[str, ArrayLike] or None
        Name of ``variation.variable_names`` to values: (batch,) for one value per rollout or the
        same for all joints, else (batch, nv).
    batch : int
        Number of rollouts.

    Raises
    ------
    UnknownName
        If a quantity does not exist or cannot vary.
    InvalidValue
        If a shape is wrong, or a value is invalid for the arm; the message names the rollout.

    """
    varied = {}
    for name, values in check_mapping(vary).items():
        rows = by_rollout(name, values, batch, variation.values_per_rollout(arm, name))
        if name in ("link.mass", "link.inertia") and (rows <= 0).any():
            k, i = np.argwhere(rows <= 0)[0].tolist()
            joint = arm.joint_names[i]
            raise InvalidValue(
                f"rollout {k}, joint '{joint}': {name} = {rows[k, i]:g}; expected above 0"
            )
        if name == "motor.backlash":
            _require_same_states(arm, rows)
        varied[name] = rows
    if varied:
        _require_valid(arm, varied)
    return varied


def _require_same_states(arm: ArmModel, backlash: Matrix) -> None:
    """Raise InvalidValue unless the joints with backlash (batch, nv) are those of the arm."""
    has = variation.nominal_values(arm, "motor.backlash") > 0
    for k, i in np.argwhere((backlash > 0) != has).tolist():
        expected = "above 0" if has[i] else "0"
        raise InvalidValue(
            f"rollout {k}, joint '{arm.joint_names[i]}': backlash = {backlash[k, i]:g} rad;"
            f" expected {expected} as in the nominal arm, which decides the actuator states"
        )


def check_scene(scene: Scene, outputs: Sequence[str] = ()) -> Scene:
    """Return a scene with the free object that an output needs; raises InvalidValue."""
    check_type(Scene, "scene", scene, "load_scene(...)")
    for name in outputs:
        if name.startswith("body_") and all(one.is_fixed for one in scene):
            raise InvalidValue(
                f"output '{name}': free objects = 0; expected 1; give an object of the scene a mass"
            )
    return scene


def check_mapping(vary: Mapping[str, ArrayLike] | None) -> Mapping[str, ArrayLike]:
    """Return ``vary`` if it is a mapping from names; raises InvalidValue."""
    mapping = check_type(Mapping, "vary", {} if vary is None else vary, "{'payload': [0.1, 0.2]}")  # type: ignore[type-abstract]
    for name in mapping:
        check_type(str, "name in vary", name)
    return mapping


def _require_valid(arm: ArmModel, varied: Mapping[str, Matrix]) -> None:
    """Check the arm of every rollout by the smallest and the largest values only.

    All checks are ranges: if the arms with all minima and with all maxima are valid, so is every
    rollout. If one is not, the rollouts with an extreme value are checked one by one.
    """
    try:
        for end in (np.min, np.max):
            values = {name: end(rows, axis=0) for name, rows in varied.items()}
            variation.rollout_arm(arm, values)
    except InvalidValue:
        ends = [f(rows, axis=0) for rows in varied.values() for f in (np.argmin, np.argmax)]
        for k in sorted({int(k) for end in ends for k in end}):
            try:
                variation.rollout_arm(arm, {name: rows[k] for name, rows in varied.items()})
            except InvalidValue as error:
                raise InvalidValue(f"rollout {k}: {error}") from error


def by_rollout(name: str, values: ArrayLike, batch: int, size: int) -> Matrix:
    """Return (batch, size) from (batch,) or (batch, size); raises InvalidValue."""
    x = check_array(name, values)
    x = x[:, None] if x.ndim == 1 else x
    if x.shape not in ((batch, 1), (batch, size)):
        raise InvalidValue(
            f"{name}: shape = {np.shape(values)}; expected ({batch},) or ({batch}, {size})"
        )
    return np.array(np.broadcast_to(x, (batch, size)))
