"""Node rviz_controls: interactive markers in RViz set targets of the controller."""

from __future__ import annotations

import sys
import time
from collections import deque
from functools import partial

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from std_msgs.msg import Header
from std_srvs.srv import Trigger
from visualization_msgs.msg import InteractiveMarkerFeedback as Event

from arm_dynamics.control.joint_motions import JointTargets
from arm_dynamics.core.arrays import as_readonly
from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.core.signals import ShutdownFlag
from arm_dynamics.core.status_summary import ARMS, STOPPED
from arm_dynamics.ros.messages import qos
from arm_dynamics.ros.messages.conversions import Placed, read_pose
from arm_dynamics.ros.messages.serialization import listen
from arm_dynamics.ros.nodes import markers
from arm_dynamics.ros.nodes.demo_motion import RemoteDemo
from arm_dynamics.ros.nodes.markers import MarkerServer, Scene
from arm_dynamics.ros.parameters.arm_parameters import declared_model
from arm_dynamics.ros.parameters.ros_parameters import declare_live
from arm_dynamics.ros.runtime.process import run_node
from arm_dynamics.ros.topics.controller_clients import (
    TASK_SPACE,
    TRACKING,
    ToolTargets,
    TrackingSubscription,
    TrajectoryPublisher,
)
from arm_dynamics.ros.topics.diagnostics import DiagnosticsSummary, Throttle
from arm_dynamics.ros.topics.emergency_stop_interface import StopRequest
from arm_dynamics.ros.topics.frames import declare_frames
from arm_dynamics.ros.topics.services import Remote
from arm_dynamics.viewer.drag import DragTarget
from arm_dynamics.viewer.rviz import link_length
from arm_dynamics.viewer.scene_stage import arm_reach

PERIOD = 1 / 20
DRAG_TIMEOUT = 2.0
"""Time [s] without feedback after which a drag ends: RViz repeats feedback at 10 Hz."""
REFERENCE_TIMEOUT = 2.0
"""Time [s] after which a controller's reference is stale."""
RELEASE = "move_on_release"
MENU = (
    "Move to the target",
    "Target back to the arm",
    "Stop the motion",
    "Emergency stop",
    "Reset the emergency stop",
)
"""Entries of every marker's menu; their numbers start at 1."""
SIZES = (0.7, 0.2), (1.2, 0.3)
"""Sizes of the markers of joints and of the tool, at most these fractions of the mean link length
and of the reach radius."""
MESSAGE_TIME = 6.0
"""Time [s] for which a rejected action is shown."""
NODES = ("simulator", "hardware", "joint_controller", "task_space_controller")
"""Nodes whose status is shown if it is not OK."""


class ActionMessages:
    """Results of actions in the log, rejections also in the scene."""

    def __init__(self, node: Node) -> None:
        self._log, self._text, self._until = node.get_logger(), "", 0.0

    @property
    def text(self) -> str:
        """Rejection of the last MESSAGE_TIME; "" without one."""
        return self._text if time.monotonic() < self._until else ""

    def done(self, text: str) -> None:
        """Report a completed action."""
        self._log.info(text)

    def rejected(self, reason: object) -> None:
        """Report a rejected action."""
        self._log.warn(f"rejected: {reason}")
        self._text, self._until = f"rejected: {reason}", time.monotonic() + MESSAGE_TIME

    def note(self, text: str) -> None:
        """Report anything else, such as the progress of an action."""
        self._log.info(text)


def status_text(status: DiagnosticsSummary) -> tuple[str, bool]:
    """Return the messages of nodes that are not OK, and whether an emergency stop is engaged."""
    if status.stopped:
        return f"EMERGENCY STOP: {status.emergency.removeprefix(STOPPED).strip()}", True
    troubles = [
        f"{name}: {status.messages[name]}"
        for name in NODES
        if name in status.messages and not status.ok[name]
    ]
    return "; ".join(troubles), False


