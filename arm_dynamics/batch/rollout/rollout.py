"""Many arms under given commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.batch.rollout import inputs
from arm_dynamics.batch.rollout.backends import select_backend
from arm_dynamics.batch.rollout.batch import OUTPUTS, RolloutResult
from arm_dynamics.batch.rollout.inputs import InitialStates, States
from arm_dynamics.batch.rollout.memory_limit import require_memory_limit
from arm_dynamics.batch.rollout.task_runner import Progress, RolloutData, RolloutTask, spread
from arm_dynamics.batch.rollout.variation_checks import check_mapping, variations
from arm_dynamics.core.argument_checks import check_names, check_type
from arm_dynamics.core.arrays import check_int
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.model.arm_argument import check_arm
from arm_dynamics.model.arm_model import ArmModel

MAX_STEPS = 2**62
"""Of one lane: what a step's number, a 64-bit integer, can tell."""


def rollout(
    arm: ArmModel,
    states: States,
    commands: ArrayLike,
    dt: ArrayLike,
    *,
    interface: str,
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
    """x_{k+1} = step(x_k, u_k, dt) for every lane: what ``Plant.step`` does, many at once.

    states: one State, one a lane, or (lanes, 2 nv + na) of [q, v, z]. commands [N·m or V]: (nv,)
    or (lanes, nv) constant, (periods, nv) or (lanes, periods, nv); each is held for ``steps_per_command``
    steps of dt [s], a number or (lanes,). Two dimensions are (lanes, nv) where there are as many
    rows as lanes. vary: name of ``variation.known`` → (lanes,) or (lanes, nv).

    Every ``record_every``-th state is recorded, ``outputs`` of it. Results do not depend on the number
    of threads, nor on the batch that a lane is in. A lane that leaves the finite numbers is
    reported in ``failed``; the others go on. backend: "auto" or one of ``BACKENDS``; precision:
    what generated kernels compute with ("float64", "float32") and all records are kept in.
    executor: any of ``concurrent.futures``, to which parts of the batch are sent.
    progress(done, total) hears of steps of lanes.

    Raises InvalidValue, UnknownName or CommandRefused for what cannot be done, and InvalidValue
    when the records would take more than memory_limit bytes (default: half the machine's).
    """
    check_arm(arm)
    require_options(threads, executor, progress)
    told, dt = inputs.command_numbers(interface, commands), inputs.check_array("dt [s]", dt)
    lanes = infer_batch_size(states, vary, dt, told)
    start = broadcast_start(inputs.initial_states(arm, states), lanes)
    given = inputs.commands_of(arm, interface, told, lanes)
    steps_per_command, sizes = (
        check_int("steps_per_command", steps_per_command, lower=1),
        output_sizes(arm, outputs),
    )
    work = RolloutTask(
        arm,
        backend,
        (integrator, interface, precision),
        start,
        given,
        inputs.time_steps(dt, lanes),
        variations(arm, vary, lanes),
        steps_per_command,
        check_record_stride(record_every, given.shape[1] * steps_per_command, sizes),
        sizes,
    )
    name, _ = select_backend(backend, arm, work.setup, tuple(work.varied))
    return run_rollouts(replace(work, backend=name), threads, executor, memory_limit, progress)


def run_rollouts(
    work: RolloutTask,
    threads: int | None,
    executor: Executor | None,
    memory_limit: float | None,
    progress: Progress | None,
) -> RolloutResult:
    """The batch of ``work``, done where it is told."""
    what = f"{work.lanes} lanes, {work.records} records, {sum(work.outputs.values())} numbers each"
    require_memory_limit(work.bytes, memory_limit, what)
    return to_result(work, spread(work, threads, executor, progress))


def to_result(work: RolloutTask, found: RolloutData) -> RolloutResult:
    """What was found of ``work`` as a batch."""
    time = work.dt[:, None] * ((np.arange(work.records) + 1) * work.stride)
    return RolloutResult(
        work.arm, time, found.arrays, found.failed, found.end, work.backend, found.metrics
    )


def infer_batch_size(
    states: Any, vary: Mapping[str, ArrayLike] | None, dt: ArrayLike, commands: ArrayLike
) -> int:
    """Number of lanes that the arguments speak of; 1 where none tells. Raises InvalidValue."""
    sizes = [len(states)] if isinstance(states, Sequence | np.ndarray) else []
    told = check_mapping(vary).items()
    sizes += [len(np.atleast_1d(inputs.check_array(name, values))) for name, values in told]
    sizes += [np.size(dt)] if np.ndim(dt) == 1 else []
    sizes += [len(np.asarray(commands))] if np.ndim(commands) == 3 else []
    return max(sizes, default=1)


def broadcast_start(start: InitialStates, lanes: int) -> InitialStates:
    """One start for all lanes, where only one is given; raises InvalidValue."""
    if start.lanes not in (1, lanes):
        raise InvalidValue(f"{start.lanes} states and {lanes} lanes: as many, or one, are expected")
    return start if start.lanes == lanes else start.part(np.zeros(lanes, dtype=int))


def check_record_stride(stride: int, steps: int, outputs: Mapping[str, int]) -> int:
    """Steps between records: all of them where nothing is recorded; raises InvalidValue."""
    stride = check_int("stride", stride, lower=1)
    if steps > MAX_STEPS:
        raise InvalidValue(f"{steps} steps: at most {MAX_STEPS} can be counted")
    if outputs and stride > steps:
        raise InvalidValue(f"stride = {stride}: at most the {steps} steps that there are")
    return stride if outputs else steps


def require_options(
    threads: int | None, executor: Executor | None, progress: Progress | None
) -> None:
    """Raises InvalidValue for what cannot do or hear of the work."""
    if threads is not None:
        check_int("threads", threads, lower=1)
    if executor is not None:
        check_type(Executor, "executor", executor, "any of concurrent.futures is one")
    if progress is not None and not callable(progress):
        raise InvalidValue(f"progress = {progress!r}: a callable (done, total) is expected")


def output_sizes(arm: ArmModel, outputs: Sequence[str]) -> dict[str, int]:
    """Name → numbers of the outputs; raises UnknownName."""
    sizes = {"act": arm.na, "tool_position": 3}
    for name in check_names("outputs", outputs):
        if name not in OUTPUTS:
            raise UnknownName("output of a rollout", name, OUTPUTS)
    return {name: sizes.get(name, arm.nv) for name in outputs}
