"""Collisions in a control loop: rejected trajectories, and a stop before a contact."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock

import numpy as np

from arm_dynamics.collision.clearance_monitor import CLEARANCE, ClearanceMonitor
from arm_dynamics.collision.scene import EMPTY_SCENE, Scene
from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
from arm_dynamics.control.trajectories.feasibility import solve_feasible
from arm_dynamics.control.trajectories.trajectory import Trajectory
from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.core.errors import CollisionRejected
from arm_dynamics.core.state import TaskReference
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.safety.braking import BrakingMonitor

REACTION_TIME = 0.03
"""Time [s] from a measurement to the braking of the joints."""
STOPPED, PLANNED = 1.1, 1.2
"""Clearances at which the arm is stopped, and of trajectories, over the smallest distance. Between
two cycles a distance decreases further by some 0.1 mm."""
SPEED_SAMPLES = 33
"""Samples of a trajectory that find its largest speeds."""
SPEED_RATIO = 1.3
"""Largest speed between these samples, over the largest one at them."""

UNCHECKED = "self_collision = false: links of the arm may touch each other and objects"
"""Warning at the start of a loop that does not check collisions."""


class CollisionAvoidance:
    """Checks trajectories before they start and the arm's path to rest in every cycle.

    Parameters
    ----------
    arm : ArmModel
        The driver's arm.
    clearance : float
        Smallest distance [m] of two links, and of a link and an object.
    scene : Scene
        Objects around the arm.

    """

    def __init__(
        self, arm: ArmModel, clearance: float = CLEARANCE, scene: Scene = EMPTY_SCENE
    ) -> None:
        self._arm, self.scene = arm, scene
        self.braking = BrakingMonitor(arm, STOPPED * clearance, scene, reaction_time=REACTION_TIME)
        """Finds contacts ahead, in every cycle."""
        self._motion = ClearanceMonitor(arm, PLANNED * clearance, scene)
        self._lock = Lock()  # of ``_motion``: trajectories arrive in other threads than the loop's

    def check(self, trajectory: Trajectory, now: float) -> None:
        """Raise CollisionRejected if a trajectory leads to a contact from ``now`` [s] on.

        A Cartesian one is checked along its inverse kinematics, unless it was checked before or is
        computed while the arm moves.
        """
        end = trajectory.end
        samples = [trajectory.at(time) for time in np.linspace(now, end, SPEED_SAMPLES).tolist()]
        if isinstance(samples[-1], TaskReference):
            if isinstance(trajectory, CartesianTrajectory) and not trajectory.allow_unreachable:
                report = solve_feasible(self._arm, trajectory, trajectory.weights)
                self.check_samples(report.times, report.q)
            return
        speed = SPEED_RATIO * np.abs([sample.v for sample in samples]).max(axis=0)
        self._check(lambda time: trajectory.at(time).q, now, end, speed)

    def check_samples(self, times: Vector, q: Matrix) -> None:
        """Raise CollisionRejected for a contact between samples ``q`` (n, nv) at ``times`` [s]."""
        speed = np.abs(np.diff(q, axis=0) / np.diff(times)[:, None]).max(axis=0, initial=0.0)

        def position(time: float) -> Vector:
            k = min(max(int(np.searchsorted(times, time)), 1), len(times) - 1)
            s = (time - times[k - 1]) / (times[k] - times[k - 1])
            between: Vector = q[k - 1] + s * (q[k] - q[k - 1])
            return between

        if len(times) > 1:
            self._check(position, float(times[0]), float(times[-1]), speed)

    def _check(
        self, position: Callable[[float], Vector], begin: float, end: float, speed: Vector
    ) -> None:
        with self._lock:
            found = self._motion.first_contact(position, begin, end, speed)
        if found is not None:
            time, contact = found
            raise CollisionRejected(
                f"trajectory: {contact}, at {time:.3f} s, {time - begin:.3f} s from now"
            )

    def check_step(self, q: Vector, target: Vector) -> None:
        """Raise CollisionRejected if the straight path from ``q`` to ``target`` has a contact."""
        motion = target - q
        with self._lock:
            found = self._motion.first_contact(
                lambda s: q + s * motion, 0.0, 1.0, np.abs(motion), steps=(0.01, 1.0)
            )
        if found is not None:
            raise CollisionRejected(f"reference: {found[1]}")
