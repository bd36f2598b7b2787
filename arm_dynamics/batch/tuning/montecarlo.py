"""Monte Carlo analysis: a step of the reference with many arms drawn from tolerances."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from arm_dynamics.batch.rollouts.closed_loop import rollout_closed_loop
from arm_dynamics.batch.rollouts.rollout_task import require_memory_limit
from arm_dynamics.batch.tuning.tolerance import ToleranceMap, draw_values
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core.arrays import (
    FloatArray,
    IntArray,
    Matrix,
    Vector,
    as_readonly,
    check_float,
)
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.simulation import steps_per_period

QUANTITIES = {
    "settling": "s", "overshoot": "rad", "peak_torque": "N·m", "peak_current": "A",
}  # fmt: skip
"""Evaluated quantities and their units."""
CHUNK = 4096
"""Runs that are computed, and kept in memory with their paths, together."""
COPIES = 2
"""Copies of every result in memory at the end: by chunk, and joined."""
PERCENTILES = (5.0, 50.0, 95.0, 99.0, 99.9)


@dataclass(frozen=True, eq=False)
class StepMotion:
    """A step of the reference from rest.

    Attributes
    ----------
    start, target : Vector
        Configurations [rad or m], shape (nv,).
    duration : float
        Simulated time [s].
    dt, period : float
        Time step and control period [s].
    band : float
        Settling tolerance [rad or m].
    interface : str
        "effort" or "voltage".

    Raises
    ------
    InvalidValue
        If a value is out of range, or the times do not divide each other.

    """

    start: Vector
    target: Vector
    duration: float = 1.0
    dt: float = 1e-4
    period: float = 2e-3
    band: float = 5e-3
    interface: str = "effort"

    def __post_init__(self) -> None:
        check_float("settling tolerance [rad]", self.band, above=0)
        check_float("period [s]", self.period, above=0)
        check_float("duration [s]", self.duration, lower=self.period)
        steps_per_period(self.period, self.dt)
        steps_per_period(self.duration, self.period)


def step_from(arm: ArmModel, size: float) -> tuple[Vector, Vector]:
    """Return the initial configuration, and a step of every joint toward the middle of its range.

    Raises InvalidValue for a step that leaves the limits, or is not above 0.
    """
    start = arm.configuration("initial")
    above, below = arm.upper - start, start - arm.lower
    direction = np.where(above >= below, 1.0, -1.0)
    target = start + check_float("step size [rad]", size, above=0) * direction
    return start, arm.check_position("target", target)


@dataclass(frozen=True, eq=False)
class MonteCarlo:
    """Results of a Monte Carlo analysis.

    Attributes
    ----------
    arm : ArmModel
        Nominal arm.
    motion : StepMotion
        Motion.
    spread : ToleranceMap
        Tolerances.
    seed : int
        Seed.
    values : dict
        Name of ``QUANTITIES`` to values, shape (runs, nv); NaN for a diverged run.
    failed : IntArray
        Step at which a run diverged, or -1; shape (runs,).

    """

    arm: ArmModel
    motion: StepMotion
    spread: ToleranceMap
    seed: int
    values: dict[str, Matrix]
    failed: IntArray = field(repr=False)

    def __len__(self) -> int:
        """Return the number of runs."""
        return len(self.failed)

    def max_over_joints(self, quantity: str) -> Vector:
        """Return the largest value of all joints, shape (runs,)."""
        largest: Vector = self.values[quantity].max(axis=1)
        return largest

    def percentiles(self, quantity: str) -> Vector:
        """Return PERCENTILES and the maximum over the runs, of ``max_over_joints``."""
        values = self.max_over_joints(quantity)[self.failed < 0]
        if not len(values):
            return np.full(len(PERCENTILES) + 1, np.nan)
        return np.append(np.percentile(values, PERCENTILES, method="inverted_cdf"), values.max())

    def worst_runs(self, quantity: str, count: int) -> list[int]:
        """Return the numbers of the ``count`` runs with the largest values; diverged ones first."""
        values = np.where(self.failed >= 0, np.inf, self.max_over_joints(quantity))
        return [int(run) for run in np.argsort(-values)[:count]]

    def parameters(self, run: int) -> dict[str, Vector]:
        """Return the values of a run's arm, drawn again."""
        rows = _chunk_values(self.arm, self.spread, self.seed, run // CHUNK)
        return {name: as_readonly(values[run % CHUNK]) for name, values in rows.items()}


def montecarlo(
    arm: ArmModel,
    controller: Controller,
    motion: StepMotion,
    spread: ToleranceMap,
    runs: int,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, of: None,
) -> MonteCarlo:
    """Simulate ``runs`` motions of arms drawn from tolerances; a run depends on the seed only.

    All quantities are sampled at the ends of control periods. settling: time from which the error
    stays within the band, ∞ if it never does. overshoot: largest error beyond the target.
    peak_torque: largest |N Kt i|. peak_current: that over N Kt, for DC motors without backlash.

    Parameters
    ----------
    arm : ArmModel
        Nominal arm.
    controller : Controller
        Controller, see ``rollout_closed_loop``.
    motion : StepMotion
        Motion.
    spread : ToleranceMap
        Tolerances.
    runs : int
        Number of runs.
    seed : int
        Seed, at least 0.
    progress : callable
        Called with the number of finished runs and their total.

    Raises
    ------
    InvalidValue
        If ``runs`` or ``seed`` is out of range, the results exceed half of the memory, or
        ``spread`` is empty; and as ``rollout_closed_loop``.

    """
    if runs < 1:
        raise InvalidValue(f"runs = {runs}; expected at least 1")
    if seed < 0:
        raise InvalidValue(f"seed = {seed}; expected at least 0")
    if not spread:
        raise InvalidValue(f"arm '{arm.name}': no tolerances; add at least one")
    numbers = COPIES * len(QUANTITIES) * arm.nv + 1
    require_memory_limit(8 * numbers * runs, None, f"{runs} runs")
    parts: list[dict[str, Matrix]] = []
    failed: list[IntArray] = []
    for number in range(-(-runs // CHUNK)):
        first, count = number * CHUNK, min(CHUNK, runs - number * CHUNK)
        rows = _chunk_values(arm, spread, seed, number)

        def report(done: int, of: int, first: int = first, count: int = count) -> None:
            progress(first + count * done // of, runs)

        part, failed_step = _simulate(
            arm, controller, motion, {n: v[:count] for n, v in rows.items()}, report
        )
        parts.append(part)
        failed.append(failed_step)
    values = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return MonteCarlo(arm, motion, spread, seed, values, np.concatenate(failed))


def _chunk_values(arm: ArmModel, spread: ToleranceMap, seed: int, number: int) -> dict[str, Matrix]:
    """Return the values of a whole chunk, so that a run does not depend on the number of runs."""
    return draw_values(arm, spread, np.random.default_rng([seed, number]), CHUNK)


def _simulate(
    arm: ArmModel,
    controller: Controller,
    motion: StepMotion,
    vary: dict[str, Matrix],
    progress: Callable[[int, int], None],
) -> tuple[dict[str, Matrix], IntArray]:
    """Return the values of QUANTITIES (runs, nv), NaN if diverged, and failed steps (runs,)."""
    count = len(next(iter(vary.values())))
    state = np.concatenate([motion.start, np.zeros(arm.nv), arm.initial_act])
    result = rollout_closed_loop(
        arm, np.tile(state, (count, 1)), controller, motion.target, motion.dt, motion.period,
        motion.duration, vary=vary, outputs=("q",), interface=motion.interface,
        progress=progress,
    )  # fmt: skip
    values = {
        "settling": settling_time(result.q - motion.target, motion.period, motion.band),
        "overshoot": result.metrics["overshoot"],
        "peak_torque": result.metrics["peak_effort"],
    }
    constant = torque_constant(arm, vary)
    if constant is not None:
        values["peak_current"] = values["peak_torque"] / constant
    diverged = result.failed_step[:, None] >= 0
    return {n: np.where(diverged, np.nan, x) for n, x in values.items()}, result.failed_step


def settling_time(error: FloatArray, period: float, band: float) -> Matrix:
    """Return the time from which |error| stays within ``band``.

    It is the end of the last period that ends outside; 0 if none does, ∞ if the last one does.

    Parameters
    ----------
    error : FloatArray
        Errors at the ends of periods, shape (runs, periods, nv).
    period, band : float
        Control period [s]; settling tolerance.

    Returns
    -------
    Matrix
        Times [s], shape (runs, nv).

    """
    outside = ~(np.abs(error) <= band)
    periods = error.shape[1]
    last = periods - np.argmax(outside[:, ::-1], axis=1)
    count = np.where(outside.any(axis=1), last, 0)
    return np.where(count == periods, np.inf, count * period)


def torque_constant(arm: ArmModel, vary: Mapping[str, Matrix]) -> FloatArray | None:
    """Return N Kt [N·m/A] at the joint, by run or of the arm.

    None unless all joints have DC motors without backlash: then the current gives the torque.
    """
    constants = [actuator.constants for actuator in arm.actuators]
    if any("kt" not in c or c["backlash"] > 0 for c in constants):
        return None
    kt = vary.get("motor.kt", np.array([c["kt"] for c in constants]))
    gear = vary.get("motor.gear_ratio", np.array([c["gear_ratio"] for c in constants]))
    product: FloatArray = kt * gear
    return product
