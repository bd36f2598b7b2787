"""The memory table of Feetech's STS servos, as far as the driver goes.

Signed values are a magnitude and a sign bit. Source: Feetech, STS series memory table; SCServo
SDK (sign bits). Up to address 39 values outlive a loss of power while LOCK is 0; while it is 1
they are taken and forgotten with the power.
"""

from __future__ import annotations

from dataclasses import dataclass

from arm_dynamics.core.errors import UnknownName

POSITION_MODE, PWM_MODE = 0, 2
FULL_PWM = 1000
"""Duty of the whole supply."""
STEPS = 4096
"""Steps of a turn."""
CENTRE = 2048
"""Position that counts as 0 rad: where a motor is homed to."""
FAST_UNIT, MULTI_TURN = 0x04, 0x10
"""Bits of PHASE: speeds are in steps a second, not in 50; turns are counted in the position."""


@dataclass(frozen=True, slots=True)
class Register:
    """A value in a motor's memory; ``sign`` is the bit that makes it negative, 0 for none."""

    address: int
    size: int
    sign: int = 0

    def pack(self, value: int) -> bytes:
        """The bytes of ``value``."""
        mark = 1 << self.sign if self.sign and value < 0 else 0
        return ((abs(value) if self.sign else value) | mark).to_bytes(self.size, "little")

    def unpack(self, data: bytes, start: int = 0) -> int:
        """The value in ``data``, which begins at address ``start``."""
        at = self.address - start
        value = int.from_bytes(data[at : at + self.size], "little")
        mark = 1 << self.sign if self.sign else 0
        return -(value & mark - 1) if value & mark else value


FIRMWARE = Register(0, 2)
MODEL = Register(3, 2)
PHASE = Register(18, 1)
MODE = Register(33, 1)
TORQUE = Register(40, 1)
ACCELERATION = Register(41, 1)
GOAL_POSITION = Register(42, 2, sign=15)
GOAL_PWM = Register(44, 2, sign=10)
LOCK = Register(55, 1)
POSITION = Register(56, 2, sign=15)
SPEED = Register(58, 2, sign=15)
LOAD = Register(60, 2, sign=10)
SUPPLY = Register(62, 1)
TEMPERATURE = Register(63, 1)
STATUS = Register(65, 1)
CURRENT = Register(69, 2, sign=15)

FAULTS = {
    0x01: "supply voltage",
    0x02: "position sensor",
    0x04: "overheating",
    0x08: "overcurrent",
    0x20: "overload",
}
"""Bits of STATUS and of the error byte of every answer."""

NUMBERS = {"sts3215": 777, "sts3250": 2825}
"""What MODEL reads, by a servo's name."""


def model_number(name: str) -> int:
    """What a servo of that name says it is; raises UnknownName with those that are known."""
    if name.lower() not in NUMBERS:
        raise UnknownName("Feetech servo", name, tuple(NUMBERS))
    return NUMBERS[name.lower()]


def model_name(number: int) -> str:
    """The name of what MODEL reads."""
    names = {value: name for name, value in NUMBERS.items()}
    return names.get(number, f"unknown (model number {number})")


def fault_text(status: int) -> str:
    """The faults that the bits tell, "" for none."""
    words = [word for bit, word in FAULTS.items() if status & bit]
    rest = status & ~sum(FAULTS)
    return ", ".join([*words, *([f"status {rest:#04x}"] if rest else [])])
