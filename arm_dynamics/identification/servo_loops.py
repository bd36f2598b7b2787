"""Position loops of an arm's servo motors: V = clip(k (q_ref - q), ±d V_s) at each joint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import pi
from types import MappingProxyType

import numpy as np

from arm_dynamics.control.controllers.pid import Pid
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.errors import ConfigError, InvalidValue, UnknownName
from arm_dynamics.identification.servo_parameters import SERVOS, PositionLoop
from arm_dynamics.model.arm_argument import requires_arm
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.hardware_info import JointMotor, read_hardware_info

DYNAMIXEL_X = PositionLoop(12.0, 800.0, 4096 / (2 * pi) / (128 * 885))
"""Position mode of Dynamixel X motors with the gain of the factory: PWM = K_P / 128 per step."""
LOOPS: Mapping[str, PositionLoop] = {
    **{name: loop for name, loop in SERVOS.items() if not loop.by_current},
    **dict.fromkeys(("xl430", "xc430", "xm430", "xh430", "xm540", "xh540"), DYNAMIXEL_X),
}
"""Position loops by voltage; a motor has that of the name with which its own name begins."""
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


@requires_arm
def servo_loops(arm: ArmModel, servos: Sequence[str] = ()) -> ServoLoops:
    """Return the position loops of the arm's servos as set at the factory.

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
    names = _servo_names(arm, servos)
    rows = []
    for joint, actuator in zip(arm.joints, arm.actuators, strict=True):
        if joint.actuator != "dc_motor":
            raise InvalidValue(
                f"joint '{joint.name}': actuator = {joint.actuator}; expected dc_motor, whose"
                " voltage the servo's position loop commands; add the motor constants to the URDF"
            )
        motor = names[joint.name]
        loop = _known_loop(motor.motor)
        supply = float(actuator.constants["supply_voltage"])
        supply = supply if np.isfinite(supply) else loop.supply_voltage
        gain = supply * loop.gain * loop.error_gain * motor.mechanical_reduction
        rows.append((gain, supply, loop.max_duty))
    return ServoLoops(*(as_readonly(values) for values in zip(*rows, strict=True)))


def has_servos(arm: ArmModel) -> bool:
    """Return whether the URDF names a servo with a known position loop for each joint."""
    try:
        servo_loops(arm)
    except (ConfigError, InvalidValue, UnknownName):
        return False
    return True


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
            f"arm '{arm.name}': servos of joints {', '.join(missing)} = none; expected one of"
            f" {', '.join(LOOPS)}; pass --servo {missing[0]}=NAME"
        )
    return names


def _known_loop(name: str) -> PositionLoop:
    key = next((known for known in LOOPS if name.lower().startswith(known)), None)
    if key is None:
        raise UnknownName("servo with a position loop by voltage", name, tuple(LOOPS))
    return LOOPS[key]
