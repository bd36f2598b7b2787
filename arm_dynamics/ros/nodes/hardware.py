"""Node hardware: publishes the states of a physical arm and writes commands to its motors."""

from __future__ import annotations

import signal
import sys
import time
from contextlib import AbstractContextManager, closing, nullcontext
from typing import Any

from arm_dynamics.core.compiled_math import warm_up
from arm_dynamics.core.errors import ArmDynamicsError, ConfigError, DriverFault
from arm_dynamics.core.signals import ShutdownFlag, ending_immediately, install
from arm_dynamics.core.timing import LoopTiming
from arm_dynamics.hardware.build import build_driver
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.recording.recorder import StateLog
from arm_dynamics.ros.nodes.hardware_cycle import HardwareCycle, HardwareReport, is_at_rest
from arm_dynamics.ros.parameters.arm_parameters import (
    HardwareParameters,
    declared_model,
    declared_self_collision,
)
from arm_dynamics.ros.parameters.ros_parameters import declare_fixed, on_change
from arm_dynamics.ros.runtime.lifecycle import ACTIVE, LoopLifecycleNode
from arm_dynamics.ros.runtime.process import run_node
from arm_dynamics.ros.topics.capability_topics import CapabilityPublisher
from arm_dynamics.ros.topics.controller_clients import record_references
from arm_dynamics.ros.topics.diagnostics import Diagnostics, Throttle
from arm_dynamics.ros.topics.emergency_stop_interface import EmergencyStopInterface
from arm_dynamics.ros.topics.pacing import wall_timer
from arm_dynamics.ros.topics.publisher_checks import sole_arm
from arm_dynamics.ros.topics.scene_topics import SceneTopics
from arm_dynamics.safety.events import Events

CHECK_PERIOD = 0.1
"""Time [s] between two checks whether the driver is still active."""
RETRY_PERIOD = 1.0
"""Time [s] between two attempts of ``auto_configure``."""
STOP_TIMEOUT = 3.0
"""Maximum time [s] for the arm to come to rest before the node ends."""


