"""Many arms under given commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.batch.rollout import inputs
from arm_dynamics.batch.rollout.backends import chosen
from arm_dynamics.batch.rollout.batch import OUTPUTS, Batch
from arm_dynamics.batch.rollout.inputs import Start, States
from arm_dynamics.batch.rollout.memory_limit import require_memory
from arm_dynamics.batch.rollout.task_runner import Done, Progress, Work, spread
from arm_dynamics.batch.rollout.variation_checks import named, variations
from arm_dynamics.core.argument_checks import expect, names
from arm_dynamics.core.arrays import whole
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.model.arm_argument import given_arm
from arm_dynamics.model.arm_model import ArmModel

MOST_STEPS = 2**62
"""Of one lane: what a step's number, a 64-bit integer, can tell."""


def rollout(
    arm: ArmModel,
    states: States,
    commands: ArrayLike,
    dt: ArrayLike,
    *,
    interface: str,
    every: int = 1,
    stride: int = 1,
    outputs: Sequence[str] = ("q", "v"),
    vary: Mapping[str, ArrayLike] | None = None,
    method: str = "semi_implicit_euler",
    precision: str = "float64",
    backend: str = "auto",
    threads: int | None = None,
    executor: Executor | None = None,
    memory_limit: float | None = None,
    progress: Progress | None = None,
) -> Batch:
    """x_{k+1} = step(x_k, u_k, dt) for every lane: what ``Plant.step`` does, many at once.

    states: one State, one a lane, or (lanes, 2 nv + na) of [q, v, z]. commands [N·m or V]: (nv,)
    or (lanes, nv) constant, (periods, nv) or (lanes, periods, nv); each is held for ``every``
    steps of dt [s], a number or (lanes,). Two dimensions are (lanes, nv) where there are as many
    rows as lanes. vary: name of ``variation.known`` → (lanes,) or (lanes, nv).

    Every ``stride``-th state is recorded, ``outputs`` of it. Results do not depend on the number
    of threads, nor on the batch that a lane is in. A lane that leaves the finite numbers is
    reported in ``failed``; the others go on. backend: "auto" or one of ``BACKENDS``; precision:
    what generated kernels compute with ("float64", "float32") and all records are kept in.
    executor: any of ``concurrent.futures``, to which parts of the batch are sent.
    progress(done, total) hears of steps of lanes.

    Raises InvalidValue, UnknownName or CommandRefused for what cannot be done, and InvalidValue
    when the records would take more than memory_limit bytes (default: half the machine's).
    """
    given_arm(arm)
    require_told(threads, executor, progress)
    told, dt = inputs.command_numbers(interface, commands), inputs.numbers("dt [s]", dt)
    lanes = lanes_of(states, vary, dt, told)
    start = repeated(inputs.starts(arm, states), lanes)
    given = inputs.commands_of(arm, interface, told, lanes)
    every, sizes = whole("every", every, lower=1), sizes_of(arm, outputs)
    work = Work(
        arm,
        backend,
        (method, interface, precision),
        start,
        given,
        inputs.time_steps(dt, lanes),
        variations(arm, vary, lanes),
        every,
        stride_of(stride, given.shape[1] * every, sizes),
        sizes,
    )
    name, _ = chosen(backend, arm, work.setup, tuple(work.varied))
    return finished(replace(work, backend=name), threads, executor, memory_limit, progress)


def finished(
    work: Work,
    threads: int | None,
    executor: Executor | None,
    memory_limit: float | None,
    progress: Progress | None,
) -> Batch:
    """The batch of ``work``, done where it is told."""
    what = f"{work.lanes} lanes, {work.records} records, {sum(work.outputs.values())} numbers each"
    require_memory(work.bytes, memory_limit, what)
    return batch_of(work, spread(work, threads, executor, progress))


def batch_of(work: Work, found: Done) -> Batch:
    """What was found of ``work`` as a batch."""
    time = work.dt[:, None] * ((np.arange(work.records) + 1) * work.stride)
    return Batch(work.arm, time, found.arrays, found.failed, found.end, work.backend, found.metrics)


def lanes_of(
    states: Any, vary: Mapping[str, ArrayLike] | None, dt: ArrayLike, commands: ArrayLike
) -> int:
    """Number of lanes that the arguments speak of; 1 where none tells. Raises InvalidValue."""
    sizes = [len(states)] if isinstance(states, Sequence | np.ndarray) else []
    told = named(vary).items()
    sizes += [len(np.atleast_1d(inputs.numbers(name, values))) for name, values in told]
    sizes += [np.size(dt)] if np.ndim(dt) == 1 else []
    sizes += [len(np.asarray(commands))] if np.ndim(commands) == 3 else []
    return max(sizes, default=1)


def repeated(start: Start, lanes: int) -> Start:
    """One start for all lanes, where only one is given; raises InvalidValue."""
    if start.lanes not in (1, lanes):
        raise InvalidValue(f"{start.lanes} states and {lanes} lanes: as many, or one, are expected")
    return start if start.lanes == lanes else start.part(np.zeros(lanes, dtype=int))


def stride_of(stride: int, steps: int, outputs: Mapping[str, int]) -> int:
    """Steps between records: all of them where nothing is recorded; raises InvalidValue."""
    stride = whole("stride", stride, lower=1)
    if steps > MOST_STEPS:
        raise InvalidValue(f"{steps} steps: at most {MOST_STEPS} can be counted")
    if outputs and stride > steps:
        raise InvalidValue(f"stride = {stride}: at most the {steps} steps that there are")
    return stride if outputs else steps


def require_told(threads: int | None, executor: Executor | None, progress: Progress | None) -> None:
    """Raises InvalidValue for what cannot do or hear of the work."""
    if threads is not None:
        whole("threads", threads, lower=1)
    if executor is not None:
        expect(Executor, "executor", executor, "any of concurrent.futures is one")
    if progress is not None and not callable(progress):
        raise InvalidValue(f"progress = {progress!r}: a callable (done, total) is expected")


def sizes_of(arm: ArmModel, outputs: Sequence[str]) -> dict[str, int]:
    """Name → numbers of the outputs; raises UnknownName."""
    sizes = {"act": arm.na, "tool_position": 3}
    for name in names("outputs", outputs):
        if name not in OUTPUTS:
            raise UnknownName("output of a rollout", name, OUTPUTS)
    return {name: sizes.get(name, arm.nv) for name in outputs}
