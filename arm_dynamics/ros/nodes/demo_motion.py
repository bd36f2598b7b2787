"""Demo motion: slow moves of an arm around its initial configuration, and their remote control."""

from __future__ import annotations

from typing import Any

from rclpy.node import Node
from std_msgs.msg import Bool
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

from arm_dynamics.control.trajectories.demo_trajectory import demo_trajectory
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros.messages import qos
from arm_dynamics.ros.messages.serialization import listen
from arm_dynamics.ros.topics.controller_clients import (
    INTERRUPTED,
    TRAJECTORY,
    TrackingSubscription,
    stop_waypoint,
    trajectory_message,
)
from arm_dynamics.ros.topics.services import Remote, serve


class DemoMotion:
    """Sends trajectories to ``joint_controller``, each from the current reference.

    ``~/demo`` starts and stops the motion; the latched ``~/demo_running`` reports its state.
    """

    def __init__(self, node: Node, arm: ArmModel, *, running: bool) -> None:
        self._node, self._arm = node, arm
        self._tracking: TrackingSubscription | None = None
        self._next, self._interrupted = 0.0, tuple(0.0 for _ in INTERRUPTED)
        self._publisher = node.create_publisher(JointTrajectory, TRAJECTORY, 1)
        self._state = node.create_publisher(Bool, "~/demo_running", qos.LATCHED)
        self.running = not running  # set_running publishes a change
        self.set_running(running)
        serve(node, SetBool, "~/demo", lambda request: self.set_running(request.data))

    def set_running(self, running: bool) -> str:
        """Start or stop the motion; return its state as text."""
        if running != self.running:
            tracked = self._tracking and self._tracking.newest
            if running and self._tracking is None:
                self._tracking = TrackingSubscription(self._node, self._arm)
            elif not running and tracked:
                end = stop_waypoint(self._arm, tracked.reference, tracked.velocity)
                self._publisher.publish(trajectory_message(self._arm.joint_names, [end]))
            self.running, self._next = running, 0.0
            self._state.publish(Bool(data=running))
        return "demo running" if running else "demo stopped"

    def continue_motion(self, simulated: float, *interrupted: float) -> None:
        """Send a trajectory if the last one has ended at ``simulated`` [s] or was interrupted.

        ``interrupted``: counts of the events INTERRUPTED.
        """
        tracked = self._tracking and self._tracking.newest
        if not self.running:
            return
        if interrupted != self._interrupted:
            self._interrupted, self._next = interrupted, simulated
            return  # the known reference may be outdated
        if simulated < self._next or not tracked:
            return
        points = demo_trajectory(self._arm, tracked.reference)
        self._publisher.publish(trajectory_message(self._arm.joint_names, points))
        self._next = simulated + points[-1].time


class RemoteDemo:
    """Remote control of the demo motion of ``arm-dynamics sim``, if this run has one."""

    def __init__(self, node: Node) -> None:
        self.running: bool | None = None
        """Whether the motion runs; None without one."""
        self._remote = Remote(node, SetBool, "sim/demo")
        self._end_request: Any = None

        def take(message: Bool) -> None:
            self.running = message.data

        listen(node, Bool, "sim/demo_running", take, qos.LATCHED, lambda _: None)

    def set(self, running: bool) -> str:
        """Start or stop the motion; return the response."""
        return self._remote.do(SetBool.Request(data=running))

    def end(self) -> bool:
        """Request its end; return whether it has ended. Does not wait: call it repeatedly.

        Before its state is received it counts as running if its service exists.
        """
        if not (self._remote.ready if self.running is None else self.running):
            self._end_request = None
            return True
        if self._end_request is None or self._end_request.done():
            self._end_request = self._remote.call_async(SetBool.Request(data=False))
        return False
