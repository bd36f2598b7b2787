"""An arm that follows positions from another source: slow approach, then the joints' limits."""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.trajectories.target_trajectory import TargetTrajectory
from arm_dynamics.core.arrays import BoolArray, Vector, as_readonly, check_float
from arm_dynamics.core.errors import CollisionRejected
from arm_dynamics.model.whole_turns import whole_turns

APPROACHED = 0.02
"""Distance from the reference [rad or m] below which the approach of a joint has ended."""
MAX_INTERVAL = 0.1
"""Maximum expected time between two targets [s]."""
RELEASE_TIME = 1.0
"""Time [s] in which the velocity limit of a joint rises to its full value after the approach."""


class TargetFollower:
    """Targets of a control loop; the reference moves to each within the limits of the joints.

    The first target, and the first one after a restart of the loop or of the follower, is
    approached with ``approach_speed``. Then the velocity limits rise to those of the joints within
    RELEASE_TIME. After the last target the arm holds. A target that leads to a self-collision is
    not followed, and the event ``trajectory_rejected`` names the links.

    Parameters
    ----------
    loop : ControlLoop
        Control loop of the arm.
    approach_speed : float or (nv,) array
        Velocity [rad/s or m/s] of the approach.

    Raises
    ------
    InvalidValue
        For a speed that is not positive.

    """

    def __init__(self, loop: ControlLoop, approach_speed: ArrayLike) -> None:
        self.loop = loop
        speeds = np.broadcast_to(approach_speed, loop.arm.nv).tolist()
        self.approach_speed = as_readonly(
            [check_float("approach speed [rad/s]", speed, above=0) for speed in speeds]
        )
        self._last = -inf
        self.restart()

    def restart(self) -> None:
        """Approach the next target."""
        self._restarts = -1
        self.approached: BoolArray = np.zeros(self.loop.arm.nv, bool)
        """Joints (nv,) whose approach has ended."""
        self._speed: Vector = self.approach_speed

    def follow(self, target: Vector, now: float) -> None:
        """Move to a target (nv,) [rad or m] of the time ``now`` [s].

        Raises TrajectoryRejected before the first state, and while the arm executes no commands.
        """
        reference = self.loop.present()[1]
        interval, self._last = min(now - self._last, MAX_INTERVAL), now
        if self.loop.restart_count != self._restarts:
            self.restart()
            self._restarts = self.loop.restart_count
        arm = self.loop.arm
        self.approached |= np.abs(target - reference.q) < APPROACHED
        released = self._speed + arm.velocity_limit * (interval / RELEASE_TIME)
        self._speed = np.where(self.approached, released, self.approach_speed)
        collision = ""
        try:
            self._go(target, interval, self._speed)
        except CollisionRejected as error:
            collision = str(error)
        self.loop.events.report_lasting("trajectory_rejected", collision)

    def move(self, target: Vector, speed: float | None = None) -> None:
        """Move to a target (nv,) [rad or m] with ``speed`` [rad/s or m/s], and rest there.

        Raises TrajectoryRejected as ``follow``.
        """
        self.restart()
        speeds = self.approach_speed if speed is None else np.full(target.size, speed)
        self._go(target, 0.0, speeds)

    def _go(self, target: Vector, interval: float, max_speed: Vector) -> None:
        arm, reference = self.loop.arm, self.loop.present()[1]
        target = as_readonly(target + whole_turns(arm, target, reference.q))
        self.loop.follow(TargetTrajectory.of(arm, target, interval, max_speed))
