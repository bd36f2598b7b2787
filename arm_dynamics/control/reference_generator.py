"""Which trajectory a loop follows, on a clock that may run slower than time.

What a law of the tool follows: motions that begin where its arm can be, and a push on top.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Lock

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Trajectory
from arm_dynamics.control.trajectories.speed_scaling import ScaledClock
from arm_dynamics.control.trajectories.transition_blend import to_task_reference
from arm_dynamics.core.arrays import as_readonly, check_vector
from arm_dynamics.core.errors import TrajectoryRejected
from arm_dynamics.core.state import Reference, TaskReference


class ReferenceGenerator:
    """A trajectory, the one that comes next, and how far the first one is.

    Another thread than the loop's may ``queue`` and ask ``at``.
    """

    def __init__(self) -> None:
        self.clock = ScaledClock()
        self.trajectory: Trajectory | None = None
        self.time = 0.0
        """Trajectory time [s] of the latest reference."""
        self.elapsed = (0.0, 0.0)
        """Times [s] since the trajectory's origin: of the latest reference, and of its state.

        They differ where trajectory time is slower than time; both are 0 while one is held."""
        self.number = 0
        """Number of the trajectory that is tracked."""
        self.queued_number = 0
        """Number of the trajectory that was queued last. Each new trajectory has a larger one."""
        self.from_desired = True
        """Whether a trajectory is entered from the reference, else from the measured state."""
        self._next: Trajectory | None = None
        self._lock = Lock()

    @property
    def pending(self) -> bool:
        """Whether another trajectory is entered at the next reference."""
        return self._next is not None

    def start(self, trajectory: Trajectory) -> None:
        """Follow this one from now on, as it stands; only between two references."""
        with self._lock:
            self._next = None
            self.queued_number += 1
            self._track(trajectory, self.queued_number)

    def _track(self, trajectory: Trajectory, number: int) -> None:
        self.trajectory, self.number = trajectory, number
        self.clock.restart()

    def queue(self, trajectory: Trajectory) -> None:
        """Enter this one at the next reference, from the reference then."""
        self.update_pending(lambda _: trajectory)

    def update_pending(self, change: Callable[[Trajectory | None], Trajectory]) -> None:
        """Post what ``change`` makes of the trajectory that is pending, if any."""
        with self._lock:
            self._next = change(self._next)
            self.queued_number += 1

    def reference(
        self, now: float, present: Reference | None, joints: Reference | None = None
    ) -> Reference:
        """Reference at the time ``now`` [s]; a posted trajectory is entered here.

        From the ``present`` reference, once there is one; one of the joints that follows one of
        the tool, whose posture is none that the arm takes up, from where the ``joints`` are.
        """
        if self._next is not None and present is not None:
            self._enter(now, self._continued(now, present), joints)
        assert self.trajectory is not None
        self.time = self.clock.advance(now)
        self.elapsed = _elapsed(self.trajectory, self.time, now)
        return self.clock.scaled(self.trajectory.at(self.time))

    def _continued(self, now: float, present: Reference) -> Reference:
        """The present trajectory's reference ``now``: a stream would lose a cycle a message."""
        if self.trajectory is None or isinstance(present, TaskReference):
            return present
        return self.clock.scaled(self.trajectory.at(self.clock.at(now)))

    def _enter(self, now: float, present: Reference, joints: Reference | None) -> None:
        with self._lock:
            following, self._next = self._next, None
            number = self.queued_number
        if following is not None:  # a trajectory that is queued from now on stays pending
            self._track(self.spliced_at(now, following, present, joints), number)

    def spliced_at(
        self, now: float, trajectory: Trajectory, present: Reference, joints: Reference | None
    ) -> Trajectory:
        """A trajectory as it is entered ``now``, from what ``reference`` tells."""
        if joints is not None and _leaves_tool(trajectory, present):
            return trajectory.starting_from(now, joints)
        if joints is not None and not self.from_desired:
            present = replace(joints, effort=present.effort)
        return trajectory.starting_from(now, self.clock.unscaled(present))

    def at(self, time: float) -> Reference:
        """Reference at another time [s], were the speed to stay as it is.

        Raises TrajectoryRefused before the trajectory's start.
        """
        trajectory, s = self.trajectory, self.clock.at(time)
        if trajectory is None or s < trajectory.start:
            begun = (
                "none is followed"
                if trajectory is None
                else f"it began at {trajectory.start:.6g} s"
            )
            raise TrajectoryRejected(f"no trajectory at {time:.6g} s: {begun}")
        return self.clock.scaled(trajectory.at(s))


def _elapsed(trajectory: Trajectory, time: float, now: float) -> tuple[float, float]:
    """Trajectory time and time [s] since the origin of a trajectory; 0 for one that stands."""
    if trajectory.start == trajectory.end:
        return 0.0, 0.0
    given = trajectory.origin if isinstance(trajectory, JointTrajectory) else None
    origin = trajectory.start if given is None else given
    return time - origin, now - origin


def _leaves_tool(trajectory: Trajectory, present: Reference) -> bool:
    """Whether a reference of the tool is followed by a trajectory of the joints."""
    if not isinstance(present, TaskReference):
        return False
    return not isinstance(trajectory.at(trajectory.end), TaskReference)


RESTART_THRESHOLD = 0.02
"""Distance [m] between a reference and where the arm can be from which on it begins there anew."""
RISE = 0.05
"""Time constant [s] at which a push comes and goes."""
WRENCH_TOLERANCE = 1e-9
"""Push [N, N·m] that counts as none."""


class CartesianReferenceGenerator(ReferenceGenerator):
    """A following that enters trajectories from where the law's arm can be.

    Where that is further than LEASH from the reference in force, so that what leads out of the
    workspace does not pile up. ``set_wrench`` adds a wrench w to every reference, with
    ẇ = (w_told - w) / RISE.
    """

    def __init__(self, law: TaskSpaceController) -> None:
        super().__init__()
        self._law = law
        self._told, self._until = np.zeros(6), -np.inf
        self._wrench, self._now = np.zeros(6), 0.0

    def set_wrench(self, wrench: ArrayLike, until: float) -> None:
        """Push with ``wrench`` (6,) [N, N·m] until the time ``until`` [s], then no longer."""
        self._told, self._until = check_vector("wrench", wrench, 6), until

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
        if self._law.clik.reachability_error > RESTART_THRESHOLD:
            return self._led()
        assert self.trajectory is not None
        return self.clock.scaled(self.trajectory.at(self.clock.at(now)))

    def _led(self) -> Reference:
        """Where the law leads the joints."""
        virtual = self._law.clik
        return Reference(*(as_readonly(x) for x in (virtual.q, virtual.v, virtual.a)))

    def _pushed(self, reference: Reference, now: float) -> Reference:
        told = self._told if now <= self._until else np.zeros(6)
        passed, self._now = max(now - self._now, 0.0), now
        self._wrench = self._wrench + (told - self._wrench) * -np.expm1(-passed / RISE)
        if np.abs(self._wrench).max() < WRENCH_TOLERANCE:
            return reference
        task = to_task_reference(self._law.arm, reference)
        return replace(task, wrench=as_readonly(task.wrench + self._wrench))
