"""Description of an arm as values, and its URDF text with the ros2_control block.

All descriptions of an arm (modified DH, standard DH ...) become an ``ArmDescription``; only this
module writes XML. Numbers are the shortest text that is read as the same double.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import atan2, cos, hypot, sin
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from numpy.typing import ArrayLike

from arm_dynamics.core.arrays import Matrix, as_readonly
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.model.solids import SHAPES, Solid, compose

KINDS = ("revolute", "continuous", "prismatic")
BASE = "base_link"
TOOL = "tool"
ROS2_CONTROL_PLUGIN = "joint_state_topic_hardware_interface/JointStateTopicSystem"
"""Hardware component with which ros2_control commands an arm over joint_commands."""
ROS2_CONTROL_TOPICS = {
    "joint_commands_topic": "joint_commands",
    "joint_states_topic": "joint_states",
    # By default the plugin suppresses commands while positions are near the command.
    "trigger_joint_command_threshold": "-1",
}
"""Params of this component: the topics of the nodes."""


@dataclass(frozen=True, slots=True)
class MotorSpec:
    """Actuator of a joint: registered name, constants (SI), command interfaces."""

    name: str
    constants: Mapping[str, float] = field(default_factory=dict)
    commands: tuple[str, ...] = ("effort",)


@dataclass(frozen=True, slots=True)
class JointSpec:
    """One joint about (along) z and the solids it moves; SI units, radians.

    ``stop`` is the stiffness and damping of its end stops. ``solids`` are in the axes of the
    link frame. ``wiring`` has the params of a hardware driver: id, motor, sign ... Raises
    UnknownName for a kind not in KINDS, InvalidValue for limits that a kind requires and lacks, or
    has and must not have.
    """

    name: str
    effort: float
    velocity: float
    solids: tuple[Solid, ...]
    kind: str = "revolute"
    lower: float | None = None
    upper: float | None = None
    initial: float = 0.0
    damping: float = 0.0
    friction: float = 0.0
    motor: MotorSpec | None = None
    stop: tuple[float, float] | None = None
    wiring: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UnknownName(f"kind of joint {self.name}", self.kind, KINDS)
        limits = f"joint {self.name} ({self.kind}): lower = {self.lower}, upper = {self.upper}"
        if self.kind == "continuous":
            if (self.lower, self.upper, self.stop) != (None, None, None):
                raise InvalidValue(f"{limits}, stop = {self.stop}; expected None for each")
        elif self.lower is None or self.upper is None or self.lower >= self.upper:
            raise InvalidValue(f"{limits}; expected lower < upper")

    @property
    def link(self) -> str:
        """Name of the link that the joint moves."""
        return f"{self.name}_link"


@dataclass(frozen=True, slots=True, eq=False)
class ChainSegment:
    """A joint and the placement (4, 4) of its frame in its parent link's frame, at zero."""

    placement: Matrix
    joint: JointSpec


@dataclass(frozen=True, slots=True, eq=False)
class ArmDescription:
    """Content of a URDF: chain, base and tool (m, in the last link), colors (r, g, b, a).

    ``tool_rotation`` (3, 3) turns the tool's axes into the last link's; None for the same axes.
    ``tool_link`` names the link that carries the tool if fingers come after it, "" for the
    last. Raises InvalidValue for a comment that XML does not allow.
    """

    name: str
    segments: tuple[ChainSegment, ...]
    base: tuple[Solid, ...] = ()
    tool: tuple[float, float, float] = (0.0, 0.0, 0.0)
    tool_rotation: Matrix | None = None
    tool_link: str = ""
    tool_shapes: tuple[Solid, ...] = ()
    materials: Mapping[str, Sequence[float]] = field(default_factory=dict)
    hardware: Mapping[str, str] = field(default_factory=dict)
    plugin: str = ROS2_CONTROL_PLUGIN
    comment: str = ""

    def __post_init__(self) -> None:
        if "--" in self.comment:
            raise InvalidValue(
                f"{self.name}: comment contains '--'; expected a comment without it (XML)"
            )


def format_urdf(arm: ArmDescription) -> str:
    """Return the URDF text of ``arm``, the same for the same values on every machine."""
    robot = Element("robot", name=arm.name)
    for name, rgba in arm.materials.items():
        SubElement(SubElement(robot, "material", name=name), "color", rgba=format_numbers(rgba))
    _link(robot, BASE, arm.base, with_inertial=False)
    parent = BASE
    for segment in arm.segments:
        _joint(robot, segment, parent)
        _link(robot, segment.joint.link, segment.joint.solids)
        parent = segment.joint.link
    joint = SubElement(robot, "joint", name=f"{TOOL}_joint", type="fixed")
    _origin(joint, arm.tool, arm.tool_rotation)
    SubElement(joint, "parent", link=arm.tool_link or parent)
    SubElement(joint, "child", link=TOOL)
    tool = SubElement(robot, "link", name=TOOL)
    for solid in arm.tool_shapes:
        _shape(tool, "visual", solid)
    control = SubElement(robot, "ros2_control", name=arm.name, type="system")
    hardware = SubElement(control, "hardware")
    SubElement(hardware, "plugin").text = arm.plugin
    for name, value in {**arm.hardware, "tool_frame": TOOL}.items():
        SubElement(hardware, "param", name=name).text = value
    for segment in arm.segments:
        _control_joint(control, segment.joint)
    indent(robot)
    for child in robot[:-1]:
        if child.tag != "material":
            child.tail = "\n\n  "  # a blank line between links and joints
    head = f"<!--\n{arm.comment}\n-->\n" if arm.comment else ""
    return f'<?xml version="1.0"?>\n{head}{tostring(robot, encoding="unicode")}\n'


