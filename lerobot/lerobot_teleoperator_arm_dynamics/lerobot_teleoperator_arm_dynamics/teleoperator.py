"""Leader: positions of servos without torque, or of a simulated motion."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from math import pi, sin
from typing import Any

import numpy as np
from lerobot.lerobot_types import RobotAction
from lerobot.teleoperators import Teleoperator, TeleoperatorConfig
from lerobot.utils.constants import TELEOPERATORS
from lerobot.utils.decorators import check_if_already_connected, check_if_not_connected
from lerobot_robot_arm_dynamics.arm_port import ArmPort, ArmPortConfig, stock_calibration

from arm_dynamics import DriverFault
from arm_dynamics.hardware import Driver
from arm_dynamics.safety import Events

logger = logging.getLogger(__name__)

PERIOD = 1 / 60
"""Period [s] assumed between two actions."""
FIRST_READS = 3
"""Readings of the servos before the first action."""


@TeleoperatorConfig.register_subclass("arm_dynamics")
@dataclass
class ArmDynamicsTeleoperatorConfig(ArmPortConfig, TeleoperatorConfig):
    """Settings of the leader, in addition to those of ArmPortConfig.

    Attributes
    ----------
    amplitude : float
        Amplitude of the simulated motion, as a fraction of half the range of each joint.
    motion_period : float
        Period of the simulated motion [s].

    """

    amplitude: float = 0.3
    motion_period: float = 8.0


class ArmDynamicsTeleoperator(Teleoperator):
    """SO-101 leader with the keys and units of ``so101_leader``.

    ``feetech`` and ``emulated`` read servos whose torque is disabled. ``simulated`` moves all
    joints on q = m + A h sin(2π t / T) with the middle m and half the range h of each joint.
    Without a separate calibration a leader uses that of ``so101_leader`` with its id.
    """

    config_class = ArmDynamicsTeleoperatorConfig
    name = "arm_dynamics"

    def __init__(self, config: ArmDynamicsTeleoperatorConfig) -> None:
        super().__init__(config)
        self.config = config
        stock = stock_calibration(TELEOPERATORS, "so_leader", config.id)
        if not self.calibration and config.calibration_dir is None and stock is not None:
            self._load_calibration(stock)
        self._port = ArmPort(config, self.calibration)
        self._driver: Driver | None = None
        self._start: float | None = None

    @property
    def action_features(self) -> dict[str, type]:
        """Keys and types of an action."""
        return self._port.features

    @property
    def feedback_features(self) -> dict[str, type]:
        """Empty: the leader has no force feedback."""
        return {}

    @property
    def is_connected(self) -> bool:
        """Whether positions can be read."""
        return self._start is not None

    @property
    def is_calibrated(self) -> bool:
        """Whether a calibration exists, if the driver requires one."""
        return self._port.is_calibrated

    @check_if_already_connected
    def connect(self, calibrate: bool = True) -> None:
        """Connect and disable torque; servos are calibrated with LeRobot before."""
        del calibrate
        if self.config.driver != "simulated":
            try:
                self._driver = self._port.build_driver(PERIOD, Events())
                self._driver.configure()
                self._port.check_homing(self._driver)
                for _ in range(FIRST_READS):
                    self._driver.read()
            except BaseException:
                self._release()
                raise
        self._start = time.monotonic()
        logger.info(f"{self} connected.")

    def calibrate(self) -> None:
        """Write the calibration in use to a file; servos are calibrated with ``so101_leader``."""
        if self.config.driver == "feetech":
            raise NotImplementedError(
                "calibrate servos with lerobot-calibrate --teleop.type=so101_leader and the same"
                " --teleop.id: this teleoperator reads that file"
            )
        self.calibration = self._port.motor_calibration()
        self._save_calibration()
        logger.info(f"Calibration saved to {self.calibration_fpath}")

    def configure(self) -> None:
        """Do nothing: ``connect`` configures the servos."""

    @check_if_not_connected
    def get_action(self) -> RobotAction:
        """Return the present positions; raises DriverFault without one of every joint."""
        assert self._start is not None
        arm = self._port.arm
        if self._driver is None:
            phase = 2 * pi * (time.monotonic() - self._start) / self.config.motion_period
            part = self.config.amplitude * sin(phase)
            q = (arm.lower + arm.upper + part * (arm.upper - arm.lower)) / 2
        else:
            q = self._driver.read().q
        unknown = [arm.joint_names[i] for i in np.flatnonzero(~np.isfinite(q))]
        if unknown:
            raise DriverFault(f"position of {', '.join(unknown)} = unknown; the servo is silent")
        values = self._port.calibration.normalized(q)
        return dict(zip(self.action_features, values.tolist(), strict=True))

    def send_feedback(self, feedback: dict[str, Any]) -> None:
        """Raise NotImplementedError: the leader has no force feedback."""
        raise NotImplementedError("the teleoperator arm_dynamics has no force feedback")

    @check_if_not_connected
    def disconnect(self) -> None:
        """Close the port."""
        self._release()
        logger.info(f"{self} disconnected.")

    def _release(self) -> None:
        if self._driver is not None:
            self._driver.close()
            self._driver = None
        self._port.close()
        self._start = None
