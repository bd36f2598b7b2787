"""Which trajectory a loop follows, on a clock that may run slower than time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Lock

from arm_dynamics.errors import TrajectoryRefused
from arm_dynamics.state import Reference, TaskReference
from arm_dynamics.trajectories.joint_trajectory import JointTrajectory, Trajectory
from arm_dynamics.trajectories.speed_scaling import ScaledClock


class Following:
    """A trajectory, the one that comes next, and how far the first one is.

    Another thread than the loop's may ``post`` and ask ``at``.
    """

    def __init__(self) -> None:
        self.clock = ScaledClock()
        self.trajectory: Trajectory | None = None
        self.time = 0.0
        """Trajectory time [s] of the latest reference."""
        self.elapsed = (0.0, 0.0)
        """Times [s] since the trajectory's origin: of the latest reference, and of its state.

        They differ where trajectory time is slower than time; both are 0 while one is held."""
        self.entered = 0
        """Number of the trajectory that is followed."""
        self.posted = 0
        """Number of the trajectory that was posted last; each has a larger one."""
        self.from_desired = True
        """Whether a trajectory is entered from the reference, else from the measured state."""
        self._next: Trajectory | None = None
        self._lock = Lock()

    @property
    def pending(self) -> bool:
        """Whether another trajectory is entered at the next reference."""
        return self._next is not None

    def begin(self, trajectory: Trajectory) -> None:
        """Follow this one from now on, as it stands; only between two references."""
        with self._lock:
            self._next = None
            self.posted += 1
            self._follow(trajectory, self.posted)

    def _follow(self, trajectory: Trajectory, number: int) -> None:
        self.trajectory, self.entered = trajectory, number
        self.clock.restart()

    def post(self, trajectory: Trajectory) -> None:
        """Enter this one at the next reference, from the reference then."""
        self.amend(lambda _: trajectory)

    def amend(self, change: Callable[[Trajectory | None], Trajectory]) -> None:
        """Post what ``change`` makes of the trajectory that is pending, if any."""
        with self._lock:
            self._next = change(self._next)
            self.posted += 1

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
            number = self.posted
        if following is not None:  # one that is posted from now on stays pending
            self._follow(self.entered_at(now, following, present, joints), number)

    def entered_at(
        self, now: float, trajectory: Trajectory, present: Reference, joints: Reference | None
    ) -> Trajectory:
        """A trajectory as it is entered ``now``, from what ``reference`` tells."""
        if joints is not None and _leaves_tool(trajectory, present):
            return trajectory.after(now, joints)
        if joints is not None and not self.from_desired:
            present = replace(joints, effort=present.effort)
        return trajectory.after(now, self.clock.unscaled(present))

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
            raise TrajectoryRefused(f"no trajectory at {time:.6g} s: {begun}")
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
