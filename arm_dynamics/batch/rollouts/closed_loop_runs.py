"""Execution of a closed-loop batch: under a PID controller, or under a policy in Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.batch.kernels.pid_spec import GAINS, PID_CONTROLLERS, ControlTick, PidSpec
from arm_dynamics.batch.kernels.tracking_metrics import METRICS
from arm_dynamics.batch.rollouts.backends import BLOCK, select_backend
from arm_dynamics.batch.rollouts.closed_loop_stepper import ClosedLoopStepper, ThreadedStepper
from arm_dynamics.batch.rollouts.inputs import by_rollout
from arm_dynamics.batch.rollouts.open_loop import to_result
from arm_dynamics.batch.rollouts.pid_loop import PidLoop, initial_memory
from arm_dynamics.batch.rollouts.result import RolloutResult
from arm_dynamics.batch.rollouts.rollout_task import (
    RolloutData,
    RolloutTask,
    require_memory_limit,
)
from arm_dynamics.batch.rollouts.steppers import BatchStepper
from arm_dynamics.batch.rollouts.task_runner import (
    Execution,
    Progress,
    cores,
    execute,
    run_stepper,
    stepper_factory,
)
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.controllers.pid import Pid
from arm_dynamics.core.arrays import BoolArray, FloatArray, IntArray, Matrix, Vector, as_readonly
from arm_dynamics.core.errors import CommandRejected, InvalidValue, UnknownName

FEEDFORWARD = "ff_acceleration_scale"
"""Gain of the feedforward along the reference, which needs accelerations."""
Policy = Callable[[Matrix, Matrix, float], ArrayLike]
"""Measured q and v (batch, nv), time since the start [s] -> commands (batch, nv)."""


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
    noisy = task.commands.shape[2] > 2 * n + 2
    spec = _pid_spec(controller, task.setup.interface, delay, noisy)
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


def _pid_spec(controller: Controller, interface: str, delay: bool, noisy: bool) -> PidSpec:
    if interface not in ("effort", "voltage"):
        raise UnknownName("interface of a controller", interface, ("effort", "voltage"))
    if type(controller) not in PID_CONTROLLERS:
        known = tuple(kind.__name__ for kind in PID_CONTROLLERS)
        raise UnknownName("controller of a rollout", type(controller).__name__, known)
    gravity = PID_CONTROLLERS[type(controller)]
    return PidSpec(controller.arm, gravity, interface == "voltage", delay, noisy)


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
    total, done = sum(part.size * part.steps for part in parts), 0
    data = RolloutData.empty(task, METRICS)
    times = np.empty((task.size, parts[0].records))
    for (_, at), part in zip(groups, parts, strict=True):
        progress = _shifted(execution.progress, done, total)
        data.put(at, execute(part, replace(execution, progress=progress)))
        times[at] = part.record_times
        done += part.size * part.steps
    return replace(to_result(task, data), time=times)


def _shifted(progress: Progress | None, before: int, total: int) -> Progress | None:
    if progress is None:
        return None
    return lambda done, _: progress(before + done, total)


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
        report = _total_progress(task, execution.progress)
        run_stepper(stepper, task, data, slice(0, task.size), report, divisible=False)
    finally:
        if pool:
            pool.shutdown()
    return to_result(task, data)


def _policy_tick(policy: Policy, stepper: BatchStepper, period: float) -> ControlTick:
    """Return ``policy`` as a tick with checked commands; 0 for diverged rollouts."""
    ticks = 0

    def tick(q: Matrix, v: Matrix, reference: Matrix, elapsed: Vector) -> Matrix:
        nonlocal ticks
        values, failed = policy(q, v, ticks * period), stepper.failed_step >= 0
        try:
            commands = np.array(as_readonly(values))
            _require_commands(commands, q.shape, failed)
        except InvalidValue as error:
            raise CommandRejected(f"policy, tick {ticks}: {error}") from error
        ticks += 1
        commands[failed] = 0.0
        return commands

    return tick


def _require_commands(commands: Matrix, shape: tuple[int, ...], failed: BoolArray) -> None:
    """Raise InvalidValue for another shape and for an entry that is not finite."""
    if commands.shape != shape:
        raise InvalidValue(f"commands: shape = {commands.shape}; expected (batch, nv) = {shape}")
    bad = ~np.isfinite(commands) & ~failed[:, None]
    if bad.any():
        k, joint = np.argwhere(bad)[0].tolist()
        value = commands[k, joint]
        raise InvalidValue(f"commands[{k}, {joint}] = {value}; expected a finite number")


def _total_progress(task: RolloutTask, progress: Progress | None) -> Callable[[int], None]:
    done, total = 0, task.size * task.steps

    def report(steps: int) -> None:
        nonlocal done
        done += steps
        if progress is not None:
            progress(done, total)

    return report
