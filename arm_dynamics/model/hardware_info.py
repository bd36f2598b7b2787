"""Motors of an arm's joints and their bus, read from the <ros2_control> block of the URDF.

In ``<hardware>``: params ``driver``, ``port``, ``baud`` ... ; in each ``<joint>``: ``id``,
``motor`` (the manufacturer's model name), ``sign``, ``offset``, ``mechanical_reduction``;
``servo_gain`` is read by ``identification.position_loops``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from arm_dynamics.core.errors import ConfigError, InvalidValue
from arm_dynamics.core.parameters import Parameter, with_defaults
from arm_dynamics.model.xml_source import Node, parse_xml

if TYPE_CHECKING:
    from arm_dynamics.model.arm_model import ArmModel

NUMBERS = (
    Parameter("id", None, "1", "number of the motor on its bus", lower=0, upper=2047),
    Parameter(
        "sign",
        1.0,
        "1",
        "1 if motor and joint turn in the same direction, else -1",
        lower=-1,
        upper=1,
    ),
    Parameter("offset", 0.0, "rad", "joint position where the motor reads 0", -1e3, 1e3),
    Parameter("mechanical_reduction", 1.0, "1", "motor shaft turns per joint turn", above=0),
)
NAMES = (*(parameter.name for parameter in NUMBERS), "motor", "servo_gain")


@dataclass(frozen=True, slots=True)
class JointMotor:
    """One joint's motor: q = sign q_m / N + offset, τ = sign N τ_m, N the mechanical reduction."""

    joint: str
    id: int
    motor: str
    sign: float = 1.0
    offset: float = 0.0
    mechanical_reduction: float = 1.0

    def position(self, shaft: float) -> float:
        """Joint position [rad] of a shaft's position [rad]."""
        return self.sign * shaft / self.mechanical_reduction + self.offset

    def velocity(self, shaft: float) -> float:
        """Joint velocity [rad/s] of a shaft's velocity [rad/s]."""
        return self.sign * shaft / self.mechanical_reduction

    def effort(self, shaft: float) -> float:
        """Joint effort [N·m] of a shaft's effort [N·m]."""
        return self.sign * shaft * self.mechanical_reduction

    def shaft_position(self, joint: float) -> float:
        """Shaft position [rad] of a joint position [rad]."""
        return self.sign * self.mechanical_reduction * (joint - self.offset)

    def shaft_velocity(self, joint: float) -> float:
        """Shaft velocity [rad/s] of a joint velocity [rad/s]."""
        return self.sign * self.mechanical_reduction * joint

    def shaft_effort(self, joint: float) -> float:
        """Shaft effort [N·m] of a joint effort [N·m]."""
        return self.sign * joint / self.mechanical_reduction


@dataclass(frozen=True, slots=True)
class HardwareInfo:
    """Motors in the joint order of the arm, and the params of ``<hardware>`` as text."""

    motors: tuple[JointMotor, ...]
    settings: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def read_hardware_info(arm: ArmModel) -> HardwareInfo:
    """Return the motors and the hardware params that the arm's URDF describes.

    Parameters
    ----------
    arm : ArmModel
        The arm, whose ``urdf`` is read.

    Returns
    -------
    HardwareInfo
        One motor for each joint, and the params of the first ``<hardware>``.

    Raises
    ------
    ConfigError
        For a joint without ``id`` or ``motor``, a number out of its range, and two joints with
        one id.

    """
    controls = parse_xml(arm.urdf).find_all("ros2_control")
    blocks = {joint.get("name"): joint for block in controls for joint in block.find_all("joint")}
    hardware = [node for block in controls for node in block.find_all("hardware")]
    motors = tuple(_read_motor(name, blocks.get(name)) for name in arm.joint_names)
    owners: dict[int, str] = {}
    for motor in motors:
        other = owners.setdefault(motor.id, motor.joint)
        if other != motor.joint:
            raise ConfigError(
                f"joint '{motor.joint}': motor id = {motor.id}, as joint '{other}'; expected one"
                " motor for each id"
            )
    return HardwareInfo(motors, MappingProxyType(_params(hardware[0] if hardware else None)))


def _params(node: Node | None) -> dict[str, str]:
    return {
        param.get("name") or "": param.text for param in (node.find_all("param") if node else ())
    }


def _read_motor(joint: str, block: Node | None) -> JointMotor:
    """Return the motor in a joint's block; raise ConfigError if it is incomplete."""
    given = {name: text for name, text in _params(block).items() if name in NAMES}
    motor, _ = given.pop("motor", ""), given.pop("servo_gain", "")
    try:
        numbers = with_defaults(f"motor of joint '{joint}'", NUMBERS, given)  # type: ignore[arg-type]
        if abs(numbers["sign"]) != 1 or numbers["id"] % 1:
            sign, number = numbers["sign"], numbers["id"]
            raise InvalidValue(
                f"motor of joint '{joint}': sign = {sign:g}, id = {number:g}; expected sign 1 or -1"
                " and an integer id"
            )
    except InvalidValue as error:
        raise ConfigError(f"<ros2_control>: {error}") from error
    if not motor:
        raise ConfigError(f"<ros2_control> joint '{joint}': expected <param name=\"motor\">")
    sign, offset, reduction = (numbers[n] for n in ("sign", "offset", "mechanical_reduction"))
    return JointMotor(joint, int(numbers["id"]), motor, sign, offset, reduction)
