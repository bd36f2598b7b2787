"""Raw values of Dynamixel X motors in SI at the output shaft, and back.

    τ = k_t i,   q = (position − 2048) 2π / 4096,   V = (PWM / 885) V_supply

Source: e-manual, units in "Control Table"; k_t from the model's stall figures.
"""

from __future__ import annotations

from math import isfinite, nan

from arm_dynamics.drivers.dynamixel import control_table as table
from arm_dynamics.drivers.dynamixel.feedback_block import Block
from arm_dynamics.drivers.dynamixel.models import DynamixelModel
from arm_dynamics.drivers.motor_bus import Goal, Reading
from arm_dynamics.errors import CommandRefused


def reading(model: DynamixelModel, block: Block, time: float, fault: str) -> Reading:
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
    words += table.hardware_error_words(block.hardware_error or 0)
    return ", ".join([*words, "bus watchdog"] if tripped else words)


def raw_goal(model: DynamixelModel, goal: Goal, limit: int, supply: float) -> int:
    """What a goal register takes for ``goal``, not beyond ``limit`` either way.

    ``supply`` [V] is what a PWM of 1 amounts to. Raises CommandRefused where it is not finite.
    """
    value = goal.value * _units(model, goal.interface, supply)
    if not isfinite(value):
        raise CommandRefused(f"{goal.interface} goal {goal.value} at {supply:g} V: not finite")
    offset = table.CENTRE if goal.interface == "position" else 0
    return round(max(-limit, min(limit, value + offset)))


def _units(model: DynamixelModel, interface: str, supply: float) -> float:
    """Raw units a unit of SI."""
    if interface == "effort":
        return 1.0 / model.torque_unit
    if interface == "voltage":
        return table.FULL_PWM / supply if supply > 0 else nan
    return 1.0 / (table.VELOCITY_UNIT if interface == "velocity" else table.POSITION_UNIT)
