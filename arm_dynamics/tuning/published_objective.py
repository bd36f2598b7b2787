"""The objective of the published gain search: by a generated kernel, else one call at a time."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.dynamechs import CONTROLLED, objective
from arm_dynamics.errors import ArmDynamicsError
from arm_dynamics.model.arm_model import ArmModel

Objectives = Callable[[Vector, Vector], Vector]
"""Gains P, I [V/rad], (m, joints) each → objectives (m,) [rad]."""
WIDTH = 4
"""Gains that the kernel judges in the time of one."""


@dataclass(frozen=True)
class Judge:
    """``objectives``, and how many gains they take at a time where time counts."""

    objectives: Objectives
    width: int

    def __call__(self, p: Vector, i: Vector) -> Vector:
        """Objectives (m,) [rad] of P, I (m, joints) [V/rad]."""
        return self.objectives(p, i)


def objectives_of(arm: ArmModel, joints: Sequence[str] = CONTROLLED) -> Judge:
    """``dynamechs.objective`` over rows of gains, 3 s long with steps of 1e-4 s.

    By the generated kernel; without CasADi or numba, or where it does not serve, by the
    function itself: same results to 1e-9, slower, said once. Raises InvalidValue for an arm
    that has no published step.
    """
    try:
        from arm_dynamics.rollout.published_kernel import PublishedKernel  # noqa: PLC0415 - numba

        return Judge(PublishedKernel(arm, joints).objectives, WIDTH)
    except ArmDynamicsError as error:
        objective(arm, np.zeros(len(joints)), joints=tuple(joints), duration=1e-4)  # or it raises
        _say_once(str(error))
    except ModuleNotFoundError as error:
        _say_once(f"{error.name} is not installed")
    return Judge(lambda p, i: _one_by_one(arm, joints, p, i), width=1)


def _one_by_one(arm: ArmModel, joints: Sequence[str], p: Vector, i: Vector) -> Vector:
    rows = zip(p, i, strict=True)
    return np.array([objective(arm, *row, joints=tuple(joints)) for row in rows])


@cache
def _say_once(why: str) -> None:
    warnings.warn(
        f"the published objective has no kernel, slower: {why}", RuntimeWarning, stacklevel=3
    )
