"""The published step and its law, ``dynamechs``, as a module of kernels for many gains at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import casadi as ca

from arm_dynamics import dynamechs as row
from arm_dynamics.arrays import Vector
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.rollout.bodies import bodies
from arm_dynamics.rollout.layout import Layout
from arm_dynamics.rollout.module import PART, head_text, part_lines, shared_constants
from arm_dynamics.rollout.rigid_body import Chain
from arm_dynamics.rollout.symbol import Symbol, symbols
from arm_dynamics.rollout.trace import Part
from arm_dynamics.rollout.vocabulary import traced, where

STATE = {"q": row.Q, "v": row.V, "a": row.A, "previous": row.PREVIOUS}
"""What every joint carries from call to call → its row in ``dynamechs``."""
LAW = {"voltage": row.VOLTAGE, "error_sum": row.ERROR_SUM}
"""What the controlled joints carry."""
GIVEN = {"gain_p": row.GAIN_P, "gain_i": row.GAIN_I}
"""What the controlled joints are given."""
LOOK = 50
"""Calls between two looks at whether any lane goes on."""

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
    layout, part = trace_published(arm, joints)
    constants = shared_constants("float64")
    body = part_lines(part, layout, constants)
    title = f"{arm.name}: published step, and its law for {', '.join(joints)}."
    head = head_text(title, layout, lanes, "float64", constants)
    call = PART.format(name=part.name, purpose=part.purpose, body=body)
    return head + call + SCORE.format(look=LOOK, total=layout.first["total"])


def trace_published(arm: ArmModel, joints: Sequence[str]) -> tuple[Layout, Part]:
    """Rows of a lane and the function of one call.

    Row ``total`` is the sum of the errors so far; infinite from the call on in which they add up
    to more than ``dynamechs.LOST_ERROR``, or to no number.
    """
    n, columns = arm.nv, [arm.index(joint) for joint in joints]
    sizes = dict.fromkeys(STATE, n) | dict.fromkeys((*LAW, *GIVEN), len(columns))
    sizes |= {"target": n, "dt": 1, "total": 1}
    rows = {name: symbols(name, size) for name, size in sizes.items()}
    x: Any = row.constants(arm).astype(object)
    x[row.TARGET], x[row.ACTIVE, columns] = rows["target"], 1.0
    for name, place in STATE.items():
        x[place] = rows[name]
    for name, place in {**LAW, **GIVEN}.items():
        x[place, columns] = rows[name]
    total = _call(arm, x, rows["dt"][0], rows["total"][0])
    after = {name: x[place] for name, place in STATE.items()}
    after |= {name: x[place, columns] for name, place in LAW.items()}
    after["total"] = [total]
    function = ca.Function(
        "call",
        [_column(rows[name]) for name in sizes],
        ca.cse([_column(a) for a in after.values()]),
    )
    part = Part("call", "One call of plant and law.", function, tuple(sizes), tuple(after))
    return Layout.of(sizes), part


def _call(arm: ArmModel, x: Any, dt: Symbol, total: Symbol) -> Any:
    """As ``Dynamechs.call`` and ``dynamechs.objective``, on symbols."""
    traced(row.advance)(x, dt)
    q, v, tau = ([Symbol(e).sx for e in x[place]] for place in (row.Q, row.V, row.TAU))
    x[row.A] = [Symbol(a) for a in Chain(bodies(arm), arm.gravity, q).acceleration(v, tau)]
    error = traced(row.control)(x)
    return where(error <= row.LOST_ERROR, total + error, float("inf"))


def _column(values: Vector | Sequence[Any]) -> Any:
    return ca.vertcat(*[Symbol(value).sx for value in values])
