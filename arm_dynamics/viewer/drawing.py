"""Scene objects of the page: the arm, its ghost, and the recent path of the tool."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Sequence
from importlib import import_module
from math import dist
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from arm_dynamics.collision.scene import SceneObject
from arm_dynamics.collision.scene_shapes import object_triangles
from arm_dynamics.core.errors import ConfigError, InvalidValue
from arm_dynamics.core.requirements import to_install
from arm_dynamics.core.rotations import quaternion_from_rotation
from arm_dynamics.model.mesh_files import find_mesh, scale_to_meters
from arm_dynamics.viewer.plot import RATE, WINDOW, History
from arm_dynamics.viewer.skeleton import Link, Skeleton, Triple, tip

MISSING = f"viewer: viser or yourdfpy is not installed; {to_install('viewer')}"


def load_visuals(text: str, folder: Path | None) -> Any:
    """Load a URDF with its visible geometry.

    Parameters
    ----------
    text : str
        The URDF.
    folder : Path or None
        Folder of its meshes. Meshes outside of the description's folders and of ROS packages are
        not opened (``mesh_files``).

    Returns
    -------
    yourdfpy.URDF
        The loaded description.

    Raises
    ------
    ConfigError
        If yourdfpy is not installed.
    InvalidValue
        If the text or a mesh cannot be read.

    """
    try:
        yourdfpy = import_module("yourdfpy")
    except ImportError as error:
        raise ConfigError(MISSING) from error

    def find(fname: str) -> str:
        return str(find_mesh(fname, folder))

    try:
        robot = ElementTree.fromstring(text)
        for owner, shape in [(link, shape) for link in robot.iter("link") for shape in link]:
            mesh = shape.find("geometry/mesh")
            if mesh is None:
                continue
            file = find_mesh(mesh.get("filename", ""), folder)
            if file is None:  # one warning of the audit names all missing files of a package
                owner.remove(shape)
            elif (scale := scale_to_meters(mesh.get("scale"), file)) is not None:
                mesh.set("scale", scale)
        return yourdfpy.URDF.load(io.BytesIO(ElementTree.tostring(robot)), filename_handler=find)
    except Exception as error:  # XML, mesh and image readers raise many types
        raise InvalidValue(
            f"urdf = {type(error).__name__}: {error}; expected a URDF whose geometry can be drawn"
        ) from error


NEW, OLD = np.array([255, 140, 0]), np.array([48, 54, 64])
GAMMA = 2.2  # browsers read the colors of lines as linear light
MAX_POINTS = int(WINDOW * RATE) + 1


class ToolPathLine:
    """Path of the tool: a line that fades with age, with ``spacing`` [m] between its points."""

    def __init__(self, scene: Any, chain: tuple[Link, ...], spacing: float) -> None:
        self._chain, self._spacing = chain, spacing
        self._points: deque[tuple[float, Triple]] = deque(maxlen=MAX_POINTS)
        self._seen, self._since = -np.inf, -np.inf
        none = np.zeros((1, 2, 3))
        self._line = scene.add_line_segments(
            "/trace", none, none.astype(np.uint8), thickness=3.5, thickness_units="screen",
            visible=False,
        )  # fmt: skip

    def __len__(self) -> int:
        return len(self._points)

    def clear(self) -> None:
        """Discard the path."""
        self._since = self._seen
        self._points.clear()

    def extend(self, history: History) -> None:
        """Append the new samples of ``history`` and drop those older than WINDOW."""
        samples = list(history)
        if not samples:
            return
        now = samples[-1].time
        if now < self._seen:
            self._seen = self._since = -np.inf
            self._points.clear()
        for sample in samples:
            if sample.time > max(self._seen, self._since):
                point = tip(self._chain, sample.q.tolist())
                if not self._points or dist(point, self._points[-1][1]) >= self._spacing:
                    self._points.append((sample.time, point))
        self._seen = now
        while self._points and self._points[0][0] < now - WINDOW:
            self._points.popleft()

    def draw(self) -> None:
        """Send the line to the browsers."""
        if len(self._points) < 2:
            if self._line.visible:
                self._line.visible = False
            return
        path = np.array([point for _, point in self._points], dtype=np.float32)
        age = np.linspace(0, 1, len(path))[:, None] ** 0.7
        shade = ((OLD + (NEW - OLD) * age) / 255) ** GAMMA * 255
        shade = shade.astype(np.uint8)
        self._line.points = np.stack([path[:-1], path[1:]], axis=1)
        self._line.colors = np.stack([shade[:-1], shade[1:]], axis=1)
        if not self._line.visible:
            self._line.visible = True


GHOST_COLOR = (90, 190, 255)
GHOST_OPACITY = 0.4
FIXED_COLOR, FREE_COLOR = (140, 148, 158), (217, 128, 51)
"""Colors of objects around the arm."""
GROUND_DEPTH = 2e-3
"""Depth [m] at which a ground is drawn."""
GHOST_SCALE = 0.97  # thinner than the arm, so that it is hidden inside the arm without an error


class ArmDrawing:
    """Visible geometry of a URDF below the scene node ``root``, with one node per link."""

    def __init__(
        self, scene: Any, root: str, urdf: Any, skeleton: Skeleton, *, ghost: bool = False
    ) -> None:
        self._root = scene.add_frame(root, show_axes=False, visible=not ghost)
        paths = {skeleton.base: root}
        self._nodes: list[tuple[Link, Any]] = []
        self.shapes: list[tuple[str, Any]] = []
        """Link and scene node of each shape."""
        for link in skeleton.links:
            paths[link.name] = f"{paths[link.parent]}/{link.name}"
            pose = link.origin
            node = scene.add_frame(
                paths[link.name], show_axes=False, position=pose.position, wxyz=pose.wxyz
            )
            if link.index is not None:
                self._nodes.append((link, node))
        graph = urdf.scene.graph
        for name, mesh in urdf.scene.geometry.items():
            for geometry in graph.geometry_nodes[name]:
                parent = graph.transforms.parents[geometry]
                if ghost and parent == urdf.base_link:
                    continue  # the base never moves
                path = f"{paths[parent]}/{geometry}"
                # A transform can scale and mirror, which the pose of a node cannot.
                placed = mesh.copy().apply_transform(graph.get(geometry, parent)[0])
                if ghost:
                    vertices = GHOST_SCALE * (placed.vertices - placed.centroid) + placed.centroid
                    scene.add_mesh_simple(
                        path, vertices, placed.faces, color=GHOST_COLOR,
                        opacity=GHOST_OPACITY, cast_shadow=False, receive_shadow=False,
                    )  # fmt: skip
                else:
                    self.shapes.append((parent, scene.add_mesh_trimesh(path, _shaded(placed))))

    def show(self, q: Sequence[float]) -> None:
        """Move the node of every joint to ``q``; only changed nodes are sent to the browsers."""
        for link, node in self._nodes:
            pose = link.pose(q)
            node.wxyz = pose.wxyz
            if link.kind == "prismatic":
                node.position = pose.position

    @property
    def visible(self) -> bool:
        """Whether the geometry is visible."""
        return bool(self._root.visible)

    @visible.setter
    def visible(self, value: bool) -> None:
        if value != self._root.visible:
            self._root.visible = value


def draw_object(scene: Any, path: str, one: SceneObject) -> Any:
    """Draw an object of a scene; return its node."""
    corners, triangles = object_triangles(one)
    shape = scene.add_mesh_simple(
        path, corners, triangles, color=FIXED_COLOR if one.is_fixed else FREE_COLOR,
        flat_shading=one.shape.kind != "sphere", side="double",
    )  # fmt: skip
    place_object(shape, one)
    return shape


def place_object(shape: Any, one: SceneObject) -> None:
    """Move the node of an object to its pose."""
    position = one.position
    if one.shape.kind == "ground":  # the floor of the page stays visible
        position = position - GROUND_DEPTH * one.rotation[:, 2]
    x, y, z, w = quaternion_from_rotation(one.rotation)
    shape.position, shape.wxyz = position, (w, x, y, z)


def _shaded(mesh: Any) -> Any:
    """Return the mesh with sharp edges above 30 degrees, or itself if it cannot be split."""
    try:
        return mesh.smooth_shaded
    except Exception:  # missing parts of trimesh, or odd meshes, change the appearance only
        return mesh
