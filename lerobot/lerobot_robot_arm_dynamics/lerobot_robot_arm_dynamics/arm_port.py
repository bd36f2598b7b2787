"""Arm, calibration and serial port of a robot or teleoperator."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from lerobot.motors import MotorCalibration
from lerobot.utils.constants import HF_LEROBOT_CALIBRATION

from arm_dynamics import ArmModel, DriverFault, InvalidValue, load_arm
from arm_dynamics.hardware import (
    Driver,
    LeRobotCalibration,
    MotorBusDriver,
    ServoCalibration,
    build_driver,
)
from arm_dynamics.safety import Events

DRIVERS = ("feetech", "simulated", "emulated")
"""Physical servos, no hardware, and the servos of ``arm-dynamics hardware emulate``."""
STOP_TIMEOUT = 5.0
"""Time [s] in which the emulator ends."""


@dataclass(kw_only=True)
class ArmPortConfig:
    """Arm and port.

    Attributes
    ----------
    arm : str
        Name of a bundled arm, or URDF of an SO-101 (identified, with a payload ...).
    driver : str
        One of DRIVERS.
    port : str
        Serial port of the driver feetech; default: that of the URDF.
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
        self._emulator: subprocess.Popen[str] | None = None
        self.calibration = LeRobotCalibration.of_urdf(self.arm, use_degrees=config.use_degrees)
        if servos:
            read = {name: ServoCalibration(**vars(servo)) for name, servo in servos.items()}
            self.calibration = LeRobotCalibration(self.arm, read, use_degrees=config.use_degrees)

    @property
    def features(self) -> dict[str, type]:
        """Keys of actions and observations, as those of so101_follower and so101_leader."""
        return {f"{name}.pos": float for name in self.arm.joint_names}

    def motor_calibration(self) -> dict[str, MotorCalibration]:
        """Return the calibration in the class of LeRobot."""
        return {n: MotorCalibration(**asdict(s)) for n, s in self.calibration.servos.items()}

    def build_driver(self, period: float, events: Events) -> Driver:
        """Return the unconfigured driver of the servos; starts the emulator of ``emulated``.

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
        port = self._emulated_port() if self.config.driver == "emulated" else self.config.port
        return build_driver(
            self.arm,
            "feetech",
            {"port": port} if port else {},
            interface="position",
            period=period,
            events=events,
            motors=self.calibration.motors,
        )

    def check_homing(self, driver: Driver) -> None:
        """Raise DriverFault if the servos store other homing offsets than the calibration."""
        assert isinstance(driver, MotorBusDriver)
        differences = self.calibration.differences(driver.bus.stored_ranges())
        if differences:
            remedy = "run lerobot-calibrate, or copy the calibration of this arm"
            raise DriverFault(f"{'; '.join(differences)}; {remedy}")

    def close(self) -> None:
        """End the emulator."""
        if self._emulator is not None:
            self._emulator.terminate()
            try:
                self._emulator.wait(STOP_TIMEOUT)
            except subprocess.TimeoutExpired:
                self._emulator.kill()
                self._emulator.wait()
            self._emulator = None

    def _emulated_port(self) -> str:
        """Start ``arm-dynamics hardware emulate`` and return the port that it prints."""
        command = [str(Path(sys.executable).with_name("arm-dynamics")), "hardware", "emulate"]
        self._emulator = subprocess.Popen(
            [*command, self.config.arm],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C must not end it before the arm is lowered
        )
        assert self._emulator.stdout is not None
        for line in self._emulator.stdout:
            if " at /dev/" in line:
                return line.split(" at ")[-1].strip()
        raise DriverFault("emulator: port = none; expected one; run arm-dynamics hardware emulate")


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
