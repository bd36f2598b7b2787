"""Random small arms on every kind of emulated motors, at any rate, on virtual time."""

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from emulators import small_arm
from emulators.memory import MemoryPort
from emulators.vendors import CUBEMARS, VENDORS, Vendor

from arm_dynamics.control.config import build_controller
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.core import plugins
from arm_dynamics.core.errors import DriverFault
from arm_dynamics.core.state import Command, State
from arm_dynamics.hardware.emulation.emulated_arm import EmulatedArm
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.model.hardware_info import read_hardware_info
from arm_dynamics.safety.safety_settings import SafetySettings

KINDS = {**VENDORS, "cubemars": CUBEMARS}
INTERFACES = {
    "dynamixel": ("effort", "position", "velocity"),
    "dynamixel_pwm": ("effort", "position", "velocity"),
    "mit_can": ("effort", "position", "velocity"),
    "cubemars": ("effort", "position", "velocity"),
    "feetech": ("position",),
    "feetech_pwm": ("effort",),
}
CASES = [(kind, interface) for kind, every in INTERFACES.items() for interface in every]
SPEED = 0.5
"""Speed [rad/s] above which a reversal counts as oscillation."""
KEPT = 0.85
"""Ratio of successive peak speeds below which an oscillation decays."""


@dataclass(frozen=True)
class RandomArmKind(Vendor):
    """Emulated motors on an arm with other links, rotors and friction."""

    masses: tuple[float, ...] = small_arm.MASSES
    length: float = small_arm.LENGTH
    start: tuple[float, ...] = small_arm.START

    @cached_property
    def arm(self):
        return small_arm.small_arm(self.driver, self.drive, self.masses, self.length)

    def body(self, motors, step=1e-3, hands=True):
        return EmulatedArm(
            self.arm, motors, self.start, sign=small_arm.SIGN, offset=small_arm.OFFSET,
            ratio=small_arm.RATIO, step=step, hands=hands,
        )  # fmt: skip


def random_arm_kind(kind, rng):
    """Return random links that the motors carry, rotors of 0.1 to 2 times the usual inertia, and
    friction or none.
    """
    vendor = KINDS[kind]
    length = rng.uniform(0.06, 0.2)
    load = np.cumsum(rng.uniform(0.1, 1.0, 3))[::-1] * 9.81 * length  # of each link about J1
    most = rng.uniform(0.05, 0.7) * vendor.drive.effort
    masses = tuple((rng.uniform(0.2, 1.0, 3) * most / load.sum()).tolist())
    rotor = vendor.drive.rotor * 10 ** rng.uniform(-1, 0.3)
    friction = (0.0, 0.0) if rng.random() < 0.7 else (0.04 * rng.random(), 0.02 * rng.random())
    drive = replace(vendor.drive, rotor=rotor, friction=friction)
    start = np.array(small_arm.START) + rng.uniform(-1.2, 1.2, 3)
    middle = np.array([small_arm.HANGING, 0.0, 0.0])
    start = np.clip(start, middle - 1.5, middle + 1.5)
    given = {name: getattr(vendor, name) for name in Vendor.__dataclass_fields__}
    given |= {"drive": drive, "masses": masses, "length": length, "start": tuple(start.tolist())}
    return RandomArmKind(**given)


class OscillationRig:
    """Arm, motors and a host at ``rate`` [Hz]; ``oscillating`` is the measured time [s].

    A joint oscillates between two reversals from beyond SPEED to beyond -SPEED, or back, with
    torque enabled. A reversal at less than KEPT of the previous peak speed counts as decay.
    """

    def __init__(self, vendor, interface, rate, policy="hold", period=0.0):
        self.vendor, self.period = vendor, 1 / rate
        self.motors = vendor.motors(vendor.shafts())
        self.body = vendor.body(self.motors)
        self.port = MemoryPort(self.motors, self.body, baud=vendor.baud)
        wiring = read_hardware_info(vendor.arm)
        settings = {**wiring.settings, "allow_missing_watchdog": "true"}
        bus = plugins.load_class("drivers", vendor.driver)(wiring.motors, settings, self.port)
        self.driver = MotorBusDriver(
            vendor.arm,
            bus,
            interface=interface,
            safety=SafetySettings(stop_policy=policy),
            period=period,
        )
        self.loop, self._next = None, 0.0
        self.restart_measurement()

    def restart_measurement(self):
        """Restart the measurement."""
        self._side, self._peak, self._before = np.zeros((3, self.vendor.arm.nv))
        self._turned = np.full(self.vendor.arm.nv, np.inf)
        self._quiet = np.zeros(self.vendor.arm.nv)
        self.oscillating = 0.0

    def cycle(self, command=None):
        """Run one period of the host: its loop, a command (nv,), or no command."""
        self._next = max(self._next + self.period, self.port.now())
        self.port.pass_until(self._next)
        if self.loop is not None:
            self.loop.step()
        else:
            with suppress(DriverFault):
                self.driver.read()
            if command is None:
                self.driver.idle()
            else:
                self.driver.write(Command(self.driver.interface, np.array(command)))
        self._measure()

    def push(self, speed):
        """Set the joint velocities (nv,) [rad/s], and restart the measurement."""
        self.body.state = State.of(self.body.state.q, speed, time=self.body.state.time)
        self.restart_measurement()

    def run(self, time, command=None):
        """Run cycles for ``time`` [s]."""
        end = self.port.now() + time
        while self.port.now() < end:
            self.cycle(command)

    def _measure(self):
        """Update the longest time of reversals with gaps below 0.5 s in any joint."""
        now, v = self.port.now(), self.body.state.v
        if not any(self.torque):
            self._turned[:] = np.inf
            return
        at = np.where(v > SPEED, 1.0, np.where(v < -SPEED, -1.0, 0.0))
        turned = (at != 0) & (at == -self._side)
        decayed = self._peak < KEPT * self._before
        self._before = np.where(turned, self._peak, self._before)
        self._peak = np.maximum(np.where(turned, 0.0, self._peak), np.abs(v))
        turned &= ~decayed
        self._side = np.where(at != 0, at, self._side)
        self._turned = np.where(now - self._quiet > 0.5, np.inf, self._turned)
        self._turned = np.where(turned, np.minimum(self._turned, now), self._turned)
        self._quiet = np.where(turned, now, self._quiet)
        self.oscillating = max(self.oscillating, float((self._quiet - self._turned).max()))

    @property
    def torque(self):
        return [self.motors.torque_is_on(shaft.id) for shaft in self.motors.shafts]

    def control(self, name):
        """Create a loop with the default gains of a controller."""
        self.loop = ControlLoop(self.driver, build_controller(self.driver.arm, name))
        return self.loop
