"""Scene in RViz: server of interactive markers, markers of references, targets and stops.

The server has the protocol of the package interactive_markers. RViz gets all markers by the service
``~/get_interactive_markers``, with the number of the last update, then subscribes to ``~/update``.
After a gap in the numbers RViz calls the service again. Actions of a user are published on
``~/feedback``. The messages are handles that a user drags, ghosts of the arm, and text of stops.
"""

from __future__ import annotations

import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from threading import Lock

import numpy as np
from geometry_msgs.msg import Point, Pose, PoseStamped
from nav_msgs.msg import Path
from rclpy.node import Node
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import (
    InteractiveMarker,
    InteractiveMarkerControl,
    InteractiveMarkerFeedback,
    InteractiveMarkerPose,
    InteractiveMarkerUpdate,
    Marker,
    MarkerArray,
    MenuEntry,
)
from visualization_msgs.srv import GetInteractiveMarkers

from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.core.rotations import quaternion_from_rotation
from arm_dynamics.dynamics.kinematics.frames import link_poses
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.visuals import Visual, visuals
from arm_dynamics.ros.messages import qos
from arm_dynamics.ros.messages.conversions import pose_message
from arm_dynamics.ros.messages.serialization import listen
from arm_dynamics.viewer.drag import DragTarget, Handle
from arm_dynamics.viewer.scene_stage import BoundingSphere

QUEUE_DEPTH = 100
"""Queue size of the topics, equal to that of interactive_markers."""
CLIENT_TIMEOUT = 1.0
"""Time [s] after a client's feedback during which that of other clients is ignored."""
TOOL = "tool"
"""Name of the tool's marker; markers of joints have a prefix."""
JOINT = "joint "
KINDS = {
    "box": Marker.CUBE,
    "cylinder": Marker.CYLINDER,
    "sphere": Marker.SPHERE,
    "mesh": Marker.MESH_RESOURCE,
}
REFERENCE, TARGET = (0.10, 0.45, 0.95, 0.35), (0.95, 0.55, 0.05, 0.45)
"""Colors of the ghosts."""
STOP, NOTE = (0.85, 0.05, 0.05, 1.0), (0.75, 0.4, 0.0, 1.0)
"""Colors of text: of an emergency stop or an error, of other messages."""
TURNS = np.array([[[1, 0, 0], [0, 1, 0], [0, 0, 1]], [[0, -1, 0], [1, 0, 0], [0, 0, 1]],
                  [[0, 0, -1], [0, 1, 0], [1, 0, 0]]], dtype=float)  # fmt: skip
"""Rotations whose first columns are x, y and z."""
SPACE_WIDTH = 0.35
"""Width of a space as a fraction of the height: RViz's default fits text of 1 m."""
MAX_LINE_LENGTH = 44
"""Maximum number of characters of a line."""


class MarkerServer:
    """Markers of one node by name; ``take`` receives feedback on existing ones."""

    def __init__(
        self,
        node: Node,
        take: Callable[[InteractiveMarkerFeedback], None],
        reject: Callable[[str], object],
    ) -> None:
        self._markers: dict[str, InteractiveMarker] = {}
        self._sequence, self._lock = 0, Lock()
        self._take, self._client, self._last_feedback = take, "", -CLIENT_TIMEOUT
        self._id = node.get_fully_qualified_name()
        self._updates = node.create_publisher(InteractiveMarkerUpdate, "~/update", QUEUE_DEPTH)
        self._feedback = listen(
            node, InteractiveMarkerFeedback, "~/feedback", self._on_feedback, QUEUE_DEPTH, reject
        )
        self._service = node.create_service(
            GetInteractiveMarkers, "~/get_interactive_markers", self._on_request
        )

    def put(self, markers: Sequence[InteractiveMarker]) -> None:
        """Set the markers; unchanged ones are not sent again."""
        with self._lock:
            before, self._markers = self._markers, {marker.name: marker for marker in markers}
            changed = [m for name, m in self._markers.items() if before.get(name) != m]
            erased = [name for name in before if name not in self._markers]
            if changed or erased:
                self._publish(InteractiveMarkerUpdate(markers=changed, erases=erased))

    def move(self, poses: Mapping[str, Pose]) -> None:
        """Move markers; unchanged poses are not sent again."""
        with self._lock:
            update = InteractiveMarkerUpdate()
            for name, pose in poses.items():
                marker = self._markers.get(name)
                if marker is not None and marker.pose != pose:
                    marker.pose = pose
                    update.poses.append(
                        InteractiveMarkerPose(header=marker.header, pose=pose, name=name)
                    )
            if update.poses:
                self._publish(update)

    def _publish(self, update: InteractiveMarkerUpdate) -> None:
        self._sequence += 1
        update.server_id, update.seq_num = self._id, self._sequence
        update.type = InteractiveMarkerUpdate.UPDATE
        self._updates.publish(update)

    def _on_request(
        self, _: GetInteractiveMarkers.Request, response: GetInteractiveMarkers.Response
    ) -> GetInteractiveMarkers.Response:
        with self._lock:
            response.sequence_number = self._sequence
            response.markers = list(self._markers.values())
        return response

    def _on_feedback(self, feedback: InteractiveMarkerFeedback) -> None:
        now = time.monotonic()
        if feedback.client_id != self._client and now - self._last_feedback < CLIENT_TIMEOUT:
            return
        self._client, self._last_feedback = feedback.client_id, now
        if feedback.marker_name in self._markers:
            self._take(feedback)


