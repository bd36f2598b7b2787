"""A step of the reference, the same for every run of a Monte Carlo."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from arm_dynamics.arrays import Vector, scalar
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation import whole_steps


@dataclass(frozen=True, eq=False)
class Motion:
    """From rest at ``start`` to ``target`` (nv,), a step of the reference, for ``duration`` [s].

    band [rad or m]: error within which a joint counts as settled. dt, period [s].
    """

    start: Vector
    target: Vector
    duration: float = 1.0
    dt: float = 1e-4
    period: float = 2e-3
    band: float = 5e-3
    interface: str = "effort"

    def __post_init__(self) -> None:
        scalar("band [rad]", self.band, above=0)
        scalar("period [s]", self.period, above=0)
        scalar("duration [s]", self.duration, lower=self.period)
        whole_steps(self.period, self.dt)
        whole_steps(self.duration, self.period)


def step_from(arm: ArmModel, size: float) -> tuple[Vector, Vector]:
    """The initial pose, and one ``size`` [rad or m] from it in every joint, towards the middle.

    Raises InvalidValue for a step that leaves the limits, or is not above 0.
    """
    start = arm.pose("initial")
    above, below = arm.upper - start, start - arm.lower
    way = np.where(above >= below, 1.0, -1.0)
    target = start + scalar("step [rad]", size, above=0) * way
    return start, arm.check_position("target", target)
