"""The live parameters that change a simulated arm: payload, gravity, motors, friction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rclpy.node import Node

from arm_dynamics.core.parameters import Parameter
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.load import load_arm
from arm_dynamics.ros.ros_parameters import by_joint, declare_fixed, declare_live, declare_number

PAYLOAD = Parameter("payload_mass", 0.0, "kg", "point mass at the tool", lower=0, upper=1e3)
LOCK = "lock"
JOINT_NUMBERS = (
    Parameter("damping", 0.0, "N·m·s/rad", "viscous friction of the joint", lower=0, upper=1e4),
    Parameter("friction", 0.0, "N·m", "dry friction of the joint", lower=0, upper=1e4),
)


def declared_model(node: Node) -> ArmModel:
    """Load the arm that the parameters ``arm`` and ``lock`` name."""
    arm = declare_fixed(node, "arm", "five_dof", "bundled arm or URDF file")
    # An empty list has no type: rclpy takes it for bytes.
    lock = declare_fixed(node, LOCK, [""], "joints to hold still")
    return load_arm(arm, [joint for joint in lock if joint])


def declare_arm(node: Node, arm: ArmModel) -> ArmModel:
    """Declare all of them; return the arm with the values given at the start."""
    values: dict[str, Any] = {
        PAYLOAD.name: declare_number(node, PAYLOAD.name, PAYLOAD, 0.0),
        "gravity": declare_live(node, "gravity", arm.gravity.tolist(), "gravity [m/s²], z up"),
    }
    for joint, actuator in zip(arm.joints, arm.actuators, strict=True):
        for spec in JOINT_NUMBERS:
            name = f"joints.{joint.name}.{spec.name}"
            values[name] = declare_number(node, name, spec, getattr(joint, spec.name))
        for spec in actuator.parameters:
            name = f"motors.{joint.name}.{spec.name}"
            values[name] = declare_number(node, name, spec, actuator.constants[spec.name])
    return changed_arm(arm, values)


def changed_arm(arm: ArmModel, values: Mapping[str, Any]) -> ArmModel:
    """The arm after a change of parameters; raises the arm's own errors for bad values."""
    if PAYLOAD.name in values:
        arm = arm.with_payload(values[PAYLOAD.name])
    if "gravity" in values:
        arm = arm.with_gravity(values["gravity"])
    for joint, numbers in by_joint(values, "joints").items():
        arm = arm.with_joint(joint, **numbers)
    for joint, constants in by_joint(values, "motors").items():
        arm = arm.with_motor(joint, **constants)
    return arm


def affects_arm(names: Iterable[str]) -> bool:
    """Whether any of these parameters changes the arm."""
    return any(
        n in (PAYLOAD.name, "gravity") or n.startswith(("joints.", "motors.")) for n in names
    )
