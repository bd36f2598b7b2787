"""Topics of task_space_controller: targets of the tool in, its pose and reference out."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from geometry_msgs.msg import Point, PoseStamped, TwistStamped, WrenchStamped
from nav_msgs.msg import Path
from rclpy.node import Node
from std_msgs.msg import ColorRGBA, Header
from trajectory_msgs.msg import MultiDOFJointTrajectory
from visualization_msgs.msg import Marker, MarkerArray

from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
from arm_dynamics.control.monitors import ReachabilityMonitor
from arm_dynamics.control.reference_generator import RESTART_THRESHOLD, CartesianReferenceGenerator
from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
from arm_dynamics.control.trajectories.effort_check import check_path, check_wrench
from arm_dynamics.control.trajectories.online_trajectory import (
    CartesianTarget,
    OnlineCartesianTrajectory,
    TargetPose,
    TargetTwist,
)
from arm_dynamics.control.trajectories.tool_splines import spline_through, timed_spline
from arm_dynamics.control.trajectories.transition_blend import to_task_reference
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import TrajectoryRejected
from arm_dynamics.core.loop_requests import BackgroundTask, Pause
from arm_dynamics.core.state import Reference, TaskReference
from arm_dynamics.dynamics.kinematics.frames import in_axes, pose, twist
from arm_dynamics.ros.messages import conversions, qos
from arm_dynamics.ros.messages.conversions import Frames, header, pose_message
from arm_dynamics.ros.messages.serialization import listen
from arm_dynamics.ros.parameters.controller_parameters import ToolMotionParameters
from arm_dynamics.ros.topics.pacing import wall_timer
from arm_dynamics.ros.topics.publisher_checks import publishers
from arm_dynamics.viewer.rviz import axes_length

ATTEMPTS = 3
"""Maximum number of feasibility checks of a path while the tool moves."""


class ToolTopics:
    """Passes feasible targets to the loop; a rejection is an event, and the old motion continues.

    Paths and timed trajectories are checked in a background thread. A pose or twist received during
    the check replaces them. Messages of a topic with several publishers are ignored, because
    commands from several sources conflict.
    """

    def __init__(
        self,
        node: Node,
        frames: Frames,
        loop: ControlLoop,
        controller: TaskSpaceController,
        motion: ToolMotionParameters,
    ) -> None:
        self._node, self._frames = node, frames
        self._loop, self._controller, self._motion = loop, controller, motion
        self._following = CartesianReferenceGenerator(controller)
        loop.reference_generator = self._following
        effort = controller.interface == "effort"
        self._limit = loop.arm.effort_limit if effort else np.full(loop.arm.nv, np.inf)
        self._task = BackgroundTask(self._reject)
        # A display must not subscribe to ~/target_pose: `ros2 topic pub --once` waits for only one
        # subscriber.
        self._target = node.create_publisher(PoseStamped, "~/current_target", qos.LATCHED)
        self._subscribe(PoseStamped, "target_pose", self.take_pose)
        self._subscribe(TwistStamped, "target_twist", self.take_twist)
        self._subscribe(WrenchStamped, "target_wrench", self.take_wrench)
        self._subscribe(Path, "path", self.take_path)
        self._subscribe(MultiDOFJointTrajectory, "trajectory", self.take_trajectory)

    def _subscribe(self, kind: type, topic: str, take: Callable[[Any], None]) -> None:
        def take_of_one_publisher(message: Any) -> None:
            if subscription.get_publisher_count() > 1:
                names = sorted(publishers(self._node, subscription.topic_name).values())
                self._loop.events.report(
                    "target_ignored",
                    f"{subscription.topic_name}: publishers = {', '.join(names)}; expected one",
                )
            else:
                take(message)

        reject = partial(self._reject, topic)
        subscription: Any = listen(
            self._node, kind, f"~/{topic}", take_of_one_publisher, qos.STREAM, reject
        )

    def _reject(self, topic: str, reason: object) -> None:
        self._loop.events.report("target_rejected", f"~/{topic}: {reason}")

    def end(self) -> None:
        """Cancel the current check."""
        self._task.cancel()

    def take_pose(self, message: PoseStamped) -> None:
        """Move the tool to the pose."""
        position, rotation = conversions.read_pose(self._frames, message)
        self._move_to(TargetPose.of(self._loop.arm, position, rotation, self._motion.limits))
        self._target.publish(message)

    def take_twist(self, message: TwistStamped) -> None:
        """Move the tool with the twist until it expires."""
        twist, motion = conversions.read_twist(self._frames, message), self._motion
        self._move_to(TargetTwist.of(self._loop.arm, twist, motion.timeout, motion.limits))

    def take_wrench(self, message: WrenchStamped) -> None:
        """Apply the wrench at the tool until it expires."""
        wrench = conversions.read_wrench(self._frames, message)
        now, reference = self._latest_reference()
        check_wrench(self._loop.arm, reference.q, wrench)
        self._following.set_wrench(wrench, now + self._motion.timeout)

    def take_path(self, message: Path) -> None:
        """Move the tool along the path, if it is feasible."""
        poses, limits = conversions.read_path(self._frames, message), self._motion.limits
        self._latest_reference()
        self._follow_if_feasible("path", lambda: spline_through(self._rest(), poses, limits), None)

    def take_trajectory(self, message: MultiDOFJointTrajectory) -> None:
        """Move the tool through the poses at their times, if it is feasible."""
        times, poses, twists, start = conversions.read_timed_poses(self._frames, message)
        self._latest_reference()

        def build() -> CartesianTrajectory:
            return timed_spline(self._rest(start), times, poses, twists)

        self._follow_if_feasible("trajectory", build, start)

    def _move_to(self, goal: CartesianTarget) -> None:
        """Start in the next control cycle; unreachable targets are not rejected."""
        trajectory = OnlineCartesianTrajectory.toward(
            self._loop.arm, goal, *self._latest_reference()
        )
        self._task.run_now(lambda: self._following.queue(trajectory))

    def _rest(self, start: float | None = None) -> CartesianTrajectory:
        """Return the current reference configuration as a trajectory at rest."""
        now, _ = self._latest_reference()
        return CartesianTrajectory.from_configuration(
            self._loop.arm, self._controller.clik.q, start or now
        )

    def _follow_if_feasible(
        self, topic: str, build: Callable[[], CartesianTrajectory], start: float | None
    ) -> None:
        """Follow a trajectory if it is feasible; without a start time, after the check."""

        def work(pause: Pause) -> Callable[[], None]:
            feasible = self._feasible(build, pause)
            return lambda: self._loop.follow(
                feasible
                if start is not None
                else replace(feasible, start_time=self._latest_reference()[0])
            )

        self._task.start(topic, work)

    def _feasible(
        self, build: Callable[[], CartesianTrajectory], pause: Pause
    ) -> CartesianTrajectory:
        """Return a feasible trajectory from the reference at the end of its check."""
        for _ in range(ATTEMPTS):
            trajectory = build()
            blended = trajectory.starting_from(
                self._latest_reference()[0], Reference.hold(trajectory.posture)
            )
            avoidance = self._loop.collision_avoidance
            contacts = None if avoidance is None else avoidance.check_samples
            feasible = check_path(self._controller.arm, blended, self._limit, pause, contacts)
            if math.dist(self._rest().position, trajectory.position) <= RESTART_THRESHOLD:
                return replace(feasible, entry=None)  # the loop computes the blend
        raise TrajectoryRejected(
            "path rejected: the tool moved during the feasibility check; send the path when the"
            " tool is at rest"
        )

    def _latest_reference(self) -> tuple[float, Reference]:
        """Return time and reference of the latest control cycle."""
        latest = self._loop.latest
        if latest is not None:
            self._loop.require_active()
        else:
            raise TrajectoryRejected("received states = 0; expected at least 1 before a target")
        return latest[0].time, latest[1]


STATE_PERIOD = 0.02
"""Time [s] between two messages of the tool's state."""
THICKNESS = 0.06
"""Thickness of the reference's axes as a fraction of their length."""
COLORS = ((0.9, 0.1, 0.1), (0.1, 0.8, 0.1), (0.1, 0.3, 1.0))
ERROR_COLOR = (1.0, 0.5, 0.0)