def format_number(value: float) -> str:
    """Return the shortest text that is read as ``value``; 0 below 1e-15, rounding of cosines."""
    value = float(value)
    return "0" if abs(value) < 1e-15 else repr(value).removesuffix(".0")


def format_numbers(values: ArrayLike) -> str:
    """Return ``format_number`` of each entry, separated by blanks."""
    return " ".join(format_number(value) for value in as_readonly(values))


def rpy(rotation: Matrix) -> tuple[float, float, float]:
    """Return the angles (r, p, y) [rad] of R = Rz(y) Ry(p) Rx(r), the rpy of a URDF origin.

    r is computed after a rotation by Rz(-y), which keeps it exact also at p = ±pi/2.
    """
    R = rotation
    yaw = atan2(R[1, 0], R[0, 0])
    s, c = sin(yaw), cos(yaw)
    pitch = atan2(-R[2, 0], hypot(R[0, 0], R[1, 0]))
    return atan2(s * R[0, 2] - c * R[1, 2], c * R[1, 1] - s * R[0, 1]), pitch, yaw


def _origin(parent: Element, position: ArrayLike, rotation: Matrix | None = None) -> None:
    angles = (0.0, 0.0, 0.0) if rotation is None else rpy(rotation)
    SubElement(parent, "origin", xyz=format_numbers(position), rpy=format_numbers(angles))


def _link(robot: Element, name: str, solids: Sequence[Solid], with_inertial: bool = True) -> None:
    link = SubElement(robot, "link", name=name)
    if with_inertial:
        whole = compose(solids)
        inertial = SubElement(link, "inertial")
        _origin(inertial, whole.center)
        SubElement(inertial, "mass", value=format_number(whole.mass))
        entries = {
            "i" + "xyz"[i] + "xyz"[j]: format_number(whole.inertia[i, j])
            for i in range(3)
            for j in range(i, 3)
        }
        SubElement(inertial, "inertia", entries)
    for tag in ("visual", "collision"):
        for solid in solids:
            _shape(link, tag, solid)


def _shape(link: Element, tag: str, solid: Solid) -> None:
    if solid.shape is None:
        return
    element = SubElement(link, tag)
    _origin(element, solid.center, solid.rotation)
    kind, size = solid.shape.kind, solid.shape.size
    sizes = {"size": format_numbers(size)}
    if kind != "box":
        sizes = {key: format_number(value) for key, value in zip(SHAPES[kind], size, strict=True)}
    SubElement(SubElement(element, "geometry"), kind, sizes)
    if tag == "visual" and solid.material:
        SubElement(element, "material", name=solid.material)


def _joint(robot: Element, segment: ChainSegment, parent: str) -> None:
    """Append the joint of a segment, with limits, damping and friction."""
    joint, placement = segment.joint, segment.placement
    element = SubElement(robot, "joint", name=joint.name, type=joint.kind)
    _origin(element, placement[:3, 3], placement[:3, :3])
    SubElement(element, "parent", link=parent)
    SubElement(element, "child", link=joint.link)
    SubElement(element, "axis", xyz="0 0 1")
    limits = {"lower": joint.lower, "upper": joint.upper}
    limits |= {"effort": joint.effort, "velocity": joint.velocity}
    known = {key: format_number(value) for key, value in limits.items() if value is not None}
    SubElement(element, "limit", known)
    SubElement(
        element,
        "dynamics",
        damping=format_number(joint.damping),
        friction=format_number(joint.friction),
    )


def _control_joint(control: Element, joint: JointSpec) -> None:
    """Append a joint of the ros2_control block, with interfaces, actuator and wiring."""
    element = SubElement(control, "joint", name=joint.name)
    motor = joint.motor or MotorSpec("ideal")
    for name in motor.commands:
        SubElement(element, "command_interface", name=name)
    position = SubElement(element, "state_interface", name="position")
    SubElement(position, "param", name="initial_value").text = format_number(joint.initial)
    for name in ("velocity", "effort"):
        SubElement(element, "state_interface", name=name)
    SubElement(element, "param", name="actuator").text = motor.name
    constants = dict(motor.constants)
    if joint.stop is not None:
        constants |= dict(zip(("stop_stiffness", "stop_damping"), joint.stop, strict=True))
    texts = {name: format_number(value) for name, value in constants.items()}
    for name, text in {**texts, **joint.wiring}.items():
        SubElement(element, "param", name=name).text = text
