"""Many arms under given commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.errors import InvalidValue, UnknownName
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.rollout import inputs
from arm_dynamics.rollout.backends import chosen
from arm_dynamics.rollout.batch import OUTPUTS, Batch
from arm_dynamics.rollout.executor import Progress, spread
from arm_dynamics.rollout.inputs import Start, States
from arm_dynamics.rollout.memory import require_memory
from arm_dynamics.rollout.work import Done, Work


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
    lanes = lanes_of(states, vary, dt, commands)
    start = repeated(inputs.starts(arm, states), lanes)
    given = inputs.commands_of(arm, interface, commands, lanes)
    work = Work(
        arm,
        backend,
        (method, interface, precision),
        start,
        given,
        inputs.time_steps(dt, lanes),
        inputs.variations(arm, vary, lanes),
        counted("every", every),
        counted("stride", stride),
        sizes_of(arm, outputs),
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
    if work.outputs and work.stride > work.steps:
        raise InvalidValue(f"stride = {work.stride}: at most the {work.steps} steps that there are")
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
    """Number of lanes that the arguments speak of; 1 where none tells."""
    sizes = [len(states)] if isinstance(states, Sequence | np.ndarray) else []
    sizes += [len(np.atleast_1d(values)) for values in (vary or {}).values()]
    sizes += [np.size(dt)] if np.ndim(dt) == 1 else []
    sizes += [len(np.asarray(commands))] if np.ndim(commands) == 3 else []
    return max(sizes, default=1)


def repeated(start: Start, lanes: int) -> Start:
    """One start for all lanes, where only one is given; raises InvalidValue."""
    if start.lanes not in (1, lanes):
        raise InvalidValue(f"{start.lanes} states and {lanes} lanes: as many, or one, are expected")
    return start if start.lanes == lanes else start.part(np.zeros(lanes, dtype=int))


def counted(name: str, value: int) -> int:
    """A whole number of at least 1; raises InvalidValue."""
    if isinstance(value, bool) or int(value) != value or value < 1:
        raise InvalidValue(f"{name} = {value!r}: a whole number of at least 1 is expected")
    return int(value)


def sizes_of(arm: ArmModel, outputs: Sequence[str]) -> dict[str, int]:
    """Name → numbers of the outputs; raises UnknownName."""
    for name in outputs:
        if name not in OUTPUTS:
            raise UnknownName("output of a rollout", name, OUTPUTS)
    return {name: arm.na if name == "act" else arm.nv for name in outputs}
