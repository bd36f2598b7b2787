"""Cases drawn by a seed: poses, payloads, models that are wrong, time steps in turn."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from arm_dynamics.batch.rollout.variation import variable_names
from arm_dynamics.batch.tuning.case_distribution import CaseDistribution
from arm_dynamics.batch.tuning.cases import Cases
from arm_dynamics.batch.tuning.uncertain_parameters import (
    SHARED,
    UNCERTAIN,
    arm_with_values,
    nominal_values,
)
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.dynamics.rigid_body import gravity, mass_matrix
from arm_dynamics.model.arm_model import ArmModel

INSIDE = 0.1
"""Share of a joint's range that poses keep away from either limit."""
HOLDABLE = 0.7
"""Largest share of a joint's weakest motor that a pose's weight may take."""
MAX_STEP_DECAY = 1.8
"""Largest decay in one time step, 2 being where steps turn unstable whatever the gains."""
MODELS, POSES = 20, 50
"""Models, and poses of each, that are tried for a case."""


def draw(arm: ArmModel, count: int, seed: int, conditions: CaseDistribution) -> Cases:
    """``count`` cases; case k is the same for a seed, whatever the count.

    Raises InvalidValue for no cases, and for an arm that finds no pose which it can hold.
    """
    if count < 1:
        raise InvalidValue(f"{count} cases: at least 1 is expected")
    _require_held(arm, np.random.default_rng([seed, count]), conditions)
    nominal = {
        name: values for name in variable_names(arm) if (values := nominal_values(arm, name)).any()
    }
    nominal.pop("payload", None)
    dts = np.array(conditions.dts)[np.arange(count) % len(conditions.dts)]
    rows = [
        _one(arm, np.random.default_rng([seed, k]), conditions, nominal, float(dt))
        for k, dt in enumerate(dts)
    ]
    start, target = (np.array([row[i] for row in rows]) for i in range(2))
    varied = {name: np.array([row[2][name] for row in rows]) for name in rows[0][2]}
    return Cases(arm, conditions, start, target, dts, varied, seed)


def _one(
    arm: ArmModel,
    random: np.random.Generator,
    c: CaseDistribution,
    nominal: Mapping[str, Vector],
    dt: float,
) -> tuple[Vector, Vector, dict[str, Vector]]:
    """Start, target and variations of one case; another model where no pose suits the first."""
    for _ in range(MODELS):
        values = _values(arm, random, c, nominal)
        poses = _poses(arm, random, c, arm_with_values(arm, values), dt)
        if poses is not None:
            return *poses, values
    raise InvalidValue(
        f"arm '{arm.name}': none of {MODELS} models, {POSES} poses each, is held by its motors and"
        f" stable in steps of {dt:g} s: a smaller payload, error or time step is expected"
    )


def _values(
    arm: ArmModel, random: np.random.Generator, c: CaseDistribution, nominal: Mapping[str, Vector]
) -> dict[str, Vector]:
    """What the arm of one case is in truth."""
    payload = np.clip(random.uniform(-0.25, 1.25), 0.0, 1.0) * c.payload
    values: dict[str, Vector] = {"payload": np.array([arm.payload.mass + payload])}
    factors: dict[str, Vector] = {}
    for name, row in nominal.items():
        if name in UNCERTAIN:
            factors[name] = factors.get(SHARED.get(name, ""), random.uniform(-1, 1, arm.nv))
            values[name] = row * (1 + c.model_error * factors[name])
    return values


def _poses(
    arm: ArmModel, random: np.random.Generator, c: CaseDistribution, true: ArmModel, dt: float
) -> tuple[Vector, Vector] | None:
    """Two poses within the limits, at most ``step`` apart, that a case can be about."""
    lower, upper = _inner(arm)
    for _ in range(POSES):
        start = random.uniform(lower, upper)
        target = np.clip(start + c.step_size * random.uniform(-1, 1, arm.nv), lower, upper)
        if all(_held(true, q, c) and _steady(true, q, dt, c.interface) for q in (start, target)):
            return start, target
    return None


def _require_held(arm: ArmModel, random: np.random.Generator, c: CaseDistribution) -> None:
    """Refuse a payload that no pose can carry; cases would only ever be drawn without it."""
    loaded = arm.with_payload(arm.payload.mass + c.payload, arm.payload.centre)
    if not any(_held(loaded, random.uniform(*_inner(arm)), c) for _ in range(MODELS * POSES)):
        raise InvalidValue(
            f"payload = {c.payload:g} kg: in none of {MODELS * POSES} poses does arm '{arm.name}'"
            f" hold it with {HOLDABLE:.0%} of its weakest motors: a smaller payload is expected"
        )


def _inner(arm: ArmModel) -> tuple[Vector, Vector]:
    """The range of poses (nv,), (nv,): away from the limits; one turn where there are none."""
    lower = np.where(np.isfinite(arm.lower), arm.lower, -np.pi)
    upper = np.where(np.isfinite(arm.upper), arm.upper, np.pi)
    margin = INSIDE * (upper - lower)
    return lower + margin, upper - margin


def _held(true: ArmModel, q: Vector, c: CaseDistribution) -> bool:
    """Whether the motors, as weak as they may be, can hold ``q``."""
    limit = HOLDABLE * (1 - c.model_error) * true.effort_limit
    return bool((np.abs(gravity(true, q)) <= limit).all())


def _steady(true: ArmModel, q: Vector, dt: float, interface: str) -> bool:
    """Whether a time step is stable at ``q`` without any control.

    dt λ_max(M⁻¹ B) < 2, B what joints and motors damp by, the back-EMF under a voltage too.
    """
    by_voltage = interface == "voltage"
    damping = np.diag(
        [
            joint.damping + (a.step_damping(dt) if by_voltage else a.viscous_friction)
            for joint, a in zip(true.joints, true.actuators, strict=True)
        ]
    )
    rates = np.linalg.eigvals(np.linalg.solve(mass_matrix(true, q), damping))
    return bool(dt * rates.real.max() < MAX_STEP_DECAY)
