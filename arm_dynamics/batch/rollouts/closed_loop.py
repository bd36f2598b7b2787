"""Rollouts under a PID controller, or under a policy in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.batch.kernels.pid_spec import GAINS, PID_CONTROLLERS, ControlTick, PidSpec
from arm_dynamics.batch.kernels.tracking_metrics import METRICS
from arm_dynamics.batch.rollouts import inputs
from arm_dynamics.batch.rollouts.backends import BLOCK, BatchStepper, Setup, select_backend
from arm_dynamics.batch.rollouts.closed_loop_stepper import (
    ClosedLoopStepper,
    PidLoop,
    ThreadedStepper,
    initial_memory,
)
from arm_dynamics.batch.rollouts.inputs import States, by_rollout
from arm_dynamics.batch.rollouts.open_loop import (
    broadcast_start,
    check_record_every,
    infer_batch_size,
    output_sizes,
    to_result,
)
from arm_dynamics.batch.rollouts.output_injection import OutputInjection
from arm_dynamics.batch.rollouts.reference_table import (
    MeasurementNoise,
    control_rows,
    integer_ratio,
    reference_table,
)
from arm_dynamics.batch.rollouts.result import RolloutResult
from arm_dynamics.batch.rollouts.rollout_task import (
    RolloutData,
    RolloutTask,
    require_memory_limit,
)
from arm_dynamics.batch.rollouts.task_runner import (
    Execution,
    Progress,
    StepCounter,
    cores,
    execute,
    run_stepper,
    stepper_factory,
)
from arm_dynamics.batch.variation import variable_names
from arm_dynamics.collision.scene import EMPTY_SCENE, Scene
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.controllers.pid import FEEDFORWARD, Pid
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.core.argument_checks import check_type
from arm_dynamics.core.arrays import (
    FloatArray,
    IntArray,
    Matrix,
    Vector,
    as_readonly,
    check_float,
)
from arm_dynamics.core.errors import CommandRejected, InvalidValue, UnknownName
from arm_dynamics.model.arm_argument import check_arm
from arm_dynamics.model.arm_model import ArmModel

Policy = Callable[[Matrix, Matrix, float], ArrayLike]
"""Measured q and v (batch, nv), time since the start [s] -> commands (batch, nv)."""


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
    scene: Scene = EMPTY_SCENE,
    vary: Mapping[str, ArrayLike] | None = None,
    one_period_delay: bool = False,
    noise: MeasurementNoise | None = None,
    injection: OutputInjection | None = None,
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
    scene : Scene
        As of ``rollout``.
    vary : Mapping[str, ArrayLike], optional
        As of ``rollout``; in addition "gains.p" ..., (batch,) or (batch, nv).
    one_period_delay : bool
        Commands act one period late; the first period has none.
    noise : MeasurementNoise, optional
        Noise of the measured positions and velocities.
    injection : OutputInjection, optional
        Corrections of the states by recorded positions; a record is that before the correction.
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
    if isinstance(controller, type) or not callable(getattr(controller, "update", controller)):
        raise InvalidValue(
            f"controller = {controller!r}; expected Pid(arm), PidGravity(arm) or a callable"
            " (q, v, time)"
        )
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
        arm, backend, Setup(integrator, by, precision, inputs.check_scene(scene, outputs)),
        start=broadcast_start(inputs.initial_states(arm, states), size),
        commands=control_rows(table, late, errors),
        dt=inputs.time_steps(dt, size), varied=inputs.variations(arm, varied, size),
        steps_per_command=1, record_every=check_record_every(record_every, periods, sizes),
        outputs=sizes, injection=injection,
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


def run_with_pid(
    task: RolloutTask,
    controller: Controller,
    gains: Mapping[str, ArrayLike],
    steps: IntArray,
    direction: Matrix,
    delay: bool,
    execution: Execution,
) -> RolloutResult:
    """Run ``task`` under a PID controller.

    Parameters
    ----------
    task : RolloutTask
        Task, with the rows of ``control_rows`` as commands and periods as records.
    controller : Controller
        Controller of ``PID_CONTROLLERS``.
    gains : Mapping[str, ArrayLike]
        "gains.p" ... to values that replace the controller's, (batch,) or (batch, nv).
    steps : IntArray
        Time steps per period, shape (batch,).
    direction : Matrix
        Sign of the first error, shape (batch, nv).
    delay : bool
        Commands act one period late.
    execution : Execution
        Where the task runs.

    Raises
    ------
    UnknownName
        If the controller or a gain does not exist here.
    InvalidValue
        If the joints differ, a gain is out of range, or the reference moves while the controller
        has a feedforward: a batch has no reference accelerations.

    """
    n = task.arm.nv
    feedforward = controller.gains.get(FEEDFORWARD)
    moving = task.commands[:, :, n : 2 * n].any()
    if feedforward is not None and feedforward.any() and moving:
        raise InvalidValue(
            f"controller: {FEEDFORWARD} = {feedforward.max():g}; expected 0 with a moving"
            " reference; or use simulate_closed_loop"
        )
    interface = task.setup.interface
    if interface not in ("effort", "voltage"):
        raise UnknownName("interface of a controller", interface, ("effort", "voltage"))
    if type(controller) not in PID_CONTROLLERS:
        known = tuple(kind.__name__ for kind in PID_CONTROLLERS)
        raise UnknownName("controller of a rollout", type(controller).__name__, known)
    noisy, gravity = task.commands.shape[2] > 2 * n + 2, PID_CONTROLLERS[type(controller)]
    spec = PidSpec(controller.arm, gravity, interface == "voltage", delay, noisy)
    if spec.arm.joint_names != task.arm.joint_names:
        raise InvalidValue(
            f"controller: joints = {spec.arm.joint_names}; expected {task.arm.joint_names}"
        )
    table = _gain_table(controller, gains, task.size)
    noise = task.commands[:, 0, 3 * n + 2 :] if noisy else 0.0
    memory = initial_memory(spec, table, task.start, task.start.v + noise)
    loop = PidLoop(spec, table, *memory, direction, steps * task.dt)
    name, _ = select_backend(task.backend, task.arm, task.setup, tuple(task.varied), spec)
    return _by_steps(replace(task, backend=name, loop=loop), steps, execution)


def _gain_table(controller: Controller, values: Mapping[str, ArrayLike], batch: int) -> FloatArray:
    """Return gains (batch, 6, nv): the controller's, replaced by ``values`` where given."""
    n = controller.arm.nv
    gains = np.tile(np.stack([controller.gains[name] for name in GAINS]), (batch, 1, 1))
    for name, rows in values.items():
        gain = name.removeprefix("gains.")
        if gain not in GAINS:
            raise UnknownName("gain", gain, GAINS)
        i = GAINS.index(gain)
        gains[:, i] = by_rollout(name, rows, batch, n)
        for at in (gains[:, i].argmin(), gains[:, i].argmax()):
            k, joint = divmod(int(at), n)
            owner = f"rollout {k}: gains of joint '{controller.arm.joint_names[joint]}'"
            Pid.parameters[i].check(owner, float(gains[k, i, joint]))
    return gains


