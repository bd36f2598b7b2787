"""Rollouts under given commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.batch.kernels.free_object import BODY_ROWS
from arm_dynamics.batch.rollouts import inputs
from arm_dynamics.batch.rollouts.backends import Setup, select_backend
from arm_dynamics.batch.rollouts.inputs import InitialStates, States
from arm_dynamics.batch.rollouts.result import OUTPUTS, RolloutResult
from arm_dynamics.batch.rollouts.rollout_task import (
    RolloutData,
    RolloutTask,
    require_memory_limit,
)
from arm_dynamics.batch.rollouts.task_runner import Execution, Progress, execute
from arm_dynamics.collision.scene import EMPTY_SCENE, Scene
from arm_dynamics.core.argument_checks import check_names
from arm_dynamics.core.arrays import check_float, check_int
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.core.state import Command, State, require_state
from arm_dynamics.model.arm_argument import check_arm, require_masses
from arm_dynamics.model.arm_model import ArmModel

MAX_STEPS = 2**62
"""Time steps of a rollout that a 64-bit counter can number."""


def rollout(
    arm: ArmModel,
    states: States,
    commands: ArrayLike,
    dt: ArrayLike,
    *,
    interface: str,
    scene: Scene = EMPTY_SCENE,
    steps_per_command: int = 1,
    record_every: int = 1,
    outputs: Sequence[str] = ("q", "v"),
    vary: Mapping[str, ArrayLike] | None = None,
    integrator: str = "semi_implicit_euler",
    precision: str = "float64",
    backend: str = "auto",
    threads: int | None = None,
    executor: Executor | None = None,
    memory_limit: float | None = None,
    progress: Progress | None = None,
) -> RolloutResult:
    """Simulate many rollouts: x_{k+1} = step(x_k, u_k, dt), as ``Plant.step`` for each of them.

    The results do not depend on the number of threads, nor on the other rollouts of the batch. A
    rollout that diverges is reported in ``failed_step``; the others continue.

    Parameters
    ----------
    arm : ArmModel
        Nominal arm.
    states : State, sequence of State or ArrayLike
        Initial states: one for all, one per rollout, or (batch, 2 nv + na) of [q, v, act].
    commands : ArrayLike
        Commands [N·m, N or V]: constant (nv,) or (batch, nv), or (periods, nv) or
        (batch, periods, nv). Two dimensions are (batch, nv) if there are as many rows as rollouts.
    dt : ArrayLike
        Time step [s], one for all or (batch,).
    interface : str
        Command interface.
    scene : Scene
        Objects that the links touch, see ``sphere_contacts``: ground, spheres and boxes. One sphere
        or box can be free; all rollouts start with it at rest at its pose.
    steps_per_command : int
        Time steps for which each command is held.
    record_every : int
        Time steps between two records.
    outputs : sequence of str
        Quantities to record, of ``OUTPUTS``.
    vary : Mapping[str, ArrayLike], optional
        Name of ``variation.variable_names`` to values, (batch,) or (batch, nv).
    integrator : str
        Integrator, see ``arm_dynamics.simulation.integrators``.
    precision : str
        "float64", or "float32" for generated kernels; records have the same precision.
    backend : str
        "auto", "generated" or "plant", see ``backends.select_backend``.
    threads : int, optional
        Threads of the generated kernels (default: one per core).
    executor : concurrent.futures.Executor, optional
        Executor to which parts of the batch are sent.
    memory_limit : float, optional
        Bytes that the records may take (default: half of the machine's memory).
    progress : callable, optional
        Called with the time steps done and their total, over all rollouts.

    Returns
    -------
    RolloutResult
        Records, last states and failed steps.

    Raises
    ------
    InvalidValue, UnknownName, CommandRejected
        If an argument is invalid; the message names it, and the rollout.

    """
    require_masses(check_arm(arm), "a rollout")
    execution = Execution(threads, executor, memory_limit, progress)
    values, dt = inputs.command_array(interface, commands), inputs.check_array("dt [s]", dt)
    size = infer_batch_size(states, vary, dt, values)
    start = broadcast_start(inputs.initial_states(arm, states), size)
    table = inputs.check_commands(arm, interface, values, size)
    steps_per_command = check_int("steps_per_command", steps_per_command, lower=1)
    sizes = output_sizes(arm, outputs)
    dts, varied = inputs.time_steps(dt, size), inputs.variations(arm, vary, size)
    setup = Setup(integrator, interface, precision, inputs.check_scene(scene, outputs))
    record_every = check_record_every(record_every, table.shape[1] * steps_per_command, sizes)
    name, _ = select_backend(backend, arm, setup, tuple(varied))
    task = RolloutTask(
        arm, name, setup, start, commands=table, dt=dts, varied=varied,
        steps_per_command=steps_per_command, record_every=record_every, outputs=sizes,
    )  # fmt: skip
    content = f"{size} rollouts, {task.records} records, {sum(sizes.values())} values each"
    require_memory_limit(task.bytes, memory_limit, content)
    return to_result(task, execute(task, execution))


def simulate(
    arm: ArmModel,
    state: State,
    command: Command | ArrayLike,
    dt: float,
    steps: int,
    *,
    interface: str | None = None,
    **options: Any,
) -> RolloutResult:
    """Simulate one arm under a constant command: a batch of one rollout.

    Parameters
    ----------
    arm : ArmModel
        Arm.
    state : State
        Initial state.
    command : Command or ArrayLike
        A Command, or its values (nv,) on ``interface``.
    dt : float
        Time step [s].
    steps : int
        Number of time steps.
    interface : str, optional
        Command interface; with a Command, the same one or None.
    **options
        Options of ``rollout``.

    Returns
    -------
    RolloutResult
        As of ``rollout``.

    Raises
    ------
    InvalidValue
        If the interface is missing or contradicts the Command; and as ``rollout``.

    """
    nv, steps = check_arm(arm).nv, check_int("steps", steps, lower=1)
    if not isinstance(command, Command):
        if interface is None:
            raise InvalidValue("interface = None; expected a name with an array of commands")
        command = Command.checked(interface, command, nv)
    if interface not in (None, command.interface):
        raise InvalidValue(f"interface = '{interface}'; expected '{command.interface}' or None")
    return rollout(
        arm, require_state(state), command.value, check_float("dt [s]", dt, above=0),
        interface=command.interface, steps_per_command=steps, **options,
    )  # fmt: skip


def to_result(task: RolloutTask, data: RolloutData) -> RolloutResult:
    """Return the results of ``task`` as a RolloutResult."""
    return RolloutResult(
        task.arm, task.record_times, data.arrays, data.failed_step, data.final_array, task.backend,
        data.metrics,
    )  # fmt: skip


def infer_batch_size(
    states: Any, vary: Mapping[str, ArrayLike] | None, dt: ArrayLike, commands: ArrayLike
) -> int:
    """Return the number of rollouts that the arguments specify; 1 if none does."""
    sizes = [len(states)] if isinstance(states, Sequence | np.ndarray) else []
    varied = inputs.check_mapping(vary).items()
    sizes += [len(np.atleast_1d(inputs.check_array(name, values))) for name, values in varied]
    sizes += [np.size(dt)] if np.ndim(dt) == 1 else []
    sizes += [len(np.asarray(commands))] if np.ndim(commands) == 3 else []
    return max(sizes, default=1)


def broadcast_start(start: InitialStates, size: int) -> InitialStates:
    """Return one initial state for each rollout; raises InvalidValue for another number."""
    if start.size not in (1, size):
        raise InvalidValue(f"rollout: states = {start.size}; expected {size} or 1")
    return start if start.size == size else start.part(np.zeros(size, dtype=int))


def check_record_every(record_every: int, steps: int, outputs: Mapping[str, int]) -> int:
    """Return the steps between records; all steps if nothing is recorded. Raises InvalidValue."""
    record_every = check_int("record_every", record_every, lower=1)
    if steps > MAX_STEPS:
        raise InvalidValue(f"rollout: time steps = {steps}; expected at most {MAX_STEPS}")
    if outputs and record_every > steps:
        raise InvalidValue(f"record_every = {record_every}; expected at most {steps} time steps")
    return record_every if outputs else steps


def output_sizes(arm: ArmModel, outputs: Sequence[str]) -> dict[str, int]:
    """Return output name to its number of values; raises UnknownName."""
    sizes = {"act": arm.na, "tool_position": 3, **BODY_ROWS}
    for name in check_names("outputs", outputs):
        if name not in OUTPUTS:
            raise UnknownName("output of a rollout", name, OUTPUTS)
    return {name: sizes.get(name, arm.nv) for name in outputs}