class HardwareNode(LoopLifecycleNode):
    """Arm of motors with the topics of the simulator; torque is enabled only while active."""

    def __init__(self) -> None:
        super().__init__("hardware")
        self._arm = declared_model(self)
        self._hardware_parameters = HardwareParameters(self, self._arm)
        auto_configure = declare_fixed(
            self, "auto_configure", False, "configure automatically; never activate"
        )
        self._driver: MotorBusDriver | None = None
        self._engaged = ""  # source of the emergency stop, with or without a driver
        self.events = Events(Throttle(self.get_logger()).warn)
        # Before joint_states: a controller that finds only those would reply to them.
        self._capabilities = CapabilityPublisher(self)
        self._cycle = HardwareCycle(self, self._arm, self.events)
        self._scene = SceneTopics(self, self._arm, self._cycle.frames)
        self._self_collision = declared_self_collision(self)
        self._sole = sole_arm(self, self.events)
        self._record = declare_fixed(
            self, "recording_path", "", "new folder to record into; empty: none"
        )
        self._published: tuple[object, ...] | None = None
        """Published reason why no commands are executed, and state of position servos."""
        self._timing: LoopTiming | None = None
        """Timing of the last configuration or activation: controllers fit their gains to it."""
        self._emergency = EmergencyStopInterface(
            self, self.requests, self.events, self.engage_emergency_stop, self.reset_emergency_stop
        )
        self._diagnostics = self._build_diagnostics()
        self._driver_timer = wall_timer(self, CHECK_PERIOD, self._follow_driver)
        self._configure_timer = wall_timer(self, RETRY_PERIOD, self._configure_once)
        if not auto_configure:
            self._configure_timer.cancel()
        on_change(self, self.change_parameters)

    def _build_diagnostics(self) -> Diagnostics:
        """Publish the diagnostics of the loop and of every joint."""
        report = HardwareReport(self.events, self._cycle)
        return Diagnostics(
            self,
            lambda: report.summary(self._driver, self._engaged, self.rejection),
            lambda name: report.joints(name, self._driver),
        )

    # --- transitions, in the loop's thread

    def configure(self) -> None:
        """Open the port and check every motor; torque stays disabled."""
        config = self._hardware_parameters.config({})
        with ending_immediately():  # no port is open, and a first start compiles for up to a minute
            driver = build_driver(
                self._arm,
                self._hardware_parameters.driver(config),
                settings=config.settings,
                safety=config.safety,
                interface=config.interface,
                events=self.events,
                period=1 / config.rate,
            )
            warm_up()
        assert isinstance(driver, MotorBusDriver)  # require_bus guarantees it
        try:
            driver.configure()
        except ArmDynamicsError:
            driver.close()
            raise
        if self._engaged:
            driver.emergency_stop(self._engaged)
        if self._self_collision:
            driver.check_collisions(self._scene.scene)
        self._driver = driver
        self._published, self._timing = None, driver.timing
        self._publish_capabilities(driver)
        self._cycle.begin(config.rate, config.safety.command_timeout)
        self.get_logger().info(
            f"inactive: {len(driver.wiring)} motors reply, torque is disabled;"
            f" `ros2 lifecycle set {self.get_fully_qualified_name()} activate` enables it"
        )

    def activate(self) -> None:
        """Enable torque at the measured configuration; controllers restart from there.

        Raise DriverFault while another node publishes joint_states: this node would receive the
        commands meant for that arm.
        """
        driver, conflict = self._open(), self._sole.conflict()
        if conflict:
            raise DriverFault(conflict)
        self._published, self._timing = None, driver.timing  # with the measured period
        self._publish_capabilities(driver)
        driver.activate()
        self._publish_capabilities(driver)  # a goal sent from now on is accepted
        self.get_logger().info("active: torque is enabled, commands are accepted")

    def deactivate(self) -> None:
        """Disable torque; reading continues."""
        driver = self._open()
        driver.deactivate()
        self._publish_capabilities(driver)

    def clean_up(self) -> None:
        """Disable torque and close the port."""
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.close()
            self._publish_capabilities(driver)

    def _open(self) -> MotorBusDriver:
        if self._driver is None:
            raise DriverFault("lifecycle state = unconfigured; expected inactive or active")
        return self._driver

    # --- the loop

    def run(self, stop: ShutdownFlag) -> None:
        """Run control cycles until ``stop`` is set; Ctrl-Z does not stop the process."""
        stop.last_resort = self.clean_up
        install(signal.SIG_IGN, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
        if self._configure_timer.is_canceled():
            self.get_logger().info(
                "unconfigured: no port is open;"
                f" `ros2 lifecycle set {self.get_fully_qualified_name()} configure` opens it"
            )
        log: AbstractContextManager[StateLog | None] = nullcontext()
        if self._record:
            recording = StateLog(self._arm, self._record, self.events)
            record_references(self, self._arm, lambda: recording.references)
            log = closing(recording)
        with log as self._cycle.log:
            try:
                while not stop.is_set():
                    self.requests.serve()
                    self._emergency.poll()
                    if self._driver is not None:
                        self._cycle.run(self._driver)
                        self._publish_capabilities(self._driver)
                    else:
                        time.sleep(0.01)
            finally:
                self.requests.close()
                self._stop_arm()

    def _publish_capabilities(self, driver: MotorBusDriver) -> None:
        """Publish after configure and activation, and if commands start or end."""
        hold_goals = None if driver.commanded else driver.held
        servo_state: tuple[int, bool] | tuple[()] = ()
        if driver.interface == "position":
            servo_state = driver.command_epoch, hold_goals is not None
        if (published := (driver.inactive, *servo_state)) != self._published:
            self._published = published
            servos = (driver.command_epoch, hold_goals) if servo_state else None
            open_interfaces = (driver.interface,)
            self._capabilities.publish(
                driver.capabilities,
                open_interfaces,
                servos,
                self._timing,
                inactive=driver.inactive,
            )

    def _stop_arm(self) -> None:
        """Stop the arm, then disable torque and close the port in any case."""
        driver, until = self._driver, time.monotonic() + STOP_TIMEOUT
        try:
            if driver is not None:
                driver.controlled_stop()
                while (
                    driver.status.torque_enabled
                    and not is_at_rest(driver)
                    and time.monotonic() < until
                ):
                    self._emergency.poll()
                    self._cycle.run_without_commands(driver)
        finally:
            self.clean_up()

    # --- emergency stop, in the loop's thread

    def engage_emergency_stop(self, source: str) -> str:
        """Disable torque until the reset; return the text of the emergency stop."""
        self._engaged = self._engaged or source
        if self._driver is None:
            self.events.report("emergency_stop", f"by {source}; no driver is configured")
        elif not self._driver.emergency_stopped:
            self._driver.emergency_stop(source)
        return f"emergency stop by {self._engaged}, latched until ~/reset_emergency_stop"

    def reset_emergency_stop(self) -> str:
        """Reset the emergency stop and latched trips; raise the error of an active trip."""
        if self._driver is not None:
            self._driver.reset()
        self._engaged = ""
        if self._driver is not None and self._driver.status.torque_enabled:
            return "no reset needed: the arm is active"
        return "reset; torque stays disabled until activated"

    # --- in the services' thread

    def _follow_driver(self) -> None:
        """Deactivate the lifecycle node if the driver has left the active state."""
        driver = self._driver
        if (
            self.lifecycle_state == ACTIVE
            and driver is not None
            and not driver.status.torque_enabled
        ):
            cause = driver.trips[0] if driver.trips else f"the arm is {driver.status.value}"
            self.get_logger().error(f"no longer active: {cause}")
            self.trigger_deactivate()

    def _configure_once(self) -> None:
        if self._driver is None:
            with self.log_rejection_once():
                self.trigger_configure()
        if self._driver is not None:
            self._configure_timer.cancel()

    def change_parameters(self, values: dict[str, Any]) -> None:
        """Apply changed parameters; an error rejects all of them."""
        driver_parameters = self._hardware_parameters.concerns(values)
        if driver_parameters and self._driver is not None:
            raise ConfigError(
                f"{driver_parameters[0]}: lifecycle state = {self.lifecycle_state};"
                " expected unconfigured; clean up first"
            )
        scene = self._scene.changed(values)
        self._hardware_parameters.config(values)
        self._scene.take(scene)
        if scene is not None and self._self_collision and self._driver is not None:
            self._driver.check_collisions(scene)


def main() -> None:
    """Run the node until SIGINT or SIGTERM."""
    sys.exit(run_node(HardwareNode))


if __name__ == "__main__":
    main()
