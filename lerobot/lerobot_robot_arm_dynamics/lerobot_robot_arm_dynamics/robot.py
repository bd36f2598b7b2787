"""Follower: LeRobot's observations and actions on a control loop of arm_dynamics."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from math import isfinite, radians

from lerobot.cameras import CameraConfig, make_cameras_from_configs
from lerobot.lerobot_types import RobotAction, RobotObservation
from lerobot.robots import Robot, RobotConfig
from lerobot.utils.constants import ROBOTS
from lerobot.utils.decorators import check_if_already_connected, check_if_not_connected

from arm_dynamics import ArmDynamicsError, InvalidValue, Simulation, State
from arm_dynamics.control import ControlThread, PositionController, build_controller
from arm_dynamics.hardware import Driver, SimulationDriver
from arm_dynamics.safety import Events
from lerobot_robot_arm_dynamics.arm_port import (
    ArmPort,
    ArmPortConfig,
    stock_calibration,
    write_calibration,
)
from lerobot_robot_arm_dynamics.camera import ArmDynamicsCamera

logger = logging.getLogger(__name__)


@RobotConfig.register_subclass("arm_dynamics")
@dataclass
class ArmDynamicsRobotConfig(ArmPortConfig, RobotConfig):
    """Settings of the follower, in addition to those of ArmPortConfig.

    Attributes
    ----------
    rate : float
        Control rate of the servos [Hz].
    approach_speed : float
        Speed [deg/s] of the approach to the first action and of the motion at the end.
    lower_on_disconnect : bool
        Whether the arm returns to the configuration at which it was connected before torque is
        disabled.
    cameras : dict of str to CameraConfig
        Cameras of LeRobot.

    """

    rate: float = 100.0
    approach_speed: float = 30.0
    lower_on_disconnect: bool = True
    cameras: dict[str, CameraConfig] = field(default_factory=dict)


class ArmDynamicsRobot(Robot):
    """SO-101 follower with the keys and units of ``so101_follower``.

    A control loop runs in a thread: ``feetech`` and ``emulated`` command positions to the servos
    through the safety functions of arm_dynamics, ``simulated`` controls the efforts of a simulated
    arm. Without a separate calibration a follower uses that of ``so101_follower`` with its id.
    """

    config_class = ArmDynamicsRobotConfig
    name = "arm_dynamics"

    def __init__(self, config: ArmDynamicsRobotConfig) -> None:
        super().__init__(config)
        self.config = config
        stock = stock_calibration(ROBOTS, "so_follower", config.id)
        if not self.calibration and config.calibration_dir is None and stock is not None:
            self._load_calibration(stock)
        self._port = ArmPort(config, self.calibration)
        self.cameras = make_cameras_from_configs(config.cameras)
        for camera in self.cameras.values():
            if isinstance(camera, ArmDynamicsCamera):
                camera.attach(self._port.arm, lambda: self._measured().q)
        self._control: ControlThread | None = None
        self._connected_at: State | None = None

    @property
    def action_features(self) -> dict[str, type]:
        """Keys and types of an action."""
        return self._port.features

    @property
    def observation_features(self) -> dict[str, type | tuple[int, int, int]]:
        """Keys and types, or shapes of images, of an observation."""
        shapes = {name: (c.height, c.width, 3) for name, c in self.config.cameras.items()}
        return {**self._port.features, **shapes}

    @property
    def is_connected(self) -> bool:
        """Whether the control loop runs and all cameras are connected."""
        return self._control is not None and all(c.is_connected for c in self.cameras.values())

    @property
    def is_calibrated(self) -> bool:
        """Whether a calibration exists, if the driver requires one."""
        return self._port.is_calibrated

    @check_if_already_connected
    def connect(self, calibrate: bool = True) -> None:
        """Connect, and hold the arm where it is; servos are calibrated with LeRobot before."""
        del calibrate
        try:
            for camera in self.cameras.values():
                camera.connect()
            self._control = self._started_control()
        except BaseException:
            self._release()
            raise
        self._connected_at = self._measured()
        logger.info(f"{self} connected.")

    def _started_control(self) -> ControlThread:
        events, arm, config = Events(), self._port.arm, self.config
        driver: Driver
        if config.driver == "simulated":
            simulation = Simulation(arm)
            driver, period = SimulationDriver(arm, simulation), simulation.period
            controller = build_controller(arm)
        else:
            period, controller = 1 / config.rate, PositionController(arm)
            driver = self._port.build_driver("position", period, events)
            driver.configure()
            try:
                self._port.check_homing(driver)
            except ArmDynamicsError:
                driver.close()
                raise
        speed = radians(config.approach_speed)
        control = ControlThread(driver, controller, period, approach_speed=speed, events=events)
        control.start()
        return control

    def calibrate(self) -> None:
        """Write the calibration in use to a file; servos are calibrated with ``so101_follower``."""
        write_calibration(self, self._port, "so101_follower")

    def configure(self) -> None:
        """Do nothing: ``connect`` configures the servos."""

    @check_if_not_connected
    def get_observation(self) -> RobotObservation:
        """Return the positions measured last and the images.

        Raises DriverFault without a current position of every joint.
        """
        images = {name: camera.read_latest() for name, camera in self.cameras.items()}
        return {**self._named(self._measured().q), **images}

    def _measured(self) -> State:
        assert self._control is not None
        return self._control.state()

    @check_if_not_connected
    def send_action(self, action: RobotAction) -> RobotAction:
        """Follow an action; return it as limited to the ranges of the joints.

        Raises InvalidValue for a missing or not finite position, DriverFault if the arm does not
        execute commands.
        """
        assert self._control is not None
        names = [*self.action_features]
        for name in names:
            if not isfinite(action.get(name, float("nan"))):
                value = action.get(name, "missing")
                raise InvalidValue(f"action: '{name}' = {value}; expected a finite number")
        arm = self._port.arm
        q = self._port.units.positions([float(action[name]) for name in names])
        self._control.command(q)
        return self._named(q.clip(arm.lower, arm.upper))

    def _named(self, q: object) -> dict[str, float]:
        values = self._port.units.normalized(q)
        return dict(zip(self.action_features, values.tolist(), strict=True))

    @check_if_not_connected
    def disconnect(self) -> None:
        """Stop, move back to the configuration of ``connect``, then disable torque."""
        assert self._control is not None
        try:
            if self.config.lower_on_disconnect and self._connected_at is not None:
                self._control.move(self._connected_at.q)
        except ArmDynamicsError as error:
            logger.error(f"{self} was not lowered before torque was disabled: {error}")
        finally:
            self._release()
        logger.info(f"{self} disconnected.")

    def _release(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = None
        self._port.close()
        for camera in self.cameras.values():
            if camera.is_connected:
                camera.disconnect()
