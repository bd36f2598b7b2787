"""Messages for RViz: handles that a user drags, ghosts of the arm, text of stops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from geometry_msgs.msg import Point, PoseStamped
from nav_msgs.msg import Path
from std_msgs.msg import ColorRGBA, Header
from visualization_msgs.msg import InteractiveMarker, InteractiveMarkerControl, Marker, MenuEntry

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.rotations import quaternion_from_rotation
from arm_dynamics.model.visuals import Visual
from arm_dynamics.ros.conversions import pose_message
from arm_dynamics.viewer.drag import DragTarget, Handle

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
SPACE = 0.35
"""Width of a space as a fraction of the height: RViz's default fits text of 1 m."""
WIDTH = 44
"""Maximum number of characters of a line."""


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
    kept = [c for c in marker.controls if c.interaction_mode == InteractiveMarkerControl.MENU]
    marker.controls = kept
    return marker


def poses(target: DragTarget) -> dict[str, object]:
    """Return the poses of all markers, by name."""
    found: dict[str, object] = {
        JOINT + handle.joint: pose_message(*target.handle_pose(handle)) for handle in target.handles
    }
    return {**found, TOOL: pose_message(target.position, target.rotation)}


def ghost(
    name: str,
    shapes: Sequence[Visual],
    placed: Mapping[str, tuple[Vector, Vector]] | None,
    header: Header,
    color: tuple[float, float, float, float],
) -> list[Marker]:
    """Return the arm's shapes at the link poses ``placed`` in the base frame; None removes them."""
    found = []
    for number, shape in enumerate(shapes):
        marker = Marker(header=header, ns=name, id=number, type=KINDS[shape.kind])
        marker.pose.orientation.w = 1.0
        marker.action = Marker.DELETE if placed is None else Marker.ADD
        if placed is not None:
            marker.pose = pose_message(*shape.placed(*placed[shape.link]))
            marker.scale.x, marker.scale.y, marker.scale.z = shape.scale.tolist()
            marker.mesh_resource, marker.color = shape.uri, _color(color)
        found.append(marker)
    return found


def words(text: str, at: Vector, height: float, severe: bool, header: Header) -> Marker:
    """Return text that faces the camera, ``height`` [m] high; empty text removes it."""
    marker = Marker(header=header, ns="state", type=Marker.TEXT_VIEW_FACING)
    marker.action = Marker.ADD if text else Marker.DELETE
    marker.pose.orientation.w = 1.0
    marker.pose.position.x, marker.pose.position.y, marker.pose.position.z = at.tolist()
    marker.scale.x, marker.scale.z = SPACE * height, height
    marker.color = _color(STOP if severe else NOTE)
    marker.text = "\n".join(_lines(text))
    return marker


def path(points: Vector | None, header: Header) -> Path:
    """Return positions (n, 3) [m] for RViz's Path display; None for no path."""
    message = Path(header=header)
    for x, y, z in [] if points is None else points.tolist():
        pose = PoseStamped(header=header)
        pose.pose.position = Point(x=x, y=y, z=z)
        message.poses.append(pose)
    return message


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


def _control(name: str, rotation: Vector, mode: int, orientation: int) -> InteractiveMarkerControl:
    control = InteractiveMarkerControl(
        name=name, interaction_mode=mode, orientation_mode=orientation, always_visible=True
    )
    o = control.orientation
    o.x, o.y, o.z, o.w = quaternion_from_rotation(rotation).tolist()
    return control


def _color(rgba: tuple[float, float, float, float]) -> ColorRGBA:
    return ColorRGBA(r=rgba[0], g=rgba[1], b=rgba[2], a=rgba[3])


def _lines(text: str) -> list[str]:
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if len(longer) <= WIDTH:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines
