"""Scenes from files: YAML, or URDFs of fixed links. All faults of a file are one report.

A YAML has one key, ``objects``: a table of names, each with ``shape``, the sizes of that shape,
``position`` [m], ``rpy`` [rad], ``mass`` [kg], ``friction``, ``restitution`` and ``compliance``
[m/N].
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import pi
from pathlib import Path
from typing import Any

import numpy as np
import pinocchio as pin
import yaml

from arm_dynamics.collision.scene import CHECKS, SCENE_SHAPES, Scene, SceneObject, check_vertices
from arm_dynamics.core import resources
from arm_dynamics.core.arrays import Matrix, as_readonly, check_vector
from arm_dynamics.core.errors import ConfigError, InvalidValue, UnknownName
from arm_dynamics.core.yaml_file import parse_yaml
from arm_dynamics.model.audit import files, numbers, structure
from arm_dynamics.model.audit.fault import Fault, format_report, suggest, title
from arm_dynamics.model.audit.robot import Robot
from arm_dynamics.model.description_file import read_urdf
from arm_dynamics.model.inertia_estimate import hull_triangles
from arm_dynamics.model.solids import Shape
from arm_dynamics.model.urdf_writer import rpy
from arm_dynamics.model.visuals import Visual, link_shapes, load_mesh
from arm_dynamics.model.xml_source import Node, XmlSyntaxError, parse_xml

BUNDLED = "config/scenes"
URDF_SUFFIXES = (".urdf", ".xacro", ".xml")
SIZES = {
    "box": ("size",), "cylinder": ("radius", "length"), "sphere": ("radius",), "ground": (),
    "mesh": ("file", "scale", "vertices"),
}  # fmt: skip
"""Keys of each shape."""
COMMON = ("shape", "position", "rpy", "mass", "friction", "restitution", "compliance")
"""Keys of every object."""


class SceneRejected(ConfigError):
    """A scene with errors: the message reports all ``faults``."""

    def __init__(self, source_name: str, faults: Iterator[Fault] | list[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__(format_report(source_name, self.faults))


def load_scene(scene: str | Path) -> Scene:
    """Load a bundled scene ("table", "ground") or a file.

    Parameters
    ----------
    scene : str or Path
        Name of a bundled scene, or path of a YAML, or of a URDF of fixed links. Lengths [m], angles
        [rad], in base axes of the arm; the root link of a URDF is at the base.

    Returns
    -------
    Scene
        The objects. A mesh is its convex hull.

    Raises
    ------
    UnknownName
        For a scene that does not exist.
    SceneRejected
        With all faults of the file: line, value and remedy of each.
    ConfigError
        For a file that cannot be read.

    """
    if not isinstance(scene, str | Path) or not str(scene):
        raise InvalidValue(f"scene = {scene!r}; expected the name of a bundled scene or a path")
    path = Path(scene)
    try:
        if not path.is_file():
            path = resources.resource_folder(BUNDLED) / f"{scene}.yaml"
        if not path.is_file():
            raise UnknownName("scene or scene file", str(scene), bundled_scenes())
    except (OSError, ValueError) as error:  # a name too long, or with a null character
        raise ConfigError(f"scene {scene}: {error}; expected a readable file") from error
    if path.suffix in URDF_SUFFIXES:
        return scene_of_urdf(read_urdf(path), path.parent, str(path))
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: {error}; expected a readable file") from error
    return _of_yaml(data, path.parent, str(path))


def bundled_scenes() -> tuple[str, ...]:
    """Return the names of the bundled scenes."""
    return resources.resource_names(BUNDLED, ".yaml")


def parse_scene(text: str, source_name: str = "scene", folder: Path | None = None) -> Scene:
    """Return the scene of a text: YAML, or a URDF of fixed links; raises as ``load_scene``.

    ``folder`` is that of its meshes.
    """
    if text.lstrip().startswith("<"):
        return scene_of_urdf(text, folder, source_name)
    return _of_yaml(text.encode("utf-8", "replace"), folder, source_name)


def scene_text(scene: Scene) -> str:
    """Return a scene as YAML; a mesh has its vertices in it."""
    objects = {}
    for one in scene:
        kind, size = one.shape.kind, list(one.shape.size)
        sizes: dict[str, Any] = {"size": size} if kind == "box" else {}
        if kind in ("cylinder", "sphere"):
            sizes = dict(zip(SIZES[kind], size, strict=True))
        if one.vertices is not None:
            sizes = {"vertices": one.vertices.tolist()}
        objects[one.name] = {
            "shape": kind,
            **sizes,
            "position": one.position.tolist(),
            "rpy": list(rpy(one.rotation)),
            "mass": one.mass,
            "friction": one.friction,
            "restitution": one.restitution,
            "compliance": one.compliance,
        }
    return str(yaml.safe_dump({"objects": objects}, sort_keys=False, default_flow_style=None))


def scene_of_urdf(text: str, folder: Path | None = None, source_name: str = "URDF") -> Scene:
    """Return the shapes of a URDF of fixed links as fixed objects, named after their links.

    The collision geometry of each link counts, and the visual geometry of a link without any.
    ``folder`` is that of its meshes. Raises SceneRejected with all faults.
    """
    try:
        root = parse_xml(text)
    except XmlSyntaxError as error:
        fault = Fault(error.line, "XML", "", error.problem, error.remedy)
        raise SceneRejected(source_name, [fault]) from error
    robot = Robot(root)
    faults = list(_urdf_faults(robot, folder))
    objects: list[SceneObject] = []
    if not faults:
        collision, visual = (
            link_shapes(root, folder, element) for element in ("collision", "visual")
        )
        for link, node in robot.links.items():
            own = [[s for s in shapes if s.link == link] for shapes in (collision, visual)]
            for k, shape in enumerate(own[0] or own[1]):
                name = f"{link}_{k + 1}" if len(own[0] or own[1]) > 1 else link
                try:
                    objects.append(_of_link(name, shape, _placement(robot, link), folder))
                except InvalidValue as error:
                    faults.append(_fault(node.line, f"object '{name}'", error))
        if not objects and not faults:
            remedy = "add <collision> or <visual> to a link"
            faults.append(Fault(root.line, title(root), "", "no link has a shape", remedy))
    if faults:
        raise SceneRejected(source_name, faults)
    return Scene(objects)


def _urdf_faults(robot: Robot, folder: Path | None) -> Iterator[Fault]:
    """Yield the faults of a URDF that is a scene: its structure, numbers, files and joints."""
    root = robot.root
    if root.tag != "robot":
        problem = "is not a URDF's root element"
        yield Fault(root.line, title(root), root.tag, problem, 'write <robot name="…">')
        return
    for rule in (
        structure.naming_faults, structure.markup_faults, structure.parent_faults,
        structure.root_faults, numbers.number_faults,
    ):  # fmt: skip
        yield from (fault for fault in rule(robot) if fault.severity == "error")
    for fault in files.file_faults(robot, folder):
        if "<mesh" in fault.element:  # a texture has no effect
            yield replace(fault, severity="error")
    for joint in robot.all_joints:
        yield from structure.reference_faults(robot, joint)
        if joint.get("type") != "fixed":
            problem, remedy = "is a joint that may move", 'write type="fixed"'
            yield Fault(joint.line, title(joint), joint.get("type") or "", problem, remedy)


def _placement(robot: Robot, link: str) -> pin.SE3:
    """Return the placement of a link in the axes of the root link."""
    edge = robot.parent_joint.get(link)
    if edge is None:
        return pin.SE3.Identity()
    origin = edge.joint.find("origin")
    xyz, angles = (_triple(origin, attribute) for attribute in ("xyz", "rpy"))
    return _placement(robot, edge.parent) * pin.SE3(pin.rpy.rpyToMatrix(angles), xyz)


def _triple(origin: Node | None, attribute: str) -> Matrix:
    return np.array(numbers.vector_attribute(origin, attribute) or (0.0, 0.0, 0.0))


def _of_link(name: str, shape: Visual, link: pin.SE3, folder: Path | None) -> SceneObject:
    position, rotation = shape.placed(link.translation, link.rotation)
    if shape.kind == "mesh":
        vertices = _mesh_vertices(f"object '{name}'", shape.uri, folder) * shape.scale
        return SceneObject(name, Shape("mesh", ()), position, rotation, vertices=vertices)
    x, _, z = edges = tuple(shape.scale.tolist())
    sizes = {"box": edges, "cylinder": (x / 2, z), "sphere": (x / 2,)}[shape.kind]
    return SceneObject(name, Shape(shape.kind, sizes), position, rotation)


def _mesh_vertices(where: str, uri: str, folder: Path | None) -> Matrix:
    """Return the corners (n, 3) [m] of the convex hull of a mesh file."""
    mesh = load_mesh(uri, folder)
    if mesh is None:
        raise InvalidValue(
            f"{where}: file = '{uri}'; expected a readable mesh in the folder of the scene or in a"
            " ROS package; STL, COLLADA and OBJ are read"
        )
    points = np.array(mesh.vertices())
    triangles = hull_triangles(points)  # None if flat, which the check of the object rejects
    return points if triangles is None else points[np.unique(triangles)]


def _of_yaml(data: bytes, folder: Path | None, source_name: str) -> Scene:
    content, lines = parse_yaml(data, source_name)
    faults, objects = list[Fault](), list[SceneObject]()
    if not isinstance(content, dict) or "objects" not in content:
        problem, remedy = "the key 'objects' is missing", "write objects: {NAME: {shape: …}}"
        raise SceneRejected(source_name, [Fault(1, "scene", "", problem, remedy)])
    for key in content:
        if key != "objects":
            remedy = suggest(key, ("objects",), "the only key is")
            faults.append(Fault(lines[key,], "scene", key, "is not a key of a scene", remedy))
    given = content["objects"]
    if not isinstance(given, dict | None):
        problem, remedy = "is not a table of objects", "write objects: {NAME: {shape: …}}"
        faults.append(Fault(lines["objects",], "objects", str(given), problem, remedy))
        given = {}
    for name, table in (given or {}).items():
        where = {key[-1]: n for key, n in lines.items() if key[:-1] == ("objects", name)}
        where[""] = lines["objects", name]
        found = list[Fault]()
        one = _object(name, table, where, folder, found)
        faults += found
        objects += [] if one is None else [one]
    if faults:
        raise SceneRejected(source_name, faults)
    return Scene(objects)


def _object(
    name: str, table: Any, lines: dict[str, int], folder: Path | None, faults: list[Fault]
) -> SceneObject | None:
    """Return the object of a table; None, with ``faults``, if it has any."""
    where, begin = f"object '{name}'", lines[""]
    kind = table.get("shape") if isinstance(table, dict) else None
    if not isinstance(table, dict) or kind is None:
        remedy = f"write shape: one of {', '.join(SCENE_SHAPES)}"
        faults.append(Fault(begin, where, "", "the shape is missing", remedy))
        return None
    if not isinstance(kind, str) or kind not in SIZES:
        remedy = suggest(str(kind), tuple(SIZES), "the shapes are")
        faults.append(Fault(lines["shape"], where, str(kind), "is not a shape", remedy))
        return None
    known, values = (*COMMON, *SIZES[kind]), dict[str, Any]()
    for key, value in table.items():
        if key not in known:
            remedy = suggest(key, known, "the keys are")
            faults.append(Fault(lines[key], where, key, f"is not a key of a {kind}", remedy))
        elif key not in SIZES[kind] and key != "shape":
            try:
                if key == "rpy":
                    values["rotation"] = _rotation(where, value)
                else:
                    values[key] = CHECKS[key](where, value)
            except InvalidValue as error:
                faults.append(_fault(lines[key], where, error))
    try:
        values |= _shape(where, kind, table, folder)
        if not faults:
            return SceneObject(name, **values)
    except InvalidValue as error:
        sizes = [key for key in SIZES[kind] if key in table]
        named = [key for key in sizes if key in str(error)]
        faults.append(_fault(lines[[*named, *sizes, ""][0]], where, error))
    return None


def _shape(where: str, kind: str, table: dict[str, Any], folder: Path | None) -> dict[str, Any]:
    """Return the shape of a table, and the vertices of a mesh."""
    if kind == "mesh":
        if ("file" in table) == ("vertices" in table):
            raise InvalidValue(f"{where}: a mesh has 'file' or 'vertices'; write one of them")
        scale = table.get("scale", 1.0)
        factors = check_vector(f"{where}: scale", scale if isinstance(scale, list) else [scale] * 3)
        points = (
            _mesh_vertices(where, str(table["file"]), folder)
            if "file" in table
            else as_readonly(table["vertices"])
        )
        if factors.size != 3 or not (factors != 0).all():
            raise InvalidValue(f"{where}: scale = {scale}; expected one or three numbers, none 0")
        scaled = points * factors if points.ndim == 2 and points.shape[1] == 3 else points
        return {"shape": Shape("mesh", ()), "vertices": check_vertices(where, scaled)}
    missing = [key for key in SIZES[kind] if key not in table]
    if missing:
        raise InvalidValue(f"{where}: {missing[0]} of the {kind} is missing; write {missing[0]}: …")
    if kind == "box":
        size = tuple(check_vector(f"{where}: size", table["size"], 3).tolist())
    else:
        size = tuple(table[key] for key in SIZES[kind])
    return {"shape": CHECKS["shape"](where, Shape(kind, size))}


def _rotation(where: str, value: Any) -> Matrix:
    angles = check_vector(f"{where}: rpy", value, 3)
    if np.abs(angles).max() > 2 * pi:
        largest = float(angles[np.argmax(np.abs(angles))])
        raise InvalidValue(f"{where}: rpy = {largest:g} rad; expected at most 2 pi; write radians")
    return as_readonly(pin.rpy.rpyToMatrix(np.array(angles)))


def _fault(line: int, where: str, error: InvalidValue) -> Fault:
    """Return the fault of an error's message: its last part is the remedy."""
    text = str(error)
    for prefix in (f"{where}: ", f"scene {where}: "):
        text = text.removeprefix(prefix)
    problem, _, remedy = text.rpartition("; ")
    return Fault(line, where, "", problem or text, remedy)
