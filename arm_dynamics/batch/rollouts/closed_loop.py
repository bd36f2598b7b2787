"""Rollouts under a controller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.batch.rollouts import inputs
from arm_dynamics.batch.rollouts.backends import Setup
from arm_dynamics.batch.rollouts.closed_loop_runs import Policy, run_with_pid, run_with_policy
from arm_dynamics.batch.rollouts.inputs import States
from arm_dynamics.batch.rollouts.open_loop import (
    broadcast_start,
    check_record_every,
    infer_batch_size,
    output_sizes,
)
from arm_dynamics.batch.rollouts.reference_table import (
    MeasurementNoise,
    control_rows,
    integer_ratio,
    reference_table,
)
from arm_dynamics.batch.rollouts.result import RolloutResult
from arm_dynamics.batch.rollouts.rollout_task import RolloutTask, require_memory_limit
from arm_dynamics.batch.rollouts.task_runner import Execution, Progress
from arm_dynamics.batch.variation import variable_names
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.core.argument_checks import check_type
from arm_dynamics.core.arrays import check_float
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
    record_every: int = 1,
    outputs: Sequence[str] = (),
    integrator: str = "semi_implicit_euler",
    precision: str = "float64",
    backend: str = "auto",
    threads: int | None = None,
    executor: Executor | None = None,
    memory_limit: float | None = None,
    progress: Progress | None = None,
) -> RolloutResult:
    """Simulate many rollouts under a controller: u = controller(q + n_q, v + n_v, reference).

    The controller is called once per ``period``; its command is held until the next call.

    Parameters
    ----------
    arm, states, dt : ArmModel, States, ArrayLike
        As of ``rollout``; every time step must divide the period.
    controller : Controller or callable
        A ``Pid`` or ``PidGravity``, with its own gains, limits and model, which may differ from
        the arm; it runs in the generated kernel if there is one, starts as ``Pid.reset`` and has
        a first tick with dt = 0, as in ``ControlLoop``. Or a policy (q, v, time) -> commands,
        called for the whole batch.
    reference : JointTrajectory or ArrayLike
        Reference, see ``reference_table``.
    period, duration : float
        Control period and simulated time [s].
    interface : str, optional
        "effort" (default), or "voltage": for a controller the voltage that gives its effort with
        the motors of its model at 25 °C.
    vary : Mapping[str, ArrayLike], optional
        As of ``rollout``; in addition "gains.p" ..., (batch,) or (batch, nv).
    one_period_delay : bool
        Commands act one period late; the first period has none.
    noise : MeasurementNoise, optional
        Noise of the measured positions and velocities.
    residual_fraction : float
        Fraction of the time, at its end, in which the metric ``residual_error`` is measured.
    record_every : int
        Control periods between two records.
    outputs, integrator, precision, backend, threads, executor, memory_limit, progress
        As of ``rollout``.

    Returns
    -------
    RolloutResult
        With the metrics of ``tracking_metrics.METRICS``.

    Raises
    ------
    InvalidValue, UnknownName, CommandRejected
        If an argument is invalid; the message names it, and the rollout.

    """
    check_arm(arm)
    execution = Execution(threads, executor, memory_limit, progress)
    check_type(bool, "one_period_delay", one_period_delay)
    _require_controller(controller)
    if not isinstance(reference, JointTrajectory):
        reference = inputs.check_array("reference", reference)
    dt = inputs.check_array("dt [s]", dt)
    size = infer_batch_size(states, vary, dt, ())
    size = max(size, len(reference) if np.ndim(reference) == 3 else 1)
    periods = integer_ratio("duration", duration, "period", period)
    late = check_float("residual_fraction", residual_fraction, lower=0, upper=1)
    each = noise is not None or np.ndim(reference) == 3 or len(np.atleast_1d(reference)) == size
    width = 2 * arm.nv if noise is None else 4 * arm.nv
    need = 8 * (size if each else 1) * periods * width
    require_memory_limit(need, memory_limit, f"reference and noise of {periods} periods")
    table, errors = reference_table(reference, size, periods, arm.nv, period), None
    if noise is not None:
        errors = check_type(MeasurementNoise, "noise", noise).table(size, periods, arm.nv)
    varied = {k: x for k, x in (vary or {}).items() if not k.startswith("gains.")}
    gains = {k: x for k, x in (vary or {}).items() if k not in varied}
    by = "effort" if interface is None else check_type(str, "interface", interface)
    sizes = output_sizes(arm, outputs)
    task = RolloutTask(
        arm, backend, Setup(integrator, by, precision),
        broadcast_start(inputs.initial_states(arm, states), size),
        control_rows(table, late, errors),
        inputs.time_steps(dt, size), inputs.variations(arm, varied, size), 1,
        check_record_every(record_every, periods, sizes), sizes,
    )  # fmt: skip
    inputs.check_commands(arm, by, np.zeros(arm.nv), size)
    steps = np.array([integer_ratio("period", period, "dt", one) for one in task.dt.tolist()])
    direction = np.sign(table[:, 0, : arm.nv] - task.start.q)
    if isinstance(controller, Controller):
        return run_with_pid(task, controller, gains, steps, direction, one_period_delay, execution)
    if gains:
        raise UnknownName("variation under a policy", next(iter(gains)), variable_names(arm))
    if executor is not None:
        raise InvalidValue(
            "executor: set with a policy in Python; expected None, or a Pid or PidGravity"
        )
    if (task.dt != task.dt[0]).any():
        other = int(np.argmax(task.dt != task.dt[0]))
        raise InvalidValue(
            f"rollout {other}: dt = {task.dt[other]:g} s; expected {task.dt[0]:g} s as of rollout 0"
            " with a policy in Python"
        )
    return run_with_policy(task, controller, int(steps[0]), direction, one_period_delay, execution)


def _require_controller(controller: object) -> None:
    """Raise InvalidValue for what is neither a controller nor a policy."""
    if isinstance(controller, type) or not callable(getattr(controller, "update", controller)):
        raise InvalidValue(
            f"controller = {controller!r}; expected Pid(arm), PidGravity(arm) or a callable"
            " (q, v, time)"
        )
