"""Cases that gains must hold: where the arm begins and goes, and what it is in truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from arm_dynamics.batch.rollout import MeasurementNoise, RolloutResult, rollout_closed_loop
from arm_dynamics.batch.rollout.pid_loop import LAWS
from arm_dynamics.batch.tuning.case_distribution import CaseDistribution
from arm_dynamics.batch.tuning.python_controller import run_in_python
from arm_dynamics.batch.tuning.uncertain_parameters import arm_with_values, nominal_values
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core.arrays import Vector
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.simulation import steps_per_period

SCALED = ("p", "i", "d")
"""Gains that an effort is proportional to."""
ZERO_TOLERANCE = 1e-300


@dataclass(frozen=True, eq=False)
class Cases:
    """n cases: rest at ``start`` (n, nv), reference ``target`` (n, nv), dt (n,) [s], ``vary``."""

    arm: ArmModel
    conditions: CaseDistribution
    start: Vector
    target: Vector
    dt: Vector
    vary: Mapping[str, Vector]
    seed: int

    def __len__(self) -> int:
        """How many."""
        return len(self.dt)

    def true_arm(self, case: int) -> ArmModel:
        """The arm as it is in one case."""
        return arm_with_values(self.arm, {name: rows[case] for name, rows in self.vary.items()})

    def run(
        self, law: Controller, gains: Mapping[str, Vector] | None = None, **options: object
    ) -> RolloutResult:
        """Every candidate in every case, one call: lane = candidate · n + case.

        gains: "gains.p" ... → (candidates, nv), in the place of the law's own. Candidates meet
        the same noise in the same case.
        """
        gains, n = dict(gains or {}), len(self)
        count = len(next(iter(gains.values()))) if gains else 1
        every = {name: np.tile(rows, (count, 1)) for name, rows in self.vary.items()}
        c, still = self.conditions, np.zeros_like(self.start)
        noisy = _Noise(c.noise_q, c.noise_v, self.seed, n) if c.noise_q or c.noise_v else None
        states = np.tile(np.hstack([self.start, still]), (count, 1))
        target, dt = np.tile(self.target, (count, 1)), np.tile(self.dt, count)
        if type(law) not in LAWS:
            periods = steps_per_period(c.duration, c.period)
            return run_in_python(
                self.arm, law, {k.partition(".")[2]: np.repeat(x, n, 0) for k, x in gains.items()},
                states, target, dt, c, effort_scale=np.tile(self._ratio(), (count, 1)),
                measurement_noise=noisy.table(len(dt), periods, self.arm.nv) if noisy else None,
                vary=every, **options,  # type: ignore[arg-type]
            )  # fmt: skip
        every |= self._driven(law, gains, count)
        given = {
            "interface": c.interface, "delay": c.delay, "noise": noisy, "vary": every, **options
        }  # fmt: skip
        return rollout_closed_loop(
            self.arm, states, law, target[:, None, :], dt, c.period, c.duration, **given  # type: ignore[arg-type]
        )  # fmt: skip

    def _driven(
        self, law: Controller, gains: Mapping[str, Vector], count: int
    ) -> dict[str, Vector]:
        """Gains (count · n, nv): as in effect where Kt is not what an effort command supposes.

        The plant's motors know their own Kt; p, i and d take its ratio to the nominal instead.
        """
        n, ratio = len(self), self._ratio()
        own = {f"gains.{g}": np.tile(law.gains[g], (count, 1)) for g in SCALED if g in law.gains}
        return {
            name: np.repeat(rows, n, axis=0) * (np.tile(ratio, (count, 1)) if name in own else 1.0)
            for name, rows in {**own, **gains}.items()
        }

    def _ratio(self) -> Vector:
        """Kt / Kt,nominal (n, nv): of an effort command, and of joints that have a Kt; else 1."""
        if self.conditions.interface != "effort" or "motor.kt" not in self.vary:
            return np.ones((len(self), self.arm.nv))
        nominal = nominal_values(self.arm, "motor.kt")
        ratio: Vector = np.where(
            nominal > 0, self.vary["motor.kt"] / np.maximum(nominal, ZERO_TOLERANCE), 1
        )
        return ratio


@dataclass(frozen=True)
class _Noise(MeasurementNoise):
    """The same errors every ``cases`` lanes, so that candidates are compared under the same."""

    cases: int = 1

    def table(self, lanes: int, periods: int, size: int) -> Vector:
        """As ``MeasurementNoise.table``."""
        return np.tile(super().table(self.cases, periods, size), (lanes // self.cases, 1, 1))
