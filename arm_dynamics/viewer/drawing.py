"""The arm, or its ghost, in the scene: one node a link, of which only moved ones are sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from arm_dynamics.viewer.skeleton import Link, Skeleton

GHOST_COLOR = (90, 190, 255)
GHOST_OPACITY = 0.4
GHOST_SCALE = 0.97  # thinner than the arm, so that it disappears inside it where both agree


class ArmDrawing:
    """The visible geometry of a URDF under the scene node ``root``."""

    def __init__(
        self, scene: Any, root: str, urdf: Any, skeleton: Skeleton, *, ghost: bool = False
    ) -> None:
        self._root = scene.add_frame(root, show_axes=False, visible=not ghost)
        self._ghost = ghost
        paths = {skeleton.base: root}
        self._nodes: list[tuple[Link, Any]] = []
        for link in skeleton.links:
            paths[link.name] = f"{paths[link.parent]}/{link.name}"
            pose = link.origin
            node = scene.add_frame(
                paths[link.name], show_axes=False, position=pose.position, wxyz=pose.wxyz
            )
            if link.index is not None:
                self._nodes.append((link, node))
        self._add_geometry(scene, urdf, paths)

    def show(self, q: Sequence[float]) -> None:
        """Move every joint's node to ``q``; a node that did not move sends nothing."""
        for link, node in self._nodes:
            pose = link.pose(q)
            node.wxyz = pose.wxyz
            if link.kind == "prismatic":
                node.position = pose.position

    @property
    def visible(self) -> bool:
        """Whether the browser draws it."""
        return bool(self._root.visible)

    @visible.setter
    def visible(self, value: bool) -> None:
        if value != self._root.visible:
            self._root.visible = value

    def _add_geometry(self, scene: Any, urdf: Any, paths: dict[str, str]) -> None:
        graph = urdf.scene.graph
        for name, mesh in urdf.scene.geometry.items():
            for node in graph.geometry_nodes[name]:
                parent = graph.transforms.parents[node]
                if self._ghost and parent == urdf.base_link:
                    continue  # the base never moves
                self._add_mesh(scene, f"{paths[parent]}/{node}", mesh, graph.get(node, parent)[0])

    def _add_mesh(self, scene: Any, path: str, mesh: Any, transform: Any) -> None:
        # Scale and mirroring in the transform cannot be a node's pose: bake it into the mesh.
        placed = mesh.copy().apply_transform(transform)
        if self._ghost:
            vertices = GHOST_SCALE * (placed.vertices - placed.centroid) + placed.centroid
            scene.add_mesh_simple(
                path, vertices, placed.faces, color=GHOST_COLOR,
                opacity=GHOST_OPACITY, cast_shadow=False, receive_shadow=False,
            )  # fmt: skip
        else:
            scene.add_mesh_trimesh(path, _shaded(placed))


def _shaded(mesh: Any) -> Any:
    """Keep edges above 30 degrees sharp; a mesh that cannot be split is drawn as it is."""
    try:
        return mesh.smooth_shaded
    except Exception:  # optional parts of trimesh, odd meshes: looks only
        return mesh
