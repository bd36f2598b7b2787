"""The arm as one pure function: state vector and commands in, next state vector out."""

from __future__ import annotations

import threading
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from arm_dynamics.arrays import Vector, scalar
from arm_dynamics.dynamechs import Dynamechs
from arm_dynamics.errors import InvalidValue, UnknownName
from arm_dynamics.expect import expect
from arm_dynamics.kinematics import tool_position
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.given_arm import takes_arm
from arm_dynamics.plant import Plant
from arm_dynamics.state import Command, State
from arm_dynamics.state_vector import Parts, join, pack_state, split, unpack_state

__all__ = ["COMPATIBILITY", "forward_model", "pack_state", "unpack_state"]

COMPATIBILITY = ("dynamechs",)
"""Published programs whose step can be had instead, artefacts included."""
METHOD = "semi_implicit_euler"
KEPT = 8
"""Plants that each thread keeps for its next call."""


class _Plants(threading.local):
    """This thread's plants: they hold scratch memory, which no two threads may share."""

    def __init__(self) -> None:
        self.of = lru_cache(maxsize=KEPT)(Plant)
        self.dynamechs_of = lru_cache(maxsize=KEPT)(Dynamechs)


_plants = _Plants()


@takes_arm
def forward_model(
    arm: ArmModel,
    state: ArrayLike,
    voltages: ArrayLike,
    dt: float,
    *,
    method: str = METHOD,
    interface: str = "voltage",
    compatibility: str | None = None,
) -> Vector:
    """The state vector after one time step: x⁺ = f(x, u, dt), read-only; inputs stay untouched.

    ``state`` is the flat vector (5n + 3 + na,) of ``arm_dynamics.state_vector``, ``voltages``
    (n,) one command a joint on ``interface``: "voltage" [V] or "effort" [N·m]; dt [s].
    Calling it again and again is what ``Simulation`` does, bit for bit, for every integration
    ``method``. In the result q̈ = (q̇⁺ - q̇) / dt is the acceleration of the step just taken, the
    stiction flag is 1 where dry friction holds the joint at rest, and the previous velocity is
    the one that came in; none of the three is read.

    ``compatibility="dynamechs"`` takes the published step instead, as ``arm_dynamics.dynamechs``
    states it: it reads all three, knows voltages only and has its own method.

    Raises InvalidValue for a vector of a wrong length or with an entry that is not finite, a dt
    that is not positive, and a motion that leaves the finite numbers; CommandRefused for a wrong
    number of voltages or one that is not finite; UnknownName for a method, interface or
    compatibility that does not exist.
    """
    before = split(arm, state)
    dt = scalar("dt [s]", dt, above=0)
    command = Command.checked(interface, voltages, arm.nv)
    method = expect(str, "method", method)
    if compatibility is None:
        return _step(arm, before, command, dt, method)
    if compatibility not in COMPATIBILITY:
        raise UnknownName("compatibility", compatibility, COMPATIBILITY)
    if (method, interface) != (METHOD, "voltage"):
        raise InvalidValue(
            f"compatibility '{compatibility}' takes voltages and has its own method;"
            f" method '{method}' with interface '{interface}' given: leave both out"
        )
    return _published_step(arm, before, command.value, dt)


def _step(arm: ArmModel, before: Parts, command: Command, dt: float, method: str) -> Vector:
    start = State(0.0, before.q, before.v, np.full(arm.nv, np.nan), before.act)
    after = _plants.of(arm, method).step(start, command, dt)
    held = _rubbing(arm) & (after.v == 0.0)
    a, tool = (after.v - before.v) / dt, tool_position(arm, after.q)
    return join(arm, Parts(after.q, after.v, a, tool, held, before.v, after.act))


@lru_cache(maxsize=KEPT)
def _rubbing(arm: ArmModel) -> NDArray[np.bool_]:
    """Which joints feel dry friction (nv,)."""
    pairs = zip(arm.joints, arm.actuators, strict=True)
    return np.array([joint.friction > 0 or actuator.rubs for joint, actuator in pairs])


def _published_step(arm: ArmModel, before: Parts, voltages: Vector, dt: float) -> Vector:
    q, v, a, stiction, previous = _plants.dynamechs_of(arm).step(
        before.q, before.v, before.a, before.stiction, before.previous, voltages, dt
    )
    if not (np.isfinite(q) & np.isfinite(v) & np.isfinite(a)).all():
        raise InvalidValue(f"the motion left the finite numbers with dt = {dt:g} s: use a smaller")
    return join(arm, Parts(q, v, a, tool_position(arm, q), stiction, previous, before.act))
