"""Geoms of an MJCF body: its inertia, and its shapes as elements of a URDF."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import pi
from typing import Any

import numpy as np
import pinocchio as pin

from arm_dynamics.model.audit.numbers import parse_number
from arm_dynamics.model.mjcf.mjcf_file import MjcfFile
from arm_dynamics.model.urdf_text import element_text
from arm_dynamics.model.urdf_writer import format_number, format_numbers, rpy
from arm_dynamics.model.xml_source import Node

DENSITY = 1000.0
"""Density [kg/m³] of a geom without mass and density."""


class Geoms:
    """Converts the geoms of a file."""

    def __init__(self, file: MjcfFile) -> None:
        self._file = file

    def elements(self, node: Node, childclass: str, *, is_root: bool) -> list[str]:
        """Return ``<inertial>`` and shapes of a body; a root has no inertia."""
        geoms = [(geom, self._file.attributes(geom, childclass)) for geom in node.find_all("geom")]
        children = [] if is_root else self._inertial(node, geoms)
        for geom, given in geoms:
            group, contacts = int(given.get("group", "0")), ("contype", "conaffinity")
            tags = ["visual"] if group <= 2 else []
            tags += ["collision"] if any(int(given.get(n, "1")) for n in contacts) else []
            children += [s for tag in tags for s in self._shapes(geom, given, tag)]
        return children

    def _inertial(self, node: Node, geoms: Iterable[tuple[Node, Mapping[str, str]]]) -> list[str]:
        """Return the inertia of a body: its own, else that of its geoms; none without mass."""
        inertial = node.find("inertial")
        setting = self._file.compiler.get("inertiafromgeom", "auto")
        if setting == "true" or (setting == "auto" and inertial is None):
            total = pin.Inertia.Zero()
            for geom, given in geoms:
                total += self._geom_inertia(geom, given)
        elif inertial is None:
            return []
        else:
            pose = self._file.pose(inertial)
            mass = self._file.numbers(inertial, inertial.attributes, "mass", (0.0,))[0]
            own = np.diag(
                self._file.numbers(inertial, inertial.attributes, "diaginertia", (0.0,) * 3)
            )
            if inertial.get("fullinertia"):
                full = self._file.numbers(inertial, inertial.attributes, "fullinertia", (0.0,) * 6)
                xx, yy, zz, xy, xz, yz = full
                own = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
            total = pin.Inertia.Zero()
            total.mass, total.lever = mass, pose.translation
            total.inertia = pose.rotation @ own @ pose.rotation.T
        if not total.mass:
            return []
        entries = {
            "i" + "xyz"[i] + "xyz"[j]: format_number(total.inertia[i, j])
            for i in range(3)
            for j in range(i, 3)
        }
        children = [
            element_text("origin", {"xyz": format_numbers(total.lever), "rpy": "0 0 0"}),
            element_text("mass", {"value": format_number(total.mass)}),
            element_text("inertia", entries),
        ]
        return [element_text("inertial", {}, children=children)]

    def _geom_inertia(self, node: Node, given: Mapping[str, str]) -> Any:
        """Return the inertia of a geom in the frame of its body."""
        low, high = map(int, self._file.compiler.get("inertiagrouprange", "0 5").split())
        kind, mass = given.get("type", "sphere"), parse_number(given.get("mass"))
        density = float(given.get("density", DENSITY))
        counted = low <= int(given.get("group", "0")) <= high and kind not in {"plane", "hfield"}
        if not counted or mass == 0.0 or (mass is None and density == 0.0):
            return pin.Inertia.Zero()
        if kind not in _SOLIDS or given.get("shellinertia") == "true":
            remedy = "write the <inertial> of its body"
            raise self._file.error(node, f"has a mass and the type '{kind}'", remedy)
        pose, size = self._geom_pose(node, given)
        volume, unit = _SOLIDS[kind](*size)
        mass = density * volume if mass is None else mass
        return pose.act(pin.Inertia(mass, np.zeros(3), mass * np.diag(unit)))

    def _geom_pose(self, node: Node, given: Mapping[str, str]) -> tuple[Any, tuple[float, ...]]:
        """Return pose and sizes of a geom; ``fromto`` gives the ends of an axis along z."""
        size = self._file.numbers(node, given, "size", ())
        if not given.get("fromto"):
            return self._file.pose(given), size
        ends = np.array(self._file.numbers(node, given, "fromto", (0.0,) * 6)).reshape(2, 3)
        line = ends[1] - ends[0]
        turn = pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), line).matrix()
        half = float(np.linalg.norm(line)) / 2
        radius = size[:1] if given.get("type") in {"capsule", "cylinder"} else (size[0], size[0])
        return pin.SE3(turn, ends.mean(axis=0)), (*radius, half)

    def _shapes(self, node: Node, given: Mapping[str, str], tag: str) -> Iterator[str]:
        """Yield the ``<visual>`` or ``<collision>`` of a geom: three for a capsule."""
        kind = given.get("type", "sphere")
        if kind in {"plane", "hfield", "ellipsoid", "sdf"}:
            self._file.notes[f"geom of type {kind} is omitted"] = None
            return
        if kind == "mesh":
            mesh = self._file.assets.get(("mesh", given.get("mesh", "")), {})
            file = mesh.get("file")
            if not file:
                self._file.notes[f"mesh '{given.get('mesh')}' has no file: it is omitted"] = None
                return
            directory = self._file.compiler.get("meshdir", self._file.compiler.get("assetdir", ""))
            shape = {"filename": str(self._file.path.parent / directory / file)}
            scale = mesh.get("scale")
            yield self._shape(
                given,
                tag,
                self._file.pose(given),
                "mesh",
                shape | ({"scale": scale} if scale else {}),
            )
            return
        pose, size = self._geom_pose(node, given)
        if kind == "box":
            edges = {"size": format_numbers([2 * x for x in size[:3]])}
            yield self._shape(given, tag, pose, "box", edges)
            return
        radius = {"radius": format_number(size[0])}
        if kind == "sphere":
            yield self._shape(given, tag, pose, "sphere", radius)
            return
        length = {"length": format_number(2 * size[1])}
        yield self._shape(given, tag, pose, "cylinder", radius | length)
        for end in (-size[1], size[1]) if kind == "capsule" else ():
            tip = pose * pin.SE3(np.eye(3), np.array([0.0, 0.0, end]))
            yield self._shape(given, tag, tip, "sphere", radius)

    def _shape(
        self, given: Mapping[str, str], tag: str, pose: Any, kind: str, sizes: Mapping[str, str]
    ) -> str:
        geometry = element_text("geometry", {}, children=[element_text(kind, sizes)])
        children = [origin_text(pose), geometry]
        color = given.get("rgba") or self._file.assets.get(
            ("material", given.get("material", "")), {}
        ).get("rgba")
        if tag == "visual" and color:
            label = "rgba_" + "_".join(color.split())
            rgba = element_text("color", {"rgba": " ".join(color.split())})
            children.append(element_text("material", {"name": label}, children=[rgba]))
        return element_text(tag, {}, children=children)


def origin_text(pose: Any) -> str:
    """Return the ``<origin>`` of a pose."""
    angles = format_numbers(rpy(pose.rotation))
    return element_text("origin", {"xyz": format_numbers(pose.translation), "rpy": angles})


def _box(x: float, y: float, z: float) -> tuple[float, list[float]]:
    """Return the volume [m³] of half edges, and its inertia per mass [m²] about its axes."""
    return 8 * x * y * z, [(y * y + z * z) / 3, (x * x + z * z) / 3, (x * x + y * y) / 3]


def _ellipsoid(x: float, y: float, z: float) -> tuple[float, list[float]]:
    return 4 / 3 * pi * x * y * z, [(y * y + z * z) / 5, (x * x + z * z) / 5, (x * x + y * y) / 5]


def _sphere(radius: float, *_: float) -> tuple[float, list[float]]:
    return _ellipsoid(radius, radius, radius)


def _cylinder(radius: float, half: float, *_: float) -> tuple[float, list[float]]:
    across = radius**2 / 4 + half**2 / 3
    return 2 * pi * radius**2 * half, [across, across, radius**2 / 2]


def _capsule(radius: float, half: float, *_: float) -> tuple[float, list[float]]:
    """Return volume and inertia of a cylinder with half balls, centered 3/8 r beyond its ends."""
    tube, ball = 2 * pi * radius**2 * half, 4 / 3 * pi * radius**3
    across = tube * (radius**2 / 4 + half**2 / 3)
    across += ball * (2 / 5 * radius**2 + half**2 + 3 / 4 * radius * half)
    along = tube * radius**2 / 2 + ball * 2 / 5 * radius**2
    volume = tube + ball
    return volume, [across / volume, across / volume, along / volume]


_SOLIDS: dict[str, Callable[..., tuple[float, list[float]]]] = {
    "box": _box,
    "capsule": _capsule,
    "cylinder": _cylinder,
    "ellipsoid": _ellipsoid,
    "sphere": _sphere,
}
"""Volume [m³] and inertia per mass [m²] of solid geoms by type, from their sizes [m]."""
