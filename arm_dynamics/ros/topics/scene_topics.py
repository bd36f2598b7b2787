"""Scene of an arm on topics: its text for the other nodes, markers for RViz, objects for MoveIt.

The node of the arm, simulator or hardware, publishes the latched topics ``scene`` (std_msgs/String,
the YAML of a scene file) and ``scene_markers``. Controllers and pages subscribe to ``scene``.
``planning_scene`` needs moveit_msgs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from threading import Lock
from typing import Any

from geometry_msgs.msg import Point
from rclpy.node import Node
from std_msgs.msg import ColorRGBA, Header, String
from visualization_msgs.msg import Marker, MarkerArray

from arm_dynamics.collision.scene import EMPTY_SCENE, Scene, SceneObject
from arm_dynamics.collision.scene_files import load_scene, parse_scene, scene_text
from arm_dynamics.collision.scene_shapes import object_triangles
from arm_dynamics.core.loop_requests import LoopRequests
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros.messages import qos
from arm_dynamics.ros.messages.conversions import Frames, pose_message
from arm_dynamics.ros.messages.serialization import listen
from arm_dynamics.ros.parameters.ros_parameters import declare_fixed, declare_live
from arm_dynamics.simulation.simulation import Simulation

PARAMETER = "scene"
TEXT = "objects around the arm: table, ground, or a YAML or URDF file; empty: none"
MOTION_RATE = 20.0
"""Largest rate [Hz] of messages of objects that move."""
MOTION = 1e-4
"""Displacement [m] of a point of an object above which it is published."""
FIXED, FREE, GROUND = (0.80, 0.82, 0.85, 1.0), (0.85, 0.55, 0.20, 1.0), (0.40, 0.42, 0.45, 1.0)
"""Colors of fixed and of free objects, and of a ground: RViz lights horizontal faces weakly."""


def named_scene(name: str) -> Scene:
    """Return the scene of a parameter; none for ""."""
    return load_scene(name) if name else EMPTY_SCENE


class SceneSubscription:
    """Scene of a node that checks or shows it: first its parameter, then the topic ``scene``.

    ``take`` receives each new scene; ``reject`` the reason for a text that is not a scene.
    """

    def __init__(
        self, node: Node, take: Callable[[Scene], None], reject: Callable[[str], object]
    ) -> None:
        self.initial = named_scene(str(declare_fixed(node, PARAMETER, "", TEXT)))

        def receive(message: String) -> None:
            take(parse_scene(message.data, "topic scene"))

        listen(node, String, "scene", receive, qos.LATCHED, reject)


class SceneTopics:
    """Scene of the node of an arm: parameter ``scene``, changed while it runs, and its topics."""

    def __init__(self, node: Node, arm: ArmModel, frames: Frames) -> None:
        self._frame, self._lock = frames.base, Lock()
        self._text = node.create_publisher(String, "scene", qos.LATCHED)
        self._markers = node.create_publisher(MarkerArray, "scene_markers", qos.LATCHED)
        self.initial = self.scene = named_scene(str(declare_live(node, PARAMETER, "", TEXT)))
        self._simulation: Simulation | None = None
        self._requests: LoopRequests | None = None
        self._due = 0.0  # monotonic time [s] of the next message of objects that move
        self._publish()
        with suppress(ImportError):  # of moveit_msgs
            from arm_dynamics.ros.topics.planning_scene import PlanningScenePublisher  # noqa: PLC0415

            PlanningScenePublisher(node, arm, lambda: self.scene, 1 / MOTION_RATE)

    def follow(self, simulation: Simulation, requests: LoopRequests | None = None) -> None:
        """Change and show the objects of a simulation; while it runs by requests to its loop."""
        self._simulation, self._requests = simulation, requests

    def show_motion(self) -> None:
        """Publish the scene at MOTION_RATE while its objects move; from the simulation's thread."""
        assert self._simulation is not None
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + 1 / MOTION_RATE
        scene = self._simulation.scene
        if scene.motion(self.scene) > MOTION:
            with self._lock:
                self.scene = scene
                self._publish()

    def changed(self, values: dict[str, Any]) -> Scene | None:
        """Return the scene of the changed parameters ``values``; None if they contain none."""
        return named_scene(str(values[PARAMETER])) if PARAMETER in values else None

    def take(self, initial: Scene | None) -> None:
        """Publish a scene of ``changed``."""
        if initial is not None:
            self.change(lambda _: initial)
            self.initial = initial

    def change(self, changed: Callable[[Scene], Scene]) -> None:
        """Replace the scene by ``changed(scene)`` and publish it; from any thread.

        Raises InvalidValue for objects that overlap where they are simulated.
        """
        if self._requests is None:
            self._replace(changed)
        else:
            self._requests.call(lambda: self._replace(changed))

    def _replace(self, changed: Callable[[Scene], Scene]) -> None:
        with self._lock:
            scene = changed(self.scene if self._simulation is None else self._simulation.scene)
            if self._simulation is not None:
                self._simulation.set_scene(scene)
            self.scene = scene
            self._publish()

    def _publish(self) -> None:
        self._text.publish(String(data=scene_text(self.scene)))
        self._markers.publish(MarkerArray(markers=[*scene_markers(self.scene, self._frame)]))


def scene_markers(scene: Iterable[SceneObject], frame: str) -> Iterator[Marker]:
    """Yield the markers of a scene, after one that deletes those of the scene before."""
    header = Header(frame_id=frame)
    yield Marker(header=header, action=Marker.DELETEALL)
    for number, one in enumerate(scene):
        corners, triangles = object_triangles(one)
        points = [Point(x=x, y=y, z=z) for x, y, z in corners[triangles.ravel()].tolist()]
        marker = Marker(header=header, ns=one.name, id=number, type=Marker.TRIANGLE_LIST)
        marker.pose = pose_message(one.position, one.rotation)
        marker.scale.x = marker.scale.y = marker.scale.z = 1.0
        color = GROUND if one.shape.kind == "ground" else FIXED if one.is_fixed else FREE
        marker.color = ColorRGBA(**dict(zip("rgba", color, strict=True)))
        marker.points = points
        yield marker
