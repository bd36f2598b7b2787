"""Policy and cost of a predicted motion on symbols: functions that a planning kernel adds."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import lru_cache
from math import isfinite
from numbers import Real
from typing import Any

import casadi as ca
import numpy as np

from arm_dynamics.batch.kernels.contact_trace import placed_joints, symbol_array
from arm_dynamics.batch.kernels.cost import (
    CostFunction,
    CostGeometry,
    Stage,
    cost_errors,
    cost_geometry,
)
from arm_dynamics.batch.kernels.emitter import Emitter
from arm_dynamics.batch.kernels.free_object import BODY_ROWS
from arm_dynamics.batch.kernels.layout import Layout
from arm_dynamics.batch.kernels.plan_spec import PlanSpec
from arm_dynamics.batch.kernels.step_trace import StepTrace, SymbolRows, TracedFunction
from arm_dynamics.batch.kernels.symbolic_equations import input_symbols, vector
from arm_dynamics.batch.kernels.symbolic_math import (
    Symbol,
    SymbolVector,
    clip,
    recorded_residuals,
    traced,
)
from arm_dynamics.batch.kernels.symbolic_rigid_body import Chain
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.dynamics.bodies import bodies
from arm_dynamics.model.arm_model import ArmModel

STAGE = ("q", "v", "act", "command", "effort")


def trace_plan(trace: StepTrace, arm: ArmModel, spec: PlanSpec) -> StepTrace:
    """Add rows and functions: the policy before each period, the costs after it and at the end."""
    layout = Layout.of({**trace.layout.sizes, **spec.rows(arm)})
    return replace(
        trace, layout=layout, functions=(*trace.functions, *plan_functions(arm, spec)),
        inputs=("knot",),
    )  # fmt: skip


@lru_cache(maxsize=16)
def plan_functions(arm: ArmModel, spec: PlanSpec) -> tuple[TracedFunction, ...]:
    """Return "tick", the policy, "score", the running cost, and "terminal", the terminal cost.

    Raises
    ------
    InvalidValue
        If a cost cannot be traced; the message names its line.

    """
    n, rows = arm.nv, input_symbols(dict.fromkeys(("q", "v", "knot"), arm.nv))
    tick = TracedFunction.of(
        "tick", "Command of a period.", rows, {"command": policy(arm, spec, rows)}
    )
    body = BODY_ROWS if spec.body is not None else {}
    sizes = {"q": n, "v": n, "act": arm.na, "effort": n, "command": n, **body, **spec.rows(arm)}
    functions = [tick]
    for name, cost in (("score", spec.cost.running), ("terminal", spec.cost.terminal)):
        names = (*STAGE, *body, "parameter", "cost")
        rows = input_symbols({x: sizes[x] for x in names})
        value = rows["cost"][0]
        with recorded_residuals(replace=False) as residuals:
            if cost is not None:
                value = value + traced_cost(arm, spec, cost, rows)
        stage = "period" if name == "score" else "last stage"
        purpose = f"Cost of a {stage}, with {len(residuals)} squared residuals."
        functions.append(TracedFunction.of(name, purpose, rows, {"cost": [value]}))
    return tuple(functions)


def policy(
    arm: ArmModel, spec: PlanSpec, rows: SymbolRows, *, limited: bool = True
) -> SymbolVector:
    """Return ``PlanSpec.command`` on symbols (nv,), within the limits of commands or without."""
    chain = Chain(bodies(arm), arm.gravity, [x.sx for x in rows["q"]])
    rest, command = [ca.SX(0)] * arm.nv, rows["knot"]
    if spec.policy == "gravity":
        command = command + vector(map(Symbol, chain.inverse_dynamics(rest, rest)))
    elif spec.policy == "acceleration":
        v, a = ([x.sx for x in rows[name]] for name in ("v", "knot"))
        command = vector(map(Symbol, chain.inverse_dynamics(v, a)))
    if not limited:
        return vector(command)
    limits = spec.limits(arm)
    return vector(clip(x, -bound, bound) for x, bound in zip(command, limits.tolist(), strict=True))


def symbolic_stage(geometry: CostGeometry, rows: SymbolRows) -> Stage:
    """Return the stage of symbols of the rows ``STAGE``."""
    arm = geometry.arm
    chain = Chain(bodies(arm), arm.gravity, [x.sx for x in rows["q"]])
    places = [(np.eye(3), np.zeros(3)), *placed_joints(chain)]
    return Stage(geometry, rows, places, lambda: symbol_array(chain.mass_matrix()), traced)


def traced_cost(arm: ArmModel, spec: PlanSpec, function: CostFunction, rows: SymbolRows) -> Symbol:
    """Return a cost function on symbols; raises InvalidValue that names its line."""
    stage = symbolic_stage(cost_geometry(arm, spec.scene), rows)
    with cost_errors(function):
        value: Any = traced(function)(stage, spec.cost.unpacked(rows["parameter"]))
        if np.shape(value):
            raise InvalidValue(
                f"cost '{function.__name__}': shape of its value = {np.shape(value)}; expected a"
                " number; sum the entries"
            )
        if not isinstance(value, Symbol) and not (isinstance(value, Real) and isfinite(value)):
            raise InvalidValue(
                f"cost '{function.__name__}': value = {value!r}; expected a finite number"
            )
        return Symbol(value)


@lru_cache(maxsize=16)
def plan_fingerprint(arm: ArmModel, spec: PlanSpec) -> str:
    """Return a hash of the traced policy and costs."""
    texts = []
    for function in plan_functions(arm, spec):
        traced_function = function.function
        entries = [
            (k, i)
            for k in range(traced_function.n_in())
            for i in range(traced_function.numel_in(k))
        ]
        emitter = Emitter({(k, i): f"i{k}_{i}" for k, i in entries}, {})
        emitter.emit(traced_function)
        texts.append(repr((function.purpose, emitter.lines, emitter.constants, emitter.outputs)))
    return hashlib.sha256("".join(texts).encode()).hexdigest()
