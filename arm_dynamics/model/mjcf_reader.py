"""MJCF, the format of MuJoCo, as URDF: kinematic tree, inertia, limits, passive forces, shapes.

A body becomes a link of its name and frame, a site a link without mass. Each moving body has one
hinge or slide, whose coordinate is that of MuJoCo. Elements without a counterpart in URDF are
listed as notes.

References
----------
MuJoCo documentation, XML reference.

"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import inf, isfinite, pi, radians
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from arm_dynamics.core.arrays import Matrix
from arm_dynamics.core.errors import MALFORMED, ConfigError
from arm_dynamics.model.arm_model import Joint
from arm_dynamics.model.audit.numbers import parse_number
from arm_dynamics.model.ros2_control import control_joint
from arm_dynamics.model.urdf_text import element_text
from arm_dynamics.model.urdf_writer import ROS2_CONTROL_PLUGIN, format_number, format_numbers, rpy
from arm_dynamics.model.xml_source import Node, XmlSyntaxError, parse_xml, read_text

MAIN = "main"
"""Name of the default class of all elements."""
WORLD = "world"
UNLIMITED = 1e6
"""Limit of effort [N·m or N] and velocity [rad/s or m/s] of a joint without one."""
TOOL_TEXT, VELOCITY_NUMERIC = "tool_frame", "velocity_limit"
"""Custom elements for the tool frame and the velocity limits, which MJCF does not have."""
ACTUATORS = {
    "general", "motor", "position", "velocity", "intvelocity", "damper", "cylinder", "muscle",
    "adhesion", "plugin",
}  # fmt: skip
PASSIVE = {"tendon", "deformable", "flex", "skin"}
"""Elements that act on an arm and have no counterpart."""
NO_EFFECT = {"boundmass": 0.0, "boundinertia": 0.0, "settotalmass": -1.0}
"""Settings of the compiler that change masses, and their values without effect."""
DENSITY = 1000.0
"""Density [kg/m³] of a geom without mass and density."""
MAX_INCLUDES = 20
"""Depth of nested files."""


@dataclass(frozen=True)
class UrdfOfMjcf:
    """URDF text of an MJCF file, and a note on each element that it lacks."""

    text: str
    notes: tuple[str, ...]


def urdf_of_mjcf(path: Path) -> UrdfOfMjcf:
    """Return the URDF of an MJCF file.

    Raises
    ------
    ConfigError
        For a file that is not MJCF, and for a body, joint or geom that no arm can have; the message
        has its line.

    """
    try:
        return _Reader(path).result()
    except MALFORMED as error:
        raise ConfigError(f"{path}: MJCF: {error}") from error


def is_mjcf(text: str) -> bool:
    """Return whether the root element of an XML text is ``<mujoco>``."""
    try:
        return parse_xml(text).tag == "mujoco"
    except XmlSyntaxError:
        return False


class _Moving(NamedTuple):
    """A hinge or slide, by its index: the links that it connects, origin and axis."""

    index: int
    parent: str
    child: str
    origin: Any
    axis: tuple[float, ...]


@dataclass(eq=False)
class _Reader:
    """Links and joints of a file, in the order of its bodies."""

    path: Path
    elements: list[str | _Moving] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        """Read the settings, the default classes and the assets."""
        self.root = self._with_includes(self.path, 0)
        if self.root.tag != "mujoco":
            raise self._error(self.root, "is not the root element of MJCF", "write <mujoco>")
        self.compiler = {
            k: v for n in self.root.find_all("compiler") for k, v in n.attributes.items()
        }
        for name, value in NO_EFFECT.items():
            if float(self.compiler.get(name, value)) > value:
                text = f"<compiler {name}> = {self.compiler[name]} changes masses"
                raise self._error(self.root, text, "write the masses into the bodies")
        self.degrees = self.compiler.get("angle", "degree") == "degree"
        self.classes: dict[str, dict[str, dict[str, str]]] = {MAIN: {}}
        for node in self.root.find_all("default"):
            self._read_defaults(node, {}, node.get("class") or MAIN)
        self.mimics = self._read_mimics()
        self.assets = {
            (node.tag, node.get("name") or Path(node.get("file") or "").stem): self._with_class(
                node, ""
            )
            for group in self.root.find_all("asset")
            for node in group.children
        }

    def result(self) -> UrdfOfMjcf:
        """Return the URDF and the notes."""
        bodies = [n for world in self.root.find_all("worldbody") for n in world.find_all("body")]
        (first, *others) = bodies or [None]
        if first is None:
            raise self._error(self.root, "has no body", "write <worldbody> with the arm")
        fixed = not (first.find("joint") or first.find("freejoint"))
        efforts = self._actuator_efforts()
        velocities, initial = self._custom_velocities(), self._initial()
        if fixed and not others and self._pose(first) == pin.SE3.Identity():
            self._add_body(first, None, "", efforts)
        else:
            self.names.add(WORLD)
            self.elements.append(element_text("link", {"name": WORLD}))
            for body in bodies:
                self._add_body(body, WORLD, "", efforts)
        for index, joint in enumerate(self.joints):
            velocity = velocities[index] if index < len(velocities) else UNLIMITED
            start = initial[index] if len(initial) == len(self.joints) else joint.initial
            self.joints[index] = replace(joint, velocity=velocity, initial=start)
        self._note_elements(velocities, initial)
        return UrdfOfMjcf(self._text(), tuple(self.notes))

    # --- structure

    def _add_body(
        self, node: Node, parent: str | None, childclass: str, efforts: Mapping[str, float]
    ) -> None:
        """Add the link of a body, the joint above it, its sites, and all bodies below."""
        name = self._unique(node.get("name") or f"body_{len(self.names)}", node)
        childclass = node.get("childclass") or childclass
        if parent is not None:
            self._add_joint(node, parent, name, childclass, efforts)
        self.elements.append(self._link(node, name, childclass, is_root=parent is None))
        if float(node.get("gravcomp") or 0):
            self.notes[f"body '{name}': gravcomp is omitted"] = None
        for site in node.find_all("site"):
            attributes = self._with_class(site, childclass)
            label = site.get("name")
            if label and label not in self.names:
                self.names.add(label)
                self.elements.append(element_text("link", {"name": label}))
                self._fix(name, label, self._pose(attributes))
        for below in node.find_all("body"):
            self._add_body(below, name, childclass, efforts)

    def _add_joint(
        self, node: Node, parent: str, child: str, childclass: str, efforts: Mapping[str, float]
    ) -> None:
        """Add the joint between two links: hinge, slide, or fixed for a body without joints."""
        if node.find("freejoint"):
            raise self._error(node, "has a free joint", "remove it: the base of an arm is fixed")
        found, pose = node.find_all("joint"), self._pose(node)
        if not found:
            self._fix(parent, child, pose)
            return
        if len(found) > 1:
            raise self._error(node, f"has {len(found)} joints", "write one hinge or slide per body")
        given = self._with_class(found[0], childclass)
        kind, name = given.get("type", "hinge"), given.get("name") or f"{child}_joint"
        if kind not in {"hinge", "slide"}:
            raise self._error(found[0], f"has type '{kind}'", "expected hinge or slide")
        axis = np.array(self._numbers(found[0], given, "axis", (0.0, 0.0, 1.0)))
        if not axis.any():
            raise self._error(found[0], "has the axis 0 0 0", "write its direction")
        anchor = np.array(self._numbers(found[0], given, "pos", (0.0, 0.0, 0.0)))
        shift = pin.SE3(np.eye(3), anchor if kind == "hinge" else np.zeros(3))
        reference = -self._angle(given, "ref", kind)
        unit = axis / np.linalg.norm(axis)
        motion = (
            pin.SE3(pin.AngleAxis(reference, unit).matrix(), np.zeros(3))
            if kind == "hinge"
            else pin.SE3(np.eye(3), reference * unit)
        )
        origin = pose * shift * (motion if reference else pin.SE3.Identity())
        joint = self._limited(found[0], given, name, kind, efforts)
        self.joints.append(joint)
        link = child
        if shift != pin.SE3.Identity():  # the frame of a link is that of its joint
            link = self._unique(f"{name}_axis", node)
            self.elements.append(element_text("link", {"name": link}))
            self._fix(link, child, shift.inverse())
        self.elements.append(_Moving(len(self.joints) - 1, parent, link, origin, tuple(unit)))

    def _limited(
        self,
        node: Node,
        given: Mapping[str, str],
        name: str,
        kind: str,
        efforts: Mapping[str, float],
    ) -> Joint:
        """Return the joint of a hinge or slide: its limits and passive forces."""
        if float(given.get("stiffness", "0").split()[0]):
            self.notes[f"joint '{name}': stiffness is omitted"] = None
        lower, upper = -inf, inf
        if self._is_limited(given, "limited", "range"):
            lower, upper = self._numbers(node, given, "range", (0.0, 0.0))
            if kind == "hinge" and self.degrees:
                lower, upper = radians(lower), radians(upper)
        elif kind == "slide":
            raise self._error(node, "is a slide without range", "write its range [m]")
        effort = efforts.get(name, inf)
        if self._is_limited(given, "actuatorfrclimited", "actuatorfrcrange"):
            effort = min(effort, self._numbers(node, given, "actuatorfrcrange", (-inf, inf))[1])
        if not isfinite(effort):
            self.notes[f"joint '{name}': effort limit is missing; {UNLIMITED:g} is used"] = None
        values = [
            float(given.get(n, "0").split()[0]) for n in ("damping", "frictionloss", "armature")
        ]
        return Joint(
            name=name,
            kind="prismatic"
            if kind == "slide"
            else "revolute"
            if isfinite(upper)
            else "continuous",
            lower=lower,
            upper=upper,
            velocity=UNLIMITED,
            effort=effort if isfinite(effort) else UNLIMITED,
            damping=values[0],
            friction=values[1],
            initial=min(max(0.0, lower), upper),
            constants={"armature": values[2]} if values[2] else {},
        )

    def _link(self, node: Node, name: str, childclass: str, *, is_root: bool) -> str:
        """Return the link of a body with inertia and shapes; a root has no inertia."""
        geoms = [(geom, self._with_class(geom, childclass)) for geom in node.find_all("geom")]
        children = [] if is_root else self._inertial(node, geoms)
        for geom, given in geoms:
            group, contacts = int(given.get("group", "0")), ("contype", "conaffinity")
            tags = ["visual"] if group <= 2 else []
            tags += ["collision"] if any(int(given.get(n, "1")) for n in contacts) else []
            children += [s for tag in tags for s in self._shapes(geom, given, tag)]
        return element_text("link", {"name": name}, children=children)

    # --- inertia and shapes

    def _inertial(self, node: Node, geoms: Iterable[tuple[Node, Mapping[str, str]]]) -> list[str]:
        """Return the inertia of a body: its own, else that of its geoms; none without mass."""
        inertial = node.find("inertial")
        setting = self.compiler.get("inertiafromgeom", "auto")
        if setting == "true" or (setting == "auto" and inertial is None):
            total = pin.Inertia.Zero()
            for geom, given in geoms:
                total += self._geom_inertia(geom, given)
        elif inertial is None:
            return []
        else:
            pose = self._pose(inertial)
            mass = self._numbers(inertial, inertial.attributes, "mass", (0.0,))[0]
            own = np.diag(self._numbers(inertial, inertial.attributes, "diaginertia", (0.0,) * 3))
            if inertial.get("fullinertia"):
                full = self._numbers(inertial, inertial.attributes, "fullinertia", (0.0,) * 6)
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
        low, high = map(int, self.compiler.get("inertiagrouprange", "0 5").split())
        kind, mass = given.get("type", "sphere"), parse_number(given.get("mass"))
        density = float(given.get("density", DENSITY))
        counted = low <= int(given.get("group", "0")) <= high and kind not in {"plane", "hfield"}
        if not counted or mass == 0.0 or (mass is None and density == 0.0):
            return pin.Inertia.Zero()
        if kind not in _SOLIDS or given.get("shellinertia") == "true":
            remedy = "write the <inertial> of its body"
            raise self._error(node, f"has a mass and the type '{kind}'", remedy)
        pose, size = self._geom_pose(node, given)
        volume, unit = _SOLIDS[kind](*size)
        mass = density * volume if mass is None else mass
        return pose.act(pin.Inertia(mass, np.zeros(3), mass * np.diag(unit)))

    def _geom_pose(self, node: Node, given: Mapping[str, str]) -> tuple[Any, tuple[float, ...]]:
        """Return pose and sizes of a geom; ``fromto`` gives the ends of an axis along z."""
        size = self._numbers(node, given, "size", ())
        if not given.get("fromto"):
            return self._pose(given), size
        ends = np.array(self._numbers(node, given, "fromto", (0.0,) * 6)).reshape(2, 3)
        line = ends[1] - ends[0]
        turn = pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), line).matrix()
        half = float(np.linalg.norm(line)) / 2
        radius = size[:1] if given.get("type") in {"capsule", "cylinder"} else (size[0], size[0])
        return pin.SE3(turn, ends.mean(axis=0)), (*radius, half)

    def _shapes(self, node: Node, given: Mapping[str, str], tag: str) -> Iterator[str]:
        """Yield the ``<visual>`` or ``<collision>`` of a geom: three for a capsule."""
        kind = given.get("type", "sphere")
        if kind in {"plane", "hfield", "ellipsoid", "sdf"}:
            self.notes[f"geom of type {kind} is omitted"] = None
            return
        if kind == "mesh":
            mesh = self.assets.get(("mesh", given.get("mesh", "")), {})
            file = mesh.get("file")
            if not file:
                self.notes[f"mesh '{given.get('mesh')}' has no file: it is omitted"] = None
                return
            directory = self.compiler.get("meshdir", self.compiler.get("assetdir", ""))
            shape = {"filename": str(self.path.parent / directory / file)}
            scale = mesh.get("scale")
            yield self._shape(
                given, tag, self._pose(given), "mesh", shape | ({"scale": scale} if scale else {})
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
        children = [_origin(pose), geometry]
        color = given.get("rgba") or self.assets.get(
            ("material", given.get("material", "")), {}
        ).get("rgba")
        if tag == "visual" and color:
            label = "rgba_" + "_".join(color.split())
            rgba = element_text("color", {"rgba": " ".join(color.split())})
            children.append(element_text("material", {"name": label}, children=[rgba]))
        return element_text(tag, {}, children=children)

    # --- settings

    def _read_mimics(self) -> dict[str, dict[str, str]]:
        """Return the ``<mimic>`` of each joint that equals a linear function of another one."""
        mimics = {}
        for node in (n for group in self.root.find_all("equality") for n in group.children):
            joint, other = node.get("joint1"), node.get("joint2")
            if node.tag != "joint" or joint is None or node.get("active") == "false":
                self.notes[f"<equality> <{node.tag}> is omitted"] = None
                continue
            default = (0.0, 1.0, 0.0, 0.0, 0.0)
            offset, factor, *powers = self._numbers(node, node.attributes, "polycoef", default)
            if other is None or any(powers):
                self.notes[f"<equality> of joint '{joint}' is not linear: it is omitted"] = None
                continue
            numbers = {"multiplier": format_number(factor), "offset": format_number(offset)}
            mimics[joint] = {"joint": other, **numbers}
        return mimics

    def _actuator_efforts(self) -> dict[str, float]:
        """Return the largest effort [N·m or N] of the actuators of each joint that is limited."""
        efforts: dict[str, float] = {}
        kinds: dict[str, None] = {}
        for node in (n for group in self.root.find_all("actuator") for n in group.children):
            given, joint = self._with_class(node, "", ACTUATORS), node.get("joint")
            if node.tag != "motor":
                kinds[node.tag] = None
            if joint is None:
                self.notes[f"actuator '{node.get('name')}' without a joint is omitted"] = None
                continue
            gear = abs(float(given.get("gear", "1").split()[0]))
            limit = inf
            if self._is_limited(given, "forcelimited", "forcerange"):
                limit = gear * max(map(abs, self._numbers(node, given, "forcerange", (0.0, 0.0))))
            if node.tag == "motor" and self._is_limited(given, "ctrllimited", "ctrlrange"):
                control = max(map(abs, self._numbers(node, given, "ctrlrange", (0.0, 0.0))))
                limit = min(limit, gear * control)
            efforts[joint] = efforts.get(joint, 0.0) + limit
        if kinds:
            text = (
                f"actuators of type {', '.join(kinds)} become ideal ones: their gains are omitted"
            )
            self.notes[text] = None
        return efforts

    def _custom_velocities(self) -> tuple[float, ...]:
        """Return the velocity limits of the custom element, in the order of the joints."""
        nodes = [n for group in self.root.find_all("custom") for n in group.find_all("numeric")]
        found = [n for n in nodes if n.get("name") == VELOCITY_NUMERIC]
        return self._numbers(found[0], found[0].attributes, "data", ()) if found else ()

    def _initial(self) -> tuple[float, ...]:
        """Return the positions of the key frame "initial" or "home", else of the first one."""
        keys = [n for group in self.root.find_all("keyframe") for n in group.find_all("key")]
        keys = [node for node in keys if node.get("qpos")]
        named = [node for node in keys if node.get("name") in {"initial", "home"}]
        key = next(iter((*named, *keys)), None)
        return self._numbers(key, key.attributes, "qpos", ()) if key else ()

    def _note_elements(self, velocities: tuple[float, ...], initial: tuple[float, ...]) -> None:
        """Add notes on elements of the file that URDF does not have."""
        for node in self.root.children:
            if node.tag in PASSIVE and node.children:
                self.notes[f"<{node.tag}> is omitted: {len(node.children)} elements"] = None
        options = {k: v for n in self.root.find_all("option") for k, v in n.attributes.items()}
        gravity = [float(word) for word in options.get("gravity", "0 0 -9.81").split()]
        if gravity != [0.0, 0.0, -9.81]:
            self.notes[f"gravity = {options['gravity']} m/s² is omitted: with_gravity sets it"] = (
                None
            )
        for name in ("density", "viscosity"):
            if float(options.get(name, "0")):
                self.notes[f"<option {name}> is omitted: no fluid forces"] = None
        if len(velocities) != len(self.joints):
            self.notes[f"MJCF has no velocity limits: {UNLIMITED:g} rad/s or m/s is used"] = None
        if initial and len(initial) != len(self.joints):
            self.notes[f"key frame of {len(initial)} numbers is omitted"] = None

    def _text(self) -> str:
        """Return the URDF."""
        name = self.root.get("model") or self.path.stem
        texts = [n for group in self.root.find_all("custom") for n in group.find_all("text")]
        tools = [n.get("data") or "" for n in texts if n.get("name") == TOOL_TEXT]
        hardware = [element_text("plugin", {}, ROS2_CONTROL_PLUGIN)]
        hardware += [element_text("param", {"name": "tool_frame"}, tool) for tool in tools[:1]]
        control = [
            element_text("hardware", {}, children=hardware),
            *(
                control_joint(j, "effort", {n: format_number(v) for n, v in j.constants.items()})
                for j in self.joints
            ),
        ]
        elements = [e if isinstance(e, str) else self._moving(e) for e in self.elements]
        block = element_text("ros2_control", {"name": name, "type": "system"}, children=control)
        robot = element_text("robot", {"name": name}, children=[*elements, block])
        return f'<?xml version="1.0"?>\n{robot}\n'

    def _moving(self, at: _Moving) -> str:
        """Return the joint of a hinge or slide."""
        joint = self.joints[at.index]
        limit = {"effort": joint.effort, "velocity": joint.velocity}
        if joint.kind != "continuous":
            limit = {"lower": joint.lower, "upper": joint.upper, **limit}
        friction = {"damping": joint.damping, "friction": joint.friction}
        mimic = self.mimics.get(joint.name)
        children = [
            *_connection(at.parent, at.child, at.origin),
            element_text("axis", {"xyz": format_numbers(at.axis)}),
            element_text("limit", {n: format_number(v) for n, v in limit.items()}),
            element_text("dynamics", {n: format_number(v) for n, v in friction.items()}),
            *([element_text("mimic", mimic)] if mimic else ()),
        ]
        return element_text("joint", {"name": joint.name, "type": joint.kind}, children=children)

    def _fix(self, parent: str, child: str, pose: Any) -> None:
        """Add a fixed joint."""
        named = {"name": f"{child}_fixed", "type": "fixed"}
        self.elements.append(
            element_text("joint", named, children=_connection(parent, child, pose))
        )

    def _unique(self, name: str, node: Node) -> str:
        """Return ``name`` and add it to the names of links; raise ConfigError if it exists."""
        if name in self.names:
            raise self._error(node, f"has the name '{name}' of another body", "rename it")
        self.names.add(name)
        return name

    # --- attributes

    def _with_includes(self, path: Path, depth: int) -> Node:
        """Return the root element of a file with the elements of the files that it includes."""
        if depth > MAX_INCLUDES:
            raise ConfigError(f"{path}: <include> is nested more than {MAX_INCLUDES} deep")
        try:
            root = parse_xml(read_text(path))
        except XmlSyntaxError as error:
            raise ConfigError(f"{path}: {error}") from error

        def expanded(node: Node) -> Node:
            children: list[Node] = []
            for child in node.children:
                if child.tag == "include":
                    file = self.path.parent / (child.get("file") or "")
                    children += self._with_includes(file, depth + 1).children
                else:
                    children.append(expanded(child))
            return replace(node, children=tuple(children))

        return expanded(root)

    def _read_defaults(self, node: Node, above: Mapping[str, dict[str, str]], name: str) -> None:
        """Store a default class: its attributes of each element over those of the class above."""
        own = {tag: dict(values) for tag, values in above.items()}
        for child in node.children:
            if child.tag != "default":
                own.setdefault(child.tag, {}).update(child.attributes)
        self.classes[name] = own
        for child in node.find_all("default"):
            self._read_defaults(child, own, child.get("class") or "")

    def _with_class(self, node: Node, childclass: str, also: Iterable[str] = ()) -> dict[str, str]:
        """Return the attributes of an element over those of its default class.

        ``also`` are elements whose defaults apply too.
        """
        name = node.get("class") or childclass or MAIN
        if name not in self.classes:
            raise self._error(node, f"has the class '{name}', which does not exist", "define it")
        defaults = self.classes[name]
        shared = {k: v for tag in also if tag in defaults for k, v in defaults[tag].items()}
        return {**shared, **defaults.get(node.tag, {}), **node.attributes}

    def _is_limited(self, given: Mapping[str, str], flag: str, values: str) -> bool:
        """Return whether a range applies: by its flag, or if it is given."""
        setting = given.get(flag, "auto")
        automatic = self.compiler.get("autolimits", "true") == "true" and values in given
        return automatic if setting == "auto" else setting == "true"

    def _angle(self, given: Mapping[str, str], name: str, kind: str) -> float:
        value = float(given.get(name, "0"))
        return radians(value) if kind == "hinge" and self.degrees else value

    def _pose(self, element: Node | Mapping[str, str]) -> Any:
        """Return the pose of ``pos`` and one of the five orientations."""
        given = element.attributes if isinstance(element, Node) else element

        def numbers(name: str) -> Any:
            return np.array([float(word) for word in given[name].split()])

        position = numbers("pos") if "pos" in given else np.zeros(3)
        turn = 1.0 if not self.degrees else pi / 180
        R: Matrix = np.eye(3)
        if "quat" in given:
            w, x, y, z = numbers("quat") / np.linalg.norm(numbers("quat"))
            R = pin.Quaternion(w, x, y, z).matrix()
        elif "axisangle" in given:
            *axis, angle = numbers("axisangle")
            R = pin.AngleAxis(angle * turn, np.array(axis) / np.linalg.norm(axis)).matrix()
        elif "euler" in given:
            for letter, angle in zip(
                self.compiler.get("eulerseq", "xyz"), numbers("euler"), strict=True
            ):
                step = pin.AngleAxis(angle * turn, np.eye(3)["xyz".index(letter.lower())]).matrix()
                R = R @ step if letter.islower() else step @ R
        elif "xyaxes" in given:
            x, y = numbers("xyaxes").reshape(2, 3)
            x = x / np.linalg.norm(x)
            y = y - x * (x @ y)
            y = y / np.linalg.norm(y)
            R = np.stack([x, y, np.cross(x, y)], axis=1)
        elif "zaxis" in given:
            up = np.array([0.0, 0.0, 1.0])
            R = pin.Quaternion.FromTwoVectors(up, numbers("zaxis")).matrix()
        return pin.SE3(R, position)

    def _numbers(
        self, node: Node, given: Mapping[str, str], name: str, default: tuple[float, ...]
    ) -> tuple[float, ...]:
        """Return the numbers of an attribute; as many as ``default`` has, if it has any."""
        if name not in given:
            return default
        values = [parse_number(word) for word in given[name].split()]
        known = tuple(value for value in values if value is not None)
        if len(known) != len(values) or (default and len(known) != len(default)):
            count = f"{len(default)} numbers" if default else "numbers"
            raise self._error(node, f"has {name} = '{given[name]}'", f"expected {count}")
        return known

    def _error(self, node: Node, problem: str, remedy: str) -> ConfigError:
        name = f" '{node.get('name')}'" if node.get("name") else ""
        return ConfigError(f"{self.path}: line {node.line}: <{node.tag}>{name} {problem}; {remedy}")


def _connection(parent: str, child: str, pose: Any) -> list[str]:
    ends = (("parent", parent), ("child", child))
    return [_origin(pose), *(element_text(tag, {"link": link}) for tag, link in ends)]


def _origin(pose: Any) -> str:
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
