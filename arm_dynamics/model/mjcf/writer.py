"""An arm as MJCF, the format of MuJoCo: bodies, inertia, limits, passive forces, shapes, actuators.

Each link is a body of its name and frame. Damping, dry friction and armature contain those of the
actuators at the joint, so that MuJoCo simulates the same equations of motion for an effort.

References
----------
MuJoCo documentation, XML reference.

"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import pinocchio as pin

from arm_dynamics.model.arm_model import ArmModel, Joint
from arm_dynamics.model.audit.mimic_joints import MimicJoint
from arm_dynamics.model.audit.numbers import number_attribute, vector_attribute
from arm_dynamics.model.audit.robot import Edge, Robot
from arm_dynamics.model.links import link_inertia, origin_pose, unit_axis
from arm_dynamics.model.mesh_files import find_mesh, scale_to_meters
from arm_dynamics.model.mjcf.reader import TOOL_TEXT, VELOCITY_NUMERIC
from arm_dynamics.model.robot_description import with_fixed_joints
from arm_dynamics.model.urdf_text import element_text
from arm_dynamics.model.urdf_writer import format_number, format_numbers
from arm_dynamics.model.xml_source import Node, parse_xml

MESH_FORMATS = {".stl", ".obj", ".msh"}
"""Mesh files that MuJoCo reads."""
GROUPS = {"visual": "2", "collision": "3"}
"""Groups of geoms, as in MuJoCo's own models; the viewer shows groups 0 to 2."""


@dataclass(frozen=True)
class Mjcf:
    """MJCF text of an arm, and a note on each value that it lacks."""

    text: str
    notes: tuple[str, ...]


def mjcf_of_arm(arm: ArmModel, excluded: Iterable[tuple[str, str]] = ()) -> Mjcf:
    """Return the MJCF of an arm.

    Parameters
    ----------
    arm : ArmModel
        The arm; its locked joints are welded. Its payload is omitted.
    excluded : iterable of (str, str)
        Pairs of links without contact, in addition to links that a joint connects.

    """
    return _Writer(arm).result(excluded)


