"""A batch with a PID law beside every lane."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.batch.rollout.backends import select_backend
from arm_dynamics.batch.rollout.batch import RolloutResult
from arm_dynamics.batch.rollout.memory_limit import require_memory_limit
from arm_dynamics.batch.rollout.pid_loop import GAINS, LAWS, PidLoop, PidSpec, memory
from arm_dynamics.batch.rollout.rollout import to_result
from arm_dynamics.batch.rollout.task_runner import Progress, RolloutData, RolloutTask, spread
from arm_dynamics.batch.rollout.variation_checks import by_rollout
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.controllers.pid import Pid
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import InvalidValue, UnknownName

ALONG = "ff_acceleration_scale"
"""The gain by which a controller adds the effort of its model along the reference."""


def run_with_pid(
    work: RolloutTask,
    controller: Controller,
    gains: Mapping[str, ArrayLike],
    every: Vector,
    way: Vector,
    delay: bool,
    threads: int | None,
    executor: Executor | None,
    memory_limit: float | None,
    progress: Progress | None,
) -> RolloutResult:
    """``work`` under ``controller``, its ``gains`` by lane, ``every`` (lanes,) steps a period.

    Raises UnknownName for a controller or gain that there is not, InvalidValue for one with
    other joints, a gain out of its range, or a feedforward along a moving reference: of that a
    batch has no acceleration.
    """
    n = work.arm.nv
    share = controller.gains.get(ALONG)
    if share is not None and share.any() and work.given[:, :, n : 2 * n].any():
        raise InvalidValue(
            f"controller: {ALONG} = {share.max():g} with a moving reference; a batch adds no"
            f" effort along a reference: set {ALONG} to 0, or use simulate_closed_loop"
        )
    law = _law(controller, work.setup[1], delay, work.given.shape[2] > 2 * n + 2)
    if law.arm.joint_names != work.arm.joint_names:
        raise InvalidValue(
            f"controller with joints {law.arm.joint_names}: {work.arm.joint_names} expected"
        )
    table = _gains(controller, gains, work.lanes)
    wobble = work.given[:, 0, 3 * n + 2 :] if law.noise else 0.0
    started = memory(law, table, work.start, work.start.v + wobble)
    loop = PidLoop(law, table, *started, way, every * work.dt)
    name, _ = select_backend(work.backend, work.arm, work.setup, tuple(work.varied), law)
    work = replace(work, backend=name, loop=loop)
    return _grouped(work, every, threads, executor, memory_limit, progress)


def _law(controller: Controller, interface: str, delay: bool, noisy: bool) -> PidSpec:
    if interface not in ("effort", "voltage"):
        raise UnknownName("interface of a law", interface, ("effort", "voltage"))
    if type(controller) not in LAWS:
        known = tuple(kind.__name__ for kind in LAWS)
        raise UnknownName("controller of a rollout", type(controller).__name__, known)
    return PidSpec(controller.arm, LAWS[type(controller)], interface == "voltage", delay, noisy)


def _gains(controller: Controller, given: Mapping[str, ArrayLike], lanes: int) -> Vector:
    """Gains (lane, 6, nv): the controller's, those ``given`` by lane in their place."""
    n = controller.arm.nv
    gains = np.tile(np.stack([controller.gains[name] for name in GAINS]), (lanes, 1, 1))
    for name, values in given.items():
        gain = name.removeprefix("gains.")
        if gain not in GAINS:
            raise UnknownName("gain", gain, GAINS)
        i = GAINS.index(gain)
        gains[:, i] = by_rollout(name, values, lanes, n)
        for at in (gains[:, i].argmin(), gains[:, i].argmax()):
            lane, joint = divmod(int(at), n)
            owner = f"lane {lane}: gains of joint '{controller.arm.joint_names[joint]}'"
            Pid.parameters[i].check(owner, float(gains[lane, i, joint]))
    return gains


def _grouped(
    work: RolloutTask,
    every: Vector,
    threads: int | None,
    executor: Executor | None,
    memory_limit: float | None,
    progress: Progress | None,
) -> RolloutResult:
    """``work`` done, lanes with as many steps a period together."""
    kinds = sorted(set(every.tolist()))
    likes = [np.flatnonzero(every == kind) for kind in kinds]
    parts = [
        replace(work.part(lanes), every=kind, stride=work.stride * kind)
        for kind, lanes in zip(kinds, likes, strict=True)
    ]
    what = f"{work.lanes} lanes, {parts[0].records} records each"
    require_memory_limit(sum(part.bytes for part in parts), memory_limit, what)
    total, behind = sum(part.lanes * part.steps for part in parts), 0
    whole, time = RolloutData.empty(work), np.empty((work.lanes, parts[0].records))
    for lanes, part in zip(likes, parts, strict=True):
        found = spread(part, threads, executor, _shifted(progress, behind, total))
        whole.put(lanes, found)
        time[lanes] = to_result(part, found).time
        behind += part.lanes * part.steps
    return RolloutResult(
        work.arm, time, whole.arrays, whole.failed, whole.end, work.backend, whole.metrics
    )


def _shifted(progress: Progress | None, behind: int, total: int) -> Progress | None:
    if progress is None:
        return None
    return lambda done, _: progress(behind + done, total)
