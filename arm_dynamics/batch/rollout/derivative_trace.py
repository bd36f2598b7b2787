"""The text of a module that takes one time step and its derivative.

The derivative of the traced laws: of their rate, and of one time step of a method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca

from arm_dynamics.batch.rollout.kernel import Layout
from arm_dynamics.batch.rollout.kernel_source import STEP, head_text, part_lines, shared_constants
from arm_dynamics.batch.rollout.step_trace import INTEGRATORS, TracedFunction
from arm_dynamics.batch.rollout.symbolic_equations import SymbolicEquationsOfMotion, Symbols
from arm_dynamics.batch.rollout.symbolic_math import Symbol, symbols, traced
from arm_dynamics.batch.rollout.symbolic_rigid_body import Chain, solve_ldl
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.dynamics.bodies import Body
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation import joint_physics as row
from arm_dynamics.simulation.integrators import find_integrator

ADVANCE = '''

@numba.njit(**options)
def advance(x, state, command, dt):
    """Take these, then ``step``: 0 where it went well, 1 where it left the finite numbers.

    2 for a wrong size or a dt that is not above 0.
    """
    if state.size != {n} or command.size != {nv} or not dt > ZERO:
        return 2
    for i in range({n}):
        x[i] = state[i]
    for i in range({nv}):
        x[{told} + i] = command[i]
    x[{dt}] = dt
    return 1 if step(x) else 0
'''
GIVEN, FOUND = ("q", "v", "z", "told", "dt"), ("q", "v", "z", "effort", "A", "B")


def derivative_text(arm: ArmModel, integrator: str, interface: str) -> str:
    """A module whose ``step`` replaces rows q, v and z and fills effort, A and B, one lane.

    ``advance`` takes state, command and dt as arrays first.
    """
    function = step_derivative(arm, integrator, interface)
    n, nv = 2 * arm.nv + arm.na, arm.nv
    sizes = {"q": nv, "v": nv, "z": arm.na, "told": nv, "dt": 1, "effort": nv}
    layout = Layout.of({**sizes, "A": n * n, "B": n * nv})
    part = TracedFunction("step", "One time step and its derivative.", function, GIVEN, FOUND)
    constants = shared_constants("float64")
    body = part_lines(part, layout, constants)
    title = f"{arm.name}: derivative of {integrator}, {interface} commands."
    head = head_text(title, layout, 1, "float64", constants)
    own = ADVANCE.format(n=n, nv=nv, told=layout.first["told"], dt=layout.first["dt"])
    return head + STEP.format(body=body, rub="") + own


SX = Any
BACKWARD = {"allow_forward": False}
"""Row by row: fewer operations, as efforts are fewer than what they depend on."""


@dataclass(frozen=True, eq=False)
class SolvedAcceleration:
    """One acceleration of a trace: M a = tau - h(q, v), as a symbol until the end.

    a (nv,) the symbol; residual (nv,) M a + h - tau; mass (nv, nv).
    """

    a: SX
    residual: SX
    mass: SX

    @property
    def value(self) -> SX:
        """a = M⁻¹ (tau - h)."""
        still = ca.substitute(self.residual, self.a, ca.SX.zeros(*self.a.shape))
        return -solve_ldl(self.mass, still)


class DifferentiableEquationsOfMotion(SymbolicEquationsOfMotion):
    """The motion with its accelerations kept apart, so that a derivative goes round their solution.

    With r(x, a) = M a + h - tau = 0:  da/dx = -M⁻¹ ∂r/∂x, of inverse dynamics alone: half the
    operations of a derivative through the articulated-body algorithm.
    Source: J. Carpentier and N. Mansard, RSS XIV (2018), section III.
    """

    def __init__(self, arm: ArmModel, interface: str, told: Symbols) -> None:
        super().__init__(arm, {}, interface, told)
        self.solved: list[SolvedAcceleration] = []

    def solve(self, table: Sequence[Body], q: Symbols, v: Symbols) -> Symbols:
        """A symbol for v̇ (nv,), and what it solves."""
        a = symbols(f"a{len(self.solved)}_", len(q))
        chain = Chain(table, self.arm.gravity, [x.sx for x in q])
        needed = chain.inverse_dynamics([x.sx for x in v], [x.sx for x in a])
        residual = ca.vertcat(*needed) - column(self.rows[row.TAU])
        self.solved.append(SolvedAcceleration(column(a), residual, chain.mass_matrix()))
        return a.copy()

    def jacobian(self, y: SX, x: SX) -> SX:
        """dy/dx, accelerations included."""
        slopes: list[SX] = []
        for solved in self.solved:
            slopes.append(-solve_ldl(solved.mass, self._total(solved.residual, x, slopes)))
        return self._total(y, x, slopes)

    def explicit(self, expressions: Sequence[SX]) -> list[SX]:
        """``expressions`` with every acceleration in place of its symbol."""
        found = list(expressions)
        for solved in reversed(self.solved):
            found = ca.substitute(found, [solved.a], [solved.value])
        return list(ca.cse(found))

    def _total(self, y: SX, x: SX, slopes: Sequence[SX]) -> SX:
        total = ca.jacobian(y, x, BACKWARD)
        for solved, slope in zip(self.solved, slopes, strict=False):
            total += ca.mtimes(ca.jacobian(y, solved.a, BACKWARD), slope)
        return total


def rate_derivative(arm: ArmModel, interface: str) -> Any:
    """(q, v, z, told) → A, B, λ of ẏ = f(y, u), y = (q, v, z); stops and dry friction apart."""
    (q, v, z, told), motion = _symbols(arm, interface)
    motion.rows[row.STOP_STIFFNESS] = motion.rows[row.STOP_DAMPING] = Symbol(0.0)
    a = motion.acceleration(q.copy(), v.copy(), z.copy())
    decay, source = motion.act_dot_terms(q.copy(), v.copy(), z.copy()) if arm.na else (z, z)
    given = [column(x) for x in (q, v, z, told)]
    rate = ca.vertcat(given[1], column(a), column(source - decay * z))
    A, B = _slopes(motion, rate, given)
    return ca.Function("rate", given, motion.explicit([A, B, column(decay)]))


def step_derivative(arm: ArmModel, integrator: str, interface: str) -> Any:
    """(q, v, z, told, dt) → q⁺, v⁺, z⁺, effort, A, B of one time step; dry friction apart.

    A (n, n) and B (n, nv) row after row. Raises InvalidValue for a method without a trace.
    """
    if integrator not in INTEGRATORS:
        raise InvalidValue(
            f"integrator {integrator} has no derivative; those that have: {INTEGRATORS}"
        )
    (q, v, z, told), motion = _symbols(arm, interface)
    dt, after, step = symbols("dt", 1), [x.copy() for x in (q, v, z)], find_integrator(integrator)
    traced(type(step).advance)(step, motion, *after, dt[0])
    given, ends = [column(x) for x in (q, v, z, told, dt)], [column(x) for x in after]
    A, B = _slopes(motion, ca.vertcat(*ends), given)
    by_rows = [ca.densify(ca.vec(matrix.T)) for matrix in (A, B)]
    found = motion.explicit([*ends, column(motion.effort), *by_rows])
    return ca.Function("step", given, found)


def column(values: Symbols) -> SX:
    """A vector of symbols as CasADi's."""
    return ca.vertcat(*[value.sx for value in values]) if len(values) else ca.SX.zeros(0, 1)


def _symbols(
    arm: ArmModel, interface: str
) -> tuple[list[Symbols], DifferentiableEquationsOfMotion]:
    sizes = {"q": arm.nv, "v": arm.nv, "z": arm.na, "told": arm.nv}
    found = [symbols(name, size) for name, size in sizes.items()]
    return found, DifferentiableEquationsOfMotion(arm, interface, found[3])


def _slopes(motion: DifferentiableEquationsOfMotion, y: SX, given: Sequence[SX]) -> tuple[SX, SX]:
    """∂y/∂(q, v, z) and ∂y/∂u."""
    both, n = motion.jacobian(y, ca.vertcat(*given[:4])), y.shape[0]
    return both[:, :n], both[:, n:]
