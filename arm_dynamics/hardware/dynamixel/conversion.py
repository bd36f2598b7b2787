"""Raw values of Dynamixel X motors in SI at the output shaft, and back.

    τ = k_t i,   q = (position − 2048) 2π / 4096,   V = (PWM / 885) V_supply

Source: e-manual, units in "Control Table"; k_t from the model's stall figures.

All that a cycle wants to know of a motor, as one block: gathered by indirect addresses.

The block starts with torque enable, hardware error, bus watchdog, current, velocity, position,
supply, temperature and the realtime tick. Two more bytes behind it make blocks of three lengths:
asking for another one each cycle tells an answer that is late from the one that was asked for.

A motor that was switched off and on has forgotten its indirect addresses and answers zeros; a
supply of 0 V gives it away. Source: e-manual, "Indirect Address".
"""

from __future__ import annotations

import struct
from math import isfinite, nan
from typing import NamedTuple

from arm_dynamics.core.errors import CommandRejected
from arm_dynamics.hardware.dynamixel import control_table as table
from arm_dynamics.hardware.dynamixel.control_table import DynamixelModel
from arm_dynamics.hardware.motor_bus import MotorCommand, Reading


def to_reading(model: DynamixelModel, block: Block, time: float, fault: str) -> Reading:
    """``block`` in SI; ``fault`` is what is known besides it."""
    return Reading(
        time,
        (block.position - table.CENTRE) * table.POSITION_UNIT,
        block.velocity * table.VELOCITY_UNIT,
        model.torque_unit * block.current,
        float(block.temperature),
        block.supply * table.VOLTAGE_UNIT,
        _words(block, fault),
        None if block.torque is None else block.torque == 1,
    )


def _words(block: Block, fault: str) -> str:
    tripped = block.watchdog == table.WATCHDOG_TRIPPED
    if not (block.hardware_error or tripped):
        return fault
    words = [fault] if fault else []
    words += table.hardware_error_text(block.hardware_error or 0)
    return ", ".join([*words, "bus watchdog"] if tripped else words)


def raw_goal(model: DynamixelModel, goal: MotorCommand, limit: int, supply: float) -> int:
    """What a goal register takes for ``goal``, not beyond ``limit`` either way.

    ``supply`` [V] is what a PWM of 1 amounts to. Raises CommandRefused where it is not finite.
    """
    value = goal.value * _units(model, goal.interface, supply)
    if not isfinite(value):
        raise CommandRejected(f"{goal.interface} goal {goal.value} at {supply:g} V: not finite")
    offset = table.CENTRE if goal.interface == "position" else 0
    return round(max(-limit, min(limit, value + offset)))


def _units(model: DynamixelModel, interface: str, supply: float) -> float:
    """Raw units a unit of SI."""
    if interface == "effort":
        return 1.0 / model.torque_unit
    if interface == "voltage":
        return table.FULL_PWM / supply if supply > 0 else nan
    return 1.0 / (table.VELOCITY_UNIT if interface == "velocity" else table.POSITION_UNIT)


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
