"""An arm's whole state as one flat vector, for whoever wants numbers alone.

q (n), q̇ (n), q̈ (n), tool x y z (3), then (stiction flag, previous velocity) of each joint
(2n), then the actuators' own states where the arm has any (na): 5n + 3 + na numbers, in rad,
rad/s, rad/s², m.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.arrays import Vector, frozen, scalar
from arm_dynamics.errors import InvalidValue
from arm_dynamics.kinematics import tool_position
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.given_arm import takes_arm
from arm_dynamics.state import State, require_state


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """What a state vector is made of, read-only; ``stiction`` is 1 where a joint sticks, else 0."""

    q: Vector
    v: Vector
    a: Vector
    tool: Vector
    stiction: Vector
    previous: Vector
    act: Vector


def size(arm: ArmModel) -> int:
    """Length of the arm's state vector, 5n + 3 + na."""
    return 5 * arm.nv + 3 + arm.na


def entry_names(arm: ArmModel) -> tuple[str, ...]:
    """What each entry is: "q[R1]" ..., "tool x" ..., "stiction[R1]", "previous v[R1]" ..."""
    joints = arm.joint_names
    motion = [f"{letter}[{joint}]" for letter in ("q", "v", "a") for joint in joints]
    tool = [f"tool {axis}" for axis in "xyz"]
    memory = [f"{word}[{joint}]" for joint in joints for word in ("stiction", "previous v")]
    return (*motion, *tool, *memory, *arm.act_names)


@takes_arm
def split(arm: ArmModel, vector: ArrayLike) -> Parts:
    """The parts of a state vector.

    Raises InvalidValue for a wrong length, saying of what the right one is made, and for an
    entry that is not finite, naming it.
    """
    x, n = _checked(arm, vector), arm.nv
    memory = x[3 * n + 3 : 5 * n + 3]
    return Parts(
        x[:n], x[n : 2 * n], x[2 * n : 3 * n], x[3 * n : 3 * n + 3],
        memory[0::2], memory[1::2], x[5 * n + 3 :],
    )  # fmt: skip


def join(arm: ArmModel, parts: Parts) -> Vector:
    """The state vector (5n + 3 + na,) of its parts, read-only."""
    memory = np.column_stack((parts.stiction, parts.previous)).ravel()
    return frozen(np.concatenate((parts.q, parts.v, parts.a, parts.tool, memory, parts.act)))


@takes_arm
def pack_state(arm: ArmModel, state: State) -> Vector:
    """The state vector (5n + 3 + na,) of an arm's state, read-only.

    Nothing was there before: the acceleration is 0, no joint sticks, the previous velocity is
    the present one. A state without the actuators' own states gets those at rest there. Raises
    InvalidValue for a wrong number of joints or actuator states and for one that is not finite.
    """
    n, state = arm.nv, require_state(state)
    if state.q.size != n or state.v.size != n or state.act.size not in (0, arm.na):
        raise InvalidValue(
            f"state has {state.q.size} positions, {state.v.size} velocities and {state.act.size}"
            f" actuator states; arm '{arm.name}' has {n} joints and {arm.na} actuator states"
        )
    act = state.act if state.act.size else arm.held_act(state.q, arm.initial_act)
    still, tool = np.zeros(n), np.zeros(3)
    parts = Parts(state.q, state.v, still, tool, still, state.v, act)
    split(arm, join(arm, parts))  # every entry is looked at before the tool is
    return join(
        arm, Parts(state.q, state.v, still, tool_position(arm, state.q), still, state.v, act)
    )


@takes_arm
def unpack_state(arm: ArmModel, vector: ArrayLike, time: float = 0.0) -> State:
    """The arm's state at ``time`` [s] from a state vector (5n + 3 + na,).

    The applied effort is not in the vector: it is unknown (NaN). Raises InvalidValue as
    ``split`` does.
    """
    parts = split(arm, vector)
    unknown = frozen(np.full(arm.nv, np.nan))
    time = scalar("time [s]", time)
    return State(time, frozen(parts.q), frozen(parts.v), unknown, frozen(parts.act))


def _checked(arm: ArmModel, vector: ArrayLike) -> Vector:
    try:
        x = frozen(vector)
    except InvalidValue as error:
        raise InvalidValue(f"state vector: {size(arm)} numbers are expected") from error
    if x.shape != (size(arm),):
        raise InvalidValue(f"state vector: shape {x.shape} given, {_composition(arm)}")
    if not np.isfinite(x).all():
        index = int(np.flatnonzero(~np.isfinite(x))[0])
        raise InvalidValue(
            f"state vector: {entry_names(arm)[index]} = {x[index]}: a finite number is expected"
        )
    return x


def _composition(arm: ArmModel) -> str:
    n, own = arm.nv, f" + {arm.na} states of the actuators" if arm.na else ""
    return (
        f"({size(arm)},) expected for arm '{arm.name}': {n} positions + {n} velocities + {n}"
        f" accelerations + 3 of the tool + 2 · {n} (stiction flag, previous velocity){own}"
    )
