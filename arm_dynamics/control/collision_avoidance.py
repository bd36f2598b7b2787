"""Collisions in a control loop: rejected trajectories, and a stop before a contact."""

from __future__ import annotations

from threading import Lock

import numpy as np

from arm_dynamics.collision.clearance_monitor import CLEARANCE, ClearanceMonitor, Contact
from arm_dynamics.collision.scene import EMPTY_SCENE, Scene
from arm_dynamics.control.trajectories.trajectory import Trajectory, default_deceleration
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import CollisionRejected
from arm_dynamics.core.state import State, TaskReference
from arm_dynamics.model.arm_model import ArmModel

REACTION_TIME = 0.03
"""Time [s] from a measurement to the braking of the joints."""
HARD_STOP = 2.0
"""Deceleration of a stop before a contact over the default of the arm."""
PLANNED = 1.2
"""Clearance of trajectories over the one at which the arm is stopped."""
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
        self.scene = scene
        self._cycle = ClearanceMonitor(arm, clearance, scene)
        self._motion = ClearanceMonitor(arm, PLANNED * clearance, scene)
        self._lock = Lock()  # of ``_motion``: trajectories arrive in other threads than the loop's
        self.deceleration: Vector = HARD_STOP * default_deceleration(arm)
        """Deceleration (nv,) [rad/s² or m/s²] of a stop before a contact."""

    def contact_ahead(self, state: State) -> Contact | None:
        """Return a contact where the arm would rest if it stopped now, or None.

        q_rest = q + v (T + |v| / 2 a), with the reaction time T and the deceleration a.
        """
        v, moves = state.v, self.deceleration > 0  # a joint with velocity limit 0 does not move
        braking = np.divide(np.abs(v), 2 * self.deceleration, out=np.zeros_like(v), where=moves)
        return self._cycle.stop_contact(state.q, state.q + v * (REACTION_TIME + braking))

    def check(self, trajectory: Trajectory, now: float) -> None:
        """Raise CollisionRejected if a joint trajectory leads to a contact from ``now`` [s] on.

        A Cartesian trajectory passes: its joint motion is that of the controller.
        """
        end = trajectory.end
        samples = [trajectory.at(time) for time in np.linspace(now, end, SPEED_SAMPLES).tolist()]
        if isinstance(samples[-1], TaskReference):
            return
        speed = SPEED_RATIO * np.abs([sample.v for sample in samples]).max(axis=0)
        with self._lock:
            found = self._motion.first_contact(lambda time: trajectory.at(time).q, now, end, speed)
        if found is not None:
            time, contact = found
            raise CollisionRejected(
                f"trajectory: {contact}, at {time:.3f} s, {time - now:.3f} s from now"
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
