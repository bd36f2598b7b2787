"""The published step and its controller, ``dynamechs``, as a module for many gains together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from arm_dynamics.batch.kernels.kernel_source import (
    FUNCTION,
    function_lines,
    head_text,
)
from arm_dynamics.batch.kernels.layout import Layout, ModuleSource, with_constant_rows
from arm_dynamics.batch.kernels.step_trace import (
    SymbolRows,
    TracedFunction,
    symbolic_function,
)
from arm_dynamics.batch.kernels.symbolic_equations import input_symbols
from arm_dynamics.batch.kernels.symbolic_math import Symbol, traced, where
from arm_dynamics.batch.kernels.symbolic_rigid_body import Chain
from arm_dynamics.dynamics.bodies import bodies
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation import dynamechs as row

STATE = {"q": row.Q, "v": row.V, "a": row.A, "previous": row.PREVIOUS}
"""State of a moving joint -> row of ``dynamechs``."""
MEMORY = {"voltage": row.VOLTAGE, "error_sum": row.ERROR_SUM}
"""Memory of a controlled joint -> row of ``dynamechs``."""
GAINS = {"gain_p": row.GAIN_P, "gain_i": row.GAIN_I}
"""Gains of a controlled joint -> row of ``dynamechs``."""
TRIALS, RANGE, REST_TOLERANCE = 20, 3.0, 1e-12
"""Random states by which joints at rest are found: number, range, relative acceleration."""
CHECK_EVERY = 50
"""Calls between two checks whether any lane is still valid."""

MOVING = "\n\nMOVING = {moving}  # joints with rows; the others are at rest\n"
SCORE = '''

@numba.njit(**options)
def score(x, calls):
    """Make up to ``calls`` calls, until every lane has diverged; return their number."""
    for k in range(calls):
        if k % {check_every} == 0:
            valid = 0
            for l in range(LANES):
                valid += x[{total} * LANES + l] - x[{total} * LANES + l] == ZERO
            if valid == 0:
                return k
        call(x)
    return calls
'''


def published_source(arm: ArmModel, joints: Sequence[str], lanes: int) -> ModuleSource:
    """Return the module: ``call`` makes one call of plant and controller, ``score`` many."""
    layout, function, moving = trace_published(arm, joints)
    constants: dict[float, str] = {}
    lines = function_lines(function, layout, constants)
    title = f"Published step and controller of {', '.join(joints)}."
    head = head_text(title, with_constant_rows(layout, lanes, len(constants)), lanes, "float64")
    call = FUNCTION.format(name=function.name, purpose=function.purpose, lines=lines)
    score = SCORE.format(check_every=CHECK_EVERY, total=layout.first["total"])
    text = "".join([head, MOVING.format(moving=moving), call, score])
    return ModuleSource(text, tuple(constants))


def trace_published(
    arm: ArmModel, joints: Sequence[str]
) -> tuple[Layout, TracedFunction, list[int]]:
    """Return the rows of a lane, the function of one call, and the moving joints.

    Row ``total`` is the sum of the errors so far; it is infinite from the call on in which their
    sum exceeds ``dynamechs.LOST_ERROR`` or is NaN. A joint that does not accelerate, whatever the
    others do, stays in the initial configuration and has no rows: R1 and R4 of five_dof, which
    moves in a plane.
    """
    columns = [arm.index(joint) for joint in joints]
    moving = sorted(columns)
    while others := _accelerated(arm, columns, moving):
        moving = sorted({*moving, *others})
    rows, x, total = _call(arm, columns, moving)
    after = {name: x[place, moving] for name, place in STATE.items()}
    after |= {name: x[place, columns] for name, place in MEMORY.items()}
    after["total"] = [total]
    function = TracedFunction.of("call", "One call of plant and controller.", rows, after)
    return Layout.of({name: len(symbol) for name, symbol in rows.items()}), function, moving


def _accelerated(arm: ArmModel, columns: Sequence[int], moving: Sequence[int]) -> list[int]:
    """Return the joints other than ``moving`` that accelerate from rest in a random state."""
    rows, x, _ = _call(arm, columns, moving)
    acceleration = symbolic_function("acceleration", rows, {"a": x[row.A]})
    random, largest = np.random.default_rng(1), np.zeros(arm.nv)
    for _ in range(TRIALS):
        state = [random.uniform(-RANGE, RANGE, len(symbol)) for symbol in rows.values()]
        a = np.abs(np.array(acceleration(*state)).ravel())
        largest = np.maximum(largest, a / a.max())
    return [j for j in range(arm.nv) if j not in moving and largest[j] > REST_TOLERANCE]


def _call(
    arm: ArmModel, columns: Sequence[int], moving: Sequence[int]
) -> tuple[SymbolRows, Any, Any]:
    """Return the symbols before a call, all rows of ``dynamechs`` and the total after it."""
    sizes = dict.fromkeys(STATE, len(moving)) | dict.fromkeys((*MEMORY, *GAINS), len(columns))
    sizes |= {"target": len(columns), "dt": 1, "total": 1}
    rows = input_symbols(sizes)
    x: Any = row.constants(arm).astype(object)
    x[row.Q], x[row.TARGET, columns], x[row.ACTIVE, columns] = (
        arm.configuration("initial"),
        rows["target"],
        1,
    )
    for name, place in STATE.items():
        x[place, moving] = rows[name]
    for name, place in {**MEMORY, **GAINS}.items():
        x[place, columns] = rows[name]
    x[row.FLAG] = 0.0  # without dry friction it is read only at a torque of exactly 0
    traced(row.advance_published_step)(x, rows["dt"][0])
    traced(row.unloaded_torques)(x)
    q, v, tau = ([Symbol(e).sx for e in x[place]] for place in (row.Q, row.V, row.TAU))
    x[row.A] = [Symbol(a) for a in Chain(bodies(arm), arm.gravity, q).acceleration(v, tau)]
    error = traced(row.published_control_step)(x)
    total = where(error <= row.LOST_ERROR, rows["total"][0] + error, float("inf"))
    return rows, x, total
