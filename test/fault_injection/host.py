"""Host in a separate process: a 200 Hz control loop on a driver selected by name.

    python -m fault_injection.host NAME PORT [SETTING=VALUE ...]

Each line on stdin is a command: ``status``, ``activate``, ``reset`` or ``close``. Each reply is one
line of JSON.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from contextlib import suppress

import numpy as np
from emulators.small_arm import START
from emulators.vendors import VENDORS, Vendor

from arm_dynamics.control.config import build_controller
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.core.errors import DriverFault, TrajectoryRejected
from arm_dynamics.core.timing import Pacer
from arm_dynamics.hardware.build import build_driver
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.safety.safety_settings import SafetySettings

PERIOD = 5e-3
PATIENCE = 60.0
"""Time [s] for an activation to succeed: a busy machine delays cycles beyond its limits."""
AMPLITUDE = 0.1
"""Amplitude [rad] of each joint."""
PATIENT = {
    "dynamixel": {"latency": "0.05"},
    "feetech": {"latency": "0.05"},
    "mit_can": {"interface": "slcan", "reply_timeout": "0.05"},
}
"""Time limits [s] for replies that a busy machine delays."""
SAFETY = SafetySettings(soft_limit_zone=0.05, max_missed_cycles=20, motor_watchdog_timeout=0.3)


def built(vendor: Vendor, port: str, settings: dict[str, str]) -> MotorBusDriver:
    """Return a driver on ``port``."""
    given = {"port": port, **PATIENT[vendor.driver], **settings}
    made = build_driver(vendor.arm, vendor.driver, given, safety=SAFETY, interface=vendor.interface)
    assert isinstance(made, MotorBusDriver)
    return made


class Host:
    """Control loop and its status reports."""

    def __init__(self, driver: MotorBusDriver, interface: str) -> None:
        name = "position" if interface == "position" else "computed_torque"
        self.driver = driver
        self.loop = ControlLoop(driver, build_controller(driver.arm, name))
        self.cycles, self.pacer = 0, Pacer(PERIOD)
        self.middle = START

    def begin(self) -> str:
        """Configure and activate; return the error, "" without one."""
        error = ""
        try:
            self.driver.configure()
        except DriverFault as fault:
            return str(fault)
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            for _ in range(3):
                self.loop.step()
                self.pacer.wait()
            try:
                self.activate()
            except DriverFault as fault:
                error = str(fault)
            else:
                return ""
        return error

    def run(self) -> None:
        """Run until the end of stdin."""
        while True:
            if select.select([sys.stdin], [], [], 0.0)[0]:
                line = os.read(sys.stdin.fileno(), 4096).decode().strip()
                if not line:
                    return
                self._execute(line)
            self.cycle()
            self.pacer.wait()

    def cycle(self) -> None:
        """Run one cycle; the reference alternates between both sides."""
        self.loop.step()
        self.cycles += 1
        side = AMPLITUDE if self.cycles // 60 % 2 else -AMPLITUDE
        if self.loop.state is not None and self.cycles % 60 == 0:
            goal = zip(self.driver.arm.joint_names, self.middle, strict=True)
            with suppress(TrajectoryRejected):  # the arm is not active
                self.loop.hold({name: q + side for name, q in goal})

    def activate(self) -> None:
        """Enable torque; move about the configuration at that moment."""
        self.driver.activate()
        arm = self.driver.arm
        middle = np.clip(self.driver.feedback.q, arm.lower + AMPLITUDE, arm.upper - AMPLITUDE)
        self.middle = tuple(middle.tolist())

    def _execute(self, line: str) -> None:
        """Execute a command of stdin and print the status."""
        error_text = ""
        try:
            if line == "activate":
                self.activate()
            elif line != "status":
                getattr(self.driver, line)()
        except DriverFault as error:
            error_text = str(error)
        print(json.dumps(self.status(error_text)), flush=True)

    def status(self, error: str = "") -> dict[str, object]:
        """Return the lifecycle state, the counts of events and the number of cycles."""
        return {
            "status": self.driver.status.value,
            "trips": [trip.kind for trip in self.driver.trips],
            "counts": dict(self.driver.events.counts),
            "latest": self.driver.events.latest,
            "cycles": self.cycles,
            "missed": self.pacer.missed,
            "error": error,
        }


def main() -> None:
    """Configure, activate, run."""
    name, port, *settings = sys.argv[1:]
    vendor = VENDORS[name]
    driver = built(vendor, port, dict(pair.split("=", 1) for pair in settings))
    host = Host(driver, vendor.interface)
    error = host.begin()
    print(json.dumps(host.status(error)), flush=True)
    if not error:
        host.run()


if __name__ == "__main__":
    main()
