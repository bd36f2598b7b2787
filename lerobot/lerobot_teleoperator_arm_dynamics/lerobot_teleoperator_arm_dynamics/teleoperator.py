"""Leader: positions of motors without torque, of a weightless arm, or of a simulated motion."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from math import isfinite, radians
from typing import Any

import numpy as np
from lerobot.lerobot_types import RobotAction
from lerobot.teleoperators import Teleoperator, TeleoperatorConfig
from lerobot.utils.constants import TELEOPERATORS
from lerobot.utils.decorators import check_if_already_connected, check_if_not_connected
from lerobot_robot_arm_dynamics.arm_port import (
    ArmPort,
    ArmPortConfig,
    stock_calibration,
    write_calibration,
)
from numpy.typing import NDArray

from arm_dynamics import DriverFault, InvalidValue, State
from arm_dynamics.control import (
    ControlThread,
    Coupling,
    ForceFeedback,
    GuidedArm,
    PositionController,
    WeightlessLeader,
    sine_motion,
)
from arm_dynamics.hardware import Driver, MotorBusDriver
from arm_dynamics.safety import Events

logger = logging.getLogger(__name__)

Vector = NDArray[np.float64]
PERIOD = 1 / 60
"""Period [s] assumed between two actions."""
FIRST_READS = 3
"""Readings of the motors before the first action."""
MAX_FEEDBACK_AGE = 0.25
"""Age [s] of the feedback above which its force ends."""


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
    force_feedback : bool
        Whether the motors support the weight of the leader and apply the force of
        ``send_feedback``; requires motors that accept efforts.
    rate : float
        Control rate of a leader whose torque is enabled [Hz].
    approach_speed : float
        Speed [deg/s] at which ``enable_torque`` and ``send_feedback`` move a leader without force
        feedback.

    """

    amplitude: float = 0.3
    motion_period: float = 8.0
    force_feedback: bool = False
    rate: float = 200.0
    approach_speed: float = 60.0


