"""Emulated motors of each manufacturer by name, on the same small arm."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from math import pi

from arm_dynamics import load_arm
from arm_dynamics.hardware.emulation.arm_hardware import (
    different_arm,
    emulated_arm,
    emulated_shafts,
)
from arm_dynamics.hardware.emulation.dynamixel_motors import EmulatedDynamixels
from arm_dynamics.hardware.emulation.emulated_arm import EmulatedArm
from arm_dynamics.hardware.emulation.emulated_motors import EmulatedMotors, Shaft
from arm_dynamics.hardware.emulation.feetech_servos import EmulatedFeetech
from arm_dynamics.hardware.emulation.mit_motors import MitMotors
from arm_dynamics.model.arm_model import ArmModel

from . import small_arm
from .faults import after, at
from .small_arm import Drive

RPM = 2 * pi / 60


@dataclass(frozen=True)
class Vendor:
    """Driver set-up for one manufacturer's motors.

    ``interface`` is the command interface of the arm. ``other`` is a model that looks the same.
    ``split`` cuts the bytes of the bus into frames. ``has_watchdog`` is True if the motors have a
    watchdog. ``most`` is the maximum effort as a fraction of the effort limit. It exceeds 1 where
    a command can be corrupted in transit (slcan has no checksum), or where a voltage was computed
    for the speed of an earlier cycle, for example before a stall.
    """

    name: str
    title: str
    driver: str
    interface: str
    drive: Drive
    other: str
    motors: Callable[[Sequence[Shaft]], EmulatedMotors]
    split: Callable[[bytes], list[bytes]]
    has_watchdog: bool = True
    most: float = 1.0
    baud: float = 1e6

    def at_rest(self, motors: EmulatedMotors, id: int) -> bool:
        """Return whether a motor has no torque or was stopped by its watchdog."""
        tripped = isinstance(motors, EmulatedDynamixels) and motors.get(id, 98) == -1
        return tripped or not motors.torque_is_on(id)

    @property
    def arm(self) -> ArmModel:
        """Small arm with these motors."""
        return _arm(self.name)

    def shafts(self) -> list[Shaft]:
        """Return three shafts with the ids 1, 2 and 3."""
        return [Shaft(i + 1, self.drive.model, supply=self.drive.supply) for i in range(3)]

    def body(self, motors: EmulatedMotors, step: float = 1e-3, hands: bool = True) -> EmulatedArm:
        """Return the arm that the motors move."""
        return EmulatedArm(
            self.arm, motors, small_arm.START, sign=small_arm.SIGN, offset=small_arm.OFFSET,
            ratio=small_arm.RATIO, step=step, hands=hands,
        )  # fmt: skip


@dataclass(frozen=True)
class WiredArm(Vendor):
    """Motors of ``wired``, a bundled arm or URDF file, that start in the middle of their ranges.

    The emulated arm differs from it by a ``payload`` [kg] at the tool and by ``friction``, a factor
    of the Coulomb friction of each ``dc_motor``.
    """

    wired: str = ""
    payload: float = 0.0
    friction: float = 1.0

    @property
    def arm(self) -> ArmModel:
        return different_arm(load_arm(self.wired), self.payload, self.friction)

    def shafts(self) -> list[Shaft]:
        return emulated_shafts(self.arm)

    def body(self, motors: EmulatedMotors, step: float = 2e-3, hands: bool = True) -> EmulatedArm:
        arm = self.arm
        return emulated_arm(arm, motors, (arm.lower + arm.upper) / 2, step=step, hands=hands)


DYNAMIXEL = at(b"\xff\xff\xfd\x00")
FEETECH = at(b"\xff\xff")
BAUD = {"baud": "1000000"}
NO_WATCHDOG = {**BAUD, "allow_missing_watchdog": "true"}

_ALL = (
    Vendor(
        "dynamixel", "Dynamixel XM430-W350, current", "dynamixel", "effort",
        Drive("XM430-W350", 12.0, 4.1, 2.3, 46 * RPM, 3.0, 4.5, settings=BAUD),
        "XM430-W210", EmulatedDynamixels, DYNAMIXEL,
    ),
    Vendor(
        "dynamixel_pwm", "Dynamixel XL430-W250, PWM", "dynamixel", "effort",
        Drive("XL430-W250", 11.1, 1.4, 1.3, 57 * RPM, 1.2, 5.0, settings=BAUD),
        "XM430-W350", EmulatedDynamixels, DYNAMIXEL, most=1.4 / 1.2,
    ),
    Vendor(
        "mit_can", "Damiao DM4310, MIT mode", "mit_can", "effort",
        Drive("DM4310", 24.0, 16.0, 28.0, 20.9, 7.0, 8.0),
        "DM4340", MitMotors, after(b"\r"), most=10.0 / 7.0, baud=2e6,
    ),
    Vendor(
        "feetech", "Feetech STS3215, position", "feetech", "position",
        Drive("sts3215", 12.0, 2.94, 2.7, 4.71, 2.9, 4.5, 0.028, settings=BAUD),
        "sts3250", EmulatedFeetech, FEETECH, False,
    ),
    Vendor(
        "feetech_pwm", "Feetech STS3215, PWM", "feetech", "effort",
        Drive("sts3215", 12.0, 2.94, 2.7, 4.71, 2.9, 4.5, 0.028, settings=NO_WATCHDOG),
        "sts3250", EmulatedFeetech, FEETECH, False,
    ),
)  # fmt: skip
VENDORS = {vendor.name: vendor for vendor in _ALL}
CUBEMARS = Vendor(
    "mit_can_cubemars", "CubeMars AK60-6, MIT mode", "mit_can", "effort",
    Drive("AK60-6", 24.0, 16.0, 28.0, 20.9, 7.0, 8.0, settings={"allow_missing_watchdog": "true"}),
    "AK80-9", MitMotors, after(b"\r"), has_watchdog=False, most=15.0 / 7.0, baud=2e6,
)  # fmt: skip
"""Not in ``VENDORS``: the protocol is that of ``mit_can``, but a wrong model, a reboot and a silent
motor have worse consequences, because CubeMars motors report less."""


@cache
def _arm(name: str) -> ArmModel:
    vendor = VENDORS[name]
    return small_arm.small_arm(vendor.driver, vendor.drive)