class ToolStatePublisher:
    """Publishes subscribed topics at 50 Hz, with the stamps of the states."""

    def __init__(
        self, node: Node, frames: Frames, loop: ControlLoop, reachability: ReachabilityMonitor
    ) -> None:
        self._frames, self._loop, self._reachability = frames, loop, reachability
        self._pose = node.create_publisher(PoseStamped, "~/current_pose", 10)
        self._twist = node.create_publisher(TwistStamped, "~/current_twist", 10)
        self._reference = node.create_publisher(PoseStamped, "~/reference_pose", 10)
        self._wrench = node.create_publisher(WrenchStamped, "~/reference_wrench", 10)
        self._markers = node.create_publisher(MarkerArray, "~/reference_markers", 10)
        self._axis = axes_length(loop.arm)
        self._timer = wall_timer(node, STATE_PERIOD, self.publish)

    def publish(self) -> None:
        """Publish the last control cycle on the subscribed topics."""
        latest = self._loop.latest
        if latest is None:
            return
        state, reference, _ = latest
        head, tool_pose = header(self._frames.base, state.time), pose(self._loop.arm, state.q)
        if self._pose.get_subscription_count():
            self._pose.publish(PoseStamped(header=head, pose=pose_message(*tool_pose)))
        if self._twist.get_subscription_count():
            message = TwistStamped(header=head)
            components = twist(self._loop.arm, state.q, state.v).tolist()
            linear, angular = message.twist.linear, message.twist.angular
            linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = components
            self._twist.publish(message)
        references = (self._reference, self._markers, self._wrench)
        if any(publisher.get_subscription_count() for publisher in references):
            task = to_task_reference(self._loop.arm, reference)
            # In the axes of the tool, in which RViz draws it.
            applied = WrenchStamped(header=Header(stamp=head.stamp, frame_id=self._frames.tool))
            force, torque = applied.wrench.force, applied.wrench.torque
            wrench = in_axes(tool_pose[1], task.wrench).tolist()
            force.x, force.y, force.z, torque.x, torque.y, torque.z = wrench
            self._wrench.publish(applied)
            target = pose_message(task.position, task.rotation)
            self._reference.publish(PoseStamped(header=head, pose=target))
            self._markers.publish(self._reference_markers(head, task, tool_pose[0]))

    def _reference_markers(self, head: Header, task: TaskReference, tool: Vector) -> MarkerArray:
        """Return the reference's axes, and a line to it from the tool if it is out of reach."""
        axes, error_line = _lines(head, 0, self._axis), _lines(head, 1, self._axis)
        axes.pose = pose_message(task.position, task.rotation)
        for i, color in enumerate(COLORS):
            end = [self._axis * (k == i) for k in range(3)]
            axes.points += [Point(), Point(x=end[0], y=end[1], z=end[2])]
            axes.colors += [_color(color)] * 2
        error_line.action = Marker.ADD if self._reachability.out_of_reach else Marker.DELETE
        for x, y, z in (tool.tolist(), task.position.tolist()):
            error_line.points.append(Point(x=x, y=y, z=z))
            error_line.colors.append(_color(ERROR_COLOR))
        return MarkerArray(markers=[axes, error_line])


def _lines(head: Header, number: int, length: float) -> Marker:
    marker = Marker(header=head, ns="reference", id=number, type=Marker.LINE_LIST)
    marker.scale.x, marker.pose.orientation.w = THICKNESS * length, 1.0
    return marker


def _color(rgb: tuple[float, float, float]) -> ColorRGBA:
    return ColorRGBA(r=rgb[0], g=rgb[1], b=rgb[2], a=1.0)
