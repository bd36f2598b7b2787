"""Cases of a gain search: initial state, target and actual arm of each; drawn and simulated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from arm_dynamics.batch.kernels.pid_spec import PID_CONTROLLERS
from arm_dynamics.batch.rollouts.closed_loop import rollout_closed_loop
from arm_dynamics.batch.rollouts.reference_table import MeasurementNoise
from arm_dynamics.batch.rollouts.result import RolloutResult
from arm_dynamics.batch.tuning.case_distribution import CaseDistribution
from arm_dynamics.batch.tuning.python_controller import CaseRows, run_in_python
from arm_dynamics.batch.tuning.tolerance import COUPLED, UNCERTAIN, Tolerance, variable_values
from arm_dynamics.batch.variation import nominal_values, rollout_arm, variable_names
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core.arrays import FloatArray, Matrix, Vector
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.dynamics.rigid_body import gravity, mass_matrix
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.model_error import IN_URDF
from arm_dynamics.simulation.simulation import steps_per_period

EFFORT_GAINS = ("p", "i", "d")
"""Gains to which an effort is proportional."""
ZERO_TOLERANCE = 1e-300
RANGE_MARGIN = 0.1
"""Fraction of a joint's range that configurations keep from either limit."""
MAX_GRAVITY_FRACTION = 0.7
"""Largest gravity torque of a configuration, as a fraction of the smallest effort limit."""
MAX_STEP_DECAY = 1.8
"""Largest decay in one time step; from 2 on a step is unstable with any gains."""
MODELS, CONFIGURATIONS = 20, 50
"""Tried models of a case, and configurations of each."""


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
            rows = CaseRows(
                {name.partition(".")[2]: np.repeat(x, n, 0) for name, x in gains.items()},
                states, target, dt,
                effort_scale=np.tile(self._torque_ratio(), (count, 1)),
                noise=noisy.table(len(dt), periods, self.arm.nv) if noisy else None,
                vary=vary,
            )  # fmt: skip
            return run_in_python(self.arm, controller, rows, c, **options)  # type: ignore[arg-type]
        vary |= self._effective_gains(controller, gains, count)
        return rollout_closed_loop(
            self.arm, states, controller, target[:, None, :], dt, c.period, c.duration,
            interface=c.interface, one_period_delay=c.delay, noise=noisy, vary=vary,
            **options,  # type: ignore[arg-type]
        )  # fmt: skip

    def _effective_gains(
        self, controller: Controller, gains: Mapping[str, Matrix], count: int
    ) -> dict[str, Matrix]:
        """Return gains (count * n, nv) with the effect of the actual Kt on an effort command.

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
        """Return Kt / Kt,nominal (n, nv) of an effort command; 1 for joints without Kt."""
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


def draw_cases(arm: ArmModel, count: int, seed: int, conditions: CaseDistribution) -> Cases:
    """Draw cases; case k depends on the seed only, not on their number.

    Parameters
    ----------
    arm : ArmModel
        Nominal arm.
    count : int
        Number of cases.
    seed : int
        Seed.
    conditions : CaseDistribution
        Distribution.

    Raises
    ------
    InvalidValue
        If ``count`` is below 1, or the arm cannot hold any drawn configuration.

    """
    if count < 1:
        raise InvalidValue(f"cases = {count}; expected at least 1")
    known = tuple(name for name in variable_names(arm) if name != "payload")
    for name in conditions.tolerances:
        if name not in known:
            raise UnknownName("tolerance of cases", name, known)
    _require_holdable_payload(arm, np.random.default_rng([seed, count]), conditions)
    nominal = {name: variable_values(arm, name) for name in variable_names(arm)}
    nominal = {name: values for name, values in nominal.items() if values.any()}
    nominal.pop("payload", None)
    dts = np.array(conditions.dts)[np.arange(count) % len(conditions.dts)]
    rows = [
        _draw_case(arm, np.random.default_rng([seed, k]), conditions, nominal, float(dt))
        for k, dt in enumerate(dts)
    ]
    start, target = (np.array([row[i] for row in rows]) for i in range(2))
    varied = {name: np.array([row[2][name] for row in rows]) for name in rows[0][2]}
    return Cases(arm, conditions, start, target, dts, varied, seed)


def _draw_case(
    arm: ArmModel,
    random: np.random.Generator,
    c: CaseDistribution,
    nominal: Mapping[str, Vector],
    dt: float,
) -> tuple[Vector, Vector, dict[str, Vector]]:
    """Return start, target and values of the first actual arm with suitable configurations."""
    lower, upper = _inner_range(arm)
    for _ in range(MODELS):
        values = _draw_values(arm, random, c, nominal)
        actual = rollout_arm(arm, {name: row.tolist() for name, row in values.items()})
        for _ in range(CONFIGURATIONS):
            start = random.uniform(lower, upper)
            target = np.clip(start + c.step_size * random.uniform(-1, 1, arm.nv), lower, upper)
            if all(
                _is_holdable(actual, q, c) and _is_stable(actual, q, dt, c.interface)
                for q in (start, target)
            ):
                return start, target, values
    raise InvalidValue(
        f"arm '{arm.name}': cases that the motors can hold in steps of {dt:g} s = 0 of {MODELS}"
        f" models with {CONFIGURATIONS} configurations; expected one; reduce"
        f" {'payload, ' if c.payload else ''}model error or time step"
    )


def _draw_values(
    arm: ArmModel, random: np.random.Generator, c: CaseDistribution, nominal: Mapping[str, Vector]
) -> dict[str, Vector]:
    """Draw the values of the actual arm of one case."""
    payload = np.clip(random.uniform(-0.25, 1.25), 0.0, 1.0) * c.payload
    values: dict[str, Vector] = {"payload": np.array([arm.payload.mass + payload])}
    factors: dict[str, FloatArray] = {}
    for name, row in nominal.items():
        if name in UNCERTAIN or name in c.tolerances:
            tolerance = c.tolerances.get(name, Tolerance(c.model_error, "uniform"))
            drawn = tolerance.factors(random, (arm.nv,))
            factors[name] = factors.get(COUPLED.get(name, ""), drawn)
            values[name] = row * factors[name]
    return values


def _require_holdable_payload(
    arm: ArmModel, random: np.random.Generator, c: CaseDistribution
) -> None:
    """Raise InvalidValue for a payload that no configuration can hold."""
    tries = MODELS * CONFIGURATIONS

    def is_holdable(payload: float) -> bool:
        loaded = arm.with_payload(arm.payload.mass + payload, arm.payload.center)
        drawn = (random.uniform(*_inner_range(arm)) for _ in range(tries))
        return any(_is_holdable(loaded, q, c) for q in drawn)

    if not is_holdable(c.payload):
        raise InvalidValue(
            f"arm '{arm.name}': payload = {c.payload:g} kg; expected one that"
            f" {MAX_GRAVITY_FRACTION:.0%} of the smallest effort limits hold in one of {tries}"
            f" configurations; {'reduce it' if is_holdable(0.0) else IN_URDF}"
        )


def _inner_range(arm: ArmModel) -> tuple[Vector, Vector]:
    """Return the range of configurations, (nv,) each, within the limits; one turn without them."""
    lower = np.where(np.isfinite(arm.lower), arm.lower, -np.pi)
    upper = np.where(np.isfinite(arm.upper), arm.upper, np.pi)
    margin = RANGE_MARGIN * (upper - lower)
    return lower + margin, upper - margin


def _is_holdable(actual: ArmModel, q: Vector, c: CaseDistribution) -> bool:
    """Return whether the motors can hold ``q`` at the lower bound of the model error."""
    limit = MAX_GRAVITY_FRACTION * (1 - c.model_error) * actual.effort_limit
    return bool((np.abs(gravity(actual, q)) <= limit).all())


def _is_stable(actual: ArmModel, q: Vector, dt: float, interface: str) -> bool:
    """Return whether dt λ_max(M⁻¹ B) < MAX_STEP_DECAY at ``q``: a step is stable without control.

    B is the damping of joints and motors, with the back-EMF under a voltage.
    """
    by_voltage = interface == "voltage"
    damping = np.diag(
        [
            joint.damping + (a.step_damping(dt) if by_voltage else a.viscous_friction)
            for joint, a in zip(actual.joints, actual.actuators, strict=True)
        ]
    )
    rates = np.linalg.eigvals(np.linalg.solve(mass_matrix(actual, q), damping))
    return bool(dt * rates.real.max() < MAX_STEP_DECAY)
