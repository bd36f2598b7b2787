"""Many arms under a control law."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.arrays import Vector, scalar
from arm_dynamics.controllers.base import Controller
from arm_dynamics.controllers.pid import Pid
from arm_dynamics.errors import CommandRefused, InvalidValue, UnknownName
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.rollout import inputs
from arm_dynamics.rollout.backends import BLOCK, chosen
from arm_dynamics.rollout.batch import Batch
from arm_dynamics.rollout.executor import spread
from arm_dynamics.rollout.inputs import States
from arm_dynamics.rollout.law import GAINS, METRICS, Law
from arm_dynamics.rollout.loop_lanes import BlockLanes, LoopLanes
from arm_dynamics.rollout.memory import require_memory
from arm_dynamics.rollout.pid_loop import LAWS, PidLoop, memory
from arm_dynamics.rollout.reference_table import Noise, reference_table, ticks
from arm_dynamics.rollout.rollout import Progress, batch_of, counted, lanes_of, repeated, sizes_of
from arm_dynamics.rollout.work import Done, Work, cores, maker, run
from arm_dynamics.simulation import whole_steps

Policy = Callable[[Vector, Vector, float], ArrayLike]
"""Measured q and v (lane, nv), time since the start [s] → commands (lane, nv)."""


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
    delay: bool = False,
    noise: Noise | None = None,
    late: float = 0.2,
    stride: int = 1,
    outputs: Sequence[str] = (),
    method: str = "semi_implicit_euler",
    precision: str = "float64",
    backend: str = "auto",
    threads: int | None = None,
    executor: Executor | None = None,
    memory_limit: float | None = None,
    progress: Progress | None = None,
) -> Batch:
    """u = law(q + n_q, v + n_v, reference) once a ``period`` [s], held over it; by lane.

    controller: a ``Pid`` or ``PidGravity`` (with gains, limits and model of its own, which need
    not be the arm's) runs beside each lane, in generated code where that serves; its memory
    starts as ``Pid.reset`` starts it and its first tick has dt = 0, as in ``ControlLoop``. Or
    any callable (q, v, time) → commands, asked for the whole batch at once. ``interface``:
    "effort" (default), or "voltage", which for a law means the voltage that gives its effort by
    the motors of its own model at 25 °C. reference: see ``reference_table``.

    vary: also "gains.p" ..., (lanes,) or (lanes, nv). delay: commands act one period late, after
    a first period of none. ``late``: share of the time, at its end, that the settled error is
    taken from. Every ``stride``-th period is recorded, ``outputs`` of it; metrics as in
    ``law.METRICS``. dt may differ by lane; all must go whole into the period. The rest is as for
    ``rollout``. Raises InvalidValue, UnknownName or CommandRefused.
    """
    lanes = max(lanes_of(states, vary, dt, ()), len(reference) if np.ndim(reference) == 3 else 1)
    start = repeated(inputs.starts(arm, states), lanes)
    steps = inputs.time_steps(dt, lanes)
    every = np.array([whole_steps(period, one) for one in steps.tolist()])
    periods = whole_steps(duration, period)
    table = reference_table(reference, lanes, periods, arm.nv, period)
    require_memory(8 * lanes * periods * 2 * arm.nv if noise else 0, memory_limit, "noise")
    wobble = noise.table(lanes, periods, arm.nv) if noise else None
    given = ticks(table, scalar("late", late, lower=0, upper=1), wobble)
    vary = dict(vary or {})
    gains = {name: vary.pop(name) for name in list(vary) if name.startswith("gains.")}
    work = Work(
        arm, backend, (method, interface or "effort", precision), start, given, steps,
        inputs.variations(arm, vary, lanes), 1, counted("stride", stride), sizes_of(arm, outputs),
    )  # fmt: skip
    inputs.commands_of(arm, work.setup[1], np.zeros(arm.nv), lanes)
    held = every * steps
    way = np.sign(table[:, 0, : arm.nv] - start.q)
    if isinstance(controller, Controller):
        law = _law(controller, work.setup[1], delay, noise is not None)
        if law.arm.joint_names != arm.joint_names:
            raise InvalidValue(
                f"controller with joints {law.arm.joint_names}: {arm.joint_names} expected"
            )
        chosen_gains = _gains(controller, gains, lanes)
        measured = start.v if wobble is None else start.v + wobble[:, 0, arm.nv :]
        loop = PidLoop(law, chosen_gains, *memory(law, chosen_gains, start, measured), way, held)
        name, _ = chosen(backend, arm, work.setup, tuple(work.varied), law)
        work = replace(work, backend=name, loop=loop)
        return _grouped(work, every, stride, threads, executor, memory_limit, progress)
    if gains:
        raise UnknownName("variation", next(iter(gains)), tuple(vary))
    if (every != every[0]).any() or executor is not None:
        raise InvalidValue("a policy in Python takes one dt for all lanes, and no executor")
    name, _ = chosen(backend, arm, work.setup, tuple(work.varied))
    work = replace(work, backend=name, every=int(every[0]), stride=stride * int(every[0]))
    require_memory(work.bytes, memory_limit, f"{lanes} lanes, {work.records} records")
    return _with_policy(work, controller, way, held, delay, threads, progress)


def _law(controller: Controller, interface: str, delay: bool, noisy: bool) -> Law:
    if type(controller) not in LAWS:
        known = tuple(kind.__name__ for kind in LAWS)
        raise UnknownName("controller of a rollout", type(controller).__name__, known)
    return Law(controller.arm, LAWS[type(controller)], interface == "voltage", delay, noisy)


def _gains(controller: Controller, given: Mapping[str, ArrayLike], lanes: int) -> Vector:
    """Gains (lane, 6, nv): the controller's, those ``given`` by lane in their place."""
    n = controller.arm.nv
    gains = np.tile(np.stack([controller.gains[name] for name in GAINS]), (lanes, 1, 1))
    for name, values in given.items():
        gain = name.removeprefix("gains.")
        if gain not in GAINS:
            raise UnknownName("gain", gain, GAINS)
        i = GAINS.index(gain)
        gains[:, i] = inputs.by_lane(name, values, lanes, n)
        for value in (gains[:, i].min(), gains[:, i].max()):
            Pid.parameters[i].check("gains", float(value))
    return gains


def _grouped(
    work: Work,
    every: Vector,
    stride: int,
    threads: int | None,
    executor: Executor | None,
    memory_limit: float | None,
    progress: Progress | None,
) -> Batch:
    """``work`` done, lanes with as many steps a period together."""
    kinds = sorted(set(every.tolist()))
    likes = [np.flatnonzero(every == kind) for kind in kinds]
    parts = [
        replace(work.part(lanes), every=kind, stride=stride * kind)
        for kind, lanes in zip(kinds, likes, strict=True)
    ]
    what = f"{work.lanes} lanes, {parts[0].records} records each"
    require_memory(sum(part.bytes for part in parts), memory_limit, what)
    total, behind = sum(part.lanes * part.steps for part in parts), 0
    whole, time = Done.empty(replace(work, stride=stride)), np.empty((work.lanes, parts[0].records))
    for lanes, part in zip(likes, parts, strict=True):
        found = spread(part, threads, executor, _shifted(progress, behind, total))
        whole.put(lanes, found)
        time[lanes] = batch_of(part, found).time
        behind += part.lanes * part.steps
    return Batch(work.arm, time, whole.arrays, whole.failed, whole.end, work.backend, whole.metrics)


def _shifted(progress: Progress | None, behind: int, total: int) -> Progress | None:
    if progress is None:
        return None
    return lambda done, _: progress(behind + done, total)


def _with_policy(
    work: Work,
    policy: Policy,
    way: Vector,
    period: Vector,
    delay: bool,
    threads: int | None,
    progress: Progress | None,
) -> Batch:
    make, n = maker(work), work.arm.nv
    pool = ThreadPoolExecutor(threads or cores()) if threads != 1 else None
    inner = BlockLanes([make(part) for _, part in work.parts(BLOCK)], pool)
    ticked = 0

    def tick(q: Vector, v: Vector, reference: Vector, elapsed: Vector) -> Vector:
        nonlocal ticked
        told = np.array(policy(q, v, ticked * float(period[0])), dtype=float)
        ticked += 1
        lost = inner.failed >= 0
        if told.shape != (work.lanes, n) or not np.isfinite(told[~lost]).all():
            raise CommandRefused(
                f"policy at tick {ticked - 1}: finite commands ({work.lanes}, {n}) expected,"
                f" {told.shape} given" + ("" if told.shape != q.shape else ", not all finite")
            )
        told[lost] = 0.0
        return told

    whole = Done.empty(replace(work, loop=_Scored()))
    lanes, spent = LoopLanes(inner, tick, period, way, delay), 0

    def report(steps: int) -> None:
        nonlocal spent
        spent += steps
        if progress is not None:
            progress(spent, work.lanes * work.steps)

    try:
        run(lanes, work, whole, slice(0, work.lanes), report, divisible=False)
    finally:
        if pool:
            pool.shutdown()
    return batch_of(work, whole)


class _Scored:
    """Stands for a loop whose metrics there must be room for."""

    metrics = METRICS
