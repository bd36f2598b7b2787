"""One time step of the plant as one symbolic function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca

from arm_dynamics.batch import variation
from arm_dynamics.batch.kernels.layout import Layout
from arm_dynamics.batch.kernels.symbolic_equations import (
    SymbolicEquationsOfMotion,
    column,
    input_symbols,
)
from arm_dynamics.batch.kernels.symbolic_math import SX, Symbol, SymbolVector, traced, where
from arm_dynamics.batch.kernels.symbolic_rigid_body import solve_ldl
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.integrators import Integrator, find_integrator

INTEGRATORS = ("explicit_euler", "semi_implicit_euler", "velocity_verlet", "rk4")
"""Integrators whose step is one expression."""
FRICTION_VARIABLES = {
    "joint.friction",
    *(f"motor.{n}" for n in ("coulomb_friction", "stiction", "efficiency", "back_efficiency")),
}
"""Variations that cause dry friction."""


@dataclass(frozen=True)
class TracedFunction:
    """A symbolic function of rows: the names of those it reads and those it writes."""

    name: str
    purpose: str
    function: Any
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class StepTrace:
    """A traced step, and what else is computed in a control period.

    Attributes
    ----------
    layout : Layout
        Rows.
    functions : tuple of TracedFunction
        "step"; with a controller "tick" before the steps of a period and "score" after them.
    inputs : tuple of str
        Rows, one after the other, that are written at the begin of each period.
    has_dry_friction : bool
        Whether the impulse of dry friction follows the step.

    """

    layout: Layout
    functions: tuple[TracedFunction, ...]
    inputs: tuple[str, ...]
    has_dry_friction: bool


def trace_step(arm: ArmModel, integrator: str, interface: str, vary: Sequence[str]) -> StepTrace:
    """Trace one time step of the plant.

    Inputs are the rows q, v, act, command, dt and the varied ones; outputs q, v, act and effort.
    With dry friction, q and v are those before its impulse; the bounds f dt and b dt and M⁻¹ are
    outputs too.

    Parameters
    ----------
    arm : ArmModel
        Nominal arm.
    integrator : str
        One of ``INTEGRATORS``.
    interface : str
        Command interface.
    vary : sequence of str
        Quantities that become inputs.

    Raises
    ------
    InvalidValue
        If the integrator or an actuator cannot be traced.

    """
    if integrator not in INTEGRATORS:
        raise InvalidValue(
            f"kernel: integrator = '{integrator}'; expected one of {', '.join(INTEGRATORS)}"
        )
    n = arm.nv
    sizes = {"q": n, "v": n, "act": arm.na, "command": n, "dt": 1}
    sizes |= {name: variation.values_per_rollout(arm, name) for name in vary}
    inputs = input_symbols(sizes)
    varied = {name: inputs[name] for name in vary}
    equations = SymbolicEquationsOfMotion(arm, varied, interface, inputs["command"])
    q, v, act, dt = (inputs[name].copy() for name in ("q", "v", "act", "dt"))
    dry, method = _has_dry_friction(arm, vary), find_integrator(integrator)
    q_before, v_before, act_before = q.copy(), v.copy(), act.copy()
    outputs: dict[str, Any] = {}
    if dry:
        outputs["start_q"], outputs["start_v"] = q.copy(), v.copy()
        outputs["drift_time"] = [Symbol(method.drift_fraction) * dt[0]]
    traced(type(method).advance)(method, equations, q, v, act, dt[0])
    if dry:  # as Integrator.step
        outputs["inverse"] = _force_response(equations, method, q_before, v_before, act, dt[0])
        sliding = [where(x * y > 0.0, x, 0.0) for x, y in zip(v_before, v, strict=True)]
        forward, backward = equations.dry_friction_bounds_at(sliding)
        outputs["forward"], outputs["backward"] = forward * dt[0], backward * dt[0]
    if _has_internal_friction(arm, vary):
        equations.apply_internal_friction(act_before, act, dt[0])
    outputs |= {"q": q, "v": v, "act": act, "effort": equations.effort}
    friction = {"start_q": n, "start_v": n, "drift_time": 1}
    friction |= {"forward": n, "backward": n, "inverse": n * n}
    layout = Layout.of({**sizes, "effort": n, **(friction if dry else {})})
    function = symbolic_function("step", inputs, outputs)
    step = TracedFunction("step", "One time step.", function, tuple(sizes), tuple(outputs))
    return StepTrace(layout, (step,), ("command",), dry)


def symbolic_function(name: str, inputs: dict[str, Any], outputs: dict[str, Any]) -> Any:
    """Return a CasADi function of named vectors, common subexpressions shared."""
    given = [column(values) for values in inputs.values()]
    results = ca.cse([column(values) for values in outputs.values()])
    return ca.Function(name, given, results)


def _force_response(
    equations: SymbolicEquationsOfMotion,
    method: Integrator,
    q: SymbolVector,
    v: SymbolVector,
    act: SymbolVector,
    dt: Symbol,
) -> SX:
    """``friction.force_response`` on symbols, column after column."""
    implicit, explicit = method.split_damping(*equations.step_damping(q, v, act, dt))
    mass = equations.chain(q).mass_matrix() + dt.sx * ca.diag(column(implicit))
    inverse = solve_ldl(mass, ca.SX.eye(len(q)))
    x = -dt.sx * ca.mtimes(inverse, ca.diag(column(explicit)))
    response = ca.SX.zeros(*inverse.shape)
    for term in reversed(method.force_response_terms):
        response = ca.mtimes(x, response) + term * inverse
    return ca.vec(response)


def _has_dry_friction(arm: ArmModel, vary: Sequence[str]) -> bool:
    parts = zip(arm.joints, arm.actuators, strict=True)
    return bool(FRICTION_VARIABLES & set(vary)) or any(
        joint.friction > 0 or actuator.has_dry_friction for joint, actuator in parts
    )


def _has_internal_friction(arm: ArmModel, vary: Sequence[str]) -> bool:
    varied = bool(FRICTION_VARIABLES & set(vary))
    backlash = any(actuator.constants.get("backlash", 0.0) > 0 for actuator in arm.actuators)
    return (varied and backlash) or any(a.has_internal_friction for a in arm.actuators)
