"""Shapes of a URDF: boxes, cylinders, spheres and meshes in the frames of the links."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin

from arm_dynamics.core.arrays import Matrix, Vector, as_readonly
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.audit.numbers import number_attribute, vector_attribute
from arm_dynamics.model.audit.robot import Robot
from arm_dynamics.model.mesh_files import find_mesh, mesh_unit
from arm_dynamics.model.robot_description import resolvable
from arm_dynamics.model.xml_source import Node, parse_xml

Color = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Visual:
    """A shape in the frame of ``link``: the unit shape at the origin, scaled, then placed.

    The unit box, cylinder (along z) and sphere have edges and diameters of 1 m, as RViz's markers.
    """

    link: str
    kind: str
    """box, cylinder, sphere or mesh."""
    position: Vector
    """(3,) [m] in the link's frame."""
    rotation: Matrix
    """(3, 3)"""
    scale: Vector
    """(3,)"""
    uri: str = ""
    """URI of a mesh, as RViz resolves it."""
    color: Color | None = None
    """Red, green, blue, alpha, 0 to 1; None if unknown or given by the mesh."""

    def placed(self, position: Vector, rotation: Matrix) -> tuple[Vector, Matrix]:
        """Return its pose for a link at ``position`` (3,) [m] with ``rotation`` (3, 3)."""
        return position + rotation @ self.position, rotation @ self.rotation

    def corners(self, folder: Path | None = None) -> Matrix:
        """Return the corners (8, 3) [m] of its bounding box in the link's frame.

        ``folder`` is that of the URDF. A mesh that cannot be read has the origin as box.
        """
        low, high = (-0.5, 0.5) if self.kind != "mesh" else _mesh_box(self.uri, folder)
        ends = np.transpose([np.broadcast_to(low, 3), np.broadcast_to(high, 3)])
        box = np.array(list(product(*ends))) * self.scale
        return as_readonly(box @ self.rotation.T + self.position)


def visuals(arm: ArmModel) -> tuple[Visual, ...]:
    """Return every ``<visual>`` of the links of ``arm``."""
    return link_shapes(parse_xml(arm.urdf), arm.source.parent if arm.source else None)


def link_shapes(root: Node, folder: Path | None, element: str = "visual") -> tuple[Visual, ...]:
    """Return the shapes in every ``<visual>`` or ``<collision>`` of a robot's links."""
    shapes, links = list[Visual](), Robot(root).links
    colors = {m.get("name"): _color(m) for m in root.find_all("material")}
    for name, node in [(n, node) for n in links for node in links[n].find_all(element)]:
        geometry, origin, material = (node.find(tag) for tag in ("geometry", "origin", "material"))
        position = vector_attribute(origin, "xyz") or (0.0, 0.0, 0.0)
        rotation = pin.rpy.rpyToMatrix(*(vector_attribute(origin, "rpy") or (0.0, 0.0, 0.0)))
        pose = as_readonly(position), as_readonly(rotation)
        color = None
        if material is not None:
            color = _color(material) or colors.get(material.get("name"))
        for shape in geometry.children if geometry else ():
            scale = _shape_scale(shape)
            if scale is not None:
                uri = resolvable(shape.get("filename") or "", folder) if shape.tag == "mesh" else ""
                shapes.append(Visual(name, shape.tag, *pose, as_readonly(scale), uri, color))
    return tuple(shapes)


def _shape_scale(shape: Node) -> tuple[float, ...] | None:
    """Return edges [m], or the factors of a mesh; None for a shape that URDF does not have."""
    if shape.tag == "mesh":
        return vector_attribute(shape, "scale") or (1.0, 1.0, 1.0)
    if shape.tag == "box":
        return vector_attribute(shape, "size")
    radius, length = number_attribute(shape, "radius"), number_attribute(shape, "length")
    if radius is None or shape.tag not in {"sphere", "cylinder"}:
        return None
    return 2 * radius, 2 * radius, 2 * radius if shape.tag == "sphere" else length or 0.0


def _color(material: Node) -> Color | None:
    rgba = vector_attribute(material.find("color"), "rgba", 4)
    return None if rgba is None else (rgba[0], rgba[1], rgba[2], rgba[3])


def _mesh_box(uri: str, folder: Path | None) -> tuple[Vector, Vector]:
    """Return both ends (3,) [m] of a mesh's bounding box; the origin if it cannot be read."""
    mesh = load_mesh(uri, folder)
    if mesh is None:
        return np.zeros(3), np.zeros(3)
    mesh.computeLocalAABB()
    return np.array(mesh.aabb_local.min_), np.array(mesh.aabb_local.max_)


def load_mesh(uri: str, folder: Path | None) -> Any | None:
    """Return the mesh of coal in meters, None if it cannot be read."""
    path = find_mesh(uri, folder)
    try:
        from coal import NODE_TYPE, MeshLoader  # noqa: PLC0415 - not in every Pinocchio

        unit = np.full(3, mesh_unit(path) if path else 1.0)
        return MeshLoader(NODE_TYPE.BV_AABB).load(str(path or ""), unit)
    except (ImportError, ValueError, RuntimeError):
        return None
