"""Cases under a controller without kernel: one Python object per rollout."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np

from arm_dynamics.batch.kernels.pid_spec import python_tick
from arm_dynamics.batch.rollouts.closed_loop import rollout_closed_loop
from arm_dynamics.batch.rollouts.result import RolloutResult
from arm_dynamics.batch.tuning.case_distribution import CaseDistribution
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core.arrays import FloatArray, IntArray, Matrix, Vector
from arm_dynamics.core.state import State
from arm_dynamics.model.arm_model import ArmModel


def with_gains(law: Controller, rows: Mapping[str, Vector]) -> Controller:
    """Return a controller of the same kind and model with other gains, name to (nv,)."""
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
    """Run every rollout under its own ``law``; as ``rollout_closed_loop``, but slower.

    A RuntimeWarning states this once.

    Parameters
    ----------
    arm : ArmModel
        Nominal arm.
    law : Controller
        Controller.
    gains : Mapping[str, Matrix]
        Gains by name, shape (batch, nv).
    states : Matrix
        Initial states at rest, shape (batch, 2 nv).
    target : Matrix
        Reference, shape (batch, nv).
    dt : Vector
        Time steps [s], shape (batch,).
    c : CaseDistribution
        Period, duration, interface and delay.
    effort_scale : Matrix
        Ratio of applied to commanded effort, shape (batch, nv).
    measurement_noise : FloatArray or None
        Errors of the measured [q, v], shape (batch, periods, 2 nv).
    vary : Mapping[str, Matrix]
        Values of the actual arms, shape (batch, size).
    outputs : sequence of str
        Recorded outputs.

    """
    _warn_once(type(law).__name__)
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
    controllers: Sequence[Controller],
    target: Matrix,
    effort_scale: Matrix,
    noise: FloatArray | None,
    c: CaseDistribution,
) -> Callable[[Matrix, Matrix, float], Matrix]:
    """The controllers as one policy; their memory starts at the first tick."""
    tick = python_tick(controllers, c.interface == "voltage")
    reference = np.hstack([target, np.zeros_like(target)])
    n = target.shape[1]

    def policy(q: Matrix, v: Matrix, time: float) -> Matrix:
        k = round(time / c.period)
        if noise is not None:
            q, v = q + noise[:, k, :n], v + noise[:, k, n:]
        if k == 0:
            for controller, position, velocity in zip(controllers, q, v, strict=True):
                controller.reset(State.of(position, velocity))
        commands = tick(q, v, reference, np.full(len(q), c.period if k else 0.0))
        return commands * effort_scale if c.interface == "effort" else commands

    return policy


def _joined(parts: Sequence[RolloutResult], back: IntArray) -> RolloutResult:
    """Join batches, their rollouts in the order ``back``."""

    def joined(arrays: Sequence[FloatArray]) -> FloatArray:
        rows: FloatArray = np.concatenate(arrays)[back]
        return rows

    first = parts[0]
    return RolloutResult(
        first.arm,
        joined([np.broadcast_to(p.time, (len(p), p.time.shape[-1])) for p in parts]),
        {name: joined([p[name] for p in parts]) for name in first.arrays},
        np.concatenate([p.failed_step for p in parts])[back],
        joined([p.final_array for p in parts]),
        first.backend,
        {name: joined([p.metrics[name] for p in parts]) for name in first.metrics},
    )


@cache
def _warn_once(name: str) -> None:
    warnings.warn(
        f"controller {name} has no kernel: it runs in Python, slower",
        RuntimeWarning,
        stacklevel=4,
    )
