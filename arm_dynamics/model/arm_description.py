"""Content of a URDF as values: joints with motors and solids, base, and tool."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from arm_dynamics.core.arrays import Matrix
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.model.solids import Solid

KINDS = ("revolute", "continuous", "prismatic")
BASE = "base_link"
TOOL = "tool"


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
    plugin: str = "topic_based_ros2_control/TopicBasedSystem"
    comment: str = ""

    def __post_init__(self) -> None:
        if "--" in self.comment:
            raise InvalidValue(
                f"{self.name}: comment contains '--'; expected a comment without it (XML)"
            )