class ArmDynamicsTeleoperator(Teleoperator):
    """Leader with the keys and units of ``so101_leader``.

    Motors are read with torque disabled, or with ``force_feedback`` support the weight.
    ``simulated`` moves all joints on a sine (``sine_motion``). Without a separate calibration a
    leader uses that of ``so101_leader`` with its id.

    ``enable_torque`` holds the leader where it is, for LeRobot's hand-over between a policy and a
    person; ``send_feedback`` then moves it. ``disable_torque`` returns it to the person.
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
        self._control: ControlThread | None = None
        self._leader: WeightlessLeader | None = None
        self._start: float | None = None
        self._held: Vector | None = None
        """Positions (nv,) [rad] that an enabled torque holds; None without one."""
        self._hand_start: Vector | None = None
        """Positions (nv,) [rad] from which the hand of a simulated leader moves it."""

    @property
    def action_features(self) -> dict[str, type]:
        """Keys and types of an action."""
        return self._port.features

    @property
    def feedback_features(self) -> dict[str, type]:
        """Keys and types of the follower's positions."""
        return self._port.features

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
        """Connect; servos are calibrated with LeRobot before.

        Torque is disabled. With force feedback it is enabled, and the arm is weightless: support
        it before.
        """
        del calibrate
        try:
            if self.config.force_feedback:
                self._enable_force_feedback()
            elif self.config.driver != "simulated":
                self._read_motors()
        except BaseException:
            self._release()
            raise
        self._start = time.monotonic()
        logger.info(f"{self} connected.")

    def _read_motors(self) -> None:
        """Connect the motors with torque disabled."""
        self._driver = self._port.build_driver("position", PERIOD, Events())
        self._driver.configure()
        self._port.check_homing(self._driver)
        for _ in range(FIRST_READS):
            self._driver.read()

    def _enable_force_feedback(self) -> None:
        """Start the control loop of a weightless leader."""
        arm, events = self._port.arm, Events()
        if self.config.driver == "simulated":
            c, period = self.config, 2e-3
            driver: Driver = GuidedArm(arm, period, c.amplitude, c.motion_period)
        else:
            period = 1 / self.config.rate
            driver = self._port.build_driver("effort", period, events)
            assert isinstance(driver, MotorBusDriver)
            for capability in driver.capabilities:
                if capability.effort_source != "measured":
                    raise InvalidValue(
                        f"force_feedback = true: joint '{capability.joint}' accepts"
                        f" {', '.join(capability.interfaces)}, its effort is"
                        f" {capability.effort_source}; expected motors with current control"
                    )
        self._control = ControlThread(driver, ForceFeedback(arm), period, events=events)
        self._leader, self._coupling = WeightlessLeader(self._control.loop), Coupling()
        self._felt = -MAX_FEEDBACK_AGE
        self._control.start()

    def calibrate(self) -> None:
        """Write the calibration in use to a file; servos are calibrated with ``so101_leader``."""
        write_calibration(self, self._port, "so101_leader")

    def configure(self) -> None:
        """Do nothing: ``connect`` configures the servos."""

    @check_if_not_connected
    def enable_torque(self) -> None:
        """Hold the arm where it is.

        Motors without force feedback are position controlled, with the safety functions of their
        driver. With force feedback a spring holds the arm, with at most half of its effort limits.

        Raises DriverFault without a position of every joint, or if the motors do not confirm it;
        torque is then disabled.
        """
        if self._held is not None:
            return
        q = self._positions()
        if self._leader is None and self._driver is not None:
            self._driver.close()
            self._driver = None
            period, events = 1 / self.config.rate, Events()
            driver = self._port.build_driver("position", period, events)
            driver.configure()
            speed = radians(self.config.approach_speed)
            self._control = ControlThread(
                driver, PositionController(self._port.arm), period, approach_speed=speed,
                events=events,
            )  # fmt: skip
            try:
                self._control.start()
            except BaseException:
                self._control.close()
                self._control = None
                self._read_motors()
                raise
        self._held, self._moved = q, time.monotonic()

    @check_if_not_connected
    def disable_torque(self) -> None:
        """Return the arm to the person: without torque, or weightless with force feedback.

        Support an arm without force feedback: it falls.
        """
        if self._held is None:
            return
        self._hand_start, self._held = self._held, None
        self._start = time.monotonic()
        if self._leader is None and self._control is not None:
            self._control.close()
            self._control = None
            self._read_motors()

    @check_if_not_connected
    def get_action(self) -> RobotAction:
        """Return the present positions; raises DriverFault without one of every joint."""
        values = self._port.units.normalized(self._positions())
        return dict(zip(self.action_features, values.tolist(), strict=True))

    def _positions(self) -> Vector:
        """Return the present positions (nv,) [rad]; raise DriverFault without one of a joint."""
        assert self._start is not None
        c, arm, now = self.config, self._port.arm, time.monotonic()
        if self._control is not None:
            q = self._control.state().q
            if self._leader is not None:
                self._feel(self._leader, now)
        elif self._held is not None:
            q = self._held
        elif self._driver is None:
            q = sine_motion(arm, now - self._start, c.amplitude, c.motion_period).q
            if self._hand_start is not None:
                begin = sine_motion(arm, 0.0, c.amplitude, c.motion_period).q
                q = (self._hand_start + q - begin).clip(arm.lower, arm.upper)
        else:
            q = self._driver.read().q
        unknown = [arm.joint_names[i] for i in np.flatnonzero(~np.isfinite(q))]
        if unknown:
            raise DriverFault(f"position of {', '.join(unknown)} = unknown; the motor is silent")
        return q

    def _feel(self, leader: WeightlessLeader, now: float) -> None:
        """Pull a weightless arm to held positions; without any end an old feedback."""
        if self._held is not None:
            leader.feel(State.of(self._held), self._coupling.update(now, engaged=True))
        elif now > self._felt + MAX_FEEDBACK_AGE:
            leader.feel(None, self._coupling.update(now, engaged=False))

    @check_if_not_connected
    def send_feedback(self, feedback: dict[str, Any]) -> None:
        """Move a leader with enabled torque to the positions of the follower.

        Without ``enable_torque`` a leader with force feedback is pulled to them for
        MAX_FEEDBACK_AGE.

        Raises NotImplementedError without torque, InvalidValue for a missing or not finite
        position, DriverFault if the leader does not execute commands.
        """
        if self._held is None and self._leader is None:
            raise NotImplementedError(
                "send_feedback requires enable_torque or teleop.force_feedback=true"
            )
        values = [feedback.get(name, float("nan")) for name in self.action_features]
        for name, value in zip(self.action_features, values, strict=True):
            if not isfinite(value):
                shown = feedback.get(name, "missing")
                raise InvalidValue(f"feedback: '{name}' = {shown}; expected a finite number")
        arm, now = self._port.arm, time.monotonic()
        q = self._port.units.positions([float(value) for value in values]).clip(
            arm.lower, arm.upper
        )
        if self._held is not None:
            elapsed, self._moved = min(now - self._moved, MAX_FEEDBACK_AGE), now
            step = radians(self.config.approach_speed) * elapsed
            self._held = self._held + (q - self._held).clip(-step, step)
        if self._leader is not None:
            self._positions()  # raises without a current state
            self._felt = now
            target = q if self._held is None else self._held
            self._leader.feel(State.of(target), self._coupling.update(now, engaged=True))
        elif self._control is not None:
            self._control.command(q)

    @check_if_not_connected
    def disconnect(self) -> None:
        """Disable torque and close the port; support a weightless leader."""
        self._release()
        logger.info(f"{self} disconnected.")

    def _release(self) -> None:
        if self._control is not None:
            self._control.close()
            self._control = self._leader = None
        self._held = self._hand_start = None
        if self._driver is not None:
            self._driver.close()
            self._driver = None
        self._port.close()
        self._start = None
