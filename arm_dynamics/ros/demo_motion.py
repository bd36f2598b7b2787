"""Demo motion: slow moves of an arm around its initial configuration, and their remote control."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from rclpy.node import Node
from std_msgs.msg import Bool
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from arm_dynamics.control.trajectories.demo_trajectory import demo_trajectory
from arm_dynamics.control.trajectories.joint_trajectory import Waypoint
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros import qos
from arm_dynamics.ros.conversions import to_double_array
from arm_dynamics.ros.diagnostics import Throttle
from arm_dynamics.ros.remote import Remote
from arm_dynamics.ros.serialization import listen

TOPIC = "joint_controller/joint_trajectory"
TRACKING = "joint_controller/tracking"
INTERRUPTED = (
    "control_restarted",
    "trajectory_rejected",
    "path_tolerance_violated",
    "goal_tolerance_violated",
)
"""Events of the controller that end the current trajectory early."""

STOP_TIME = 0.5
"""Time [s] in which the arm comes to rest when the demo motion is stopped."""


class DemoMotion:
    """Sends trajectories to ``joint_controller``, each from the current reference.

    ``~/demo`` starts and stops the motion; the latched ``~/demo_running`` reports its state.
    """

    def __init__(self, node: Node, arm: ArmModel, *, running: bool) -> None:
        self._node, self._arm = node, arm
        self._reference: Vector | None = None
        self._velocity = np.zeros(arm.nv)
        self._next, self._interrupted = 0.0, tuple(0.0 for _ in INTERRUPTED)
        self._publisher = node.create_publisher(JointTrajectory, TOPIC, 1)
        self._tracking: Any = None
        self._state = node.create_publisher(Bool, "~/demo_running", qos.LATCHED)
        self._service = node.create_service(SetBool, "~/demo", self._on_request)
        self.running = False
        self._run(running)

    def _run(self, running: bool) -> None:
        if running and self._tracking is None:
            reject = partial(Throttle(self._node.get_logger()).warn, TRACKING)
            take = self._note
            self._tracking = listen(self._node, JointTrajectory, TRACKING, take, qos.VIEW, reject)
        if self.running and not running and self._reference is not None:
            end = stop_waypoint(self._arm, self._reference, self._velocity)
            self._publisher.publish(message(self._arm.joint_names, [end]))
        self.running, self._next = running, 0.0
        self._state.publish(Bool(data=running))

    def _on_request(self, request: SetBool.Request, response: SetBool.Response) -> SetBool.Response:
        if request.data != self.running:
            self._run(request.data)
        response.success = True
        response.message = "demo running" if self.running else "demo stopped"
        return response

    def continue_motion(self, simulated: float, *interrupted: float) -> None:
        """Send a trajectory if the last one has ended at ``simulated`` [s] or was interrupted.

        ``interrupted``: counts of the events INTERRUPTED.
        """
        if not self.running:
            return
        if interrupted != self._interrupted:
            self._interrupted, self._next = interrupted, simulated
            return  # the known reference may be outdated
        if simulated < self._next or self._reference is None:
            return
        points = demo_trajectory(self._arm, self._reference)
        self._publisher.publish(message(self._arm.joint_names, points))
        self._next = simulated + points[-1].time

    def _note(self, tracking: JointTrajectory) -> None:
        reference = tracking.points[0].positions if tracking.points else []
        if len(reference) == self._arm.nv:
            self._reference = as_readonly(reference)
            self._velocity = np.array(tracking.points[0].velocities or np.zeros(self._arm.nv))


def stop_waypoint(arm: ArmModel, q: Vector, v: Vector) -> Waypoint:
    """Return the stop of joints from ``q`` with velocity ``v`` (nv,) within their limits."""
    inside = np.clip(q + STOP_TIME / 3 * v, arm.lower, arm.upper)
    return Waypoint(STOP_TIME, as_readonly(inside), as_readonly(np.zeros(q.size)))


def message(names: Sequence[str], points: Sequence[Waypoint]) -> JointTrajectory:
    """Return waypoints with velocities, and accelerations if any, that start on reception."""
    trajectory = JointTrajectory(joint_names=list(names))
    for waypoint in points:
        assert waypoint.v is not None
        point = JointTrajectoryPoint(
            positions=to_double_array(waypoint.q), velocities=to_double_array(waypoint.v)
        )
        if waypoint.a is not None:
            point.accelerations = to_double_array(waypoint.a)
        seconds = round(waypoint.time * 1e9)
        point.time_from_start.sec, point.time_from_start.nanosec = divmod(seconds, 10**9)
        trajectory.points.append(point)
    return trajectory


class RemoteDemo:
    """Remote control of the demo motion of ``arm-dynamics sim``, if this run has one."""

    def __init__(self, node: Node) -> None:
        self.running: bool | None = None
        """Whether the motion runs; None without one."""
        self._remote = Remote(node, SetBool, "sim/demo")
        self._end_request: Any = None
        listen(node, Bool, "sim/demo_running", self._note, qos.LATCHED, lambda _: None)

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

    def _note(self, message: Bool) -> None:
        self.running = message.data
