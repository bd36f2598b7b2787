"""References of a control loop: trajectory clock, execution, replacement, and start of a hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from threading import Lock

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.control.trajectories.trajectory import Trajectory
from arm_dynamics.control.trajectories.transition_blend import to_task_reference
from arm_dynamics.core.arrays import IntArray, Vector, as_readonly, check_float, check_vector
from arm_dynamics.core.errors import InvalidValue, TrajectoryRejected
from arm_dynamics.core.state import Command, Reference, State, TaskReference
from arm_dynamics.safety.controlled_stop import SAG

RAMP = 0.25
"""Time in which the clock changes from full speed to a stop, and back [s]."""
RESTART_THRESHOLD = 0.02
"""Reachability error [m] above which a Cartesian trajectory starts at the CLIK solution."""
RISE = 0.05
"""Time constant of a commanded wrench [s]."""
WRENCH_TOLERANCE = 1e-9
"""Wrench [N, N·m] that counts as 0."""


class ScaledClock:
    """Trajectory time s with ds/dt = f, where f approaches the set factor by 1/RAMP per second.

    The reference q(s(t)) has the velocity f v and the acceleration f² a + f' v. Position and
    velocity do not jump at any change of the factor.

    References
    ----------
    J. Hollerbach, Dynamic Scaling of Manipulator Trajectories (1984), eqs. 4 to 6.

    """

    def __init__(self) -> None:
        self.requested = 1.0
        self.factor = 1.0
        self._rate = 0.0
        self._lag = 0.0
        self._now: float | None = None

    def set_factor(self, factor: float) -> None:
        """Set the speed scaling factor; 0 is a pause.

        Raises
        ------
        InvalidValue
            Outside [0, 1]: velocity limits were checked at full speed.

        """
        number = check_float("speed scaling factor", factor)
        if not 0 <= number <= 1:
            raise InvalidValue(f"speed scaling factor = {number:g}; expected 0 to 1")
        self.requested = number

    def restart(self) -> None:
        """Set trajectory time to time; the factor stays."""
        self._lag = 0.0

    def advance(self, now: float) -> float:
        """Return the trajectory time s at ``now`` [s], which never decreases between calls."""
        before, self._now = self._now, now
        if before is None or now <= before or self.factor == self.requested == 1.0:
            self._rate = 0.0
        else:
            dt = now - before  # s increases by ∫ f dt, computed exactly
            change = min(max(self.requested - self.factor, -dt / RAMP), dt / RAMP)
            ramp, start = abs(change) * RAMP, self.factor
            self._rate = change / dt if ramp >= dt * (1 - 1e-9) else 0.0
            self.factor = self.requested if self._rate == 0.0 else start + change
            elapsed = 0.5 * (start + self.factor) * ramp + self.factor * (dt - ramp)
            self._lag += now - before - elapsed
        return now - self._lag

    def at(self, time: float) -> float:
        """Return the trajectory time at another time [s], with the present factor."""
        now = time if self._now is None else self._now
        return now - self._lag + self.factor * (time - now)

    def scaled(self, reference: Reference) -> Reference:
        """Return a reference at s as a reference in time."""
        f, rate = self.factor, self._rate
        return reference if f == 1.0 and rate == 0.0 else _scaled(reference, f, rate)

    def unscaled(self, reference: Reference) -> Reference:
        """Return a reference in time as a trajectory starts from it now; at rest for f = 0."""
        if self.factor == 1.0:
            return reference
        return _scaled(reference, 1 / self.factor if self.factor else 0.0, 0.0)


def _scaled(reference: Reference, f: float, rate: float) -> Reference:
    v, a = as_readonly(f * reference.v), as_readonly(f**2 * reference.a + rate * reference.v)
    if not isinstance(reference, TaskReference):
        return replace(reference, v=v, a=a)
    twist = as_readonly(f * reference.twist)
    acceleration = as_readonly(f**2 * reference.acceleration + rate * reference.twist)
    return replace(reference, v=v, a=a, twist=twist, acceleration=acceleration)


def _kept(reference: Reference, other: Reference, joints: IntArray) -> Reference:
    """Return ``reference`` with the values of some ``joints`` of another one."""
    rows = {name: getattr(reference, name).copy() for name in "qva"}
    for name, row in rows.items():
        row[joints] = getattr(other, name)[joints]
    return replace(reference, **{name: as_readonly(row) for name, row in rows.items()})


class ReferenceGenerator:
    """Sample the active trajectory on a scaled clock and start the queued one.

    ``queue`` and ``at`` may be called from another thread than the loop's.

    Attributes
    ----------
    clock : ScaledClock
        Clock of the trajectory time.
    trajectory : Trajectory or None
        The active trajectory.

    """

    def __init__(self) -> None:
        self.clock = ScaledClock()
        self.trajectory: Trajectory | None = None
        self.time = 0.0
        """Trajectory time of the latest reference [s]."""
        self.elapsed = (0.0, 0.0)
        """Times since the trajectory's origin [s]: of the latest reference, and of its state.

        They differ if the trajectory time is slower than time. Both are 0 during a hold."""
        self.number = 0
        """Number of the active trajectory."""
        self.queued_number = 0
        """Number of the last queued or started trajectory. Each new one has a larger number."""
        self.from_desired = True
        """Whether a trajectory starts from the reference; else from the measured state."""
        self.kept: IntArray = np.zeros(0, int)
        """Joints whose reference is not that of the trajectory: the next one starts at it too."""
        self._next: Trajectory | None = None
        self._lock = Lock()

    @property
    def pending(self) -> bool:
        """Whether a trajectory is queued for the next reference."""
        return self._next is not None

    def start(self, trajectory: Trajectory) -> None:
        """Activate a trajectory unchanged; call between two references."""
        with self._lock:
            self._next = None
            self.queued_number += 1
            self._activate(trajectory, self.queued_number)

    def _activate(self, trajectory: Trajectory, number: int) -> None:
        self.trajectory, self.number = trajectory, number
        self.clock.restart()

    def queue(self, trajectory: Trajectory) -> None:
        """Start a trajectory at the next reference, from that reference."""
        self.update_pending(lambda _: trajectory)

    def update_pending(self, change: Callable[[Trajectory | None], Trajectory]) -> None:
        """Queue the result of ``change``, called with the queued trajectory or None."""
        with self._lock:
            self._next = change(self._next)
            self.queued_number += 1

    def reference(
        self, now: float, current_reference: Reference | None, measured: Reference | None = None
    ) -> Reference:
        """Return the reference at ``now`` [s]; a queued trajectory starts here.

        Parameters
        ----------
        now : float
            Time [s].
        current_reference : Reference or None
            Reference at which a queued trajectory starts; None keeps it queued.
        measured : Reference, optional
            Measured state: a joint trajectory after a Cartesian one starts here.

        """
        if self._next is not None and current_reference is not None:
            continued = self._present_reference(now, current_reference)
            if self.kept.size:
                continued = _kept(continued, current_reference, self.kept)
            with self._lock:
                queued, self._next = self._next, None
                number = self.queued_number
            if queued is not None:  # a trajectory that is queued from now on stays pending
                self._activate(self.spliced_at(now, queued, continued, measured), number)
        assert self.trajectory is not None
        self.time, trajectory = self.clock.advance(now), self.trajectory
        given = trajectory.origin if isinstance(trajectory, JointTrajectory) else None
        origin = trajectory.start if given is None else given
        holds = trajectory.start == trajectory.end
        self.elapsed = (0.0, 0.0) if holds else (self.time - origin, now - origin)
        return self.clock.scaled(trajectory.at(self.time))

    def _present_reference(self, now: float, current_reference: Reference) -> Reference:
        """Return the active trajectory's reference at ``now``.

        Starting at the last cycle's reference instead would delay a stream by a cycle per message.
        """
        if self.trajectory is None or isinstance(current_reference, TaskReference):
            return current_reference
        return self.clock.scaled(self.trajectory.at(self.clock.at(now)))

    def spliced_at(
        self,
        now: float,
        trajectory: Trajectory,
        current_reference: Reference,
        measured: Reference | None,
    ) -> Trajectory:
        """Return ``trajectory`` as it starts at ``now``; parameters as in ``reference``."""
        if (
            measured is not None
            and isinstance(current_reference, TaskReference)
            and not isinstance(trajectory.at(trajectory.end), TaskReference)
        ):  # from task space to joint space
            return trajectory.starting_from(now, measured)
        if measured is not None and not self.from_desired:
            current_reference = replace(measured, effort=current_reference.effort)
        return trajectory.starting_from(now, self.clock.unscaled(current_reference))

    def at(self, time: float) -> Reference:
        """Return the reference at another time [s], with the speed scaling of now.

        Raises
        ------
        TrajectoryRejected
            Before the trajectory's start.

        """
        trajectory, s = self.trajectory, self.clock.at(time)
        if trajectory is None or s < trajectory.start:
            start = (
                "no trajectory is active"
                if trajectory is None
                else f"start at {trajectory.start:.6g} s"
            )
            raise TrajectoryRejected(f"no trajectory at {time:.6g} s: {start}")
        return self.clock.scaled(trajectory.at(s))


class CartesianReferenceGenerator(ReferenceGenerator):
    """Sample trajectories within the workspace and add a wrench.

    If the reachability error of the controller's CLIK solution exceeds RESTART_THRESHOLD, a new
    trajectory starts at that solution, so that unreachable motion does not accumulate. The wrench
    w follows the commanded one by ẇ = (w_command - w) / RISE.

    Parameters
    ----------
    controller : TaskSpaceController
        Controller with the CLIK solution.

    """

    def __init__(self, controller: TaskSpaceController) -> None:
        super().__init__()
        self._controller = controller
        self._command, self._until = np.zeros(6), -np.inf
        self._wrench, self._now = np.zeros(6), 0.0

    def set_wrench(self, wrench: ArrayLike, until: float) -> None:
        """Apply a wrench (6,) [N, N·m] until the time ``until`` [s]."""
        self._command, self._until = check_vector("wrench", wrench, 6), until

    def reference(
        self, now: float, current_reference: Reference | None, measured: Reference | None = None
    ) -> Reference:
        """Return the reference at ``now`` [s] with the wrench."""
        if current_reference is not None and self.pending:
            measured = self._clik_reference()
        reference = super().reference(now, current_reference, measured)
        command = self._command if now <= self._until else np.zeros(6)
        elapsed, self._now = max(now - self._now, 0.0), now
        self._wrench = self._wrench + (command - self._wrench) * -np.expm1(-elapsed / RISE)
        if np.abs(self._wrench).max() < WRENCH_TOLERANCE:
            return reference
        task = to_task_reference(self._controller.arm, reference)
        return replace(task, wrench=as_readonly(task.wrench + self._wrench))

    def _present_reference(self, now: float, current_reference: Reference) -> Reference:
        """Return the active trajectory's reference at ``now``, or the CLIK solution."""
        del current_reference
        if self._controller.clik.reachability_error > RESTART_THRESHOLD:
            return self._clik_reference()
        assert self.trajectory is not None
        return self.clock.scaled(self.trajectory.at(self.clock.at(now)))

    def _clik_reference(self) -> Reference:
        clik = self._controller.clik
        return Reference(*(as_readonly(x) for x in (clik.q, clik.v, clik.a)))


class PositionHold:
    """Remembers the last position command of a loop, at which a position-controlled arm holds.

    A position servo deviates from its command under load. Holding the measured position instead
    would let the arm sink at every restart.
    """

    def __init__(self) -> None:
        self._goal: Vector | None = None

    def note(self, command: Command) -> None:
        """Store a written command (nv,)."""
        self._goal = command.value if command.interface == "position" else None

    def reset(self) -> None:
        """Discard the last command."""
        self._goal = None

    def holding_state(self, state: State, held: Vector | None) -> State:
        """Return ``state`` with q = q_goal if |q_goal - q| <= SAG for every joint; else ``state``.

        An arm farther from its command was moved or is blocked.

        Parameters
        ----------
        state : State
            Measured state.
        held : (nv,) array [rad or m] or None
            Active position commands of the driver, if it reports them; else the last command is
            used.

        """
        goal = self._goal if held is None else held
        if goal is None or not (np.abs(goal - state.q) <= SAG).all():
            return state
        return replace(state, q=goal)
