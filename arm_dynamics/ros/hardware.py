"""The hardware node: joint states of a physical arm out, commands to its motors in."""

from __future__ import annotations

import sys
import time
from contextlib import AbstractContextManager, closing, nullcontext

from rcl_interfaces.msg import SetParametersResult
from rclpy.clock import Clock, ClockType
from rclpy.parameter import Parameter as RosParameter

from arm_dynamics.core.errors import ArmDynamicsError, ConfigError, DriverFault
from arm_dynamics.hardware.build import build_driver
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.recording.state_log import StateLog
from arm_dynamics.ros.arm_parameters import declared_model
from arm_dynamics.ros.capability_topics import CapabilityPublisher
from arm_dynamics.ros.diagnostics import Diagnostics, Throttle
from arm_dynamics.ros.emergency_stop_interface import EmergencyStopInterface
from arm_dynamics.ros.hardware_cycle import HardwareCycle, is_at_rest
from arm_dynamics.ros.hardware_parameters import HardwareParameters
from arm_dynamics.ros.hardware_report import HardwareReport
from arm_dynamics.ros.lifecycle import ACTIVE, LoopLifecycleNode
from arm_dynamics.ros.process import run_node
from arm_dynamics.ros.publisher_checks import sole_arm
from arm_dynamics.ros.ros_parameters import declare_fixed, set_parameters_result
from arm_dynamics.ros.shutdown_flag import ShutdownFlag
from arm_dynamics.safety.events import Events

LOOK = 0.1
"""Time [s] between two looks whether the arm has left the active state by itself."""
RETRY = 1.0
"""Time [s] between two tries of ``autostart``."""
ENDING = 3.0
"""Longest time [s] that the arm has to come to rest before the node ends."""