class _Writer:
    def __init__(self, arm: ArmModel) -> None:
        self._arm = arm
        self._robot = Robot(parse_xml(with_fixed_joints(arm)))
        self._folder = arm.source.parent if arm.source else None
        self._joints = dict(
            zip(arm.joint_names, zip(arm.joints, arm.actuators, strict=True), strict=True)
        )
        self._meshes: dict[tuple[str, str], str] = {}
        self._colors = {m.get("name"): m for m in self._robot.root.find_all("material")}
        self._mimics = {mimic.name: mimic for mimic in arm.mimic_joints}
        self._order: list[Joint] = []
        self._initial: list[float] = []
        self._velocity: list[float] = []
        self.notes: dict[str, None] = {}

    def result(self, excluded: Iterable[tuple[str, str]]) -> Mjcf:
        """Return text and notes."""
        arm = self._arm
        (root,) = (name for name in self._robot.links if name not in self._robot.parent_joint)
        body = self._body(root, None)
        self._add_notes()
        adjacent = [(edge.parent, edge.child) for edge in self._robot.edges]
        pairs = dict.fromkeys(tuple(sorted(pair)) for pair in (*adjacent, *excluded))
        initial = [format_number(position) for position in self._initial]
        velocity = [format_number(limit) for limit in self._velocity]
        sections = {
            "asset": [
                element_text("mesh", {"name": name, "file": file, "scale": scale})
                for (file, scale), name in self._meshes.items()
            ],
            "worldbody": [body],
            "contact": [element_text("exclude", {"body1": a, "body2": b}) for a, b in pairs],
            "equality": [_equality(mimic) for mimic in self._mimics.values()],
            "actuator": [self._motor(joint) for joint in self._order],
            "custom": [
                element_text("text", {"name": TOOL_TEXT, "data": arm.tool_frame}),
                element_text("numeric", {"name": VELOCITY_NUMERIC, "data": " ".join(velocity)}),
            ],
            "keyframe": [element_text("key", {"name": "initial", "qpos": " ".join(initial)})],
        }
        if not all(isfinite(joint.velocity) for joint in self._order):
            del sections["custom"][1]
        massless = element_text("geom", {"mass": "0"})  # of links without <inertial>
        children = [
            element_text("compiler", {"angle": "radian", "autolimits": "true"}),
            element_text("default", {}, children=[massless]),
            element_text("option", {"gravity": format_numbers(arm.gravity)}),
            *(element_text(tag, {}, children=texts) for tag, texts in sections.items() if texts),
        ]
        return Mjcf(
            element_text("mujoco", {"model": arm.name}, children=children) + "\n", tuple(self.notes)
        )

    def _body(self, link: str, edge: Edge | None) -> str:
        """Return the body of a link with all bodies below, children in the order of joint names."""
        node = self._robot.links[link]
        attributes, children = {"name": link}, list[str]()
        if edge is not None:
            attributes |= _pose(origin_pose(edge.joint))
            name = edge.joint.get("name") or ""
            if name in self._joints:
                joint, actuator = self._joints[name]
                self._order.append(joint)
                self._initial.append(joint.initial)
                self._velocity.append(joint.velocity)
                children.append(self._hinge(edge.joint, joint, actuator))
            elif name in self._mimics:
                mimic = self._mimics[name]
                joint, _ = self._joints[mimic.joint]
                self._initial.append(mimic.multiplier * joint.initial + mimic.offset)
                self._velocity.append(abs(mimic.multiplier) * joint.velocity)
                children.append(_joint_element(edge.joint, mimic, self._range(mimic)))
        children += _inertial(link_inertia(node))
        for tag in GROUPS:
            for shape in node.find_all(tag):
                children += self._geoms(shape, tag)
        below = sorted(
            self._robot.child_joints.get(link, ()), key=lambda e: e.joint.get("name") or ""
        )
        children += [self._body(edge.child, edge) for edge in below]
        return element_text("body", attributes, children=children)

    def _range(self, mimic: MimicJoint) -> dict[str, str]:
        model = self._arm.tree
        index = model.getJointId(mimic.name) - 1
        ends = [model.lowerPositionLimit[index], model.upperPositionLimit[index]]
        return {} if mimic.kind == "continuous" else {"range": format_numbers(ends)}

    def _hinge(self, node: Node, joint: Joint, actuator: Any) -> str:
        """Return the joint with limits, and the passive forces of joint and actuator."""
        # The back-EMF of a motor acts through its effort, which MuJoCo's motor has at any speed.
        values = {
            "damping": joint.damping + actuator.viscous_friction,
            "frictionloss": joint.friction + actuator.breakaway_effort,
            "armature": actuator.armature,
        }
        numbers = {name: format_number(value) for name, value in values.items() if value}
        if isfinite(joint.lower):
            numbers = {"range": format_numbers([joint.lower, joint.upper])} | numbers
        return _joint_element(node, joint, numbers)

    def _motor(self, joint: Joint) -> str:
        """Return the actuator of a joint: its control is the effort, within its limit."""
        attributes = {"name": joint.name, "joint": joint.name}
        if isfinite(joint.effort):
            limit = format_numbers([-joint.effort, joint.effort])
            attributes |= {"ctrlrange": limit, "forcerange": limit}
        return element_text("motor", attributes)

    def _geoms(self, shape: Node, tag: str) -> list[str]:
        """Return the geoms of a ``<visual>`` or ``<collision>``."""
        attributes = {"group": GROUPS[tag], **_pose(origin_pose(shape))}
        if tag == "visual":
            attributes |= {"contype": "0", "conaffinity": "0", **self._color(shape)}
        geometry, geoms = shape.find("geometry"), list[str]()
        for node in geometry.children if geometry else ():
            given = self._mesh(node) if node.tag == "mesh" else _sizes(node)
            if given:
                geoms.append(element_text("geom", {**given, **attributes}))
        return geoms

    def _mesh(self, node: Node) -> dict[str, str]:
        """Return the attributes of a mesh geom, and add the mesh to the assets."""
        uri = node.get("filename") or ""
        file = find_mesh(uri, self._folder)
        if file is None or file.suffix.lower() not in MESH_FORMATS:
            formats = ", ".join(sorted(MESH_FORMATS))
            self.notes[f"mesh '{uri}' is omitted: MuJoCo reads {formats}"] = None
            return {}
        scale = scale_to_meters(node.get("scale"), file) or "1 1 1"
        key = str(Path(file).absolute()), scale
        name = self._meshes.setdefault(key, f"{file.stem}_{len(self._meshes)}")
        return {"type": "mesh", "mesh": name}

    def _color(self, shape: Node) -> dict[str, str]:
        material = shape.find("material")
        if material is not None and material.find("color") is None:
            material = self._colors.get(material.get("name"))
        color = material.find("color") if material else None
        rgba = vector_attribute(color, "rgba", 4)
        return {"rgba": format_numbers(rgba)} if rgba else {}

    def _add_notes(self) -> None:
        """Add a note for each property of the arm that MJCF does not have."""
        kinds: dict[str, list[str]] = {}
        for joint in self._order:
            if joint.actuator != "ideal":
                kinds.setdefault(joint.actuator, []).append(joint.name)
        for kind, names in kinds.items():
            text = f"actuator {kind} ({', '.join(names)}): its electrical and thermal constants"
            self.notes[f"{text} are omitted; friction and rotor inertia are in the joint"] = None
        if self._order:
            self.notes["end stops: stiffness and damping are omitted; MuJoCo's limits are soft"] = (
                None
            )
            self.notes["velocity limits are custom data, which MuJoCo does not enforce"] = None
        blocks = self._robot.root.find_all("ros2_control")
        hardware = [node for block in blocks for node in block.find_all("hardware")]
        if any(p.get("name") == "driver" for node in hardware for p in node.find_all("param")):
            self.notes["driver and motors of the <ros2_control> block are omitted"] = None
        if self._arm.payload.mass:
            self.notes["payload is omitted"] = None


