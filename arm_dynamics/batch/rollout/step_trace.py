"""One time step of the plant as one symbolic function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import casadi as ca

from arm_dynamics.batch.rollout import variation
from arm_dynamics.batch.rollout.kernel import Layout
from arm_dynamics.batch.rollout.symbolic_equations import SymbolicEquationsOfMotion
from arm_dynamics.batch.rollout.symbolic_math import Symbol, symbols, traced, where
from arm_dynamics.batch.rollout.symbolic_rigid_body import solve_ldl
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.integrators import Integrator, find_integrator

INTEGRATORS = ("explicit_euler", "semi_implicit_euler", "velocity_verlet", "rk4")
"""Integrators whose step is one expression."""
RUBBING = {
    "joint.friction",
    *(f"motor.{n}" for n in ("coulomb_friction", "stiction", "efficiency", "back_efficiency")),
}
"""Variations that bring dry friction to a lane."""


@dataclass(frozen=True)
class TracedFunction:
    """A traced function of rows: which it reads and which it writes, in its own order."""

    name: str
    purpose: str
    function: Any
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


@dataclass(frozen=True)
class StepTrace:
    """A step: its function of the rows, and what else is done in a period.

    The rows ``given``, neighbours, take new numbers each period; ``parts`` are "step", and where
    a law runs inside "tick" before a period's steps and "score" after them.
    """

    layout: Layout
    parts: tuple[TracedFunction, ...]
    given: tuple[str, ...]
    has_dry_friction: bool

    @property
    def function(self) -> Any:
        """The step's function."""
        return self.parts[0].function


def trace_step(arm: ArmModel, integrator: str, interface: str, vary: Sequence[str]) -> StepTrace:
    """The plant's time step with ``vary`` as inputs; raises InvalidValue where none can be made.

    Inputs are the rows q, v, z, told, dt and the varied ones; outputs q, v, z and effort. With
    dry friction q and v are those before its impulse, and its bounds f dt and b dt and M⁻¹ come
    with them.
    """
    if integrator not in INTEGRATORS:
        raise InvalidValue(f"integrator {integrator} has no kernel; those that have: {INTEGRATORS}")
    n, na = arm.nv, arm.na
    sizes = {"q": n, "v": n, "z": na, "told": n, "dt": 1}
    sizes |= {name: variation.values_per_rollout(arm, name) for name in vary}
    inputs = {name: symbols(name.replace(".", "_"), size) for name, size in sizes.items()}
    varied = {name: inputs[name] for name in vary}
    motion = SymbolicEquationsOfMotion(arm, varied, interface, inputs["told"])
    q, v, z, dt = (inputs[name].copy() for name in ("q", "v", "z", "dt"))
    rubs, step = _rubs(arm, vary), find_integrator(integrator)
    before, own_before, found = v.copy(), z.copy(), dict[str, Any]()
    if rubs:
        found["start_q"], found["start_v"] = q.copy(), v.copy()
        found["late"] = [Symbol(step.drift_fraction) * dt[0]]
        found["inverse"] = _force_response(motion, step, q, v, z, dt[0])
    traced(type(step).advance)(step, motion, q, v, z, dt[0])
    if rubs:  # as Plant._instant_with_dry_friction
        on = [where(x * y > 0.0, x, 0.0) for x, y in zip(before, v, strict=True)]
        forward, backward = motion.dry_at(on)
        found["forward"], found["backward"] = forward * dt[0], backward * dt[0]
    if _rubs_inside(arm, vary):
        motion.rub_inside(own_before, z, dt[0])
    found |= {"q": q, "v": v, "z": z, "effort": motion.effort}
    layout = Layout.of({**sizes, "effort": n, **(_friction_rows(n) if rubs else {})})
    given = [ca.vertcat(*[s.sx for s in inputs[name]]) for name in sizes]
    results = [_column(found[name]) for name in found]
    function = ca.Function(
        "step", given, ca.cse(results), list(map(_plain, sizes)), [f"{name}_next" for name in found]
    )
    part = TracedFunction("step", "One time step.", function, tuple(sizes), tuple(found))
    return StepTrace(layout, (part,), ("told",), rubs)


def _force_response(
    motion: SymbolicEquationsOfMotion, step: Integrator, q: Any, v: Any, z: Any, dt: Any
) -> Any:
    """``friction.force_response`` on symbols, column by column."""
    implicit, explicit = step.split_damping(*motion.step_damping(q, v, z, dt))
    mass = motion.chain(q).mass_matrix() + dt.sx * ca.diag(_column(implicit))
    inverse = solve_ldl(mass, ca.SX.eye(len(q)))
    x = -dt.sx * ca.mtimes(inverse, ca.diag(_column(explicit)))
    response = ca.SX.zeros(*inverse.shape)
    for term in reversed(step.force_response_terms):
        response = ca.mtimes(x, response) + term * inverse
    return ca.vec(response)


def _friction_rows(n: int) -> dict[str, int]:
    start = {"start_q": n, "start_v": n, "late": 1}
    return {**start, "forward": n, "backward": n, "inverse": n * n}


def _rubs(arm: ArmModel, vary: Sequence[str]) -> bool:
    parts = zip(arm.joints, arm.actuators, strict=True)
    return bool(RUBBING & set(vary)) or any(
        joint.friction > 0 or a.has_dry_friction for joint, a in parts
    )


def _rubs_inside(arm: ArmModel, vary: Sequence[str]) -> bool:
    named = bool(RUBBING & set(vary))
    plays = any(actuator.constants.get("backlash", 0.0) > 0 for actuator in arm.actuators)
    return (named and plays) or any(actuator.has_internal_friction for actuator in arm.actuators)


def _plain(name: str) -> str:
    return name.replace(".", "_")


def _column(values: Any) -> Any:
    if isinstance(values, ca.SX):
        return values
    return ca.vertcat(*[value.sx for value in values])
