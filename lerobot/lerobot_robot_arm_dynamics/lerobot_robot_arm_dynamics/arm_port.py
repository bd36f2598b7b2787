"""Arm, calibration and serial port of a robot or teleoperator."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from lerobot.motors import MotorCalibration
from lerobot.robots import Robot
from lerobot.teleoperators import Teleoperator
from lerobot.utils.constants import HF_LEROBOT_CALIBRATION
from numpy.typing import ArrayLike, NDArray

from arm_dynamics import ArmDynamicsError, ArmModel, DriverFault, InvalidValue, load_arm
from arm_dynamics.hardware import (
    Driver,
    EmulatorProcess,
    LeRobotCalibration,
    MotorBusDriver,
    ServoCalibration,
    build_driver,
)
from arm_dynamics.model import read_hardware_info
from arm_dynamics.safety import Events

logger = logging.getLogger(__name__)

DRIVERS = ("feetech", "dynamixel", "mit_can", "simulated", "emulated")
"""Physical motors, no hardware, and the motors of ``arm-dynamics hardware emulate``."""


@dataclass(kw_only=True)
class ArmPortConfig:
    """Arm and port.

    Attributes
    ----------
    arm : str
        Name of a bundled arm, or URDF: of an SO-101 (identified, with a payload ...) for the
        driver feetech.
    driver : str
        One of DRIVERS.
    port : str
        Serial port or CAN channel of the motors; default: that of the URDF.
    use_degrees : bool
        Whether positions are in degrees, as the default of so101_follower; else -100 to 100.

    """

    arm: str = "so101"
    driver: str = "feetech"
    port: str = ""
    use_degrees: bool = True


class ArmPort:
    """Connection to the servos of an arm, with its calibration.

    Parameters
    ----------
    config : ArmPortConfig
        Arm and port.
    servos : Mapping[str, MotorCalibration]
        Calibration that LeRobot has loaded; empty: the ranges of the URDF.

    Raises
    ------
    InvalidValue
        For a driver other than DRIVERS.
    ConfigError
        For a calibration of another arm.

    """

    def __init__(self, config: ArmPortConfig, servos: Mapping[str, MotorCalibration]) -> None:
        if config.driver not in DRIVERS:
            raise InvalidValue(f"driver = '{config.driver}'; expected one of {', '.join(DRIVERS)}")
        self.config = config
        self.arm: ArmModel = load_arm(config.arm)
        self.is_calibrated = bool(servos) or config.driver != "feetech"
        self._emulator: EmulatorProcess | None = None
        self._motors = config.driver
        if config.driver in ("simulated", "emulated"):
            with suppress(ArmDynamicsError):  # a simulated arm needs no motors
                self._motors = read_hardware_info(self.arm).settings.get("driver", "")
        self.calibration: LeRobotCalibration | None = None
        if self._motors == "feetech":
            read = {name: ServoCalibration(**vars(servo)) for name, servo in servos.items()}
            self.calibration = (
                LeRobotCalibration(self.arm, read, use_degrees=config.use_degrees)
                if servos
                else LeRobotCalibration.of_urdf(self.arm, use_degrees=config.use_degrees)
            )
        self.units: LeRobotCalibration | JointUnits = self.calibration or JointUnits(
            self.arm, use_degrees=config.use_degrees
        )

    @property
    def features(self) -> dict[str, type]:
        """Keys of actions and observations, as those of so101_follower and so101_leader."""
        return {f"{name}.pos": float for name in self.arm.joint_names}

    def motor_calibration(self) -> dict[str, MotorCalibration]:
        """Return the calibration in the class of LeRobot."""
        servos = {} if self.calibration is None else self.calibration.servos
        return {name: MotorCalibration(**asdict(servo)) for name, servo in servos.items()}

    def build_driver(self, interface: str, period: float, events: Events) -> Driver:
        """Return the unconfigured driver of the motors; starts the emulator of ``emulated``.

        Raises
        ------
        DriverFault
            Without a calibration, and if the emulator does not start.

        """
        if not self.is_calibrated:
            raise DriverFault(
                "calibration = none; expected the file that lerobot-calibrate writes for"
                " so101_follower or so101_leader with the same id"
            )
        settings = {"port": self.config.port} if self.config.port else {}
        if self.config.driver == "emulated":
            self._emulator = EmulatorProcess(self.config.arm)
            settings = dict(self._emulator.settings)
        return build_driver(
            self.arm,
            self._motors,
            settings,
            interface=interface,
            period=period,
            events=events,
            motors=None if self.calibration is None else self.calibration.motors,
        )

    def check_homing(self, driver: Driver) -> None:
        """Raise DriverFault if the servos store other homing offsets than the calibration."""
        if self.calibration is None:
            return
        assert isinstance(driver, MotorBusDriver)
        differences = self.calibration.differences(driver.bus.stored_ranges())
        if differences:
            remedy = "run lerobot-calibrate, or copy the calibration of this arm"
            raise DriverFault(f"{'; '.join(differences)}; {remedy}")

    def close(self) -> None:
        """End the emulator."""
        if self._emulator is not None:
            self._emulator.close()
            self._emulator = None


class JointUnits:
    """Units of LeRobot for motors without a calibration file: by the URDF.

    Joints are in degrees, or from -100 to 100 over their range; a gripper is from 0 to 100.

    Parameters
    ----------
    arm : ArmModel
        The arm.
    use_degrees : bool
        Whether joints are in degrees.

    """

    def __init__(self, arm: ArmModel, *, use_degrees: bool) -> None:
        grips = np.array([name == "gripper" for name in arm.joint_names])
        limited = np.isfinite(arm.upper - arm.lower)
        lower, upper = (
            np.where(limited, x, y) for x, y in ((arm.lower, -np.pi), (arm.upper, np.pi))
        )
        degrees = ~grips & use_degrees
        self._factor = np.where(
            degrees, 180 / np.pi, np.where(grips, 100.0, 200.0) / (upper - lower)
        )
        self._zero = np.where(degrees, 0.0, np.where(grips, lower, (lower + upper) / 2))

    def normalized(self, q: ArrayLike) -> NDArray[np.float64]:
        """Return joint positions (nv,) [rad] in the units of LeRobot."""
        values: NDArray[np.float64] = (np.asarray(q, dtype=float) - self._zero) * self._factor
        return values

    def positions(self, values: ArrayLike) -> NDArray[np.float64]:
        """Return the joint positions (nv,) [rad] of values in the units of LeRobot."""
        q: NDArray[np.float64] = np.asarray(values, dtype=float) / self._factor + self._zero
        return q


def write_calibration(device: Robot | Teleoperator, port: ArmPort, stock: str) -> None:
    """Write the calibration in use to the file of a device.

    Raises NotImplementedError for physical servos: those are calibrated as the type ``stock``; and
    for other motors, whose calibration is that of the URDF.
    """
    if port.calibration is None:
        raise NotImplementedError(
            "calibrate motors without a calibration file of LeRobot with arm-dynamics hardware"
            " calibrate, which writes a URDF"
        )
    if port.config.driver == "feetech":
        kind = "robot" if isinstance(device, Robot) else "teleop"
        raise NotImplementedError(
            f"calibrate servos with lerobot-calibrate --{kind}.type={stock} and the same"
            f" --{kind}.id: this {'robot' if kind == 'robot' else 'teleoperator'} reads that file"
        )
    device.calibration = port.motor_calibration()
    device._save_calibration()
    logger.info(f"Calibration saved to {device.calibration_fpath}")


def stock_calibration(kind: str, name: str, arm_id: str | None) -> Path | None:
    """Return the calibration file of a stock class of LeRobot, if it exists.

    Parameters
    ----------
    kind : str
        "robots" or "teleoperators".
    name : str
        Name of the stock class, for example "so_follower".
    arm_id : str or None
        Id of the arm.

    """
    file = HF_LEROBOT_CALIBRATION / kind / name / f"{arm_id}.json"
    return file if file.is_file() else None
