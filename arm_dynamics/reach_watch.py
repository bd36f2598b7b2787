"""Tells when a tool's reference leaves what the arm can follow, and when a singularity is near."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from arm_dynamics.controllers.task import TaskController
from arm_dynamics.kinematics import pose
from arm_dynamics.safety.events import Events
from arm_dynamics.state import Reference, State
from arm_dynamics.trajectories.tool_entry import task_of

AWAY = 0.01
"""Distance [m] of the reference from where the arm can be that is told; it is over at half."""


class ReachWatch:
    """Reports ``out_of_reach`` and ``near_singular`` once each time it becomes so.

    ``farthest`` is the largest distance [m] since the arm was last within reach.
    """

    def __init__(self, law: TaskController, events: Events) -> None:
        self._law, self._events = law, events
        self.out, self.weak = False, False
        self.farthest = 0.0

    @property
    def distance(self) -> float:
        """Of the reference from where the arm can be [m]; rotations times the arm's reach."""
        return self._law.virtual.distance

    @property
    def weakest(self) -> float:
        """Smallest singular value of the tool's Jacobian [m]; rotations times the arm's reach."""
        return self._law.virtual.weakest

    def tool_error(self, state: State, reference: Reference) -> tuple[float, float]:
        """How far the real tool is from its reference: |p_ref - p| [m], |log(R_ref Rᵀ)| [rad].

        Along the axes that the arm controls. Unlike ``distance`` this counts all: what is out of
        reach, what lags, what gravity bends.
        """
        task, axes = task_of(self._law.arm, reference), self._law.virtual.axes
        position, rotation = pose(self._law.arm, state.q)
        error = np.append(task.position - position, pin.log3(task.rotation @ rotation.T))
        counted = np.zeros(6)
        counted[axes] = error[axes]
        return float(np.linalg.norm(counted[:3])), float(np.linalg.norm(counted[3:]))

    def look(self) -> None:
        """Look at the law after one of its updates."""
        self._look_distance()
        self._look_weakest()

    def _look_distance(self) -> None:
        was, distance = self.out, self.distance
        self.out = distance > (AWAY / 2 if was else AWAY)
        self.farthest = max(self.farthest, distance) if self.out and was else distance
        if self.out and not was:
            self._events.report(
                "out_of_reach",
                f"the tool's reference is more than {AWAY:g} m from where the arm can follow:"
                f" it slows down and goes to the nearest pose",
            )

    def _look_weakest(self) -> None:
        limit = self._law.law_gains["weak"] * self._law.virtual.reach
        was, weakest = self.weak, self.weakest
        self.weak = weakest < (1.1 * limit if was else limit)
        if self.weak and not was:
            self._events.report(
                "near_singular",
                f"the smallest singular value of the tool's Jacobian is {weakest:.3g} m, below"
                f" {limit:.3g} m: motion along its direction is slowed down",
            )
