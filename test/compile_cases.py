"""Reach every branch of the safety functions; print what was compiled while torque was enabled.

    python compile_cases.py still CONTROLLER ...
    python compile_cases.py emulated

``still``: motors with scripted feedback; each interface with each stop policy. ``emulated``: the
emulated motors of all manufacturers on virtual time. The last line is JSON.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import cycle, product

import numpy as np
from compile_watch import CompileWatch
from emulators.vendors import VENDORS

from arm_dynamics.control.config import build_controller
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Waypoint
from arm_dynamics.core import plugins
from arm_dynamics.core.errors import ArmDynamicsError, ConfigError, DriverFault
from arm_dynamics.core.state import Command
from arm_dynamics.hardware.driver import DriverState
from arm_dynamics.hardware.motor_bus import MotorBus, Reading
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.model.hardware_info import read_hardware_info
from arm_dynamics.safety.safety_settings import POLICIES, SafetySettings

PERIOD = 5e-3
INTERFACES = ("effort", "voltage", "position", "velocity")


class StillBus(MotorBus):
    """Motors at configuration ``q`` and velocity ``v``, independent of the commands."""

    def __init__(self, motors, settings, takes):
        super().__init__(motors, settings)
        self.takes, self.time, self.on = (takes,), 0.0, set()
        self.estimates_effort = self.accepts_feedforward_effort = takes != "effort"
        self.mend()

    def mend(self):
        """Restore fault-free motors in the middle of the joints' ranges."""
        size = len(self.motors)
        self.q, self.v, self.temperature = np.zeros(size), np.zeros(size), np.full(size, 30.0)
        self.fault, self.silent, self.gone, self.late = "", (), False, 0.0

    def now(self):
        return self.time

    def read(self):
        self.time += 1e-4
        if self.gone:
            raise DriverFault("unplugged")
        columns = zip(self.motors, self.q, self.v, self.temperature, strict=True)
        return {
            id: Reading(self.time - self.late, *map(float, (q, v)), np.nan, float(t), 12.0,
                        self.fault, id in self.on)
            for id, q, v, t in columns if id not in self.silent
        }  # fmt: skip

    def write(self, goals):
        assert all(np.isfinite(goal.value) for goal in goals.values())

    def interfaces(self, id):
        return self.takes

    def open(self):
        if self.gone:
            raise DriverFault("unplugged")

    def enable(self, ids):
        self.on |= set(ids)
        return ids

    def disable(self, ids):
        self.on -= set(ids)
        return ids

    def enable_watchdog(self, timeout):
        return tuple(self.motors)

    def discover(self): ...
    def prepare(self, interface): ...
    def close(self): ...


TROUBLE = {
    "near the upper limit": lambda bus, arm: bus.q.__setitem__(1, bus.margin[1]),
    "near the lower limit": lambda bus, arm: bus.q.__setitem__(1, bus.margin[0]),
    "beyond a limit": lambda bus, arm: bus.q.__setitem__(1, bus.margin[1] + 0.1),
    "as fast as allowed": lambda bus, arm: bus.v.__setitem__(0, 0.98 * arm.velocity_limit[0]),
    "faster than allowed": lambda bus, arm: bus.v.__setitem__(0, 1.5 * arm.velocity_limit[0]),
    "warm": lambda bus, arm: bus.temperature.__setitem__(2, 68.0),
    "too hot": lambda bus, arm: bus.temperature.__setitem__(2, 80.0),
    "temperature unknown": lambda bus, arm: bus.temperature.fill(np.nan),
    "fault": lambda bus, arm: setattr(bus, "fault", "overload"),
    "one joint silent": lambda bus, arm: setattr(bus, "silent", tuple(bus.motors)[:1]),
    "stale": lambda bus, arm: setattr(bus, "late", 10.0),
    "no reading possible": lambda bus, arm: bus.q.__setitem__(1, 1e300),
    "unplugged": lambda bus, arm: setattr(bus, "gone", True),
    "torque lost": lambda bus, arm: bus.on.clear(),
    "no commands": None, "NaN commanded": None, "oscillation": None, "stopped": None,
    "stood still": None, "emergency": None, "nothing": None,
}  # fmt: skip


FEW = ("near the upper limit", "no commands", "stopped")
"""Troubles that are repeated with every controller."""


