"""Position loops of an arm's servo motors: V = clip(k (q_ref - q), ±d V_s) at each joint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import pi
from types import MappingProxyType

import numpy as np

from arm_dynamics.control.controllers.pid import Pid
from arm_dynamics.core.arrays import Vector, as_readonly, check_float
from arm_dynamics.core.errors import ConfigError, InvalidValue, UnknownName
from arm_dynamics.identification.servos.servo_parameters import SERVOS, PositionLoop
from arm_dynamics.model.arm_argument import requires_masses
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.hardware_info import JointMotor, read_hardware_info
from arm_dynamics.model.urdf_text import with_params
from arm_dynamics.model.xml_source import parse_xml

DYNAMIXEL_X = PositionLoop(12.0, 800.0, 4096 / (2 * pi) / (128 * 885))
"""Position mode of Dynamixel X motors with the gain of the factory: PWM = K_P / 128 per step."""
LOOPS: Mapping[str, PositionLoop] = {
    **{name: loop for name, loop in SERVOS.items() if not loop.by_current},
    **dict.fromkeys(("xl430", "xc430", "xm430", "xh430", "xm540", "xh540"), DYNAMIXEL_X),
}
"""Position loops by voltage; a motor has that of the name with which its own name begins."""
GAIN = "servo_gain"
"""Param of a <ros2_control> joint: gain of the servo's position loop at the joint [V/rad]."""
MAX_VOLTAGE = 1e4
"""Limit [V] of a command before that of the supply."""


@dataclass(frozen=True, slots=True, eq=False)
class ServoLoops:
    """Position loops of all joints.

    ``gain`` k (nv,) [V/rad] at the joint, ``supply`` V_s (nv,) [V], ``max_duty`` d (nv,) [1].
    """

    gain: Vector
    supply: Vector
    max_duty: Vector

    def stiffness(self, arm: ArmModel) -> Vector:
        """Return K = k N kt / R (nv,) [N·m/rad] of joints at rest, at the motors of ``arm``."""
        constants = [actuator.constants for actuator in arm.actuators]
        torque = [c["gear_ratio"] * c["kt"] / c["resistance"] for c in constants]
        return as_readonly(self.gain * torque)

    def controller(self, arm: ArmModel) -> Pid:
        """Return the loops as a PID controller whose "effort" [N·m] is the voltage [V].

        Its model has motors with τ = V, so that a rollout with the interface "voltage" commands
        V = p (q_ref - q). The supply of the arm's motors limits it.
        """
        unit = MappingProxyType({"kt": 1.0, "ke": 0.0, "resistance": 1.0})
        joints = tuple(
            replace(joint, actuator="dc_motor", effort=MAX_VOLTAGE, constants=unit)
            for joint in arm.joints
        )
        gains = {
            joint: {"p": gain, "i": 0.0, "d": 0.0}
            for joint, gain in zip(arm.joint_names, self.gain.tolist(), strict=True)
        }
        return Pid(replace(arm, joints=joints), gains)


@requires_masses
def servo_loops(arm: ArmModel, servos: Sequence[str] = ()) -> ServoLoops:
    """Return the position loops of the arm's servos.

    The gain is the param ``servo_gain`` [V/rad] of the URDF's joint, which ``with_servo_gains``
    writes, else that of the factory.

    Parameters
    ----------
    arm : ArmModel
        The arm; each joint has the actuator ``dc_motor``.
    servos : Sequence[str]
        Names of servos: "sts3215" for all joints, "J1=sts3215" for one; default: the motors that
        the URDF names. Supply voltages are those of the arm's motors, if they have one.

    Raises
    ------
    ConfigError
        For a joint whose servo is not named.
    UnknownName
        For a servo without a known position loop, and for another joint.
    InvalidValue
        For a joint with another actuator.

    """
    names, known = _servo_names(arm, servos), _nominal_gains(arm)
    rows = []
    for joint, actuator in zip(arm.joints, arm.actuators, strict=True):
        if joint.actuator != "dc_motor":
            raise InvalidValue(
                f"joint '{joint.name}': actuator = {joint.actuator}; expected dc_motor, whose"
                " voltage the servo's position loop commands; add the motor constants to the URDF"
            )
        motor = names[joint.name]
        model = motor.motor.lower()
        loop = next((loop for name, loop in LOOPS.items() if model.startswith(name)), None)
        if loop is None:
            raise UnknownName("servo with a position loop by voltage", motor.motor, tuple(LOOPS))
        supply = float(actuator.constants["supply_voltage"])
        supply = supply if np.isfinite(supply) else loop.supply_voltage
        factory = supply * loop.gain * loop.error_gain * motor.mechanical_reduction
        rows.append((known.get(joint.name, factory), supply, loop.max_duty))
    return ServoLoops(*(as_readonly(values) for values in zip(*rows, strict=True)))


def with_servo_gains(urdf: str, arm: ArmModel, gain: Vector) -> str:
    """Return a URDF's text with the gains (nv,) [V/rad] of the position loops of its joints."""
    pairs = zip(arm.joint_names, gain.tolist(), strict=True)
    return with_params(urdf, {joint: {GAIN: f"{value:.5g}"} for joint, value in pairs})


def _nominal_gains(arm: ArmModel) -> dict[str, float]:
    """Return the gain [V/rad] of each joint whose <ros2_control> block has one."""
    nominal_gains = {}
    for block in parse_xml(arm.urdf).find_all("ros2_control"):
        for joint in block.find_all("joint"):
            for param in joint.find_all("param"):
                if param.get("name") == GAIN:
                    name = f"joint '{joint.get('name')}': {GAIN} [V/rad]"
                    try:
                        number = float(param.text)
                    except ValueError as error:
                        raise ConfigError(f"{name} = {param.text}; expected a number") from error
                    nominal_gains[str(joint.get("name"))] = check_float(name, number, above=0)
    return nominal_gains


def _servo_names(arm: ArmModel, servos: Sequence[str]) -> dict[str, JointMotor]:
    """Return the motor of each joint."""
    names: dict[str, JointMotor] = {}
    try:
        names = {motor.joint: motor for motor in read_hardware_info(arm).motors}
    except ConfigError:
        if not servos:
            raise ConfigError(
                f"arm '{arm.name}': servos = not named in the URDF; expected the name of a servo;"
                f" pass --servo NAME, one of {', '.join(LOOPS)}"
            ) from None
    for text in servos:
        joint, sign, name = text.rpartition("=")
        if sign and joint not in arm.joint_names:
            raise UnknownName(f"joint of arm '{arm.name}'", joint, arm.joint_names)
        for key in (joint,) if sign else arm.joint_names:
            reduction = names[key].mechanical_reduction if key in names else 1.0
            names[key] = JointMotor(key, 0, name, mechanical_reduction=reduction)
    missing = [joint for joint in arm.joint_names if joint not in names]
    if missing:
        raise ConfigError(
            f"arm '{arm.name}': no servos of joints {', '.join(missing)}; expected one of"
            f" {', '.join(LOOPS)}; pass --servo {missing[0]}=NAME"
        )
    return names
