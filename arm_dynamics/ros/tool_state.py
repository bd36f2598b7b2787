"""Pose of the tool and its reference: poses, twist, path of the last seconds, markers for RViz."""

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

PATH_CAPACITY = 200
PATH_PERIOD = 0.1


class ToolTrace:
    """Publishes the last PATH_CAPACITY tool positions every PATH_PERIOD [s], if subscribed."""

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
        self._poses: deque[PoseStamped] = deque(maxlen=PATH_CAPACITY)
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = node.create_timer(PATH_PERIOD, self._publish, clock=steady)

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


STATE_PERIOD = 0.02
THICKNESS = 0.06
"""Thickness of the reference's axes as a fraction of their length."""
COLORS = ((0.9, 0.1, 0.1), (0.1, 0.8, 0.1), (0.1, 0.3, 1.0))
ERROR_COLOR = (1.0, 0.5, 0.0)


class ToolStatePublisher:
    """Publishes subscribed topics at 50 Hz, with the stamps of the states."""

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
        self._timer = node.create_timer(STATE_PERIOD, self._publish, clock=steady)

    def _publish(self) -> None:
        latest = self._loop.latest
        if latest is None:
            return
        state, reference, _ = latest
        head, at = header(self._frames.base, state.time), pose(self._loop.arm, state.q)
        if self._pose.get_subscription_count():
            self._pose.publish(PoseStamped(header=head, pose=pose_message(*at)))
        if self._twist.get_subscription_count():
            self._twist.publish(self._twist_message(head, state))
        references = (self._reference, self._markers, self._wrench)
        if any(publisher.get_subscription_count() for publisher in references):
            task = to_task_reference(self._loop.arm, reference)
            self._wrench.publish(self._wrench_message(head, task, at[1]))
            target = pose_message(task.position, task.rotation)
            self._reference.publish(PoseStamped(header=head, pose=target))
            self._markers.publish(self._reference_markers(head, task, at[0]))

    def _twist_message(self, head: Header, state: State) -> TwistStamped:
        message = TwistStamped(header=head)
        components = twist(self._loop.arm, state.q, state.v).tolist()
        linear, angular = message.twist.linear, message.twist.angular
        linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = components
        return message

    def _wrench_message(self, head: Header, task: TaskReference, rotation: Vector) -> WrenchStamped:
        """Return the reference wrench in the axes of the tool, in which RViz draws it."""
        message = WrenchStamped(header=Header(stamp=head.stamp, frame_id=self._frames.tool))
        force, torque = message.wrench.force, message.wrench.torque
        wrench = in_axes(rotation, task.wrench).tolist()
        force.x, force.y, force.z, torque.x, torque.y, torque.z = wrench
        return message

    def _reference_markers(self, head: Header, task: TaskReference, tool: Vector) -> MarkerArray:
        """Return the reference's axes, and a line to it from the tool if it is out of reach."""
        axes, error_line = _lines(head, 0, self._axis), _lines(head, 1, self._axis)
        axes.pose = pose_message(task.position, task.rotation)
        for i, colour in enumerate(COLORS):
            end = [self._axis * (k == i) for k in range(3)]
            axes.points += [Point(), Point(x=end[0], y=end[1], z=end[2])]
            axes.colors += [_colour(colour)] * 2
        error_line.action = Marker.ADD if self._watch.out_of_reach else Marker.DELETE
        for x, y, z in (tool.tolist(), task.position.tolist()):
            error_line.points.append(Point(x=x, y=y, z=z))
            error_line.colors.append(_colour(ERROR_COLOR))
        return MarkerArray(markers=[axes, error_line])


def _lines(head: Header, number: int, length: float) -> Marker:
    marker = Marker(header=head, ns="reference", id=number, type=Marker.LINE_LIST)
    marker.scale.x, marker.pose.orientation.w = THICKNESS * length, 1.0
    return marker


def _colour(rgb: tuple[float, float, float]) -> ColorRGBA:
    return ColorRGBA(r=rgb[0], g=rgb[1], b=rgb[2], a=1.0)