def joint_marker(
    target: DragTarget, handle: Handle, header: Header, size: float, menu: Sequence[str]
) -> InteractiveMarker:
    """Return a ring about, or an arrow along, the axis of a joint; ``size`` [m]."""
    kind = InteractiveMarkerControl
    mode = kind.MOVE_AXIS if handle.slides else kind.ROTATE_AXIS
    marker = _marker(JOINT + handle.joint, header, size, menu)
    marker.pose = pose_message(*target.handle_pose(handle))
    marker.controls.append(_control("axis", np.eye(3), mode, kind.INHERIT))
    return marker


def tool_marker(
    target: DragTarget, header: Header, size: float, menu: Sequence[str]
) -> InteractiveMarker:
    """Return an arrow along and a ring about each base axis along which the tool can move."""
    kind = InteractiveMarkerControl
    marker = _marker(TOOL, header, size, menu)
    marker.pose = pose_message(target.position, target.rotation)
    names = ("move x", "move y", "move z", "turn x", "turn y", "turn z")
    for i, (name, free) in enumerate(zip(names, target.axes, strict=True)):
        if free:
            mode = kind.MOVE_AXIS if i < 3 else kind.ROTATE_AXIS
            marker.controls.append(_control(name, TURNS[i % 3], mode, kind.FIXED))
    return marker


def locked_marker(marker: InteractiveMarker) -> InteractiveMarker:
    """Return the marker with its menu only, which cannot be dragged."""
    menu = [c for c in marker.controls if c.interaction_mode == InteractiveMarkerControl.MENU]
    marker.controls = menu
    return marker


def poses(target: DragTarget) -> dict[str, object]:
    """Return the poses of all markers, by name."""
    joints: dict[str, object] = {
        JOINT + handle.joint: pose_message(*target.handle_pose(handle)) for handle in target.handles
    }
    return {**joints, TOOL: pose_message(target.position, target.rotation)}


def ghost(
    name: str,
    shapes: Sequence[Visual],
    placed: Mapping[str, tuple[Vector, Matrix]] | None,
    header: Header,
    color: tuple[float, float, float, float],
) -> list[Marker]:
    """Return the arm's shapes at the link poses ``placed`` in the base frame; None removes them."""
    markers = []
    for number, shape in enumerate(shapes):
        marker = Marker(header=header, ns=name, id=number, type=KINDS[shape.kind])
        marker.pose.orientation.w = 1.0
        marker.action = Marker.DELETE if placed is None else Marker.ADD
        if placed is not None:
            marker.pose = pose_message(*shape.placed(*placed[shape.link]))
            marker.scale.x, marker.scale.y, marker.scale.z = shape.scale.tolist()
            marker.mesh_resource, marker.color = shape.uri, _color(color)
        markers.append(marker)
    return markers


def text_marker(text: str, position: Vector, height: float, severe: bool, header: Header) -> Marker:
    """Return text that faces the camera, ``height`` [m] high; empty text removes it."""
    marker = Marker(header=header, ns="state", type=Marker.TEXT_VIEW_FACING)
    marker.action = Marker.ADD if text else Marker.DELETE
    marker.pose.orientation.w = 1.0
    marker.pose.position.x, marker.pose.position.y, marker.pose.position.z = position.tolist()
    marker.scale.x, marker.scale.z = SPACE_WIDTH * height, height
    marker.color = _color(STOP if severe else NOTE)
    marker.text = textwrap.fill(
        " ".join(text.split()), MAX_LINE_LENGTH, break_long_words=False, break_on_hyphens=False
    )
    return marker


