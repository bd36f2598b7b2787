"""Control table of Dynamixel X motors: registers, units, models.

Addresses are the same for every model. Torque per ampere is that of the data sheet's stall at the
recommended supply. Registers below address 64 are EEPROM, writable only with torque disabled.
Motors of the 330 size measure the current of their supply: that is the motor's
times the duty, so that it does not determine the torque.

References
----------
ROBOTIS e-manual, "Control Table" and "Specifications" of each model ("Current Limit", "Goal
Current", "Bus Watchdog"); ROBOTIS forum, topic 4814 (watchdog of the 330 size).

"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import isfinite, nan, pi

from arm_dynamics.core.errors import CommandRejected, UnknownName
from arm_dynamics.hardware.motor_bus import MotorCommand
from arm_dynamics.hardware.register_protocol import Register

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
"""Address of the first two-byte indirect address."""

VELOCITY_UNIT = 0.229 * 2 * pi / 60
"""[rad/s]"""
POSITION_UNIT = 2 * pi / 4096
"""[rad]"""
CENTER = 2048
"""Position of 0 rad: the center of a turn."""
VOLTAGE_UNIT = 0.1
"""[V]"""
FULL_PWM = 885
"""Duty of 1: the supply voltage (a unit is 0.113 %)."""
MAX_POSITION = 1_048_575
"""Limit of extended position mode in both directions: 256 turns."""
WATCHDOG_UNIT = 0.02
"""[s]"""
MAX_WATCHDOG_TICKS = 127
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


def hardware_error_text(status: int) -> list[str]:
    """Return the names of the bits in a hardware error status."""
    bits = (bit for bit in range(8) if status >> bit & 1)
    return [HARDWARE_ERRORS.get(bit, f"hardware error bit {bit}") for bit in bits]


WATCHDOG_FIRMWARE = 38
"""First firmware with a bus watchdog; every XL330 has one."""
FAULTY_WATCHDOG_330 = 51
"""Firmware of the 330 size that trips its watchdog but continues to turn."""
INDIRECT_DATA_330, INDIRECT_DATA = 208, 224
FAST_READ_330, FAST_READ = 46, 45


@dataclass(frozen=True)
class DynamixelModel:
    """Data of one model.

    Attributes
    ----------
    name, number : str, int
        Name and model number.
    gear : float
        Gear ratio.
    voltage : float
        Recommended supply [V].
    stall_torque, stall_current : float
        At ``voltage`` [N·m], [A].
    current_unit : float
        Unit of the current registers [A]; 0 without such registers.

    """

    name: str
    number: int
    gear: float
    voltage: float
    stall_torque: float
    stall_current: float
    current_unit: float

    @property
    def small(self) -> bool:
        """Whether the motor has the 330 size with its shorter control table."""
        return "330" in self.name

    @cached_property
    def effort(self) -> bool:
        """Whether the motor current is measured; the 330 size measures the supply current."""
        return self.current_unit > 0 and not self.small

    @property
    def kt(self) -> float:
        """Torque at the output shaft per ampere [N·m/A]."""
        return self.stall_torque / self.stall_current

    @cached_property
    def torque_unit(self) -> float:
        """Torque of a raw unit of current [N·m]; NaN if the motor current is not measured."""
        return self.kt * self.current_unit if self.effort else nan

    @property
    def indirect_data(self) -> int:
        """Address of the first indirect data."""
        return INDIRECT_DATA_330 if self.small else INDIRECT_DATA

    @property
    def fast_firmware(self) -> int:
        """First firmware with fast reads."""
        return FAST_READ_330 if self.small else FAST_READ

    def missing_watchdog_reason(self, firmware: int) -> str:
        """Return why ``firmware`` does not stop the motor without commands; "" if it does."""
        if firmware < WATCHDOG_FIRMWARE and not self.name.startswith("XL330"):
            return f"firmware = {firmware}; expected at least {WATCHDOG_FIRMWARE}"
        if firmware == FAULTY_WATCHDOG_330 and self.small:
            return f"firmware = {firmware} continues when its bus watchdog trips; expected another"
        return ""

    @property
    def interfaces(self) -> tuple[str, ...]:
        """Command interfaces."""
        return (*(("effort",) if self.effort else ()), "position", "velocity", "voltage")


_MODELS = (
    DynamixelModel("XL330-M077", 1190, 77.5, 5.0, 0.215, 1.47, 1e-3),
    DynamixelModel("XL330-M288", 1200, 288.4, 5.0, 0.52, 1.47, 1e-3),
    DynamixelModel("XC330-T181", 1210, 180.62, 11.1, 0.76, 0.80, 1e-3),
    DynamixelModel("XC330-T288", 1220, 288.35, 11.1, 0.92, 0.80, 1e-3),
    DynamixelModel("XC330-M181", 1230, 180.62, 5.0, 0.60, 1.80, 1e-3),
    DynamixelModel("XC330-M288", 1240, 288.35, 5.0, 0.93, 1.80, 1e-3),
    DynamixelModel("XL430-W250", 1060, 258.5, 11.1, 1.4, 1.3, 0.0),
    DynamixelModel("XC430-W150", 1070, 159.59, 12.0, 1.6, 1.4, 0.0),
    DynamixelModel("XC430-W240", 1080, 245.22, 12.0, 1.9, 1.4, 0.0),
    DynamixelModel("XM430-W210", 1030, 212.6, 12.0, 3.0, 2.3, 2.69e-3),
    DynamixelModel("XM430-W350", 1020, 353.5, 12.0, 4.1, 2.3, 2.69e-3),
    DynamixelModel("XH430-W210", 1010, 212.6, 12.0, 2.5, 1.3, 2.69e-3),
    DynamixelModel("XH430-W350", 1000, 353.5, 12.0, 3.4, 1.3, 2.69e-3),
    DynamixelModel("XM540-W150", 1130, 152.3, 12.0, 7.3, 4.4, 2.69e-3),
    DynamixelModel("XM540-W270", 1120, 272.5, 12.0, 10.6, 4.4, 2.69e-3),
    DynamixelModel("XH540-W150", 1110, 152.3, 12.0, 7.1, 4.9, 2.69e-3),
    DynamixelModel("XH540-W270", 1100, 272.5, 12.0, 9.9, 4.9, 2.69e-3),
)
MODELS = {model.name: model for model in _MODELS}
NUMBERS = {model.number: model for model in _MODELS}


def find_model(name: str) -> DynamixelModel:
    """Return the model called ``name``, in either case, with or without the plug's -T or -R.

    Raises UnknownName listing the models.
    """
    key = name.strip().upper().removesuffix("-T").removesuffix("-R")
    if key not in MODELS:
        raise UnknownName("Dynamixel model", name, tuple(MODELS))
    return MODELS[key]


def model_name(number: int) -> str:
    """Return the name of the model with this number, if the table contains it."""
    return NUMBERS[number].name if number in NUMBERS else f"model number {number}"


def raw_goal(model: DynamixelModel, goal: MotorCommand, limit: int, supply: float) -> int:
    """Return the raw value of a goal register.

    i = τ / k_t,   position = q 4096 / 2π + 2048,   PWM = 885 V / V_supply

    Parameters
    ----------
    model : DynamixelModel
        The motor's model.
    goal : MotorCommand
        Command in SI units.
    limit : int
        Largest raw value in both directions.
    supply : float
        Supply voltage [V].

    Raises
    ------
    CommandRejected
        The raw value is not finite.

    """
    if goal.interface == "effort":
        units = 1.0 / model.torque_unit
    elif goal.interface == "voltage":
        units = FULL_PWM / supply if supply > 0 else nan
    else:
        units = 1.0 / (VELOCITY_UNIT if goal.interface == "velocity" else POSITION_UNIT)
    value = goal.value * units
    if not isfinite(value):
        raise CommandRejected(
            f"{goal.interface} command = {goal.value} at supply = {supply:g} V; expected a finite"
            " value"
        )
    offset = CENTER if goal.interface == "position" else 0
    return round(max(-limit, min(limit, value + offset)))
