"""A control period as symbolic functions: time step of the plant, control tick and metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import casadi as ca
import numpy as np

from arm_dynamics.batch import variation
from arm_dynamics.batch.kernels.contact_trace import ContactTrace
from arm_dynamics.batch.kernels.free_object import BODY_ROWS
from arm_dynamics.batch.kernels.layout import Layout
from arm_dynamics.batch.kernels.pid_spec import GAINS, PidSpec
from arm_dynamics.batch.kernels.sphere_contacts import SphereContacts
from arm_dynamics.batch.kernels.symbolic_equations import (
    SymbolicEquationsOfMotion,
    column,
    input_symbols,
    vector,
)
from arm_dynamics.batch.kernels.symbolic_math import SX, Symbol, SymbolVector, traced, where
from arm_dynamics.batch.kernels.symbolic_rigid_body import Chain, solve_ldl
from arm_dynamics.batch.kernels.tracking_metrics import METRICS, update_metrics
from arm_dynamics.control.controllers.pid import pid_effort
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.dynamics.bodies import bodies
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.actuators.dc_motor import DcMotor
from arm_dynamics.simulation.actuators.dc_motor_equations import voltage_for_effort
from arm_dynamics.simulation.actuators.winding import REFERENCE_TEMPERATURE
from arm_dynamics.simulation.integrators import find_integrator
from arm_dynamics.simulation.integrators.integrator import Integrator

INTEGRATORS = ("explicit_euler", "semi_implicit_euler", "velocity_verlet", "rk4")
"""Integrators whose step is one expression."""
FRICTION_VARIABLES = {
    "joint.friction",
    *(f"motor.{n}" for n in ("coulomb_friction", "stiction", "efficiency", "back_efficiency")),
}
"""Variations that cause dry friction."""
SymbolRows = dict[str, Any]
"""Row name -> object array of Symbol."""


@dataclass(frozen=True)
class TracedFunction:
    """A symbolic function of rows: the names of those it reads and those it writes."""

    name: str
    purpose: str
    function: Any
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @classmethod
    def of(cls, name: str, purpose: str, inputs: SymbolRows, outputs: SymbolRows) -> TracedFunction:
        """Return the function of the rows ``inputs`` with the values ``outputs``."""
        function = symbolic_function(name, inputs, outputs)
        return cls(name, purpose, function, tuple(inputs), tuple(outputs))


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
        Rows, one after the other, that are written at the start of each period.
    has_dry_friction : bool
        Whether the impulse of dry friction follows the step.
    contacts : Mapping[str, int]
        Group to the number of its contacts, which follow the step.

    """

    layout: Layout
    functions: tuple[TracedFunction, ...]
    inputs: tuple[str, ...]
    has_dry_friction: bool
    contacts: Mapping[str, int] = field(default_factory=dict)


