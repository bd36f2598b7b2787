"""One time step as a pure function: state vector and commands in, next state vector out.

The state vector has 5n + 3 + na entries in rad, rad/s, rad/s² and m: q (n), q̇ (n), q̈ (n), tool
x y z (3), then (stiction flag, previous velocity) of each joint (2n), then the actuator states
(na).
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import lru_cache
from reprlib import repr as short

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.core.argument_checks import check_type
from arm_dynamics.core.arrays import BoolArray, Vector, as_readonly, check_float
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.core.state import Command, State, require_state
from arm_dynamics.dynamics.kinematics.frames import tool_position
from arm_dynamics.model.arm_argument import requires_arm
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.dynamechs import Dynamechs
from arm_dynamics.simulation.plant import Plant


@dataclass(frozen=True, slots=True, eq=False)
class StateVectorParts:
    """Parts of a state vector, read-only; ``stiction`` is 1 where a joint sticks, else 0."""

    q: Vector
    v: Vector
    a: Vector
    tool: Vector
    stiction: Vector
    previous: Vector
    act: Vector


def state_vector_size(arm: ArmModel) -> int:
    """Return the length of the state vector, 5n + 3 + na."""
    return 5 * arm.nv + 3 + arm.na


def entry_names(arm: ArmModel) -> tuple[str, ...]:
    """Return the entries' names: "q[R1]" ..., "tool x" ..., "stiction[R1]" ..."""
    joints = arm.joint_names
    motion = [f"{letter}[{joint}]" for letter in ("q", "v", "a") for joint in joints]
    tool = [f"tool {axis}" for axis in "xyz"]
    memory = [f"{word}[{joint}]" for joint in joints for word in ("stiction", "previous v")]
    return (*motion, *tool, *memory, *arm.act_names)


@requires_arm
def split_state_vector(arm: ArmModel, vector: ArrayLike) -> StateVectorParts:
    """Return the parts of a state vector.

    Raises InvalidValue for a wrong length, with the expected composition, and for a non-finite
    entry, with its name.
    """
    n, size = arm.nv, state_vector_size(arm)
    try:
        x = as_readonly(vector)
    except InvalidValue as error:
        raise InvalidValue(f"state vector = {short(vector)}; expected {size} numbers") from error
    if x.shape != (size,):
        actuator_states = f" + {arm.na} actuator states" if arm.na else ""
        raise InvalidValue(
            f"state vector: shape = {x.shape}; expected ({size},) for arm '{arm.name}':"
            f" {n} positions + {n} velocities + {n} accelerations + 3 of the tool +"
            f" 2 · {n} (stiction flag, previous velocity){actuator_states}"
        )
    if not np.isfinite(x).all():
        index = int(np.flatnonzero(~np.isfinite(x))[0])
        raise InvalidValue(
            f"state vector: {entry_names(arm)[index]} = {x[index]}; expected a finite number"
        )
    memory = x[3 * n + 3 : 5 * n + 3]
    return StateVectorParts(
        x[:n], x[n : 2 * n], x[2 * n : 3 * n], x[3 * n : 3 * n + 3],
        memory[0::2], memory[1::2], x[5 * n + 3 :],
    )  # fmt: skip


def join_state_vector(arm: ArmModel, parts: StateVectorParts) -> Vector:
    """Return the state vector (5n + 3 + na,) of its parts, read-only."""
    memory = np.column_stack((parts.stiction, parts.previous)).ravel()
    return as_readonly(np.concatenate((parts.q, parts.v, parts.a, parts.tool, memory, parts.act)))


@requires_arm
def pack_state(arm: ArmModel, state: State) -> Vector:
    """Return the state vector (5n + 3 + na,) of an arm's state, read-only.

    The acceleration is 0, no joint sticks, and the previous velocity is the present one. Without
    ``state.act`` the actuator states are those at rest in this configuration. Raises InvalidValue
    for a wrong number of joints or actuator states and for a non-finite entry.
    """
    n, state = arm.nv, require_state(state)
    if state.q.size != n or state.v.size != n or state.act.size not in (0, arm.na):
        raise InvalidValue(
            f"state has {state.q.size} positions, {state.v.size} velocities and {state.act.size}"
            f" actuator states; arm '{arm.name}' has {n} joints and {arm.na} actuator states"
        )
    act = state.act if state.act.size else arm.hold_act(state.q, arm.initial_act)
    still, tool = np.zeros(n), np.zeros(3)
    parts = StateVectorParts(state.q, state.v, still, tool, still, state.v, act)
    split_state_vector(
        arm, join_state_vector(arm, parts)
    )  # checks every entry before the tool position is computed
    return join_state_vector(
        arm,
        StateVectorParts(state.q, state.v, still, tool_position(arm, state.q), still, state.v, act),
    )


