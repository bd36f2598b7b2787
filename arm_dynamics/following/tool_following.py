"""What a law of the tool follows: motions that begin where its arm can be, and a push on top."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.arrays import frozen, vector
from arm_dynamics.controllers.task import TaskController
from arm_dynamics.following.following import Following
from arm_dynamics.state import Reference
from arm_dynamics.trajectories.tool_entry import task_of

LEASH = 0.02
"""Distance [m] between a reference and where the arm can be from which on it begins there anew."""
RISE = 0.05
"""Time constant [s] at which a push comes and goes."""
NOTHING = 1e-9
"""Push [N, N·m] that counts as none."""


class ToolFollowing(Following):
    """A following that enters trajectories from where the law's arm can be.

    Where that is further than LEASH from the reference in force, so that what leads out of the
    workspace does not pile up. ``push`` adds a wrench w to every reference, with
    ẇ = (w_told - w) / RISE.
    """

    def __init__(self, law: TaskController) -> None:
        super().__init__()
        self._law = law
        self._told, self._until = np.zeros(6), -np.inf
        self._wrench, self._now = np.zeros(6), 0.0

    def push(self, wrench: ArrayLike, until: float) -> None:
        """Push with ``wrench`` (6,) [N, N·m] until the time ``until`` [s], then no longer."""
        self._told, self._until = vector("wrench", wrench, 6), until

    def reference(
        self, now: float, present: Reference | None, joints: Reference | None = None
    ) -> Reference:
        """Reference at the time ``now`` [s], the push included."""
        if present is not None and self.pending:
            joints = self._led()
        found = super().reference(now, present, joints)
        return self._pushed(found, now)

    def _continued(self, now: float, present: Reference) -> Reference:
        """Where the motion in force is ``now``, or where the arm can be."""
        del present
        if self._law.virtual.distance > LEASH:
            return self._led()
        assert self.trajectory is not None
        return self.clock.scaled(self.trajectory.at(self.clock.at(now)))

    def _led(self) -> Reference:
        """Where the law leads the joints."""
        virtual = self._law.virtual
        return Reference(*(frozen(x) for x in (virtual.q, virtual.v, virtual.a)))

    def _pushed(self, reference: Reference, now: float) -> Reference:
        told = self._told if now <= self._until else np.zeros(6)
        passed, self._now = max(now - self._now, 0.0), now
        self._wrench = self._wrench + (told - self._wrench) * -np.expm1(-passed / RISE)
        if np.abs(self._wrench).max() < NOTHING:
            return reference
        task = task_of(self._law.arm, reference)
        return replace(task, wrench=frozen(task.wrench + self._wrench))
