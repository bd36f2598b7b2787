"""MJCF, the format of MuJoCo, as URDF: kinematic tree, inertia, limits, passive forces, shapes.

A body becomes a link of its name and frame, a site a link without mass. Each moving body has one
hinge or slide, whose coordinate is that of MuJoCo. Elements without a counterpart in URDF are
listed as notes.

References
----------
MuJoCo documentation, XML reference.

"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from math import inf, isfinite, radians
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

from arm_dynamics.core.errors import MALFORMED, ConfigError
from arm_dynamics.model.arm_model import Joint
from arm_dynamics.model.mjcf.geoms import Geoms, origin_text
from arm_dynamics.model.mjcf.mjcf_file import MjcfFile
from arm_dynamics.model.ros2_control import control_joint
from arm_dynamics.model.urdf_text import element_text
from arm_dynamics.model.urdf_writer import ROS2_CONTROL_PLUGIN, format_number, format_numbers
from arm_dynamics.model.xml_source import Node, XmlSyntaxError, parse_xml

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
        return _Reader(MjcfFile(path)).result()
    except MALFORMED as error:
        raise ConfigError(f"{path}: MJCF: {error}") from error


def is_mjcf(text: str) -> bool:
    """Return whether the root element of an XML text is ``<mujoco>``."""
    try:
        return parse_xml(text).tag == "mujoco"
    except XmlSyntaxError:
        return False


class _Moving(NamedTuple):
    """A hinge or slide, by its number: the links that it connects, origin and axis."""

    number: int
    parent: str
    child: str
    origin: Any
    axis: tuple[float, ...]


@dataclass(eq=False)
class _Reader:
    """Links and joints of a file, in the order of its bodies."""

    file: MjcfFile
    elements: list[str | _Moving] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    references: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read the equal joints."""
        self.geoms, self.mimics = Geoms(self.file), self._read_mimics()

    def result(self) -> UrdfOfMjcf:
        """Return the URDF and the notes."""
        bodies = [
            n for world in self.file.root.find_all("worldbody") for n in world.find_all("body")
        ]
        if not bodies:
            raise self.file.error(self.file.root, "has no body", "write <worldbody> with the arm")
        first = bodies[0]
        fixed = not (first.find("joint") or first.find("freejoint"))
        efforts = self._actuator_efforts()
        velocities, initial = self._custom_velocities(), self._initial()
        if fixed and len(bodies) == 1 and self.file.pose(first) == pin.SE3.Identity():
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
        return UrdfOfMjcf(self._text(), tuple(self.file.notes))

    def _add_body(
        self, node: Node, parent: str | None, childclass: str, efforts: Mapping[str, float]
    ) -> None:
        """Add the link of a body, the joint above it, its sites, and all bodies below."""
        name = self._unique(node.get("name") or f"body_{len(self.names)}", node)
        childclass = node.get("childclass") or childclass
        if parent is not None:
            self._add_joint(node, parent, name, childclass, efforts)
        shapes = self.geoms.elements(node, childclass, is_root=parent is None)
        self.elements.append(element_text("link", {"name": name}, children=shapes))
        if float(node.get("gravcomp") or 0):
            self.file.notes[f"body '{name}': gravcomp is omitted"] = None
        for site in node.find_all("site"):
            attributes = self.file.attributes(site, childclass)
            label = site.get("name")
            if label and label not in self.names:
                self.names.add(label)
                self.elements.append(element_text("link", {"name": label}))
                self._fix(name, label, self.file.pose(attributes))
        for below in node.find_all("body"):
            self._add_body(below, name, childclass, efforts)

    def _add_joint(
        self, node: Node, parent: str, child: str, childclass: str, efforts: Mapping[str, float]
    ) -> None:
        """Add the joint between two links: hinge, slide, or fixed for a body without joints."""
        if node.find("freejoint"):
            raise self.file.error(
                node, "has a free joint", "remove it: the base of an arm is fixed"
            )
        found, pose = node.find_all("joint"), self.file.pose(node)
        if not found:
            self._fix(parent, child, pose)
            return
        if len(found) > 1:
            raise self.file.error(
                node, f"has {len(found)} joints", "write one hinge or slide per body"
            )
        given = self.file.attributes(found[0], childclass)
        kind, name = given.get("type", "hinge"), given.get("name") or f"{child}_joint"
        if kind not in {"hinge", "slide"}:
            raise self.file.error(found[0], f"has type '{kind}'", "expected hinge or slide")
        axis = np.array(self.file.numbers(found[0], given, "axis", (0.0, 0.0, 1.0)))
        if not axis.any():
            raise self.file.error(found[0], "has the axis 0 0 0", "write its direction")
        anchor = np.array(self.file.numbers(found[0], given, "pos", (0.0, 0.0, 0.0)))
        shift = pin.SE3(np.eye(3), anchor if kind == "hinge" else np.zeros(3))
        reference = -self.file.angle(given, "ref", kind)
        unit = axis / np.linalg.norm(axis)
        motion = (
            pin.SE3(pin.AngleAxis(reference, unit).matrix(), np.zeros(3))
            if kind == "hinge"
            else pin.SE3(np.eye(3), reference * unit)
        )
        origin = pose * shift * (motion if reference else pin.SE3.Identity())
        self.references[name] = -reference
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
            self.file.notes[f"joint '{name}': stiffness is omitted"] = None
        lower, upper = -inf, inf
        if self.file.is_limited(given, "limited", "range"):
            lower, upper = self.file.numbers(node, given, "range", (0.0, 0.0))
            if kind == "hinge" and self.file.degrees:
                lower, upper = radians(lower), radians(upper)
        elif kind == "slide":
            raise self.file.error(node, "is a slide without range", "write its range [m]")
        effort = efforts.get(name, inf)
        if self.file.is_limited(given, "actuatorfrclimited", "actuatorfrcrange"):
            effort = min(effort, self.file.numbers(node, given, "actuatorfrcrange", (-inf, inf))[1])
        if not isfinite(effort):
            self.file.notes[f"joint '{name}': effort limit is missing; {UNLIMITED:g} is used"] = (
                None
            )
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

    def _read_mimics(self) -> dict[str, tuple[str, float, float]]:
        """Return by name the joints q₁ - r₁ = m (q₂ - r₂) + c: joint 2, m and c; r is ``ref``."""
        mimics = {}
        for node in (n for group in self.file.root.find_all("equality") for n in group.children):
            joint, other = node.get("joint1"), node.get("joint2")
            if node.tag != "joint" or joint is None or node.get("active") == "false":
                self.file.notes[f"<equality> <{node.tag}> is omitted"] = None
                continue
            default = (0.0, 1.0, 0.0, 0.0, 0.0)
            offset, factor, *powers = self.file.numbers(node, node.attributes, "polycoef", default)
            if other is None or any(powers):
                self.file.notes[f"<equality> of joint '{joint}' is not linear: it is omitted"] = (
                    None
                )
                continue
            mimics[joint] = other, factor, offset
        return mimics

    def _actuator_efforts(self) -> dict[str, float]:
        """Return the largest effort [N·m or N] of the actuators of each joint that is limited."""
        efforts: dict[str, float] = {}
        kinds: dict[str, None] = {}
        for node in (n for group in self.file.root.find_all("actuator") for n in group.children):
            given, joint = self.file.attributes(node, "", ACTUATORS), node.get("joint")
            if node.tag != "motor":
                kinds[node.tag] = None
            if joint is None:
                self.file.notes[f"actuator '{node.get('name')}' without a joint is omitted"] = None
                continue
            gear = abs(float(given.get("gear", "1").split()[0]))
            limit = inf
            if self.file.is_limited(given, "forcelimited", "forcerange"):
                limit = gear * max(
                    map(abs, self.file.numbers(node, given, "forcerange", (0.0, 0.0)))
                )
            if node.tag == "motor" and self.file.is_limited(given, "ctrllimited", "ctrlrange"):
                control = max(map(abs, self.file.numbers(node, given, "ctrlrange", (0.0, 0.0))))
                limit = min(limit, gear * control)
            efforts[joint] = efforts.get(joint, 0.0) + limit
        if kinds:
            text = (
                f"actuators of type {', '.join(kinds)} become ideal ones: their gains are omitted"
            )
            self.file.notes[text] = None
        return efforts

    def _custom_velocities(self) -> tuple[float, ...]:
        """Return the velocity limits of the custom element, in the order of the joints."""
        nodes = [
            n for group in self.file.root.find_all("custom") for n in group.find_all("numeric")
        ]
        found = [n for n in nodes if n.get("name") == VELOCITY_NUMERIC]
        return self.file.numbers(found[0], found[0].attributes, "data", ()) if found else ()

    def _initial(self) -> tuple[float, ...]:
        """Return the positions of the key frame "initial" or "home", else of the first one."""
        keys = [n for group in self.file.root.find_all("keyframe") for n in group.find_all("key")]
        keys = [node for node in keys if node.get("qpos")]
        named = [node for node in keys if node.get("name") in {"initial", "home"}]
        key = next(iter((*named, *keys)), None)
        return self.file.numbers(key, key.attributes, "qpos", ()) if key else ()

    def _note_elements(self, velocities: tuple[float, ...], initial: tuple[float, ...]) -> None:
        """Add notes on elements of the file that URDF does not have."""
        for node in self.file.root.children:
            if node.tag in PASSIVE and node.children:
                self.file.notes[f"<{node.tag}> is omitted: {len(node.children)} elements"] = None
        options = {k: v for n in self.file.root.find_all("option") for k, v in n.attributes.items()}
        gravity = [float(word) for word in options.get("gravity", "0 0 -9.81").split()]
        if gravity != [0.0, 0.0, -9.81]:
            self.file.notes[
                f"gravity = {options['gravity']} m/s² is omitted: with_gravity sets it"
            ] = None
        for name in ("density", "viscosity"):
            if float(options.get(name, "0")):
                self.file.notes[f"<option {name}> is omitted: no fluid forces"] = None
        if len(velocities) != len(self.joints):
            self.file.notes[f"MJCF has no velocity limits: {UNLIMITED:g} rad/s or m/s is used"] = (
                None
            )
        if initial and len(initial) != len(self.joints):
            self.file.notes[f"key frame of {len(initial)} numbers is omitted"] = None

    def _text(self) -> str:
        """Return the URDF."""
        name = self.file.root.get("model") or self.file.path.stem
        texts = [n for group in self.file.root.find_all("custom") for n in group.find_all("text")]
        tools = [n.get("data") or "" for n in texts if n.get("name") == TOOL_TEXT]
        hardware = [element_text("plugin", {}, ROS2_CONTROL_PLUGIN)]
        hardware += [element_text("param", {"name": "tool_frame"}, tool) for tool in tools[:1]]
        control = [
            element_text("hardware", {}, children=hardware),
            *(
                control_joint(j, "effort", {n: format_number(v) for n, v in j.constants.items()})
                for j in self.joints
                if j.name not in self.mimics
            ),
        ]
        elements = [e if isinstance(e, str) else self._moving(e) for e in self.elements]
        block = element_text("ros2_control", {"name": name, "type": "system"}, children=control)
        robot = element_text("robot", {"name": name}, children=[*elements, block])
        return f'<?xml version="1.0"?>\n{robot}\n'

    def _moving(self, at: _Moving) -> str:
        """Return the joint of a hinge or slide."""
        joint = self.joints[at.number]
        limit = {"effort": joint.effort, "velocity": joint.velocity}
        if joint.kind != "continuous":
            limit = {"lower": joint.lower, "upper": joint.upper, **limit}
        friction = {"damping": joint.damping, "friction": joint.friction}
        mimic = dict[str, str]()
        if joint.name in self.mimics:
            other, factor, offset = self.mimics[joint.name]
            offset += self.references[joint.name] - factor * self.references.get(other, 0.0)
            numbers = {"multiplier": format_number(factor), "offset": format_number(offset)}
            mimic = {"joint": other, **numbers}
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
            raise self.file.error(node, f"has the name '{name}' of another body", "rename it")
        self.names.add(name)
        return name


def _connection(parent: str, child: str, pose: Any) -> list[str]:
    ends = (("parent", parent), ("child", child))
    return [origin_text(pose), *(element_text(tag, {"link": link}) for tag, link in ends)]
