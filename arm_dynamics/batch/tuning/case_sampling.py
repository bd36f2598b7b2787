"""Random cases of a gain search: configurations, payloads, actual arms, time steps in turn."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from arm_dynamics.batch.tuning.case_distribution import CaseDistribution
from arm_dynamics.batch.tuning.cases import Cases
from arm_dynamics.batch.tuning.tolerance import COUPLED, UNCERTAIN, Tolerance, variable_values
from arm_dynamics.batch.variation import rollout_arm, variable_names
from arm_dynamics.core.arrays import FloatArray, Vector
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.dynamics.rigid_body import gravity, mass_matrix
from arm_dynamics.model.arm_model import ArmModel

RANGE_MARGIN = 0.1
"""Fraction of a joint's range that configurations keep from either limit."""
MAX_GRAVITY_FRACTION = 0.7
"""Largest gravity torque of a configuration, as a fraction of the smallest effort limit."""
MAX_STEP_DECAY = 1.8
"""Largest decay in one time step; from 2 on a step is unstable with any gains."""
MODELS, CONFIGURATIONS = 20, 50
"""Tried models of a case, and configurations of each."""


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
    """Start, target and values of the actual arm; the first arm with suitable configurations."""
    for _ in range(MODELS):
        values = _draw_values(arm, random, c, nominal)
        actual = rollout_arm(arm, {name: row.tolist() for name, row in values.items()})
        pair = _draw_configurations(arm, random, c, actual, dt)
        if pair is not None:
            return *pair, values
    raise InvalidValue(
        f"arm '{arm.name}': cases that the motors can hold in steps of {dt:g} s = 0 of {MODELS}"
        f" models with {CONFIGURATIONS} configurations; expected one; reduce payload, model error"
        " or time step"
    )


def _draw_values(
    arm: ArmModel, random: np.random.Generator, c: CaseDistribution, nominal: Mapping[str, Vector]
) -> dict[str, Vector]:
    """Values of the actual arm of one case."""
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


def _draw_configurations(
    arm: ArmModel, random: np.random.Generator, c: CaseDistribution, actual: ArmModel, dt: float
) -> tuple[Vector, Vector] | None:
    """Two holdable configurations within the limits, ``step_size`` from each other, or None."""
    lower, upper = _inner_range(arm)
    for _ in range(CONFIGURATIONS):
        start = random.uniform(lower, upper)
        target = np.clip(start + c.step_size * random.uniform(-1, 1, arm.nv), lower, upper)
        pair = (start, target)
        if all(_is_holdable(actual, q, c) and _is_stable(actual, q, dt, c.interface) for q in pair):
            return pair
    return None


def _require_holdable_payload(
    arm: ArmModel, random: np.random.Generator, c: CaseDistribution
) -> None:
    """Raise InvalidValue for a payload that no configuration can hold."""
    loaded = arm.with_payload(arm.payload.mass + c.payload, arm.payload.centre)
    tries = MODELS * CONFIGURATIONS
    if not any(_is_holdable(loaded, random.uniform(*_inner_range(arm)), c) for _ in range(tries)):
        raise InvalidValue(
            f"arm '{arm.name}': payload = {c.payload:g} kg; expected one that"
            f" {MAX_GRAVITY_FRACTION:.0%} of the smallest effort limits hold in one of {tries}"
            " configurations; reduce it"
        )


def _inner_range(arm: ArmModel) -> tuple[Vector, Vector]:
    """Range of configurations (nv,), (nv,), away from the limits; one turn without limits."""
    lower = np.where(np.isfinite(arm.lower), arm.lower, -np.pi)
    upper = np.where(np.isfinite(arm.upper), arm.upper, np.pi)
    margin = RANGE_MARGIN * (upper - lower)
    return lower + margin, upper - margin


def _is_holdable(actual: ArmModel, q: Vector, c: CaseDistribution) -> bool:
    """Whether the motors can hold ``q`` at the lower bound of the model error."""
    limit = MAX_GRAVITY_FRACTION * (1 - c.model_error) * actual.effort_limit
    return bool((np.abs(gravity(actual, q)) <= limit).all())


def _is_stable(actual: ArmModel, q: Vector, dt: float, interface: str) -> bool:
    """Whether a time step is stable at ``q`` without control: dt λ_max(M⁻¹ B) < MAX_STEP_DECAY.

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
