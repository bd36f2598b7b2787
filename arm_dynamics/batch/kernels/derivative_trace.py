"""Derivatives of the traced equations: of the state derivative, and of one time step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca

from arm_dynamics.batch.kernels.kernel_source import FUNCTION, function_lines, head_text
from arm_dynamics.batch.kernels.layout import Layout, ModuleSource, with_constant_rows
from arm_dynamics.batch.kernels.step_trace import INTEGRATORS, TracedFunction
from arm_dynamics.batch.kernels.symbolic_equations import (
    SymbolicEquationsOfMotion,
    column,
    input_symbols,
)
from arm_dynamics.batch.kernels.symbolic_math import SX, Symbol, SymbolVector, symbols, traced
from arm_dynamics.batch.kernels.symbolic_rigid_body import Chain, solve_ldl
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.dynamics.bodies import Body
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation import joint_physics as row
from arm_dynamics.simulation.integrators import find_integrator

INPUTS = ("q", "v", "act", "command", "dt")
OUTPUTS = ("q", "v", "act", "effort", "A", "B")
BACKWARD = {"allow_forward": False}
"""Reverse mode, row by row: there are fewer efforts than variables that they depend on."""


def derivative_source(arm: ArmModel, integrator: str, interface: str) -> ModuleSource:
    """Return a module of one lane whose ``step`` replaces q, v, act and fills effort, A and B."""
    function = step_derivative(arm, integrator, interface)
    n, nv = 2 * arm.nv + arm.na, arm.nv
    sizes = {"q": nv, "v": nv, "act": arm.na, "command": nv, "dt": 1, "effort": nv}
    layout = Layout.of({**sizes, "A": n * n, "B": n * nv})
    step = TracedFunction("step", "One time step and its derivative.", function, INPUTS, OUTPUTS)
    constants: dict[float, str] = {}
    lines = function_lines(step, layout, constants)
    title = f"Derivative of {integrator}, {interface} commands."
    head = head_text(title, with_constant_rows(layout, 1, len(constants)), 1, "float64")
    text = FUNCTION.format(name="step", purpose=step.purpose, lines=lines)
    return ModuleSource(head + text, tuple(constants))


@dataclass(frozen=True, eq=False)
class SolvedAcceleration:
    """An acceleration of a trace: M a = tau - h(q, v), kept as a symbol.

    Attributes
    ----------
    a : SX
        The symbol, shape (nv,).
    residual : SX
        M a + h - tau, shape (nv,).
    mass : SX
        M, shape (nv, nv).

    """

    a: SX
    residual: SX
    mass: SX

    @property
    def value(self) -> SX:
        """a = M⁻¹ (tau - h)."""
        rest = ca.substitute(self.residual, self.a, ca.SX.zeros(*self.a.shape))
        return -solve_ldl(self.mass, rest)


class DifferentiableEquationsOfMotion(SymbolicEquationsOfMotion):
    """Equations of motion whose accelerations stay symbols until they are differentiated.

    With r(x, a) = M a + h - tau = 0: da/dx = -M⁻¹ ∂r/∂x, which needs the inverse dynamics only:
    half of the operations of a derivative of the articulated-body algorithm.

    References
    ----------
    J. Carpentier, N. Mansard, RSS XIV (2018), section III.

    """

    def __init__(self, arm: ArmModel, interface: str, command: SymbolVector) -> None:
        super().__init__(arm, {}, interface, command)
        self.solved: list[SolvedAcceleration] = []

    def solve(self, table: Sequence[Body], q: SymbolVector, v: SymbolVector) -> SymbolVector:
        """Return a symbol for the acceleration (nv,), and keep what it solves."""
        a = symbols(f"a{len(self.solved)}_", len(q))
        chain = Chain(table, self.arm.gravity, [x.sx for x in q])
        needed = chain.inverse_dynamics([x.sx for x in v], [x.sx for x in a])
        residual = ca.vertcat(*needed) - column(self.rows[row.TAU])
        self.solved.append(SolvedAcceleration(column(a), residual, chain.mass_matrix()))
        return a.copy()

    def jacobian(self, y: SX, x: SX) -> SX:
        """Return dy/dx, accelerations included."""
        jacobians: list[SX] = []
        for solved in self.solved:
            jacobians.append(-solve_ldl(solved.mass, self._total(solved.residual, x, jacobians)))
        return self._total(y, x, jacobians)

    def explicit(self, expressions: Sequence[SX]) -> list[SX]:
        """Return ``expressions`` with all accelerations in place of their symbols."""
        results = list(expressions)
        for solved in reversed(self.solved):
            results = ca.substitute(results, [solved.a], [solved.value])
        return list(ca.cse(results))

    def _total(self, y: SX, x: SX, jacobians: Sequence[SX]) -> SX:
        total = ca.jacobian(y, x, BACKWARD)
        for solved, jacobian in zip(self.solved, jacobians, strict=False):
            total += ca.mtimes(ca.jacobian(y, solved.a, BACKWARD), jacobian)
        return total


def rate_derivative(arm: ArmModel, interface: str) -> Any:
    """Return (q, v, act, command) -> A, B, λ of ẏ = f(y, u), y = (q, v, act).

    End stops and dry friction are omitted.
    """
    (q, v, act, command), equations = _symbolic_arm(arm, interface)
    equations.rows[row.STOP_STIFFNESS] = equations.rows[row.STOP_DAMPING] = Symbol(0.0)
    a = equations.acceleration(q.copy(), v.copy(), act.copy())
    decay, source = (
        equations.act_dot_terms(q.copy(), v.copy(), act.copy()) if arm.na else (act, act)
    )
    inputs = [column(x) for x in (q, v, act, command)]
    rate = ca.vertcat(inputs[1], column(a), column(source - decay * act))
    A, B = _state_and_input_jacobians(equations, rate, inputs)
    return ca.Function("rate", inputs, equations.explicit([A, B, column(decay)]))


def step_derivative(arm: ArmModel, integrator: str, interface: str) -> Any:
    """Return (q, v, act, command, dt) -> q⁺, v⁺, act⁺, effort, A, B; dry friction is omitted.

    A (n, n) and B (n, nv) are flattened row by row. Raises InvalidValue for an integrator without
    a trace.
    """
    if integrator not in INTEGRATORS:
        raise InvalidValue(
            f"derivative: integrator = '{integrator}'; expected one of {', '.join(INTEGRATORS)}"
        )
    (q, v, act, command), equations = _symbolic_arm(arm, interface)
    dt, method = symbols("dt", 1), find_integrator(integrator)
    after = [x.copy() for x in (q, v, act)]
    traced(type(method).advance)(method, equations, *after, dt[0])
    inputs, ends = [column(x) for x in (q, v, act, command, dt)], [column(x) for x in after]
    A, B = _state_and_input_jacobians(equations, ca.vertcat(*ends), inputs)
    by_rows = [ca.densify(ca.vec(matrix.T)) for matrix in (A, B)]
    results = equations.explicit([*ends, column(equations.effort), *by_rows])
    return ca.Function("step", inputs, results)


def _symbolic_arm(
    arm: ArmModel, interface: str
) -> tuple[list[SymbolVector], DifferentiableEquationsOfMotion]:
    inputs = input_symbols({"q": arm.nv, "v": arm.nv, "act": arm.na, "command": arm.nv})
    equations = DifferentiableEquationsOfMotion(arm, interface, inputs["command"])
    return list(inputs.values()), equations


def _state_and_input_jacobians(
    equations: DifferentiableEquationsOfMotion, y: SX, inputs: Sequence[SX]
) -> tuple[SX, SX]:
    """∂y/∂(q, v, act) and ∂y/∂u."""
    jacobian, n = equations.jacobian(y, ca.vertcat(*inputs[:4])), y.shape[0]
    return jacobian[:, :n], jacobian[:, n:]