def _by_steps(task: RolloutTask, steps: IntArray, execution: Execution) -> RolloutResult:
    """Run ``task``, rollouts with the same number of steps per period together."""
    every = np.unique(steps).tolist()
    groups: list[tuple[int, Any]] = [(count, np.flatnonzero(steps == count)) for count in every]
    if len(every) == 1:
        groups = [(every[0], slice(None))]  # a view instead of a copy
    parts = [
        replace(task.part(at), steps_per_command=count, record_every=task.record_every * count)
        for count, at in groups
    ]
    content = f"{task.size} rollouts, {parts[0].records} records each"
    require_memory_limit(sum(part.bytes for part in parts), execution.memory_limit, content)
    counter = StepCounter(sum(part.size * part.steps for part in parts), execution.progress)
    data = RolloutData.empty(task, METRICS)
    times = np.empty((task.size, parts[0].records))
    for (_, at), part in zip(groups, parts, strict=True):
        data.put(at, execute(part, execution, counter))
        times[at] = part.record_times
    return replace(to_result(task, data), time=times)


def run_with_policy(
    task: RolloutTask,
    policy: Policy,
    steps: int,
    direction: Matrix,
    delay: bool,
    execution: Execution,
) -> RolloutResult:
    """Run ``task`` under a policy that is called once per period for the whole batch.

    Parameters are those of ``run_with_pid``; raises CommandRejected for an invalid command.
    """
    name, _ = select_backend(task.backend, task.arm, task.setup, tuple(task.varied))
    task = replace(
        task, backend=name, steps_per_command=steps, record_every=task.record_every * steps
    )
    content = f"{task.size} rollouts, {task.records} records"
    require_memory_limit(task.bytes, execution.memory_limit, content)
    make, data, period = stepper_factory(task), RolloutData.empty(task, METRICS), steps * task.dt
    threads = execution.threads
    pool = ThreadPoolExecutor(threads or cores()) if threads != 1 else None
    try:
        blocks = ThreadedStepper([make(part) for _, part in task.parts(BLOCK)], pool)
        tick = _policy_tick(policy, blocks, float(period[0]))
        stepper = ClosedLoopStepper(blocks, tick, period, direction, delay)
        counter = StepCounter(task.size * task.steps, execution.progress)
        run_stepper(stepper, task, data, slice(0, task.size), counter.add, divisible=False)
    finally:
        if pool:
            pool.shutdown()
    return to_result(task, data)


def _policy_tick(policy: Policy, stepper: BatchStepper, period: float) -> ControlTick:
    """Return ``policy`` as a tick with checked commands; 0 for diverged rollouts."""
    ticks = 0

    def tick(q: Matrix, v: Matrix, reference: Matrix, elapsed: Vector) -> Matrix:
        nonlocal ticks
        where, failed = f"policy, tick {ticks}", stepper.failed_step >= 0
        values = policy(q, v, ticks * period)
        try:
            commands = np.array(as_readonly(values))
        except InvalidValue as error:
            raise CommandRejected(f"{where}: {error}") from error
        if commands.shape != q.shape:
            raise CommandRejected(
                f"{where}: commands: shape = {commands.shape}; expected (batch, nv) = {q.shape}"
            )
        for k, joint in np.argwhere(~np.isfinite(commands) & ~failed[:, None]).tolist():
            raise CommandRejected(
                f"{where}: commands[{k}, {joint}] = {commands[k, joint]}; expected a finite number"
            )
        ticks += 1
        commands[failed] = 0.0
        return commands

    return tick
