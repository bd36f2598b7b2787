"""Cases drawn by a seed: poses, payloads, models that are wrong, time steps in turn."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.dynamics import gravity
from arm_dynamics.errors import InvalidValue
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.rollout.variation import known
from arm_dynamics.tuning.cases import Cases
from arm_dynamics.tuning.conditions import Conditions
from arm_dynamics.tuning.uncertain import SHARED, UNCERTAIN, nominal_values, true_arm

INSIDE = 0.1
"""Share of a joint's range that poses keep away from either limit."""
HOLDABLE = 0.7
"""Largest share of a joint's weakest motor that a pose's weight may take."""
TRIES = 1000
"""Poses that are tried for one that the motors can hold."""


def draw(arm: ArmModel, count: int, seed: int, conditions: Conditions) -> Cases:
    """``count`` cases; case k is the same for a seed, whatever the count.

    Raises InvalidValue for no cases, and for an arm that finds no pose which it can hold.
    """
    if count < 1:
        raise InvalidValue(f"{count} cases: at least 1 is expected")
    nominal = {name: values for name in known(arm) if (values := nominal_values(arm, name)).any()}
    nominal.pop("payload", None)
    rows = [_one(arm, np.random.default_rng([seed, k]), conditions, nominal) for k in range(count)]
    start, target = (np.array([row[i] for row in rows]) for i in range(2))
    varied = {name: np.array([row[2][name] for row in rows]) for name in rows[0][2]}
    dt = np.array(conditions.dts)[np.arange(count) % len(conditions.dts)]
    return Cases(arm, conditions, start, target, dt, varied, seed)


def _one(
    arm: ArmModel, random: np.random.Generator, c: Conditions, nominal: Mapping[str, Vector]
) -> tuple[Vector, Vector, dict[str, Vector]]:
    """Start, target and variations of one case."""
    payload = np.clip(random.uniform(-0.25, 1.25), 0.0, 1.0) * c.payload
    varied: dict[str, Vector] = {"payload": np.array([arm.payload.mass + payload])}
    factors: dict[str, Vector] = {}
    for name, values in nominal.items():
        if name in UNCERTAIN:
            factors[name] = factors.get(SHARED.get(name, ""), random.uniform(-1, 1, arm.nv))
            varied[name] = values * (1 + c.error * factors[name])
    start, target = _poses(arm, random, c, true_arm(arm, varied))
    return start, target, varied


def _poses(
    arm: ArmModel, random: np.random.Generator, c: Conditions, true: ArmModel
) -> tuple[Vector, Vector]:
    """Two poses within the limits, at most ``step`` apart, that the case's motors can hold."""
    lower = np.where(np.isfinite(arm.lower), arm.lower, -np.pi)
    upper = np.where(np.isfinite(arm.upper), arm.upper, np.pi)
    margin = INSIDE * (upper - lower)
    limit = HOLDABLE * (1 - c.error) * arm.effort_limit
    for _ in range(TRIES):
        start = random.uniform(lower + margin, upper - margin)
        jump = c.step * random.uniform(-1, 1, arm.nv)
        target = np.clip(start + jump, lower + margin, upper - margin)
        if all((np.abs(gravity(true, q)) <= limit).all() for q in (start, target)):
            return start, target
    raise InvalidValue(
        f"arm '{arm.name}': none of {TRIES} poses can be held with {c.payload:g} kg at"
        f" {HOLDABLE:.0%} of the weakest motors: a smaller payload is expected"
    )
