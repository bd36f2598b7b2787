"""Cases of a gain search: initial state, target and actual arm of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from arm_dynamics.batch.kernels.pid_spec import PID_CONTROLLERS
from arm_dynamics.batch.rollouts.closed_loop import rollout_closed_loop
from arm_dynamics.batch.rollouts.reference_table import MeasurementNoise
from arm_dynamics.batch.rollouts.result import RolloutResult
from arm_dynamics.batch.tuning.case_distribution import CaseDistribution
from arm_dynamics.batch.tuning.python_controller import run_in_python
from arm_dynamics.batch.variation import nominal_values, rollout_arm
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core.arrays import FloatArray, Matrix, Vector
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.simulation import steps_per_period

EFFORT_GAINS = ("p", "i", "d")
"""Gains to which an effort is proportional."""
ZERO_TOLERANCE = 1e-300


@dataclass(frozen=True, eq=False)
class Cases:
    """Cases.

    Attributes
    ----------
    arm : ArmModel
        Nominal arm.
    conditions : CaseDistribution
        Distribution from which the cases are drawn.
    start, target : Matrix
        Initial configuration, at rest, and reference [rad or m]; shape (n, nv).
    dt : Vector
        Time steps [s], shape (n,).
    vary : Mapping[str, Matrix]
        Values of the actual arm by name of ``variable_names``, shape (n, size).
    seed : int
        Seed of the measurement noise.

    """

    arm: ArmModel
    conditions: CaseDistribution
    start: Matrix
    target: Matrix
    dt: Vector
    vary: Mapping[str, Matrix]
    seed: int

    def __len__(self) -> int:
        """Return the number of cases."""
        return len(self.dt)

    def true_arm(self, case: int) -> ArmModel:
        """Return the actual arm of a case."""
        return rollout_arm(self.arm, {name: rows[case] for name, rows in self.vary.items()})

    def run(
        self,
        controller: Controller,
        gains: Mapping[str, Matrix] | None = None,
        **options: object,
    ) -> RolloutResult:
        """Run all candidates in all cases, in one batch; the noise is the same for all candidates.

        Parameters
        ----------
        controller : Controller
            Controller.
        gains : Mapping[str, Matrix], optional
            "gains.p" ... to values that replace the controller's, shape (candidates, nv).
        **options
            Options of ``rollout_closed_loop``.

        Returns
        -------
        RolloutResult
            Rollout candidate * n + case.

        """
        gains, n = dict(gains or {}), len(self)
        count = len(next(iter(gains.values()))) if gains else 1
        vary = {name: np.tile(rows, (count, 1)) for name, rows in self.vary.items()}
        c, rest = self.conditions, np.zeros_like(self.start)
        noise = _RepeatedNoise(c.noise_q, c.noise_v, self.seed, n)
        noisy = noise if c.noise_q or c.noise_v else None
        states = np.tile(np.hstack([self.start, rest]), (count, 1))
        target, dt = np.tile(self.target, (count, 1)), np.tile(self.dt, count)
        if type(controller) not in PID_CONTROLLERS:
            periods = steps_per_period(c.duration, c.period)
            rows = {name.partition(".")[2]: np.repeat(x, n, 0) for name, x in gains.items()}
            return run_in_python(
                self.arm, controller, rows, states, target, dt, c,
                effort_scale=np.tile(self._torque_ratio(), (count, 1)),
                measurement_noise=noisy.table(len(dt), periods, self.arm.nv) if noisy else None,
                vary=vary, **options,  # type: ignore[arg-type]
            )  # fmt: skip
        vary |= self._effective_gains(controller, gains, count)
        return rollout_closed_loop(
            self.arm, states, controller, target[:, None, :], dt, c.period, c.duration,
            interface=c.interface, one_period_delay=c.delay, noise=noisy, vary=vary,
            **options,  # type: ignore[arg-type]
        )  # fmt: skip

    def _effective_gains(
        self, controller: Controller, gains: Mapping[str, Matrix], count: int
    ) -> dict[str, Matrix]:
        """Gains (count * n, nv) with the effect of the actual Kt on an effort command.

        The simulated motors contain their actual Kt; so p, i and d are scaled by its ratio to the
        nominal one instead.
        """
        n, ratio = len(self), np.tile(self._torque_ratio(), (count, 1))
        names = (name for name in EFFORT_GAINS if name in controller.gains)
        own = {f"gains.{name}": np.tile(controller.gains[name], (count, 1)) for name in names}
        return {
            name: np.repeat(rows, n, axis=0) * (ratio if name in own else 1.0)
            for name, rows in {**own, **gains}.items()
        }

    def _torque_ratio(self) -> Matrix:
        """Kt / Kt,nominal (n, nv) of an effort command; 1 for joints without Kt."""
        if self.conditions.interface != "effort" or "motor.kt" not in self.vary:
            return np.ones((len(self), self.arm.nv))
        nominal = nominal_values(self.arm, "motor.kt")
        quotient = self.vary["motor.kt"] / np.maximum(nominal, ZERO_TOLERANCE)
        ratio: Matrix = np.where(nominal > 0, quotient, 1)
        return ratio


@dataclass(frozen=True)
class _RepeatedNoise(MeasurementNoise):
    """The same errors for every ``cases`` rollouts, so that candidates are comparable."""

    cases: int = 1

    def table(self, batch: int, periods: int, size: int) -> FloatArray:
        """As ``MeasurementNoise.table``."""
        return np.tile(super().table(self.cases, periods, size), (batch // self.cases, 1, 1))
