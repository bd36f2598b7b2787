"""A slow walk of an arm around its initial pose, for something to look at."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from rclpy.node import Node
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from arm_dynamics.arrays import Vector, frozen
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros import qos
from arm_dynamics.ros.conversions import doubles
from arm_dynamics.ros.listen import listen
from arm_dynamics.ros.throttle import Throttle
from arm_dynamics.trajectories.joint_trajectory import Waypoint
from arm_dynamics.walk import walk

TRACKING = "joint_controller/tracking"
INTERRUPTED = ("took_over", "trajectory_refused")
"""Events of the controller after which the round that was sent is not followed to its end."""


class Tour:
    """Sends one round after the other to ``joint_controller``, each from where the arm is led."""

    def __init__(self, node: Node, arm: ArmModel) -> None:
        self._arm = arm
        self._reference: Vector | None = None
        self._next, self._interrupted = 0.0, tuple(0.0 for _ in INTERRUPTED)
        self._publisher = node.create_publisher(
            JointTrajectory, "joint_controller/joint_trajectory", 1
        )
        refuse = partial(Throttle(node.get_logger()).warn, TRACKING)
        listen(node, JointTrajectory, TRACKING, self._note, qos.VIEW, refuse)

    def go_on(self, simulated: float, *interrupted: float) -> None:
        """Send a round when the last one is over at ``simulated`` time [s], or was interrupted.

        ``interrupted``: how often each event of INTERRUPTED occurred.
        """
        if interrupted != self._interrupted:
            self._interrupted, self._next = interrupted, simulated
            return  # the reference that is known may be the one before
        if simulated < self._next or self._reference is None:
            return
        points = walk(self._arm, self._reference)
        self._publisher.publish(message(self._arm.joint_names, points))
        self._next = simulated + points[-1].time

    def _note(self, tracking: JointTrajectory) -> None:
        reference = tracking.points[0].positions if tracking.points else []
        if len(reference) == self._arm.nv:
            self._reference = frozen(reference)


def message(names: Sequence[str], points: Sequence[Waypoint]) -> JointTrajectory:
    """Waypoints with velocities as ROS has them, to begin on arrival."""
    found = JointTrajectory(joint_names=list(names))
    for waypoint in points:
        assert waypoint.v is not None
        point = JointTrajectoryPoint(positions=doubles(waypoint.q), velocities=doubles(waypoint.v))
        seconds = round(waypoint.time * 1e9)
        point.time_from_start.sec, point.time_from_start.nanosec = divmod(seconds, 10**9)
        found.points.append(point)
    return found
