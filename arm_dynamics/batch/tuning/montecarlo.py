"""A step of the reference, the same for every run of a Monte Carlo.

What a data sheet's tolerances do to a motion: many runs, each with an arm of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from arm_dynamics.batch.rollouts.closed_loop import rollout_closed_loop
from arm_dynamics.batch.rollouts.rollout_task import require_memory_limit
from arm_dynamics.batch.tuning.objective import QUANTITIES, settling_time, torque_constant
from arm_dynamics.batch.tuning.tolerance import ToleranceMap, draw_values
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core.arrays import Vector, as_readonly, check_float
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.simulation import steps_per_period


@dataclass(frozen=True, eq=False)
class StepMotion:
    """From rest at ``start`` to ``target`` (nv,), a step of the reference, for ``duration`` [s].

    band [rad or m]: error within which a joint counts as settled. dt, period [s].
    """

    start: Vector
    target: Vector
    duration: float = 1.0
    dt: float = 1e-4
    period: float = 2e-3
    band: float = 5e-3
    interface: str = "effort"

    def __post_init__(self) -> None:
        check_float("band [rad]", self.band, above=0)
        check_float("period [s]", self.period, above=0)
        check_float("duration [s]", self.duration, lower=self.period)
        steps_per_period(self.period, self.dt)
        steps_per_period(self.duration, self.period)


def step_from(arm: ArmModel, size: float) -> tuple[Vector, Vector]:
    """The initial pose, and one ``size`` [rad or m] from it in every joint, towards the middle.

    Raises InvalidValue for a step that leaves the limits, or is not above 0.
    """
    start = arm.configuration("initial")
    above, below = arm.upper - start, start - arm.lower
    way = np.where(above >= below, 1.0, -1.0)
    target = start + check_float("step [rad]", size, above=0) * way
    return start, arm.check_position("target", target)


CHUNK = 4096
"""Runs that are computed, and kept in memory with their paths, at a time."""
COPIES = 2
"""Of every result in memory, at the end: by chunk, and as a whole."""
PERCENTILES = (5.0, 50.0, 95.0, 99.0, 99.9)


@dataclass(frozen=True, eq=False)
class MonteCarlo:
    """runs × joints: quantity → (runs, nv); a lost run has NaN. ``worst_runs`` lists run numbers."""

    arm: ArmModel
    motion: StepMotion
    spread: ToleranceMap
    seed: int
    values: dict[str, Vector]
    failed: Vector = field(repr=False)

    def __len__(self) -> int:
        """Runs."""
        return len(self.failed)

    def max_over_joints(self, quantity: str) -> Vector:
        """Of all joints, by run (runs,)."""
        whole: Vector = self.values[quantity].max(axis=1)
        return whole

    def percentiles(self, quantity: str) -> Vector:
        """PERCENTILES and the largest, over the runs that were not lost, of ``max_over_joints``."""
        found = self.max_over_joints(quantity)[self.failed < 0]
        if not len(found):
            return np.full(len(PERCENTILES) + 1, np.nan)
        return np.append(np.percentile(found, PERCENTILES, method="inverted_cdf"), found.max())

    def worst_runs(self, quantity: str, count: int) -> list[int]:
        """Numbers of the ``count`` runs with most of a quantity; lost runs first."""
        order = np.argsort(-np.where(self.failed >= 0, np.inf, self.max_over_joints(quantity)))
        return [int(run) for run in order[:count]]

    def parameters(self, run: int) -> dict[str, Vector]:
        """Values that run had: drawn again."""
        return {n: as_readonly(rows[run % CHUNK]) for n, rows in self._chunk(run // CHUNK).items()}

    def _chunk(self, number: int) -> dict[str, Vector]:
        return _values(self.arm, self.spread, self.seed, number)


def montecarlo(
    arm: ArmModel,
    law: Controller,
    motion: StepMotion,
    spread: ToleranceMap,
    runs: int,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> MonteCarlo:
    """``runs`` motions of arms drawn from ``spread``; a run is the same for a seed, whatever runs.

    settling: when the error enters ±band to stay, ∞ where it never does; at the ends of control
    periods, as all quantities. overshoot: largest way beyond the target. peak_torque: largest
    |N Kt i|. peak_current: that over N Kt, of DC motors without gear play. Chunks of CHUNK runs
    bound the memory. progress(done, of) hears of runs.

    Raises InvalidValue for no runs or more than memory holds, a negative seed or a spread of
    nothing, and what ``rollout_closed_loop`` raises.
    """
    if runs < 1:
        raise InvalidValue(f"runs = {runs}: at least 1 is expected")
    if seed < 0:
        raise InvalidValue(f"seed = {seed}: at least 0 is expected")
    if not spread:
        raise InvalidValue(f"arm '{arm.name}': no tolerances are given: nothing would differ")
    _require_room(arm, runs)
    parts: list[dict[str, Vector]] = []
    failed: list[Vector] = []
    for number, count in _chunks(runs):
        vary = {n: v[:count] for n, v in _values(arm, spread, seed, number).items()}
        part, lost = _run(arm, law, motion, vary, count)
        parts.append(part)
        failed.append(lost)
        progress(min((number + 1) * CHUNK, runs), runs)
    values = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return MonteCarlo(arm, motion, spread, seed, values, np.concatenate(failed))


def _require_room(arm: ArmModel, runs: int) -> None:
    """Refuse more runs than half of the memory holds."""
    numbers = COPIES * len(QUANTITIES) * arm.nv + 1
    try:
        require_memory_limit(8 * numbers * runs, None, f"{runs} runs")
    except InvalidValue as error:
        raise InvalidValue(
            f"runs = {runs}: their results take {8e-9 * numbers * runs:.3g} GB, more than half of"
            " this machine's memory: fewer runs are expected"
        ) from error


def _chunks(runs: int) -> Iterator[tuple[int, int]]:
    for number in range(-(-runs // CHUNK)):
        yield number, min(CHUNK, runs - number * CHUNK)


def _values(arm: ArmModel, spread: ToleranceMap, seed: int, number: int) -> dict[str, Vector]:
    """A whole chunk's, so that a run does not depend on how many there are."""
    return draw_values(arm, spread, np.random.default_rng([seed, number]), CHUNK)


def _run(
    arm: ArmModel, law: Controller, motion: StepMotion, vary: dict[str, Vector], count: int
) -> tuple[dict[str, Vector], Vector]:
    states = np.tile(np.append(motion.start, np.zeros(arm.nv)), (count, 1))
    if arm.na:
        states = np.hstack([states, np.tile(arm.initial_act, (count, 1))])
    batch = rollout_closed_loop(
        arm, states, law, motion.target, motion.dt, motion.period, motion.duration,
        vary=vary, outputs=("q",), interface=motion.interface,
    )  # fmt: skip
    found = {
        "settling": settling_time(batch.q - motion.target, motion.period, motion.band),
        "overshoot": batch.metrics["overshoot"],
        "peak_torque": batch.metrics["peak_effort"],
    }
    constant = torque_constant(arm, vary)
    if constant is not None:
        found["peak_current"] = found["peak_torque"] / constant
    lost = batch.failed_step >= 0
    return {n: np.where(lost[:, None], np.nan, x) for n, x in found.items()}, batch.failed_step
