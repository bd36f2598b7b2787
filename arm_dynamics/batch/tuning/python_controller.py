"""Cases under a controller without kernel: one Python object per rollout."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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


def with_gains(controller: Controller, rows: Mapping[str, Vector]) -> Controller:
    """Return a controller of the same kind and model with other gains, name to (nv,)."""
    every = {**controller.gains, **rows}
    joints = controller.arm.joint_names
    return type(controller)(
        controller.arm,
        {n: {g: float(v[j]) for g, v in every.items()} for j, n in enumerate(joints)},
    )


@dataclass(frozen=True, eq=False)
class CaseRows:
    """Values that differ between rollouts.

    Attributes
    ----------
    gains : Mapping[str, Matrix]
        Gains by name, shape (batch, nv).
    states : Matrix
        Initial states at rest, shape (batch, 2 nv).
    target : Matrix
        Reference, shape (batch, nv).
    dt : Vector
        Time steps [s], shape (batch,).
    effort_scale : Matrix
        Ratio of applied to commanded effort, shape (batch, nv).
    noise : FloatArray or None
        Errors of the measured [q, v], shape (batch, periods, 2 nv).
    vary : Mapping[str, Matrix]
        Values of the actual arms, shape (batch, size).

    """

    gains: Mapping[str, Matrix]
    states: Matrix
    target: Matrix
    dt: Vector
    effort_scale: Matrix
    noise: FloatArray | None
    vary: Mapping[str, Matrix]

    def at(self, rollouts: IntArray) -> CaseRows:
        """Return the values of the ``rollouts`` with these indices."""
        return CaseRows(
            {name: rows[rollouts] for name, rows in self.gains.items()},
            self.states[rollouts],
            self.target[rollouts],
            self.dt[rollouts],
            effort_scale=self.effort_scale[rollouts],
            noise=None if self.noise is None else self.noise[rollouts],
            vary={name: rows[rollouts] for name, rows in self.vary.items()},
        )


def run_in_python(
    arm: ArmModel,
    controller: Controller,
    rows: CaseRows,
    c: CaseDistribution,
    outputs: Sequence[str] = (),
) -> RolloutResult:
    """Run every rollout under its own controller; as ``rollout_closed_loop``, but slower.

    A RuntimeWarning states this once.

    Parameters
    ----------
    arm : ArmModel
        Nominal arm.
    controller : Controller
        Controller.
    rows : CaseRows
        Values of each rollout.
    c : CaseDistribution
        Period, duration, interface and delay.
    outputs : sequence of str
        Recorded outputs.

    """
    _warn_once(type(controller).__name__)
    parts, order = [], []
    for one in sorted(set(rows.dt.tolist())):
        at = np.flatnonzero(rows.dt == one)
        part = rows.at(at)
        batch = rollout_closed_loop(
            arm, part.states, _policy(controller, part, c), part.target[:, None, :], one,
            c.period, c.duration, interface=c.interface, one_period_delay=c.delay,
            outputs=outputs, vary=part.vary,
        )  # fmt: skip
        parts.append(batch)
        order.append(at)
    return _joined(parts, np.argsort(np.concatenate(order)))


def _policy(
    controller: Controller, rows: CaseRows, c: CaseDistribution
) -> Callable[[Matrix, Matrix, float], Matrix]:
    """Return one controller per rollout as one policy; their memory starts at the first tick."""
    controllers = [
        with_gains(controller, {name: gains[k] for name, gains in rows.gains.items()})
        for k in range(len(rows.dt))
    ]
    tick = python_tick(controllers, c.interface == "voltage")
    reference = np.hstack([rows.target, np.zeros_like(rows.target)])
    n, noise = rows.target.shape[1], rows.noise

    def policy(q: Matrix, v: Matrix, time: float) -> Matrix:
        k = round(time / c.period)
        if noise is not None:
            q, v = q + noise[:, k, :n], v + noise[:, k, n:]
        if k == 0:
            for one, position, velocity in zip(controllers, q, v, strict=True):
                one.reset(State.of(position, velocity))
        commands = tick(q, v, reference, np.full(len(q), c.period if k else 0.0))
        return commands * rows.effort_scale if c.interface == "effort" else commands

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