def trace_step(
    arm: ArmModel,
    integrator: str,
    interface: str,
    vary: Sequence[str],
    contacts: SphereContacts | None = None,
) -> StepTrace:
    """Trace one time step of the plant.

    Inputs are the rows q, v, act, command, dt, those of a free object and the varied ones; outputs
    q, v, act and effort.
    With dry friction or contact, q and v are those before their impulses; what the impulses depend
    on are outputs too.

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
    contacts : SphereContacts, optional
        Contacts with the objects of a scene.

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
    moves = contacts is not None and contacts.body is not None
    body = BODY_ROWS if moves else {}
    sizes = {"q": n, "v": n, "act": arm.na, **body, "command": n, "dt": 1}
    sizes |= {name: variation.values_per_rollout(arm, name) for name in vary}
    inputs = input_symbols(sizes)
    varied = {name: inputs[name] for name in vary}
    equations = SymbolicEquationsOfMotion(arm, varied, interface, inputs["command"])
    q, v, act, dt = (inputs[name].copy() for name in ("q", "v", "act", "dt"))
    method, varies_friction = find_integrator(integrator), bool(FRICTION_VARIABLES & set(vary))
    dry = varies_friction or any(
        joint.friction > 0 or actuator.has_dry_friction
        for joint, actuator in zip(arm.joints, arm.actuators, strict=True)
    )
    internal = any(
        actuator.has_internal_friction
        or (varies_friction and actuator.constants.get("backlash", 0.0) > 0)
        for actuator in arm.actuators
    )
    q_before, v_before, act_before = q.copy(), v.copy(), act.copy()
    outputs: dict[str, Any] = {}
    if dry:
        outputs["start_q"], outputs["start_v"] = q.copy(), v.copy()
        outputs["drift_time"] = [Symbol(method.drift_fraction) * dt[0]]
    traced(type(method).advance)(method, equations, q, v, act, dt[0])
    if dry or contacts is not None:
        mass, explicit = _response_mass(equations, method, q_before, v_before, act, dt[0])
    if dry:  # as Integrator.step
        outputs["inverse"] = _force_response(method, mass, explicit, dt[0])
        sliding = [where(x * y > 0.0, x, 0.0) for x, y in zip(v_before, v, strict=True)]
        forward, backward = equations.dry_friction_bounds_at(sliding)
        outputs["forward"], outputs["backward"] = forward * dt[0], backward * dt[0]
    if internal:
        equations.apply_internal_friction(act_before, act, dt[0])
    outputs |= {"q": q, "v": v, "act": act, "effort": equations.effort}
    friction = {"start_q": n, "start_v": n, "drift_time": 1}
    friction |= {"forward": n, "backward": n, "inverse": n * n}
    sizes |= {"effort": n, **(friction if dry else {})}
    functions = []
    if contacts is not None:
        contact = ContactTrace(contacts, equations.table)
        outputs |= contact.step_outputs(equations.chain(q_before), mass, inputs, v, dt[0])
        functions = [TracedFunction.of(*parts) for parts in contact.functions()]
        sizes |= contact.sizes
    step = TracedFunction.of("step", "One time step.", inputs, outputs)
    counts = {} if contacts is None else contacts.counts
    return StepTrace(Layout.of(sizes), (step, *functions), ("command",), dry, counts)


def symbolic_function(name: str, inputs: dict[str, Any], outputs: dict[str, Any]) -> Any:
    """Return a CasADi function of named vectors, common subexpressions shared."""
    given = [column(values) for values in inputs.values()]
    results = ca.cse([column(values) for values in outputs.values()])
    return ca.Function(name, given, results)


def _response_mass(
    equations: SymbolicEquationsOfMotion,
    method: Integrator,
    q: SymbolVector,
    v: SymbolVector,
    act: SymbolVector,
    dt: Symbol,
) -> tuple[SX, SymbolVector]:
    """Return M + dt D with the damping that a step treats implicitly, and the other damping."""
    implicit, explicit = method.split_damping(*equations.step_damping(q, v, act, dt))
    return equations.chain(q).mass_matrix() + dt.sx * ca.diag(column(implicit)), explicit


def _force_response(method: Integrator, mass: SX, explicit: SymbolVector, dt: Symbol) -> SX:
    """``friction.force_response`` on symbols, column after column."""
    inverse = solve_ldl(mass, ca.SX.eye(mass.shape[0]))
    x = -dt.sx * ca.mtimes(inverse, ca.diag(column(explicit)))
    response = ca.SX.zeros(*inverse.shape)
    for term in reversed(method.force_response_terms):
        response = ca.mtimes(x, response) + term * inverse
    return ca.vec(response)


def trace_pid(trace: StepTrace, spec: PidSpec) -> StepTrace:
    """Add the controller's rows, its tick before each period and the metrics after it.

    Raises
    ------
    InvalidValue
        If ``spec`` commands voltage and a motor of its model has no compiled inverse.

    """
    for actuator in spec.arm.actuators if spec.voltage else ():
        if actuator.kernel_id != DcMotor.kernel_id:
            raise InvalidValue(
                f"controller model, joint '{actuator.joint}': actuator ="
                f" {type(actuator).__name__}; expected DcMotor for voltages in a kernel"
            )
    layout = Layout.of({**trace.layout.sizes, **spec.inputs, **spec.memory})
    noise = ("noise_q", "noise_v") if spec.noise else ()
    memory = ("integral", "filtered", *(("pending",) if spec.delay else ()))
    gains = tuple(f"gains.{name}" for name in GAINS)
    read = ("q", "v", "q_ref", "v_ref", "running", "period", *noise, *gains, *memory)
    rows = input_symbols({row: layout.sizes[row] for row in read})
    tick = TracedFunction.of("tick", "Commands of the next period.", rows, _tick(rows, spec))
    read = ("q", "effort", "q_ref", "late_part", "period", "direction", *METRICS)
    rows = input_symbols({row: layout.sizes[row] for row in read})
    metrics = _updated_metrics(rows, spec.arm.nv)
    score = TracedFunction.of("score", "Update of the metrics by a period.", rows, metrics)
    functions = (*trace.functions, tick, score)
    return replace(trace, layout=layout, functions=functions, inputs=tuple(spec.inputs))


def _tick(rows: SymbolRows, spec: PidSpec) -> SymbolRows:
    """Return ``Pid.update``; with ``delay`` the command of the previous period is applied."""
    n = spec.arm.nv
    q, v = (rows[x] + rows[f"noise_{x}"] if spec.noise else rows[x] for x in "qv")
    gravity = np.zeros(n, dtype=object)
    if spec.gravity:
        rest = [ca.SX(0)] * n
        chain = Chain(bodies(spec.arm), spec.arm.gravity, [Symbol(x).sx for x in q])
        gravity = vector(map(Symbol, chain.inverse_dynamics(rest, rest)))
    elapsed = rows["running"][0] * rows["period"][0]
    gains, reference = [rows[f"gains.{name}"] for name in GAINS], (rows["q_ref"], rows["v_ref"])
    state, stored = (q, v), (rows["integral"], rows["filtered"])
    results = [
        traced(pid_effort)(
            _column(gains, j), spec.arm.effort_limit[j], gravity[j],
            _column(reference, j), _column(state, j), _column(stored, j), elapsed,
        )
        for j in range(n)
    ]  # fmt: skip
    command, integral, filtered = (list(values) for values in zip(*results, strict=True))
    if spec.voltage:
        inverse, motors = traced(voltage_for_effort), spec.motors
        command = [inverse(command[j], v[j], REFERENCE_TEMPERATURE, motors[j]) for j in range(n)]
    memory = {"integral": integral, "filtered": filtered}
    if spec.delay:
        return {"command": rows["pending"], "pending": command, **memory}
    return {"command": command, **memory}


def _updated_metrics(rows: SymbolRows, joints: int) -> SymbolRows:
    """Return the metrics after one more period."""
    late, period = rows["late_part"][0], rows["period"][0]
    inputs = [rows[name] for name in ("q", "effort", "q_ref", "direction")]
    before = [rows[name] for name in METRICS]
    results = [
        traced(update_metrics)(*_column(inputs, j), _column(before, j), late, period)
        for j in range(joints)
    ]
    metrics = (list(values) for values in zip(*results, strict=True))
    return dict(zip(METRICS, metrics, strict=True))


def _column(rows: Sequence[Any], j: int) -> tuple[Any, ...]:
    """Return entry j of each row: the values of one joint."""
    return tuple(row[j] for row in rows)