@requires_arm
def unpack_state(arm: ArmModel, vector: ArrayLike, time: float = 0.0) -> State:
    """Return the arm's state at ``time`` [s] from a state vector (5n + 3 + na,).

    The applied effort is not in the vector and becomes NaN. Raises InvalidValue as
    ``split_state_vector`` does.
    """
    parts = split_state_vector(arm, vector)
    unknown = as_readonly(np.full(arm.nv, np.nan))
    time = check_float("time [s]", time)
    return State(time, as_readonly(parts.q), as_readonly(parts.v), unknown, as_readonly(parts.act))


__all__ = ["COMPATIBILITY", "forward_model", "pack_state", "unpack_state"]

COMPATIBILITY = ("dynamechs",)
"""Published programs whose step is available instead, artifacts included."""
INTEGRATOR = "semi_implicit_euler"
PLANT_CAPACITY = 8
"""Plants that each thread keeps for its next call."""


class _Plants(threading.local):
    """Plants of one thread: their scratch memory must not be used by two threads."""

    def __init__(self) -> None:
        self.of = lru_cache(maxsize=PLANT_CAPACITY)(Plant)
        self.dynamechs_of = lru_cache(maxsize=PLANT_CAPACITY)(Dynamechs)


_plants = _Plants()


@requires_arm
def forward_model(
    arm: ArmModel,
    state: ArrayLike,
    voltages: ArrayLike,
    dt: float,
    *,
    integrator: str = INTEGRATOR,
    interface: str = "voltage",
    compatibility: str | None = None,
) -> Vector:
    """Return the state vector after one time step, x⁺ = f(x, u, dt), read-only.

    Repeated calls give what ``Simulation`` gives, bit for bit, with every integrator. In the
    result q̈ = (q̇⁺ - q̇) / dt is the acceleration of the step just taken, the stiction flag is 1
    where dry friction holds the joint at rest, and the previous velocity is that of ``state``;
    none of the three is an input.

    Parameters
    ----------
    arm : ArmModel
        The arm.
    state : ArrayLike, shape (5n + 3 + na,)
        State vector of this module; not changed.
    voltages : ArrayLike, shape (n,)
        Commands on ``interface``.
    dt : float
        Time step [s].
    integrator : str
        Name of the integrator.
    interface : str
        "voltage" [V] or "effort" [N·m].
    compatibility : str, optional
        "dynamechs": the published step of ``arm_dynamics.simulation.dynamechs``, which reads all
        three entries named above, accepts voltages only and has its own integrator.

    Returns
    -------
    Vector, shape (5n + 3 + na,)
        The next state vector.

    Raises
    ------
    InvalidValue
        For a vector of a wrong length or with a non-finite entry, a dt that is not positive, and
        a simulation that diverges.
    CommandRejected
        For a wrong number of voltages or a non-finite one.
    UnknownName
        For an integrator, interface or compatibility that does not exist.

    """
    before = split_state_vector(arm, state)
    dt = check_float("dt [s]", dt, above=0)
    command = Command.checked(interface, voltages, arm.nv)
    integrator = check_type(str, "integrator", integrator)
    if compatibility is None:
        start = State(0.0, before.q, before.v, np.full(arm.nv, np.nan), before.act)
        after = _plants.of(arm, integrator).step(start, command, dt)
        held = _has_dry_friction(arm) & (after.v == 0.0)
        a, tool = (after.v - before.v) / dt, tool_position(arm, after.q)
        return join_state_vector(
            arm, StateVectorParts(after.q, after.v, a, tool, held, before.v, after.act)
        )
    if compatibility not in COMPATIBILITY:
        raise UnknownName("compatibility", compatibility, COMPATIBILITY)
    if (integrator, interface) != (INTEGRATOR, "voltage"):
        raise InvalidValue(
            f"compatibility '{compatibility}': integrator = '{integrator}', interface ="
            f" '{interface}'; expected neither: it takes voltages and has its own integrator"
        )
    return join_state_vector(arm, _published_step(arm, before, command, dt))


def _published_step(
    arm: ArmModel, before: StateVectorParts, command: Command, dt: float
) -> StateVectorParts:
    """Return the parts of the state after the step of ``dynamechs``."""
    q, v, a, stiction, previous = _plants.dynamechs_of(arm).step(
        before.q, before.v, before.a, before.stiction, before.previous, command.value, dt
    )
    if not (np.isfinite(q) & np.isfinite(v) & np.isfinite(a)).all():
        raise InvalidValue(f"simulation diverged (dynamechs, dt = {dt:g} s); reduce dt")
    return StateVectorParts(q, v, a, tool_position(arm, q), stiction, previous, before.act)


@lru_cache(maxsize=PLANT_CAPACITY)
def _has_dry_friction(arm: ArmModel) -> BoolArray:
    """Return which joints have dry friction (nv,)."""
    pairs = zip(arm.joints, arm.actuators, strict=True)
    return np.array([joint.friction > 0 or actuator.has_dry_friction for joint, actuator in pairs])
