"""Whether an arm can follow a way of the tool within all its limits, before it is followed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from arm_dynamics.arrays import Vector
from arm_dynamics.following.effort_check import check_led
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.trajectories import feasibility
from arm_dynamics.trajectories.cartesian_trajectory import CartesianTrajectory


def checked(
    model: ArmModel,
    trajectory: CartesianTrajectory,
    limit: Vector,
    pause: Callable[[], None] | None = None,
) -> CartesianTrajectory:
    """The trajectory, once it was found that its arm can follow; it is not looked at again.

    Raises TrajectoryRefused telling where it is out of reach, else where a joint is too fast, else
    where it needs more than ``limit`` (nv,) [N·m] by ``model``, with time and amount. ``pause`` is
    called after every look.
    """
    found = feasibility.led(trajectory.arm, trajectory, trajectory.weights, pause)
    check_led(model, found.times, found.q, limit, trajectory.wrench, pause)
    return replace(trajectory, beyond=True)
