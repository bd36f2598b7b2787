"""Many arms under a control law."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.arrays import Vector, scalar
from arm_dynamics.controllers.base import Controller
from arm_dynamics.errors import InvalidValue, UnknownName
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.rollout import inputs
from arm_dynamics.rollout.batch import Batch
from arm_dynamics.rollout.executor import Progress
from arm_dynamics.rollout.inputs import States
from arm_dynamics.rollout.law_batch import with_law
from arm_dynamics.rollout.memory import require_memory
from arm_dynamics.rollout.policy_batch import Policy, with_policy
from arm_dynamics.rollout.reference_table import Noise, reference_table, ticks
from arm_dynamics.rollout.rollout import counted, lanes_of, repeated, sizes_of
from arm_dynamics.rollout.work import Work
from arm_dynamics.simulation import whole_steps


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
    table, given = _told(
        reference, lanes, whole_steps(duration, period), arm.nv, period, late, noise, memory_limit
    )
    plain = {name: x for name, x in (vary or {}).items() if not name.startswith("gains.")}
    gains = {name: x for name, x in (vary or {}).items() if name not in plain}
    setup = (method, interface or "effort", precision)
    work = Work(
        arm, backend, setup, repeated(inputs.starts(arm, states), lanes), given,
        inputs.time_steps(dt, lanes), inputs.variations(arm, plain, lanes), 1,
        counted("stride", stride), sizes_of(arm, outputs),
    )  # fmt: skip
    inputs.commands_of(arm, setup[1], np.zeros(arm.nv), lanes)
    every = np.array([whole_steps(period, one) for one in work.dt.tolist()])
    way = np.sign(table[:, 0, : arm.nv] - work.start.q)
    if isinstance(controller, Controller):
        return with_law(
            work, controller, gains, every, way, delay, threads, executor, memory_limit, progress
        )
    if gains:
        raise UnknownName("variation", next(iter(gains)), tuple(plain))
    if (every != every[0]).any() or executor is not None:
        raise InvalidValue("a policy in Python takes one dt for all lanes, and no executor")
    return with_policy(work, controller, int(every[0]), way, delay, threads, memory_limit, progress)


def _told(
    reference: Any,
    lanes: int,
    periods: int,
    size: int,
    period: float,
    late: float,
    noise: Noise | None,
    memory_limit: float | None,
) -> tuple[Vector, Vector]:
    """The reference's table, and all that the ticks are given."""
    table = reference_table(reference, lanes, periods, size, period)
    wobble = None
    if noise is not None:
        require_memory(8 * lanes * periods * 2 * size, memory_limit, "noise of every period")
        wobble = noise.table(lanes, periods, size)
    return table, ticks(table, scalar("late", late, lower=0, upper=1), wobble)
