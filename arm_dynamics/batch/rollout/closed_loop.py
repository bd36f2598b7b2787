"""Many arms under a control law."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.batch.rollout import inputs
from arm_dynamics.batch.rollout.batch import RolloutResult
from arm_dynamics.batch.rollout.inputs import States
from arm_dynamics.batch.rollout.memory_limit import require_memory_limit
from arm_dynamics.batch.rollout.pid_batch import run_with_pid
from arm_dynamics.batch.rollout.policy_batch import Policy, run_with_policy
from arm_dynamics.batch.rollout.reference_table import (
    MeasurementNoise,
    control_rows,
    integer_ratio,
    reference_table,
)
from arm_dynamics.batch.rollout.rollout import (
    broadcast_start,
    check_record_stride,
    infer_batch_size,
    output_sizes,
    require_options,
)
from arm_dynamics.batch.rollout.task_runner import Progress, RolloutTask
from arm_dynamics.batch.rollout.variation import variable_names
from arm_dynamics.batch.rollout.variation_checks import variations
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.core.argument_checks import check_type
from arm_dynamics.core.arrays import Vector, check_float
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.model.arm_argument import check_arm
from arm_dynamics.model.arm_model import ArmModel


def rollout_closed_loop(
    arm: ArmModel,
    states: States,
    controller: Controller | Policy,
    reference: Any,
    dt: ArrayLike,
    period: float,
    duration: float,
    *,
    interface: str | None = None,
    vary: Mapping[str, ArrayLike] | None = None,
    one_period_delay: bool = False,
    noise: MeasurementNoise | None = None,
    residual_fraction: float = 0.2,
    stride: int = 1,
    outputs: Sequence[str] = (),
    integrator: str = "semi_implicit_euler",
    precision: str = "float64",
    backend: str = "auto",
    threads: int | None = None,
    executor: Executor | None = None,
    memory_limit: float | None = None,
    progress: Progress | None = None,
) -> RolloutResult:
    """u = law(q + n_q, v + n_v, reference) once a ``period`` [s], held over it; by lane.

    controller: a ``Pid`` or ``PidGravity`` (with gains, limits and model of its own, which need
    not be the arm's) runs beside each lane, in generated code where that serves; its memory
    starts as ``Pid.reset`` starts it and its first tick has dt = 0, as in ``ControlLoop``. Or
    any callable (q, v, time) → commands, asked for the whole batch at once. ``interface``:
    "effort" (default), or "voltage", which for a law means the voltage that gives its effort by
    the motors of its own model at 25 °C. reference: see ``reference_table``.

    vary: also "gains.p" ..., (lanes,) or (lanes, nv). delay: commands act one period late, after
    a first period of none. ``residual_fraction``: share of the time, at its end, that the settled error is
    taken from. Every ``stride``-th period is recorded, ``outputs`` of it; metrics as in
    ``law.METRICS``. dt may differ by lane; all must go whole into the period. The rest is as for
    ``rollout``. Raises InvalidValue, UnknownName or CommandRefused.
    """
    check_arm(arm)
    require_options(threads, executor, progress)
    check_type(bool, "one_period_delay", one_period_delay)
    _require_law(controller)
    if not isinstance(reference, JointTrajectory):
        reference = inputs.check_array("reference", reference)
    dt = inputs.check_array("dt [s]", dt)
    lanes = max(
        infer_batch_size(states, vary, dt, ()), len(reference) if np.ndim(reference) == 3 else 1
    )
    periods = integer_ratio("duration", duration, "period", period)
    table, given = _told(
        reference, lanes, periods, arm.nv, period, residual_fraction, noise, memory_limit
    )
    plain = {name: x for name, x in (vary or {}).items() if not name.startswith("gains.")}
    gains = {name: x for name, x in (vary or {}).items() if name not in plain}
    by = "effort" if interface is None else check_type(str, "interface", interface)
    setup = (integrator, by, precision)
    sizes = output_sizes(arm, outputs)
    work = RolloutTask(
        arm, backend, setup, broadcast_start(inputs.initial_states(arm, states), lanes), given,
        inputs.time_steps(dt, lanes), variations(arm, plain, lanes), 1,
        check_record_stride(stride, periods, sizes), sizes,
    )  # fmt: skip
    inputs.commands_of(arm, setup[1], np.zeros(arm.nv), lanes)
    every = np.array([integer_ratio("period", period, "dt", one) for one in work.dt.tolist()])
    way = np.sign(table[:, 0, : arm.nv] - work.start.q)
    if isinstance(controller, Controller):
        return run_with_pid(
            work,
            controller,
            gains,
            every,
            way,
            one_period_delay,
            threads,
            executor,
            memory_limit,
            progress,
        )
    if gains:
        raise UnknownName("variation under a policy", next(iter(gains)), variable_names(arm))
    if executor is not None:
        raise InvalidValue(
            "executor: none is expected with a policy in Python, which runs here; a Pid or"
            " PidGravity can be sent"
        )
    if (work.dt != work.dt[0]).any():
        other = int(np.argmax(work.dt != work.dt[0]))
        raise InvalidValue(
            f"dt [s] of lane {other} = {work.dt[other]:g}, of lane 0 = {work.dt[0]:g}: one for all"
            " is expected with a policy in Python"
        )
    return run_with_policy(
        work, controller, int(every[0]), way, one_period_delay, threads, memory_limit, progress
    )


def _require_law(controller: object) -> None:
    """Raises InvalidValue for what is neither a controller nor a policy."""
    if isinstance(controller, type) or not callable(getattr(controller, "update", controller)):
        raise InvalidValue(
            f"controller = {controller!r}: a Pid(arm) or PidGravity(arm) is expected, or a callable"
            " (q, v, time)"
        )


def _told(
    reference: Any,
    lanes: int,
    periods: int,
    size: int,
    period: float,
    late: float,
    noise: MeasurementNoise | None,
    memory_limit: float | None,
) -> tuple[Vector, Vector]:
    """The reference's table, and all that the ticks are given."""
    each = noise is not None or np.ndim(reference) == 3 or len(np.atleast_1d(reference)) == lanes
    need = 8 * (lanes if each else 1) * periods * (2 * size if noise is None else 4 * size)
    require_memory_limit(need, memory_limit, f"reference and noise of {periods} periods")
    table = reference_table(reference, lanes, periods, size, period)
    wobble = None
    if noise is not None:
        wobble = check_type(MeasurementNoise, "noise", noise).table(lanes, periods, size)
    return table, control_rows(table, check_float("late", late, lower=0, upper=1), wobble)
