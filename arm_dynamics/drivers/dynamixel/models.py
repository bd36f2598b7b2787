"""Dynamixel X models as a table: what they are called, how strong they are, what they measure.

Torque per ampere is that of the data sheet's stall at the recommended supply. Motors of the 330
size measure the current of their supply: that is the motor's times the duty, so that no torque
follows from it. Source: e-manual, "Specifications" and "Control Table" of each model (there
"Current Limit", "Goal Current", "Bus Watchdog"); ROBOTIS forum, topic 4814 (the 330's watchdog).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import nan

from arm_dynamics.errors import UnknownName

WATCHDOG = 38
"""The first firmware with a bus watchdog; the XL330 never was without."""
IDLE_WATCHDOG_330 = 51
"""Firmware of the 330 size that trips its watchdog and goes on turning."""
INDIRECT_DATA_330, INDIRECT_DATA = 208, 224
FAST_READ_330, FAST_READ = 46, 45


@dataclass(frozen=True)
class DynamixelModel:
    """One model.

    ``stall_torque`` [N·m] and ``stall_current`` [A] at ``voltage`` [V]; ``current_unit`` [A],
    0 for a motor without current registers.
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
        """Whether it is of the 330 size, whose control table is shorter."""
        return "330" in self.name

    @cached_property
    def effort(self) -> bool:
        """Whether its current is its motor's: the 330 size measures that of its supply instead."""
        return self.current_unit > 0 and not self.small

    @property
    def kt(self) -> float:
        """Torque at the output shaft per ampere [N·m/A]."""
        return self.stall_torque / self.stall_current

    @cached_property
    def torque_unit(self) -> float:
        """Torque of a raw unit of current [N·m]; NaN where the current is not the motor's."""
        return self.kt * self.current_unit if self.effort else nan

    @property
    def indirect_data(self) -> int:
        """Address of the first indirect data."""
        return INDIRECT_DATA_330 if self.small else INDIRECT_DATA

    @property
    def fast_firmware(self) -> int:
        """The first firmware that knows fast reads."""
        return FAST_READ_330 if self.small else FAST_READ

    def watchdog_lack(self, firmware: int) -> str:
        """Why ``firmware`` does not stop the motor when nothing is heard; "" where it does."""
        if firmware < WATCHDOG and not self.name.startswith("XL330"):
            return f"firmware {firmware} has no bus watchdog, those from {WATCHDOG} on have one"
        if firmware == IDLE_WATCHDOG_330 and self.small:
            return f"firmware {firmware} goes on when its bus watchdog trips, others stop"
        return ""

    @property
    def interfaces(self) -> tuple[str, ...]:
        """What it takes as a command."""
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
    """The model called ``name``, in either case, with or without the plug's -T or -R.

    Raises UnknownName listing the models.
    """
    key = name.strip().upper().removesuffix("-T").removesuffix("-R")
    if key not in MODELS:
        raise UnknownName("Dynamixel model", name, tuple(MODELS))
    return MODELS[key]


def name_of(number: int) -> str:
    """The name of the model with this number, as far as the table knows it."""
    return NUMBERS[number].name if number in NUMBERS else f"model number {number}"