def _size(fractions: tuple[float, float], lengths: tuple[float, float]) -> float:
    """Return the size of a marker [m]."""
    return min(fraction * length for fraction, length in zip(fractions, lengths, strict=True))


class RvizControlsNode(Node):
    """Markers at the tool and at every joint, for the controller that moves the arm.

    The arm moves after the mouse button is released, or by the menu's first entry if the parameter
    ``move_on_release`` is false. During an emergency stop the markers cannot be dragged.
    """

    def __init__(self) -> None:
        super().__init__("rviz_controls")
        self._arm = declared_model(self)
        self._frames = declare_frames(self, self._arm)
        declare_live(
            self, RELEASE, True, "move when the mouse button is released; false: by the menu"
        )
        self._header = Header(frame_id=self._frames.base)
        self._status = DiagnosticsSummary(self.get_namespace())
        self._messages = ActionMessages(self)
        self._tracking = TrackingSubscription(self, self._arm)
        self._tool_reference: tuple[Placed, float] | None = None
        """Reference of the task-space controller, and the time of its reception [s]."""
        self._events: deque[Event] = deque(maxlen=1000)
        self._target = DragTarget(self._arm)
        self._dragging, self._pending, self._last_event = False, False, 0.0
        reach = arm_reach(self._arm)
        self._scene = Scene(self, self._arm, self._header, reach)
        lengths = link_length(self._arm), reach.radius
        self._joint_size, self._tool_size = (_size(fractions, lengths) for fractions in SIZES)
        self._offered = ""
        self._emergency = StopRequest(self, self._status)
        services = [f"{name}/reset_emergency_stop" for name in ARMS]
        self._resets = [Remote(self, Trigger, service) for service in services]
        clear = RemoteDemo(self).end
        self._joints = JointTargets(
            TrajectoryPublisher(self, self._arm), self._arm, self._status, clear, self._messages
        )
        self._tool = ToolTargets(self, self._frames, self._messages)
        self._subscribe()

    def _subscribe(self) -> None:
        """Subscribe to the feedback of RViz, the diagnostics and the task-space reference."""
        warn = Throttle(self.get_logger()).warn
        self._server = MarkerServer(self, self._events.append, partial(warn, "~/feedback"))
        reference = f"{TASK_SPACE}/reference_pose"
        for kind, topic, take, profile in (
            (DiagnosticArray, "/diagnostics", self._status.read, qos.STREAM),
            (PoseStamped, reference, self._take_tool_reference, qos.VIEW),
        ):
            listen(self, kind, topic, take, profile, partial(warn, topic))

    def run(self, stop: ShutdownFlag) -> None:
        """Update at 20 Hz until ``stop`` is set."""
        self._target.drag_tool(self._target.position, self._target.rotation)  # compile
        while not stop.wait(PERIOD):
            self.update()

    def update(self) -> None:
        """Handle the user's actions, follow the reference, and show both."""
        self._emergency.repeat()
        while self._events:
            try:
                self._handle(self._events.popleft())
            except ArmDynamicsError as error:
                self._messages.rejected(error)
        if self._dragging and time.monotonic() - self._last_event > DRAG_TIMEOUT:
            self._dragging = self._pending = False
        mode = self._mode()
        joints = self._tracking.newest if mode == TRACKING else None
        tool = self._tool_reference if mode == TASK_SPACE else None
        self._joints.update(joints and joints.reference)
        self._tool.update(as_readonly(tool[0][0]) if tool else None)
        if joints and not self._busy:
            self._target.set(joints.reference)
        elif tool and not self._busy:
            self._target.set_tool(*tool[0])
        self._offer(mode)
        self._show(mode)

    @property
    def _busy(self) -> bool:
        under_way = self._joints.under_way or self._tool.under_way
        return self._dragging or self._pending or under_way

    def _mode(self) -> str:
        """Return the topic or node with a fresh reference; "" if no controller moves the arm."""
        stale = time.monotonic() - REFERENCE_TIMEOUT
        joints, tool = self._tracking.newest, self._tool_reference
        if joints is not None and joints.received > stale:
            return TRACKING
        return TASK_SPACE if tool is not None and tool[1] > stale else ""

    def _offer(self, mode: str) -> None:
        """Set the markers that the controller has targets for; an emergency stop locks them."""
        offered = f"{mode} {self._status.stopped}"
        if offered == self._offered:
            self._server.move(markers.poses(self._target))
            return
        self._offered = offered
        interactive, target, head = [], self._target, self._header
        if mode:
            size = self._tool_size
            interactive.append(markers.tool_marker(target, head, size, MENU))
        if mode == TRACKING:
            size = self._joint_size
            interactive += [
                markers.joint_marker(target, handle, head, size, MENU) for handle in target.handles
            ]
        if self._status.stopped:
            interactive = [markers.locked_marker(marker) for marker in interactive]
        self._server.put(interactive)

    def _show(self, mode: str) -> None:
        status, is_stop = status_text(self._status)
        text = "; ".join(filter(None, (status, self._messages.text))), is_stop
        joints, tool = self._tracking.newest, self._tool_reference
        if mode == TRACKING and joints is not None:
            target = self._target.q if self._busy else None
            path = None if target is None else self._target.path_from(joints.reference)
            self._scene.show(joints.feedback, joints.reference, target, path, text)
            return
        path = None
        if mode and self._busy and tool is not None:
            path = np.array([tool[0][0], self._target.position])
        self._scene.show(None, None, None, path, text)

    def _handle(self, event: Event) -> None:
        """Handle one event of RViz."""
        self._last_event = time.monotonic()
        if event.event_type == Event.MENU_SELECT:
            actions = (self._go, self._back, self._stop, self._emergency.press, self._reset)
            if 1 <= event.menu_entry_id <= len(actions):
                actions[event.menu_entry_id - 1]()
        elif self._status.stopped or not self._mode():
            self._dragging = self._pending = False
        elif event.event_type == Event.MOUSE_DOWN:
            self._dragging = True
        elif event.event_type == Event.POSE_UPDATE:
            pose = read_pose(self._frames, PoseStamped(header=event.header, pose=event.pose))
            self._pending = True
            if event.marker_name != markers.TOOL:
                name = event.marker_name.removeprefix(markers.JOINT)
                handle = next(h for h in self._target.handles if h.joint == name)
                self._target.drag_joint(handle, *pose)
            elif self._mode() == TRACKING:
                self._target.drag_tool(*pose)
            else:
                self._target.set_tool(*pose)
        elif event.event_type == Event.MOUSE_UP:
            self._dragging = False
            if self._pending and self.get_parameter(RELEASE).value:
                self._go()

    def _go(self) -> None:
        """Send the target to the controller."""
        self._pending = False
        if self._mode() == TRACKING:
            self._target.settle()
            self._joints.go(self._target.q.tolist())
        else:
            self._tool.go(self._target.position, self._target.rotation)

    def _back(self) -> None:
        """Discard the target."""
        self._pending = False
        self._joints.reset()
        self._tool.reset()

    def _stop(self) -> None:
        """Stop the arm by its controller."""
        self._back()
        joints = self._tracking.newest
        if self._mode() == TRACKING and joints is not None:
            self._joints.stop(joints.reference, joints.velocity)
        elif self._mode():
            self._tool.stop()

    def _reset(self) -> None:
        """Reset the emergency stop of the arm."""
        ready = [remote for remote in self._resets if remote.ready]
        for remote in ready:
            remote.call_async().add_done_callback(
                lambda done: self._messages.note(done.result().message)
            )
        if not ready:
            self._messages.rejected("simulator or hardware nodes = 0; expected one")

    def _take_tool_reference(self, message: PoseStamped) -> None:
        self._tool_reference = read_pose(self._frames, message), time.monotonic()


def main() -> None:
    """Run the node until SIGINT or SIGTERM."""
    sys.exit(run_node(RvizControlsNode))


if __name__ == "__main__":
    main()