def path_message(points: Matrix | None, header: Header) -> Path:
    """Return positions (n, 3) [m] for RViz's Path display; None for no path."""
    message = Path(header=header)
    for x, y, z in [] if points is None else points.tolist():
        pose = PoseStamped(header=header)
        pose.pose.position = Point(x=x, y=y, z=z)
        message.poses.append(pose)
    return message


MIN_GHOST_DISTANCE = 0.02
"""Distance [rad or m] from the arm below which a ghost is hidden: it would flicker."""


class Scene:
    """Publishes ``~/markers`` and ``~/planned_path``, latched, if they change."""

    def __init__(self, node: Node, arm: ArmModel, header: Header, reach: BoundingSphere) -> None:
        self._arm, self._header = arm, header
        moved = set(link_poses(arm, arm.configuration("initial"))) - {arm.base_frame}
        self._shapes = [shape for shape in visuals(arm) if shape.link in moved]
        self._at = reach.center + np.array([0.0, 0.0, 0.7 * reach.radius])
        self._height = reach.radius / 14
        self._markers = node.create_publisher(MarkerArray, "~/markers", qos.LATCHED)
        self._path = node.create_publisher(Path, "~/planned_path", qos.LATCHED)
        self._last: tuple[MarkerArray, Path] | None = None

    def show(
        self,
        q: Vector | None,
        reference: Vector | None,
        target: Vector | None,
        path: Matrix | None,
        text: tuple[str, bool],
    ) -> None:
        """Show ghosts of ``reference`` and ``target`` (nv,) that differ from the arm at ``q``.

        ``path`` (n, 3) [m] is that of the tool; ``text`` is the text above the arm and whether it
        reports an emergency stop.
        """
        ghosts = [
            ("reference", self._placed(reference, q), REFERENCE),
            ("target", self._placed(target, q), TARGET),
        ]
        scene = [text_marker(text[0], self._at, self._height, text[1], self._header)]
        for name, placed, color in ghosts:
            scene += ghost(name, self._shapes, placed, self._header, color)
        new = MarkerArray(markers=scene), path_message(path, self._header)
        last = self._last or (None, None)
        for publisher, message, before in zip((self._markers, self._path), new, last, strict=True):
            if message != before:
                publisher.publish(message)
        self._last = new

    def _placed(
        self, q: Vector | None, real: Vector | None
    ) -> Mapping[str, tuple[Vector, Matrix]] | None:
        if q is None or (
            real is not None and np.abs(q - real).max(initial=0.0) < MIN_GHOST_DISTANCE
        ):
            return None
        return link_poses(self._arm, q)


def _marker(name: str, header: Header, size: float, menu: Sequence[str]) -> InteractiveMarker:
    """Return a marker with a ball at its origin, which opens the menu."""
    kind = InteractiveMarkerControl
    ball = Marker(type=Marker.SPHERE, color=_color(TARGET))
    ball.scale.x = ball.scale.y = ball.scale.z = size / 6
    ball.pose.orientation.w = 1.0
    control = InteractiveMarkerControl(
        name="menu", interaction_mode=kind.MENU, always_visible=True, markers=[ball]
    )
    control.orientation.w = 1.0
    entries = [
        MenuEntry(id=number, title=title, command_type=MenuEntry.FEEDBACK)
        for number, title in enumerate(menu, 1)
    ]
    return InteractiveMarker(
        header=header, name=name, scale=size, controls=[control], menu_entries=entries
    )


def _control(name: str, rotation: Matrix, mode: int, orientation: int) -> InteractiveMarkerControl:
    control = InteractiveMarkerControl(
        name=name, interaction_mode=mode, orientation_mode=orientation, always_visible=True
    )
    o = control.orientation
    o.x, o.y, o.z, o.w = quaternion_from_rotation(rotation).tolist()
    return control


def _color(rgba: tuple[float, float, float, float]) -> ColorRGBA:
    return ColorRGBA(r=rgba[0], g=rgba[1], b=rgba[2], a=rgba[3])