class Case:
    """One arm under one controller, or under direct commands of an interface without controller."""

    def __init__(self, watch, interface, policy, controller):
        self.arm = arm = VENDORS["mit_can"].arm
        wiring = read_hardware_info(arm)
        self.bus = StillBus(wiring.motors, {}, interface)
        self.bus.margin = arm.lower[1] + 0.05, arm.upper[1] - 0.05
        watch.follow(self.bus)
        safety = SafetySettings(stop_policy=policy, max_effort_rate=400.0)
        self.driver = MotorBusDriver(arm, self.bus, interface=interface, safety=safety)
        self.controller = controller
        self.loop = None
        if controller is not None:
            self.loop = ControlLoop(self.driver, build_controller(arm, controller))
        self.up()

    def up(self):
        """Clear the trouble and return to the active state."""
        self.bus.mend()
        self.bus.time += 1.0
        for _ in range(3):
            self.step()
        with suppress(DriverFault):
            self.driver.reset()
        if self.driver.status is DriverState.UNCONFIGURED:
            self.driver.configure()
        if self.driver.status is DriverState.INACTIVE:
            self.driver.activate()
        assert self.driver.status is DriverState.ACTIVE, self.driver.status
        self.step()

    def step(self, value=0.0):
        """Run one control cycle; without a controller command ``value``, or nothing."""
        self.bus.time += PERIOD
        if self.loop is not None and value == 0.0:
            self.loop.step()
            return
        with suppress(DriverFault):
            self.driver.read()
        if value is None:
            self.driver.idle()
        else:
            self.driver.write(Command(self.driver.interface, np.full(3, value)))

    def start_trajectories(self):
        """Follow a trajectory, hold a reference, request a stop."""
        if self.loop is None or self.loop.state is None or self.loop.reference is None:
            return
        still = np.zeros(3)
        points = (Waypoint(self.bus.now() + 0.05, still + 0.01, still, still),)
        with suppress(ArmDynamicsError):
            self.loop.follow(JointTrajectory(points), effort_check=True)
            self.step()
            self.loop.hold({self.arm.joint_names[0]: 0.02})
            self.step()
            self.loop.request_stop()

    def run_trouble(self, trouble):
        """Run some cycles with a trouble, recover, and return the trips."""
        self.start_trajectories()
        value, acts = 0.0, TROUBLE[trouble]
        if acts is not None:
            acts(self.bus, self.arm)
        if "limit" in trouble:  # moved there at a plausible speed
            end = self.bus.q[1]
            for part in np.linspace(0.0, 1.0, 15):
                self.bus.q[1] = part * end
                self.step()
        for k in range(14):
            if trouble == "oscillation":
                value = 1e6 * (-1) ** k
            elif trouble in ("no commands", "NaN commanded"):
                value = None if trouble == "no commands" else np.nan
            if trouble == "stood still":
                self.bus.time += 0.3
            elif trouble in ("stopped", "emergency") and k == 1:
                if trouble == "stopped":
                    self.driver.controlled_stop()
                else:
                    self.driver.emergency_stop("a")
            if k > 10:
                self.bus.time += 0.1  # end of a stop, long time without feedback
            self.step(value)
        found = {trip.kind for trip in self.driver.trips}
        self.up()
        return found


def still(watch, *controllers):
    """Combine interfaces, stop policies and troubles; run and switch the controllers."""
    trips, count = Counter(), 0
    for interface, policy in product(INTERFACES, POLICIES):
        kinds = {name: plugins.load_class("controllers", name) for name in controllers}
        fit = [name for name in controllers if kinds[name].interface == interface]
        for name in [None, *fit] if policy == "hold" else [None]:
            try:
                case = Case(watch, interface, policy, name)
            except ConfigError:  # a stop that needs efforts
                assert interface in ("position", "velocity")
                continue
            for trouble in FEW if name else TROUBLE:
                trips.update(case.run_trouble(trouble))
                count += 1
            _switch_controllers(case, fit)
    return trips, count


def _switch_controllers(case, fit):
    """Switch through the controllers while the arm is active.

    As in the nodes, another thread than that of the loop builds them: the kernels of one compile.
    """
    for name in fit if case.loop is not None else ():
        with ThreadPoolExecutor(1, "services") as services:
            built = services.submit(build_controller, case.arm, name).result()
        case.loop.switch_controller(built)
        for _ in range(3):
            case.step()
            case.bus.time += 0.2
        for _ in range(8):  # the driver estimates its period from the last ten cycles
            case.step()


def emulated(watch):
    """Run the emulated motors of all manufacturers with each interface, policy and fault."""
    from fault_injection.bench import Bench
    from fault_injection.faults import FAULTS, mended
    from fault_injection.outcome import recovered

    faults = cycle(fault for fault in FAULTS if not fault.configuring)
    trips, count = Counter(), 0
    stops = cycle(POLICIES)
    for vendor, interface in product(VENDORS.values(), INTERFACES):
        turn = next(stops) if interface in ("effort", "voltage") else "hold"
        safety = SafetySettings(soft_limit_zone=0.05, stop_policy=turn)
        try:
            bench = Bench(replace(vendor, interface=interface), 1, safety)
        except ConfigError:
            continue
        watch.follow(bench.driver.bus)
        with suppress(ArmDynamicsError):
            bench.up().run(5)
        for _ in range(3):
            next(faults).begin(bench)
            bench.run(30)
            trips.update(trip.kind for trip in bench.driver.trips)
            mended(bench)
            if bench.driver.status is DriverState.UNCONFIGURED:
                bench.port.close()
            recovered(bench, 3)
            count += 1
        bench.driver.close()
        watch.armed = False
    return trips, count


def main():
    """Print the result as JSON."""
    watch = CompileWatch()
    kind, *words = sys.argv[1:]
    trips, count = {"still": still, "emulated": emulated}[kind](watch, *words)
    found = [line for line in watch.found if line.endswith("MainThread")]
    print(json.dumps({"found": found, "trips": trips, "cases": count}))


if __name__ == "__main__":
    main()
