"""All that a cycle wants to know of a motor, as one block: gathered by indirect addresses.

The block starts with torque enable, hardware error, bus watchdog, current, velocity, position,
supply, temperature and the realtime tick. Two more bytes behind it make blocks of three lengths:
asking for another one each cycle tells an answer that is late from the one that was asked for.

A motor that was switched off and on has forgotten its indirect addresses and answers zeros; a
supply of 0 V gives it away. Source: e-manual, "Indirect Address".
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from arm_dynamics.drivers.dynamixel import control_table as table

_REGISTERS = (
    table.TORQUE_ENABLE,
    table.HARDWARE_ERROR,
    table.BUS_WATCHDOG,
    table.PRESENT_CURRENT,
    table.PRESENT_VELOCITY,
    table.PRESENT_POSITION,
    table.INPUT_VOLTAGE,
    table.TEMPERATURE,
    table.REALTIME_TICK,
    table.MOVING,
    table.MOVING_STATUS,
)
_ADDRESSES = [r.address + k for r in _REGISTERS for k in range(r.size)]
_BLOCK = struct.Struct("<BBBhiiHBH")

ADDRESSES = struct.pack(f"<{len(_ADDRESSES)}H", *_ADDRESSES)
"""What goes into the indirect addresses, from the first one on."""
SIZES = tuple(range(_BLOCK.size, len(_ADDRESSES) + 1))
"""Lengths that a block may be asked for."""

DIRECT = table.PRESENT_CURRENT.address
_DIRECT = struct.Struct("<hii8xHB")
DIRECT_SIZE = _DIRECT.size
"""The present values as they lie in the table, for a motor without indirect addresses."""


class Block(NamedTuple):
    """Raw values; None where they were not asked for."""

    torque: int | None
    hardware_error: int | None
    watchdog: int | None
    current: int
    velocity: int
    position: int
    supply: int
    temperature: int
    tick: int | None = None


def unpack(data: bytes) -> Block | None:
    """A block of one of the SIZES; None where the motor has forgotten what it is made of."""
    block = Block(*_BLOCK.unpack_from(data))
    return block if block.supply else None


def unpack_direct(data: bytes) -> Block:
    """The DIRECT_SIZE bytes from DIRECT on."""
    return Block(None, None, None, *_DIRECT.unpack(data))
