"""Random numbers for the rows of a kernel that is to be checked."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.controllers.pid import Pid
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.rollout.kernel import TRIAL_STEP, Options
from arm_dynamics.rollout.law import GAINS, Law

TRIAL_PERIOD = 2e-3
GRID = 2.0**-12
"""What positions and speeds are multiples of: their sums are exact in single precision too."""


def trial_numbers(arm: ArmModel, options: Options) -> Mapping[str, Vector]:
    """Random numbers for every row that a block is given."""
    random, shape = np.random.default_rng(1), (options.lanes, arm.nv)
    lower, upper = np.maximum(arm.lower, -np.pi), np.minimum(arm.upper, np.pi)
    blocks = {
        "q": _gridded(random.uniform(lower, upper, shape)),
        "v": _gridded(random.uniform(-1, 1, shape)),
        "z": arm.initial_act + 0.01 * random.uniform(size=(options.lanes, arm.na)),
        "told": random.uniform(-5, 5, shape),
        "dt": np.array([TRIAL_STEP]),
        **{name: _nominal(arm, name) for name in options.vary},
    }
    if options.law is None:
        return blocks
    return {**blocks, **_law_numbers(options.law, blocks["q"], random)}


def _law_numbers(law: Law, q: Vector, random: np.random.Generator) -> Mapping[str, Vector]:
    """Random numbers for the rows of a law; every other lane with a clamp and a filter."""

    def near(width: int = q.shape[1]) -> Vector:
        return _gridded(random.uniform(-0.1, 0.1, (len(q), width)))

    other = np.arange(len(q))[:, None] % 2 == 1
    made = Pid(law.arm).gains
    gains = {name: made[name] * random.uniform(0.5, 1.5, q.shape) for name in GAINS}
    gains["i_clamp"] = np.where(other, 2.0, gains["i_clamp"])
    gains["d_filter"] = np.where(other, 0.01, gains["d_filter"])
    rows = {name: near(size) for name, size in {**law.given, **law.kept}.items()}
    rows |= {f"gains.{name}": values for name, values in gains.items()}
    rows |= {"q_ref": q + near(), "way": np.sign(near()), "late_part": 1.0 * other}
    return {**rows, "running": 0.0 * other + 1.0, "period": 0.0 * other + TRIAL_PERIOD}


def _gridded(x: Vector) -> Vector:
    return GRID * np.round(x / GRID)


def _nominal(arm: ArmModel, name: str) -> Vector:
    """The arm's own numbers for a variation."""
    kind, _, field = name.partition(".")
    if kind == "payload":
        return np.array([arm.payload.mass])
    if kind == "joint":
        return np.array([getattr(joint, field) for joint in arm.joints])
    if kind == "motor":
        return np.array([a.constants.get(field, 0.0) for a in arm.actuators])
    if field == "inertia":
        return np.ones(arm.nv)
    return np.array([inertia.mass for inertia in list(arm.links.inertias)[1:]])
