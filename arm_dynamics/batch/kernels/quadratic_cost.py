"""Second-order expansion of a cost and first-order expansion of a policy, generated code."""

from __future__ import annotations

from typing import Any

import casadi as ca

from arm_dynamics.batch.kernels.cost import CostFunction
from arm_dynamics.batch.kernels.kernel_source import FUNCTION, function_lines, head_text
from arm_dynamics.batch.kernels.layout import Layout, ModuleSource, with_constant_rows
from arm_dynamics.batch.kernels.plan_spec import PlanSpec
from arm_dynamics.batch.kernels.plan_trace import policy, traced_cost
from arm_dynamics.batch.kernels.step_trace import TracedFunction
from arm_dynamics.batch.kernels.symbolic_equations import column, input_symbols
from arm_dynamics.batch.kernels.symbolic_math import recorded_residuals
from arm_dynamics.model.arm_model import ArmModel


def quadratic_source(arm: ArmModel, spec: PlanSpec) -> ModuleSource:
    """Return a module with ``running``, ``terminal`` and ``policy`` of one lane.

    With z = (q, v, act, command): "value", "gradient" (z), "hessian" (z, z) of a cost;
    "policy_state" (nv, 2 nv) and "policy_input" (nv, nv), the derivatives of the policy without
    limits by (q, v) and by the knot. An effort of ``interface`` "effort" is the command; others
    count as constants.
    """
    n, size = arm.nv, 3 * arm.nv + arm.na
    sizes = {"q": n, "v": n, "act": arm.na, "command": n, "effort": n, **spec.rows(arm)}
    layout = Layout.of({
        **sizes, "value": 1, "gradient": size, "hessian": size * size,
        "policy_state": 2 * n * n, "policy_input": n * n,
    })  # fmt: skip
    costs = {"running": spec.cost.running, "terminal": spec.cost.terminal}
    with recorded_residuals() as residuals:
        functions = [_expansion(arm, spec, name, cost, residuals) for name, cost in costs.items()]
    functions.append(_policy_derivative(arm, spec))
    constants: dict[float, str] = {}
    texts = [
        FUNCTION.format(name=f.name, purpose=f.purpose, lines=function_lines(f, layout, constants))
        for f in functions
    ]
    title = f"Expansion of a cost, {spec.policy}, {spec.interface} commands."
    head = head_text(title, with_constant_rows(layout, 1, len(constants)), 1, "float64")
    marked = f"\n\nGAUSS_NEWTON = {bool(residuals)}\n"
    return ModuleSource("".join([head, *texts, marked]), tuple(constants))


def _expansion(
    arm: ArmModel,
    spec: PlanSpec,
    name: str,
    cost: CostFunction | None,
    residuals: list[tuple[Any, Any]],
) -> TracedFunction:
    """Return value, gradient and second derivative; of squared residuals r(z) the latter is 2 JᵀJ.

    f(z, r(z)) has the gradient Gᵀ ∇f and, without the second derivatives of r, the second
    derivative Gᵀ ∇²f G, with G = [1; ∂r/∂z].
    """
    n, names = arm.nv, ("q", "v", "act", "command", "effort", "parameter")
    sizes = {"q": n, "v": n, "act": arm.na, "command": n, "effort": n, "parameter": spec.cost.size}
    rows = input_symbols({x: sizes[x] for x in names})
    given = [column(rows[x]) for x in names]
    z = ca.vertcat(*given[:4])
    value, before = ca.SX(0), len(residuals)
    if cost is not None:
        known = {**rows, "effort": rows["command"]} if spec.interface == "effort" else rows
        value = traced_cost(arm, spec, cost, known).sx
    r, x = (ca.vertcat(ca.SX(0, 1), *(pair[k] for pair in residuals[before:])) for k in (0, 1))
    x = ca.substitute(x, r, x)
    hessian, gradient = ca.hessian(value, ca.vertcat(z, r))
    G = ca.vertcat(ca.SX.eye(z.numel()), ca.jacobian(x, z))
    results = [value, ca.densify(G.T @ gradient), ca.densify(ca.vec(G.T @ hessian @ G))]
    results = ca.substitute(results, [r], [x])
    function = ca.Function(name, given, ca.cse(results))
    outputs = ("value", "gradient", "hessian")
    return TracedFunction(name, f"Expansion of the {name} cost.", function, names, outputs)


def _policy_derivative(arm: ArmModel, spec: PlanSpec) -> TracedFunction:
    names = ("q", "v", "knot")
    rows = input_symbols(dict.fromkeys(names, arm.nv))
    command = column(policy(arm, spec, rows, limited=False))
    given: list[Any] = [column(rows[x]) for x in names]
    by_state = ca.jacobian(command, ca.vertcat(*given[:2]))
    by_input = ca.jacobian(command, given[2])
    by_rows = [ca.densify(ca.vec(matrix.T)) for matrix in (by_state, by_input)]
    function = ca.Function("policy", given, ca.cse(by_rows))
    outputs = ("policy_state", "policy_input")
    return TracedFunction("policy", "Derivatives of the policy.", function, names, outputs)
