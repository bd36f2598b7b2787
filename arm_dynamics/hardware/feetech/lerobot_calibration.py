"""Positions of servos in the units of LeRobot, by its calibration files.

With the position p [steps], the calibrated range b to e, and m = (b + e) / 2:

    degrees        x = 360 (p - m) / 4095
    -100 ... 100   x = 200 (p - b) / (e - b) - 100,   b <= p <= e
    0 ... 100      x = 100 (p - b) / (e - b),         b <= p <= e, for a gripper

``drive_mode`` 1 mirrors the last two. The middle m is the middle of the joint's range in the URDF.

References
----------
LeRobot 0.6, ``MotorsBus._normalize`` and ``MotorsBus._unnormalize``.

"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.core.arrays import Vector, as_readonly, check_vector
from arm_dynamics.core.errors import MALFORMED, ConfigError
from arm_dynamics.hardware.feetech.registers import CENTER, STEP, STEPS
from arm_dynamics.hardware.motor_bus import StoredRange
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.hardware_info import read_hardware_info

GRIPPER = "gripper"
"""Joint with positions from 0 to 100."""
FULL_TURN = "wrist_roll"
"""Joint whose calibrated range is a full turn."""
DEGREE = 360 / (STEPS - 1)
"""Degrees of LeRobot per step."""


@dataclass(frozen=True, slots=True)
class ServoCalibration:
    """Calibration of one servo, with the names of LeRobot; positions in steps."""

    id: int
    drive_mode: int
    homing_offset: int
    range_min: int
    range_max: int


class LeRobotCalibration:
    """Convert positions of an arm's joints to the units of LeRobot and back.

    Parameters
    ----------
    arm : ArmModel
        The arm, with Feetech servos in its <ros2_control> block.
    servos : Mapping[str, ServoCalibration]
        Calibration of each joint.
    use_degrees : bool
        Whether joints are in degrees; else from -100 to 100. A gripper is from 0 to 100.

    Raises
    ------
    ConfigError
        For other joints than those of the arm, and a range that is empty or outside a turn.

    Attributes
    ----------
    motors : tuple of JointMotor
        Motor of each joint, with the id and the zero of the calibration.

    """

    def __init__(
        self, arm: ArmModel, servos: Mapping[str, ServoCalibration], *, use_degrees: bool = True
    ) -> None:
        if set(servos) != set(arm.joint_names):
            raise ConfigError(
                f"calibration: motors = {', '.join(servos)}; expected the joints of '{arm.name}':"
                f" {', '.join(arm.joint_names)}"
            )
        for name, servo in servos.items():
            if not 0 <= servo.range_min < servo.range_max < STEPS:
                raise ConfigError(
                    f"calibration: '{name}': range = {servo.range_min} to {servo.range_max} steps;"
                    f" expected an increasing range within 0 to {STEPS - 1}; calibrate again"
                )
        self.servos = {name: servos[name] for name in arm.joint_names}
        ordered = self.servos.values()
        lower = np.array([servo.range_min for servo in ordered], dtype=float)
        upper = np.array([servo.range_max for servo in ordered], dtype=float)
        self._range = lower, upper
        self._middle = (lower + upper) / 2
        grips = np.array([name == GRIPPER for name in arm.joint_names])
        self._degrees = ~grips & use_degrees
        self._span = np.where(grips, 100.0, 200.0)
        self._start = np.where(grips, 0.0, -100.0)
        self._mirrored = np.array([bool(servo.drive_mode) for servo in ordered])
        middles = [_middle(joint.lower, joint.upper) for joint in arm.joints]
        self.motors = tuple(
            replace(
                motor,
                id=servo.id,
                offset=middle - motor.sign * (m - CENTER) * STEP / motor.mechanical_reduction,
            )
            for motor, servo, middle, m in zip(
                read_hardware_info(arm).motors, ordered, middles, self._middle.tolist(), strict=True
            )
        )

    @classmethod
    def of_urdf(cls, arm: ArmModel, *, use_degrees: bool = True) -> LeRobotCalibration:
        """Return the calibration of servos whose ranges are those of the URDF."""
        servos = {}
        for motor, joint in zip(read_hardware_info(arm).motors, arm.joints, strict=True):
            ends = sorted(motor.shaft_position(q) for q in (joint.lower, joint.upper))
            lower, upper = np.clip(np.array(ends) / STEP + CENTER, 0, STEPS - 1).round().astype(int)
            if joint.name == FULL_TURN:
                lower, upper = 0, STEPS - 1
            servos[joint.name] = ServoCalibration(motor.id, 0, 0, int(lower), int(upper))
        return cls(arm, servos, use_degrees=use_degrees)

    @classmethod
    def read(cls, arm: ArmModel, file: Path, *, use_degrees: bool = True) -> LeRobotCalibration:
        """Return the calibration of a file that ``lerobot-calibrate`` has written.

        Raises
        ------
        ConfigError
            If the file cannot be read or has another structure.

        """
        names = [field.name for field in fields(ServoCalibration)]
        try:
            content = json.loads(file.read_text("utf-8"))
            servos = {
                str(joint): ServoCalibration(*(int(entry[name]) for name in names))
                for joint, entry in content.items()
            }
        except (OSError, *MALFORMED) as error:
            raise ConfigError(
                f"{file}: {error}; expected a calibration of LeRobot: {', '.join(names)} of each"
                " motor"
            ) from error
        return cls(arm, servos, use_degrees=use_degrees)

    def normalized(self, q: ArrayLike) -> Vector:
        """Return joint positions (nv,) [rad] in the units of LeRobot."""
        motors = zip(self.motors, np.asarray(q, dtype=float).tolist(), strict=True)
        return self.normalized_steps([m.shaft_position(x) / STEP + CENTER for m, x in motors])

    def normalized_steps(self, steps: ArrayLike) -> Vector:
        """Return servo positions (nv,) [steps] in the units of LeRobot."""
        p, (lower, upper) = np.asarray(steps, dtype=float), self._range
        ranged = (np.clip(p, lower, upper) - lower) / (upper - lower) * self._span + self._start
        ranged = np.where(self._mirrored, self._mirror(ranged), ranged)
        return as_readonly(np.where(self._degrees, (p - self._middle) * DEGREE, ranged))

    def positions(self, values: ArrayLike) -> Vector:
        """Return the joint positions (nv,) [rad] of values in the units of LeRobot.

        Raises
        ------
        InvalidValue
            For another number of values than joints, or a value that is not finite.

        """
        steps = self.steps(values)
        motors = zip(self.motors, steps.tolist(), strict=True)
        return as_readonly([motor.position((p - CENTER) * STEP) for motor, p in motors])

    def steps(self, values: ArrayLike) -> Vector:
        """Return the servo positions (nv,) [steps] of values in the units of LeRobot.

        LeRobot's own are truncated to integers. Raises InvalidValue as ``positions``.
        """
        x, (lower, upper) = check_vector("values", values, self._middle.size), self._range
        ranged = np.where(self._mirrored, self._mirror(x), x) - self._start
        ranged = np.clip(ranged / self._span, 0.0, 1.0) * (upper - lower) + lower
        return as_readonly(np.where(self._degrees, x / DEGREE + self._middle, ranged))

    def _mirror(self, values: Vector) -> Vector:
        return 2 * self._start + self._span - values

    def differences(self, stored: Mapping[int, StoredRange]) -> list[str]:
        """Return a sentence for each servo whose stored homing offset is a different one."""
        return [
            f"'{name}': homing offset = {round(stored[servo.id].homing_offset / STEP)} steps;"
            f" expected {servo.homing_offset} as in the calibration"
            for name, servo in self.servos.items()
            if servo.id in stored
            and round(stored[servo.id].homing_offset / STEP) != servo.homing_offset
        ]


def _middle(lower: float, upper: float) -> float:
    return (lower + upper) / 2 if np.isfinite([lower, upper]).all() else 0.0
