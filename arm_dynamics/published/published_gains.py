"""The published gains as a parameter file: the effort law that is the same loop.

Better gains than the published ones, by their own measure: P and I sought together.

The published search fixed P before it tried I. Both at once reach an objective some fifty times
smaller at the same pose and time step. They hold no other: measure, pose and step are the
publication's, for comparison alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from arm_dynamics.batch.stability.analyzed_loops import PUBLISHED_DT, PUBLISHED_P
from arm_dynamics.batch.tuning.gain_optimizer import Budget, GainOptimizer, Generation
from arm_dynamics.batch.tuning.parameter_file import parameter_text
from arm_dynamics.control.controllers.pid import Pid
from arm_dynamics.core.arrays import Vector
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.published.baseline import PUBLISHED_I
from arm_dynamics.published.published_search import Objectives, PublishedSearch, objectives_of
from arm_dynamics.simulation.dynamechs import (
    CONTROLLED,
    KE,
    KT,
    RESISTANCE,
    constants,
    published_arm,
)


def effort_gains(
    arm: ArmModel, gains: dict[str, tuple[float, float]], dt: float = PUBLISHED_DT
) -> dict[str, dict[str, float]]:
    """PID gains on efforts with the torque of V = P e + I Σe at steps of ``dt`` [s].

    τ = Kt (V - Ke q̇) / R  =  p e + i ∫e dt - d q̇,   p = Kt P / R,  i = Kt I / (R dt),
    d = Kt Ke / R; joints without gains are braked by their motors alone.

    gains: joint → P, I [V/rad]; result: joint → p, i, d in the units of ``Pid``.
    """
    found, rows = {}, constants(arm)
    for k, joint in enumerate(arm.joint_names):
        p, i = gains.get(joint, (0.0, 0.0))
        share = float(rows[KT, k] / rows[RESISTANCE, k])
        found[joint] = {"p": share * p, "i": share * i / dt, "d": share * float(rows[KE, k])}
    return found


def published_file(arm: ArmModel, found: PublishedSearch) -> str:
    """The text of a parameter file with the ``found`` gains for controller pid."""
    notes = (
        "five_dof: the gains of the published search, as efforts of the same loop.",
        f"They hold the initial pose at a control period of {PUBLISHED_DT:g} s, at the edge of",
        "stability, without limits of effort; not made for an arm, nor for a longer period.",
    )
    gains = effort_gains(arm, found.gains)
    return parameter_text(arm.name, "pid", Pid(arm, gains), gains, notes)


BEST_P = (54687.282037303085, 12203.909716814382, 4967.256619320427)
BEST_I = (463.8710389409981, 136.50997742313115, 70.58983719662525)
"""Gains [V/rad] that ``improve(16000, seed=3)`` found: 0.0066084 rad. All digits count:
such gains rounded to six digits give 3 % more."""
BOUND = 6.0
"""Largest |ln| of a gain against the published one."""


@dataclass(frozen=True, eq=False)
class Improved:
    """Gains P, I (joints,) [V/rad] and their objective [rad]."""

    p: Vector
    i: Vector
    objective: float


def improve(
    budget: int = 6000,
    *,
    seed: int = 0,
    objectives: Objectives | None = None,
    observe: Callable[[Generation], None] = lambda generation: None,
) -> Improved:
    """Least objective over P and I together, ln of each within BOUND of the published one.

    ``budget``: gains that may be tried; ``objectives`` defaults to that of the published arm.
    Raises InvalidValue for a budget below 1, ArmDynamicsError without the library cma.
    """
    judge = objectives_of(published_arm()) if objectives is None else objectives
    start = np.array([gains[j] for gains in (PUBLISHED_P, PUBLISHED_I) for j in CONTROLLED])

    def costs(x: Vector) -> Vector:
        p, i = np.hsplit(start * np.exp(x), 2)
        return np.log(judge(p, i))

    found = GainOptimizer(costs, start.size, BOUND, seed, observe=observe).run(Budget(budget))
    p, i = np.split(start * np.exp(found.x), 2)
    return Improved(p, i, float(np.exp(found.cost)))