class HardwareNode(LoopLifecycleNode):
    """An arm of motors, behind the topics of the simulator; torque only while active."""

    def __init__(self) -> None:
        super().__init__("hardware")
        self._arm = declared_model(self)
        self._wishes = HardwareParameters(self, self._arm)
        autostart = declare_fixed(self, "autostart", False, "configure by itself; never activate")
        self._driver: MotorBusDriver | None = None
        self._engaged = ""  # who pressed the emergency stop, with a driver or without
        self.events = self._events = Events(Throttle(self.get_logger()).warn)
        # Before joint_states: a controller that finds those alone would answer them.
        self._capabilities = CapabilityPublisher(self)
        self._cycle = HardwareCycle(self, self._arm, self._events)
        self._sole = sole_arm(self, self._events)
        self._record = declare_fixed(self, "record", "", "new folder to record into; empty: none")
        self._said: tuple[int, bool] | tuple[()] | None = None  # what they said of position servos
        self._emergency = EmergencyStopInterface(
            self, self.requests, self._events, self._engage, self._reset
        )
        self._report = HardwareReport(self._events, self._cycle)
        self._diagnostics = Diagnostics(
            self,
            lambda: self._report.summary(self._driver, self._engaged, self.refusal),
            lambda name: self._report.joints(name, self._driver),
        )
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._look = self.create_timer(LOOK, self._follow_driver, clock=steady)
        self._start = self.create_timer(RETRY, self._configure_once, clock=steady)
        if not autostart:
            self._start.cancel()
        self.add_on_set_parameters_callback(self._on_parameters)

    # --- transitions, done by the loop

    def configure(self) -> None:
        """Open the port and check every motor; nothing moves."""
        wanted = self._wishes.wanted({})
        driver = build_driver(
            self._arm,
            self._wishes.driver(wanted),
            settings=wanted.settings,
            safety=wanted.safety,
            interface=wanted.interface,
            events=self._events,
            period=1 / wanted.rate,
        )
        assert isinstance(driver, MotorBusDriver)  # of a motor bus, as require_bus has it
        try:
            driver.configure()
        except ArmDynamicsError:
            driver.close()
            raise
        if self._engaged:
            driver.emergency_stop(self._engaged)
        self._driver = driver
        self._said = None
        self._tell_capabilities(driver)
        self._cycle.begin(wanted.rate, wanted.safety.command_timeout)
        self.get_logger().info(
            f"inactive: {len(driver.wiring)} motors answer, torque is off;"
            f" `ros2 lifecycle set {self.get_fully_qualified_name()} activate` turns it on"
        )

    def activate(self) -> None:
        """Torque on where the arm stands; whoever commands it begins anew from there.

        Raises DriverFault while another node publishes joint_states: its commands would come here.
        """
        driver, conflict = self._open(), self._sole.conflict()
        if conflict:
            raise DriverFault(conflict)
        self._said = None
        self._tell_capabilities(driver)  # with the period that was measured meanwhile
        driver.activate()
        self.get_logger().info("active: torque is on, commands are obeyed")

    def deactivate(self) -> None:
        """Torque off; reading goes on."""
        self._open().deactivate()

    def clean_up(self) -> None:
        """Torque off, the port closed."""
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.close()

    def _open(self) -> MotorBusDriver:
        if self._driver is None:
            raise DriverFault("nothing is configured")
        return self._driver

    # --- the loop

    def run(self, stop: ShutdownFlag) -> None:
        """One cycle after the other until told to stop."""
        with self._log() as self._cycle.log:
            try:
                while not stop.is_set():
                    self._live()
            finally:
                self.requests.close()
                self._end()

    def _log(self) -> AbstractContextManager[StateLog | None]:
        if not self._record:
            return nullcontext()
        return closing(StateLog(self._arm, self._record, self._events))

    def _live(self) -> None:
        """What is asked for, then one cycle of the motors."""
        self.requests.serve()
        self._emergency.poll()
        if self._driver is not None:
            self._cycle.run(self._driver)
            self._tell_capabilities(self._driver)
        else:
            time.sleep(0.01)

    def _tell_capabilities(self, driver: MotorBusDriver) -> None:
        """Publish at configure, at activation, and when a commander of servos comes or goes."""
        held = None if driver.commanded else driver.held
        said: tuple[int, bool] | tuple[()] = ()
        if driver.interface == "position":
            said = driver.command_epoch, held is not None
        if said != self._said:
            self._said = said
            servos = (driver.command_epoch, held) if said else None
            open_interfaces = (driver.interface,)
            self._capabilities.publish(driver.capabilities, open_interfaces, servos, driver.timing)

    def _end(self) -> None:
        """Bring the arm to rest, then torque off and the port closed, whatever happens."""
        driver, until = self._driver, time.monotonic() + ENDING
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

    # --- the emergency stop, in the loop

    def _engage(self, source: str) -> str:
        self._engaged = self._engaged or source
        if self._driver is None:
            self._events.report("emergency_stop", f"by {source}; nothing is open")
        elif not self._driver.emergency_stopped:
            self._driver.emergency_stop(source)
        return f"emergency stop by {self._engaged}, latched until ~/reset_emergency_stop"

    def _reset(self) -> str:
        """Release what is latched, trips too; raises the error of what still holds."""
        if self._driver is not None:
            self._driver.reset()
        self._engaged = ""
        if self._driver is not None and self._driver.status.torque_enabled:
            return "nothing to release: the arm is active"
        return "released; torque is off until activated"

    # --- the services' thread

    def _follow_driver(self) -> None:
        """An arm that has lost its torque is not active: the lifecycle says so too."""
        driver = self._driver
        if (
            self.lifecycle_state == ACTIVE
            and driver is not None
            and not driver.status.torque_enabled
        ):
            why = driver.trips[0] if driver.trips else f"the arm is {driver.status.value}"
            self.get_logger().error(f"no longer active: {why}")
            self.trigger_deactivate()

    def _configure_once(self) -> None:
        if self._driver is None:
            with self.log_rejection_once():
                self.trigger_configure()
        if self._driver is not None:
            self._start.cancel()

    def _on_parameters(self, parameters: list[RosParameter]) -> SetParametersResult:
        values = {p.name: p.value for p in parameters}
        try:
            named = self._wishes.concerns(values)
            if named and self._driver is not None:
                raise ConfigError(f"{named[0]} counts from configure on: clean up first")
            self._wishes.wanted(values)
        except ArmDynamicsError as error:
            return set_parameters_result(error)
        return set_parameters_result(None)


def main() -> None:
    """Run the node until SIGINT or SIGTERM."""
    sys.exit(run_node(HardwareNode))


if __name__ == "__main__":
    main()
