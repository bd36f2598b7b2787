"""Control tick and metrics of a period as symbolic functions of a kernel's rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import casadi as ca
import numpy as np

from arm_dynamics.batch.kernels.layout import Layout
from arm_dynamics.batch.kernels.pid_spec import GAINS, PidSpec
from arm_dynamics.batch.kernels.step_trace import StepTrace, TracedFunction, symbolic_function
from arm_dynamics.batch.kernels.symbolic_equations import input_symbols, vector
from arm_dynamics.batch.kernels.symbolic_math import Symbol, SymbolVector, traced
from arm_dynamics.batch.kernels.symbolic_rigid_body import Chain
from arm_dynamics.batch.kernels.tracking_metrics import METRICS, update_metrics
from arm_dynamics.control.controllers.pid import pid_effort
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.dynamics.bodies import bodies
from arm_dynamics.simulation.actuators.dc_motor import DcMotor
from arm_dynamics.simulation.actuators.dc_motor_equations import voltage_for_effort
from arm_dynamics.simulation.actuators.winding import REFERENCE_TEMPERATURE

SymbolRows = dict[str, Any]
"""Row name -> object array of Symbol."""


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
    tick = _traced("tick", "Commands of the next period.", layout, read, _tick, spec)
    read = ("q", "effort", "q_ref", "late_part", "period", "direction", *METRICS)
    score = _traced("score", "Update of the metrics by a period.", layout, read, _score, spec)
    functions = (*trace.functions, tick, score)
    return StepTrace(layout, functions, tuple(spec.inputs), trace.has_dry_friction)


def _traced(
    name: str,
    purpose: str,
    layout: Layout,
    read: tuple[str, ...],
    compute: Callable[[SymbolRows, PidSpec], SymbolRows],
    spec: PidSpec,
) -> TracedFunction:
    rows = input_symbols({row: layout.sizes[row] for row in read})
    outputs = compute(rows, spec)
    function = symbolic_function(name, rows, outputs)
    return TracedFunction(name, purpose, function, read, tuple(outputs))


def _tick(rows: SymbolRows, spec: PidSpec) -> SymbolRows:
    """``Pid.update``; with ``delay`` the command of the previous period is applied."""
    n = spec.arm.nv
    q, v = (rows[x] + rows[f"noise_{x}"] if spec.noise else rows[x] for x in "qv")
    gravity, limit = _gravity_torque(q, spec), spec.arm.effort_limit
    elapsed = rows["running"][0] * rows["period"][0]
    columns = [rows[f"gains.{name}"] for name in GAINS]
    columns += [limit, gravity, rows["q_ref"], rows["v_ref"], q, v, rows["integral"]]
    columns += [rows["filtered"]]
    results = [traced(pid_effort)(*(x[j] for x in columns), elapsed) for j in range(n)]
    command, integral, filtered = (list(values) for values in zip(*results, strict=True))
    if spec.voltage:
        inverse, motors = traced(voltage_for_effort), spec.motors
        command = [inverse(command[j], v[j], REFERENCE_TEMPERATURE, motors[j]) for j in range(n)]
    memory = {"integral": integral, "filtered": filtered}
    if spec.delay:
        return {"command": rows["pending"], "pending": command, **memory}
    return {"command": command, **memory}


def _gravity_torque(q: SymbolVector, spec: PidSpec) -> SymbolVector:
    """g(q) of the controller's model, or zeros."""
    if not spec.gravity:
        return np.zeros(spec.arm.nv, dtype=object)
    rest = [ca.SX(0)] * spec.arm.nv
    chain = Chain(bodies(spec.arm), spec.arm.gravity, [Symbol(x).sx for x in q])
    return vector(map(Symbol, chain.inverse_dynamics(rest, rest)))


def _score(rows: SymbolRows, spec: PidSpec) -> SymbolRows:
    late, period = rows["late_part"][0], rows["period"][0]
    columns = [rows[name] for name in ("q", "effort", "q_ref", "direction", *METRICS)]
    results = [
        traced(update_metrics)(*(x[j] for x in columns), late, period) for j in range(spec.arm.nv)
    ]
    metrics = (list(values) for values in zip(*results, strict=True))
    return dict(zip(METRICS, metrics, strict=True))
