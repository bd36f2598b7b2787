"""Cases under a control law that no kernel has: one object a lane, asked in Python."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from arm_dynamics.batch.kernels.pid_spec import python_tick
from arm_dynamics.batch.rollouts.closed_loop import rollout_closed_loop
from arm_dynamics.batch.rollouts.result import RolloutResult
from arm_dynamics.batch.tuning.case_distribution import CaseDistribution
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.state import State
from arm_dynamics.model.arm_model import ArmModel


def with_gains(law: Controller, rows: Mapping[str, Vector]) -> Controller:
    """A law of the same kind and model with other gains, name → (nv,)."""
    every = {**law.gains, **rows}
    joints = law.arm.joint_names
    return type(law)(
        law.arm, {n: {g: float(v[j]) for g, v in every.items()} for j, n in enumerate(joints)}
    )


def run_in_python(
    arm: ArmModel,
    law: Controller,
    gains: Mapping[str, Vector],
    states: Vector,
    target: Vector,
    dt: Vector,
    c: CaseDistribution,
    *,
    effort_scale: Vector,
    measurement_noise: Vector | None,
    vary: Mapping[str, Vector],
    outputs: Sequence[str] = (),
) -> RolloutResult:
    """Every lane under a ``law`` of its own: name → (lanes, nv) ``gains`` in it.

    As ``rollout_closed_loop`` for the laws of kernels, but slower, which is said once. states
    (lanes, 2 nv) at rest, target (lanes, nv), dt (lanes,) [s]; share (lanes, nv): how much of an
    effort command acts; wobble (lanes, periods, 2 nv): errors of what is measured.
    """
    _say_once(type(law).__name__)
    parts, order = [], []
    for one in sorted(set(dt.tolist())):
        at = np.flatnonzero(dt == one)
        laws = [with_gains(law, {name: rows[k] for name, rows in gains.items()}) for k in at]
        seen = None if measurement_noise is None else measurement_noise[at]
        policy = _policy(laws, target[at], effort_scale[at], seen, c)
        batch = rollout_closed_loop(
            arm, states[at], policy, target[at][:, None, :], one, c.period, c.duration,
            interface=c.interface, one_period_delay=c.delay, outputs=outputs,
            vary={name: rows[at] for name, rows in vary.items()},
        )  # fmt: skip
        parts.append(batch)
        order.append(at)
    return _joined(parts, np.argsort(np.concatenate(order)))


def _policy(
    laws: Sequence[Controller],
    target: Vector,
    share: Vector,
    wobble: Vector | None,
    c: CaseDistribution,
) -> Callable[[Vector, Vector, float], Vector]:
    """The laws as one policy, their memory begun at the first tick."""
    tick = python_tick(laws, c.interface == "voltage")
    reference = np.hstack([target, np.zeros_like(target)])
    n = target.shape[1]

    def policy(q: Vector, v: Vector, time: float) -> Vector:
        k = round(time / c.period)
        if wobble is not None:
            q, v = q + wobble[:, k, :n], v + wobble[:, k, n:]
        if k == 0:
            for law, at, speed in zip(laws, q, v, strict=True):
                law.reset(State.of(at, speed))
        told = tick(q, v, reference, np.full(len(q), c.period if k else 0.0))
        return told * share if c.interface == "effort" else told

    return policy


def _joined(parts: Sequence[RolloutResult], back: NDArray[np.intp]) -> RolloutResult:
    """Several batches as one, its lanes in the order ``back``."""

    def whole(arrays: Sequence[Vector]) -> Vector:
        joined: Vector = np.concatenate(arrays)[back]
        return joined

    first = parts[0]
    return RolloutResult(
        first.arm,
        whole([np.broadcast_to(p.time, (len(p), p.time.shape[-1])) for p in parts]),
        {name: whole([p[name] for p in parts]) for name in first.arrays},
        whole([p.failed_step for p in parts]),
        whole([p.final_array for p in parts]),
        first.backend,
        {name: whole([p.metrics[name] for p in parts]) for name in first.metrics},
    )


@cache
def _say_once(law: str) -> None:
    warnings.warn(
        f"law {law} has no kernel: it is asked in Python, one lane after another, slower",
        RuntimeWarning,
        stacklevel=4,
    )
