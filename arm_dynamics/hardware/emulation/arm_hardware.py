"""Emulated motors of an arm, wired as its URDF describes them."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.hardware.emulation.dynamixel_motors import EmulatedDynamixels
from arm_dynamics.hardware.emulation.emulated_arm import EmulatedArm
from arm_dynamics.hardware.emulation.emulated_motors import EmulatedMotors, Shaft
from arm_dynamics.hardware.emulation.feetech_servos import EmulatedFeetech
from arm_dynamics.hardware.emulation.mit_motors import MitMotors
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.hardware_info import read_hardware_info

MOTORS: dict[str, Callable[[Sequence[Shaft]], EmulatedMotors]] = {
    "feetech": EmulatedFeetech,
    "dynamixel": EmulatedDynamixels,
    "mit_can": MitMotors,
}
"""Emulated motors by driver."""
SUPPLY = 12.0
"""Supply [V] of motors whose URDF names none."""


def emulated_motors(arm: ArmModel, driver: str = "") -> EmulatedMotors:
    """Return the motors of an arm on one bus.

    Parameters
    ----------
    arm : ArmModel
        Arm with motors in its ``<ros2_control>`` block.
    driver : str
        Driver of the motors; default: that of the URDF.

    Raises
    ------
    ConfigError
        If the URDF has no motors, or motors of this driver are not emulated.

    """
    name = driver or read_hardware_info(arm).settings.get("driver", "")
    if name not in MOTORS:
        raise ConfigError(f"emulation: driver = '{name}'; expected one of {', '.join(MOTORS)}")
    return MOTORS[name](emulated_shafts(arm))


def emulated_shafts(arm: ArmModel) -> list[Shaft]:
    """Return the shaft of each motor of an arm, with the supply of the joint's actuator."""
    supplies = [
        actuator.constants.get("supply_voltage", SUPPLY) or SUPPLY for actuator in arm.actuators
    ]
    return [
        Shaft(motor.id, motor.motor, supply=supplies[arm.index(motor.joint)])
        for motor in read_hardware_info(arm).motors
    ]


def emulated_arm(
    arm: ArmModel, motors: EmulatedMotors, q: Vector, *, step: float = 2e-3, hands: bool = True
) -> EmulatedArm:
    """Return the simulated arm that the motors move, with signs, offsets and ratios of the URDF.

    Parameters
    ----------
    arm : ArmModel
        The simulated arm.
    motors : EmulatedMotors
        Its motors, in the order of its joints.
    q : (nv,) array
        Initial configuration [rad or m].
    step : float
        Time step [s].
    hands : bool
        Whether the arm is supported until all motors apply torque.

    """
    wired = read_hardware_info(arm).motors
    return EmulatedArm(
        arm,
        motors,
        q,
        sign=[motor.sign for motor in wired],
        offset=[motor.offset for motor in wired],
        ratio=[motor.mechanical_reduction for motor in wired],
        step=step,
        hands=hands,
    )


def different_arm(arm: ArmModel, payload: float, friction: float) -> ArmModel:
    """Return the arm with a payload [kg] and a factor on the Coulomb friction of its motors."""
    arm = arm.with_payload(payload)
    for joint in arm.joints if friction != 1 else ():
        known = arm.actuators[arm.index(joint.name)].constants["coulomb_friction"]
        arm = arm.with_motor(joint.name, coulomb_friction=friction * known)
    return arm
