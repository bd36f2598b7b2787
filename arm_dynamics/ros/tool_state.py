"""The way the tool went, as RViz's Path display shows it.

Where the tool is and where it should be: poses, twist, and markers for RViz.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from geometry_msgs.msg import Point, PoseStamped, TwistStamped, WrenchStamped
from nav_msgs.msg import Path
from rclpy.clock import Clock, ClockType
from rclpy.node import Node
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import Marker, MarkerArray

from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.monitors import ReachabilityMonitor
from arm_dynamics.control.trajectories.transition_blend import to_task_reference
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.state import State, TaskReference
from arm_dynamics.dynamics.kinematics import in_axes, pose, tool_position, twist
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros.conversions import header
from arm_dynamics.ros.frames import Frames
from arm_dynamics.ros.tool_messages import pose_message
from arm_dynamics.viewer.rviz import axes_length

LENGTH = 200
PERIOD = 0.1


class ToolTrace:
    """Publishes the last LENGTH tool positions, PERIOD [s] apart, while somebody listens."""

    def __init__(
        self,
        node: Node,
        arm: ArmModel,
        frames: Frames,
        state: Callable[[], State],
        stamp: Callable[[], float],
    ) -> None:
        self._arm, self._frame, self._state, self._stamp = arm, frames.base, state, stamp
        self._publisher = node.create_publisher(Path, "tool_trace", 1)
        self._poses: deque[PoseStamped] = deque(maxlen=LENGTH)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = node.create_timer(PERIOD, self._publish, clock=steady)

    def _publish(self) -> None:
        if self._publisher.get_subscription_count() == 0:
            return
        message = Path(header=header(self._frame, self._stamp()))
        pose = PoseStamped(header=message.header)
        position = pose.pose.position
        position.x, position.y, position.z = tool_position(self._arm, self._state().q).tolist()
        self._poses.append(pose)
        message.poses = list(self._poses)
        self._publisher.publish(message)


TOOL_STATE_PERIOD = 0.02
THICKNESS = 0.06
"""Of the reference's axes, as a fraction of their length."""
COLOURS = ((0.9, 0.1, 0.1), (0.1, 0.8, 0.1), (0.1, 0.3, 1.0))
MISSED = (1.0, 0.5, 0.0)


class ToolStatePublisher:
    """Publishes at 50 Hz what somebody listens to, under the stamps of the states."""

    def __init__(
        self, node: Node, frames: Frames, loop: ControlLoop, watch: ReachabilityMonitor
    ) -> None:
        self._frames, self._loop, self._watch = frames, loop, watch
        self._pose = node.create_publisher(PoseStamped, "~/current_pose", 10)
        self._twist = node.create_publisher(TwistStamped, "~/current_twist", 10)
        self._reference = node.create_publisher(PoseStamped, "~/reference_pose", 10)
        self._wrench = node.create_publisher(WrenchStamped, "~/reference_wrench", 10)
        self._markers = node.create_publisher(MarkerArray, "~/reference_markers", 10)
        self._axis = axes_length(loop.arm)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = node.create_timer(TOOL_STATE_PERIOD, self._publish, clock=steady)

    def _publish(self) -> None:
        latest = self._loop.latest
        if latest is None:
            return
        state, reference, _ = latest
        head, at = header(self._frames.base, state.time), pose(self._loop.arm, state.q)
        if self._pose.get_subscription_count():
            self._pose.publish(PoseStamped(header=head, pose=pose_message(*at)))
        if self._twist.get_subscription_count():
            self._twist.publish(self._moving(head, state))
        asked = (self._reference, self._markers, self._wrench)
        if any(publisher.get_subscription_count() for publisher in asked):
            task = to_task_reference(self._loop.arm, reference)
            self._wrench.publish(self._pushed(head, task, at[1]))
            wanted = pose_message(task.position, task.rotation)
            self._reference.publish(PoseStamped(header=head, pose=wanted))
            self._markers.publish(self._drawn(head, task, at[0]))

    def _moving(self, head: Header, state: State) -> TwistStamped:
        message = TwistStamped(header=head)
        told = twist(self._loop.arm, state.q, state.v).tolist()
        linear, angular = message.twist.linear, message.twist.angular
        linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = told
        return message

    def _pushed(self, head: Header, task: TaskReference, rotation: Vector) -> WrenchStamped:
        """The reference's wrench in the axes of the tool, where RViz draws it."""
        message = WrenchStamped(header=Header(stamp=head.stamp, frame_id=self._frames.tool))
        force, torque = message.wrench.force, message.wrench.torque
        wrench = in_axes(rotation, task.wrench).tolist()
        force.x, force.y, force.z, torque.x, torque.y, torque.z = wrench
        return message

    def _drawn(self, head: Header, task: TaskReference, tool: Vector) -> MarkerArray:
        """The reference's axes, and a line to it from a tool that can not be there."""
        axes, missed = _lines(head, 0, self._axis), _lines(head, 1, self._axis)
        axes.pose = pose_message(task.position, task.rotation)
        for i, colour in enumerate(COLOURS):
            end = [self._axis * (k == i) for k in range(3)]
            axes.points += [Point(), Point(x=end[0], y=end[1], z=end[2])]
            axes.colors += [_colour(colour)] * 2
        missed.action = Marker.ADD if self._watch.out_of_reach else Marker.DELETE
        for x, y, z in (tool.tolist(), task.position.tolist()):
            missed.points.append(Point(x=x, y=y, z=z))
            missed.colors.append(_colour(MISSED))
        return MarkerArray(markers=[axes, missed])


def _lines(head: Header, number: int, length: float) -> Marker:
    marker = Marker(header=head, ns="reference", id=number, type=Marker.LINE_LIST)
    marker.scale.x, marker.pose.orientation.w = THICKNESS * length, 1.0
    return marker


def _colour(rgb: tuple[float, float, float]) -> ColorRGBA:
    return ColorRGBA(r=rgb[0], g=rgb[1], b=rgb[2], a=1.0)
