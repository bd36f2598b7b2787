"""Registers of Dynamixel X motors: address, bytes, sign; the same for every model.

Source: e-manual, "Control Table" of XM430-W350, XL430-W250 and XL330-M288.
"""

from __future__ import annotations

from math import pi
from typing import NamedTuple


class Register(NamedTuple):
    """One entry of the control table; EEPROM (below 64) takes writes with torque off only."""

    address: int
    size: int
    signed: bool = False

    def pack(self, value: int) -> bytes:
        """``value`` as it is sent."""
        return value.to_bytes(self.size, "little", signed=self.signed)

    def unpack(self, data: bytes) -> int:
        """The value that was sent as ``data``."""
        return int.from_bytes(data, "little", signed=self.signed)


RETURN_DELAY = Register(9, 1)
DRIVE_MODE = Register(10, 1)
OPERATING_MODE = Register(11, 1)
PWM_LIMIT = Register(36, 2)
CURRENT_LIMIT = Register(38, 2)
VELOCITY_LIMIT = Register(44, 4)
TORQUE_ENABLE = Register(64, 1)
HARDWARE_ERROR = Register(70, 1)
BUS_WATCHDOG = Register(98, 1)
GOAL_PWM = Register(100, 2, signed=True)
GOAL_CURRENT = Register(102, 2, signed=True)
GOAL_VELOCITY = Register(104, 4, signed=True)
GOAL_POSITION = Register(116, 4, signed=True)
REALTIME_TICK = Register(120, 2)
MOVING = Register(122, 1)
MOVING_STATUS = Register(123, 1)
PRESENT_CURRENT = Register(126, 2, signed=True)
PRESENT_VELOCITY = Register(128, 4, signed=True)
PRESENT_POSITION = Register(132, 4, signed=True)
INPUT_VOLTAGE = Register(144, 2)
TEMPERATURE = Register(146, 1)
INDIRECT_ADDRESS = 168
"""Where the first of the two-byte indirect addresses is."""

VELOCITY_UNIT = 0.229 * 2 * pi / 60
"""[rad/s]"""
POSITION_UNIT = 2 * pi / 4096
"""[rad]"""
CENTRE = 2048
"""Position that counts as 0 rad: the middle of a turn."""
VOLTAGE_UNIT = 0.1
"""[V]"""
FULL_PWM = 885
"""Duty of 1: all of the supply's voltage (a unit is 0.113 %)."""
LARGEST_POSITION = 1_048_575
"""Of extended position mode, either way: 256 turns."""
WATCHDOG_UNIT = 0.02
"""[s]"""
WATCHDOG_LONGEST = 127
WATCHDOG_TRIPPED = 0xFF

CURRENT_MODE, VELOCITY_MODE, EXTENDED_POSITION_MODE, PWM_MODE = 0, 1, 4, 16
MODES = {
    "effort": CURRENT_MODE,
    "velocity": VELOCITY_MODE,
    "position": EXTENDED_POSITION_MODE,
    "voltage": PWM_MODE,
}
"""Operating mode of every command interface."""
GOALS = {
    "effort": GOAL_CURRENT,
    "velocity": GOAL_VELOCITY,
    "position": GOAL_POSITION,
    "voltage": GOAL_PWM,
}
"""Goal register of every command interface."""

HARDWARE_ERRORS = {
    0: "input voltage",
    2: "overheating",
    3: "encoder",
    4: "electrical shock",
    5: "overload",
}
"""Bits of the hardware error status."""


def hardware_error_words(status: int) -> list[str]:
    """What the bits of a hardware error status say."""
    bits = (bit for bit in range(8) if status >> bit & 1)
    return [HARDWARE_ERRORS.get(bit, f"hardware error bit {bit}") for bit in bits]
