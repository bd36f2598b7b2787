"""The published step and its law, ``dynamechs``, as a module of kernels for many gains at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca
import numpy as np

from arm_dynamics import dynamechs as row
from arm_dynamics.arrays import Vector
from arm_dynamics.bodies import bodies
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.rollout.layout import Layout
from arm_dynamics.rollout.module import PART, head_text, part_lines, shared_constants
from arm_dynamics.rollout.rigid_body import Chain
from arm_dynamics.rollout.symbol import Symbol, symbols
from arm_dynamics.rollout.trace import Part
from arm_dynamics.rollout.vocabulary import traced, where

Rows = dict[str, Any]

STATE = {"q": row.Q, "v": row.V, "a": row.A, "previous": row.PREVIOUS}
"""What every moving joint carries from call to call → its row in ``dynamechs``."""
LAW = {"voltage": row.VOLTAGE, "error_sum": row.ERROR_SUM}
"""What the controlled joints carry."""
GIVEN = {"gain_p": row.GAIN_P, "gain_i": row.GAIN_I}
"""What the controlled joints are given."""
TRIALS, WIDE, ROUNDING = 20, 3.0, 1e-12
"""States that tell whether a joint rests: how many, within what, and an acceleration's share."""
LOOK = 50
"""Calls between two looks at whether any lane goes on."""

MOVING = "\n\nMOVING = {moving}  # joints with rows of their own; the others rest\n"
SCORE = '''

@numba.njit(**options)
def score(x, calls):
    """Up to ``calls`` calls, until every lane is lost; returns those made."""
    for k in range(calls):
        if k % {look} == 0:
            going = 0
            for l in range(LANES):
                going += x[{total} * LANES + l] - x[{total} * LANES + l] == ZERO
            if going == 0:
                return k
        call(x)
    return calls
'''


def published_text(arm: ArmModel, joints: Sequence[str], lanes: int) -> str:
    """The module: ``call`` takes one call of plant and law, ``score`` many."""
    layout, part, moving = trace_published(arm, joints)
    constants = shared_constants("float64")
    body = part_lines(part, layout, constants)
    title = f"{arm.name}: published step, and its law for {', '.join(joints)}."
    head = head_text(title, layout, lanes, "float64", constants)
    call = PART.format(name=part.name, purpose=part.purpose, body=body)
    score = SCORE.format(look=LOOK, total=layout.first["total"])
    return "".join([head, MOVING.format(moving=moving), call, score])


def trace_published(arm: ArmModel, joints: Sequence[str]) -> tuple[Layout, Part, list[int]]:
    """Rows of a lane, the function of one call, and the joints that move.

    Row ``total`` is the sum of the errors so far; infinite from the call on in which they add up
    to more than ``dynamechs.LOST_ERROR``, or to no number. A joint that nothing pushes, whatever
    the others do, rests in the initial pose and has no rows: of five_dof, R1 and R4, whose arm
    moves in a plane.
    """
    columns = [arm.index(joint) for joint in joints]
    moving = sorted(columns)
    while pushed := _pushed(arm, columns, moving):
        moving = sorted({*moving, *pushed})
    rows, x, total = _call(arm, columns, moving)
    after = {name: x[place, moving] for name, place in STATE.items()}
    after |= {name: x[place, columns] for name, place in LAW.items()}
    after["total"] = [total]
    given, found = ([_column(r) for r in every.values()] for every in (rows, after))
    function = ca.Function("call", given, ca.cse(found))
    part = Part("call", "One call of plant and law.", function, tuple(rows), tuple(after))
    return Layout.of({name: len(symbol) for name, symbol in rows.items()}), part, moving


def _pushed(arm: ArmModel, columns: Sequence[int], moving: Sequence[int]) -> list[int]:
    """Joints other than ``moving`` that accelerate at rest in one of some states of the others."""
    rows, x, _ = _call(arm, columns, moving)
    pushed = ca.Function("pushed", [_column(r) for r in rows.values()], [_column(x[row.A])])
    random, least = np.random.default_rng(1), np.zeros(arm.nv)
    for _ in range(TRIALS):
        state = [random.uniform(-WIDE, WIDE, len(symbol)) for symbol in rows.values()]
        a = np.abs(np.array(pushed(*state)).ravel())
        least = np.maximum(least, a / a.max())
    return [j for j in range(arm.nv) if j not in moving and least[j] > ROUNDING]


def _call(arm: ArmModel, columns: Sequence[int], moving: Sequence[int]) -> tuple[Rows, Any, Any]:
    """Symbols before a call, all rows of ``dynamechs`` after it, and the total after it."""
    sizes = dict.fromkeys(STATE, len(moving)) | dict.fromkeys((*LAW, *GIVEN), len(columns))
    sizes |= {"target": len(columns), "dt": 1, "total": 1}
    rows = {name: symbols(name, size) for name, size in sizes.items()}
    x: Any = row.constants(arm).astype(object)
    x[row.Q], x[row.TARGET, columns], x[row.ACTIVE, columns] = (
        arm.pose("initial"),
        rows["target"],
        1,
    )
    for name, place in STATE.items():
        x[place, moving] = rows[name]
    for name, place in {**LAW, **GIVEN}.items():
        x[place, columns] = rows[name]
    x[row.FLAG] = 0.0  # without dry friction it is read only where a torque is exactly 0
    traced(row.advance)(x, rows["dt"][0])
    traced(row.unloaded_torques)(x)
    q, v, tau = ([Symbol(e).sx for e in x[place]] for place in (row.Q, row.V, row.TAU))
    x[row.A] = [Symbol(a) for a in Chain(bodies(arm), arm.gravity, q).acceleration(v, tau)]
    error = traced(row.control)(x)
    total = where(error <= row.LOST_ERROR, rows["total"][0] + error, float("inf"))
    return rows, x, total


def _column(values: Vector | Sequence[Any]) -> Any:
    return ca.vertcat(*[Symbol(value).sx for value in values])