def _joint_element(node: Node, joint: Joint | MimicJoint, numbers: dict[str, str]) -> str:
    attributes = {
        "name": joint.name,
        "type": "slide" if joint.kind == "prismatic" else "hinge",
        "axis": format_numbers(unit_axis(node)),
    }
    return element_text("joint", attributes | numbers)


def _equality(mimic: MimicJoint) -> str:
    """Return the constraint of a mimic joint, whose limits and friction the driven joint has."""
    polynomial = format_numbers([mimic.offset, mimic.multiplier, 0.0, 0.0, 0.0])
    return element_text(
        "joint", {"joint1": mimic.name, "joint2": mimic.joint, "polycoef": polynomial}
    )


def _pose(pose: Any) -> dict[str, str]:
    """Return position and quaternion (w, x, y, z) that differ from the identity."""
    turn = pin.Quaternion(pose.rotation)
    found = {}
    if pose.translation.any():
        found["pos"] = format_numbers(pose.translation)
    if abs(turn.w) != 1.0:
        found["quat"] = format_numbers([turn.w, turn.x, turn.y, turn.z])
    return found


def _inertial(inertia: Any) -> list[str]:
    """Return the inertia of a body about its center of mass; none without mass."""
    if not inertia.mass:
        return []
    at = [inertia.inertia[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))]
    attributes = {
        "pos": format_numbers(inertia.lever),
        "mass": format_number(inertia.mass),
        "fullinertia": format_numbers(at),
    }
    return [element_text("inertial", attributes)]


def _sizes(node: Node) -> Mapping[str, str]:
    """Return type and half sizes of a solid geom; empty for another shape."""
    if node.tag == "box":
        sizes: Sequence[float] = [x / 2 for x in vector_attribute(node, "size") or ()]
    else:
        radius, length = (number_attribute(node, name) for name in ("radius", "length"))
        sizes = [radius or 0.0, *([length / 2] if length is not None else ())]
    known = node.tag in {"box", "capsule", "cylinder", "sphere"}
    return {"type": node.tag, "size": format_numbers(sizes)} if known else {}
