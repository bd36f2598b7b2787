"""Equations of the actuators as text: part of the key of a kernel."""

from __future__ import annotations

from collections.abc import Sequence

from arm_dynamics.batch import variation
from arm_dynamics.batch.kernels.emitter import Emitter
from arm_dynamics.batch.kernels.step_trace import symbolic_function
from arm_dynamics.batch.kernels.symbolic_equations import SymbolicEquationsOfMotion, input_symbols
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation import joint_physics as row


def actuator_text(arm: ArmModel, interface: str, vary: Sequence[str]) -> str:
    """Return all equations of the actuators, traced: equal texts give equal kernels.

    The trace contains functions and numbers of all modules that the equations use.

    Raises
    ------
    InvalidValue
        If an actuator cannot be traced.
    UnknownName
        If a varied quantity does not exist.

    """
    n = arm.nv
    sizes = {"q": n, "v": n, "act": arm.na, "command": n, "dt": 1, "effort": n}
    sizes |= {name: variation.values_per_rollout(arm, name) for name in vary}
    inputs = input_symbols(sizes)
    varied = {name: inputs[name] for name in vary}
    equations = SymbolicEquationsOfMotion(arm, varied, interface, inputs["command"])
    q, v, act, dt = (inputs[name].copy() for name in ("q", "v", "act", "dt"))
    equations.act_dot_terms(q, v, act)
    equations.step_damping(q, v, act, dt[0])
    equations.acceleration(q, v, act)
    effort, tau = (equations.rows[r].copy() for r in (row.EFFORT, row.TAU))
    equations.rows[row.EFFORT] = inputs["effort"]  # dry friction depends on earlier efforts
    equations.dry_friction_bounds_at(v)
    armature = [body.armature for body in equations.table]
    outputs = {"rows": equations.rows.ravel(), "effort": effort, "tau": tau, "armature": armature}
    function = symbolic_function("actuators", inputs, outputs)
    entries = [(k, i) for k in range(function.n_in()) for i in range(function.numel_in(k))]
    emitter = Emitter({(k, i): f"i{k}_{i}" for k, i in entries})
    emitter.emit(function)
    friction = [a.has_dry_friction for a in arm.actuators]
    return repr((emitter.lines, emitter.constants, emitter.outputs, friction))
