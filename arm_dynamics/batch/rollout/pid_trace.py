"""A control tick and a period's score as symbolic functions of a kernel's rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import casadi as ca
import numpy as np

from arm_dynamics.batch.rollout.kernel import Layout
from arm_dynamics.batch.rollout.pid_loop import GAINS, PidSpec
from arm_dynamics.batch.rollout.step_trace import StepTrace, TracedFunction
from arm_dynamics.batch.rollout.symbolic_math import Symbol, symbols, traced
from arm_dynamics.batch.rollout.symbolic_rigid_body import Chain
from arm_dynamics.batch.rollout.tracking_metrics import METRICS, update_metrics
from arm_dynamics.control.controllers.pid import pid_effort
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.dynamics.bodies import bodies
from arm_dynamics.simulation.actuators.dc_motor import DcMotor
from arm_dynamics.simulation.actuators.dc_motor_equations import voltage_for_effort
from arm_dynamics.simulation.actuators.winding import REFERENCE_TEMPERATURE

Rows = dict[str, Any]


def trace_pid(trace: StepTrace, law: PidSpec) -> StepTrace:
    """The trace with the law's rows, its tick before and the score after each period.

    Raises InvalidValue for a law by voltage whose model has a motor without a compiled law.
    """
    for actuator in law.arm.actuators if law.voltage else ():
        if actuator.kernel_id != DcMotor.kernel_id:
            raise InvalidValue(
                f"joint '{actuator.joint}' of the law's model: actuator {type(actuator).__name__}"
                " has no compiled law: no kernel asks it for voltages"
            )
    layout = Layout.of({**trace.layout.sizes, **law.given, **law.kept})
    tick = _part("tick", "Commands of the next period.", layout, _tick_inputs(law), _tick, law)
    score = _part("score", "What a period adds to the metrics.", layout, SCORED, _score, law)
    return StepTrace(layout, (*trace.parts, tick, score), tuple(law.given), trace.has_dry_friction)


SCORED = ("q", "effort", "q_ref", "late_part", "period", "way", *METRICS)


def _tick_inputs(law: PidSpec) -> tuple[str, ...]:
    noise = ("noise_q", "noise_v") if law.noise else ()
    memory = ("integral", "filtered", *(("pending",) if law.delay else ()))
    gains = tuple(f"gains.{name}" for name in GAINS)
    return ("q", "v", "q_ref", "v_ref", "running", "period", *noise, *gains, *memory)


def _part(
    name: str, purpose: str, layout: Layout, inputs: tuple[str, ...], make: Any, law: PidSpec
) -> TracedFunction:
    rows = {one: symbols(one.replace(".", "_"), layout.sizes[one]) for one in inputs}
    found: Mapping[str, Any] = make(rows, law)
    given = [ca.vertcat(*[s.sx for s in rows[one]]) for one in inputs]
    results = [ca.vertcat(*[Symbol(s).sx for s in values]) for values in found.values()]
    return TracedFunction(
        name, purpose, ca.Function(name, given, ca.cse(results)), inputs, tuple(found)
    )


def _tick(rows: Rows, law: PidSpec) -> Rows:
    """As ``Pid.update``; with ``delay`` the command of the period before goes out."""
    n = law.arm.nv
    q, v = (rows[x] + rows[f"noise_{x}"] if law.noise else rows[x] for x in "qv")
    weight = _weight(q, law)
    limit, elapsed = law.arm.effort_limit, rows["running"][0] * rows["period"][0]
    columns = [rows[f"gains.{name}"] for name in GAINS]
    columns += [limit, weight, rows["q_ref"], rows["v_ref"], q, v, rows["integral"]]
    columns += [rows["filtered"]]
    every = [traced(pid_effort)(*(column[j] for column in columns), elapsed) for j in range(n)]
    told, integral, filtered = (list(values) for values in zip(*every, strict=True))
    if law.voltage:
        warm, inverse = REFERENCE_TEMPERATURE, traced(voltage_for_effort)
        told = [inverse(told[j], v[j], warm, law.motors[j]) for j in range(n)]
    memory = {"integral": integral, "filtered": filtered}
    if law.delay:
        return {"told": rows["pending"], "pending": told, **memory}
    return {"told": told, **memory}


def _weight(q: Any, law: PidSpec) -> Any:
    """g(q) of the law's own model, or zeros."""
    weight = np.zeros(law.arm.nv, dtype=object)
    if law.gravity:
        still = [ca.SX(0)] * law.arm.nv
        chain = Chain(bodies(law.arm), law.arm.gravity, [Symbol(x).sx for x in q])
        weight[:] = [Symbol(x) for x in chain.inverse_dynamics(still, still)]
    return weight


def _score(rows: Rows, law: PidSpec) -> Rows:
    late, period = rows["late_part"][0], rows["period"][0]
    columns = [rows[name] for name in ("q", "effort", "q_ref", "way", *METRICS)]
    every = [
        traced(update_metrics)(*(column[j] for column in columns), late, period)
        for j in range(law.arm.nv)
    ]
    return dict(zip(METRICS, (list(values) for values in zip(*every, strict=True)), strict=True))
