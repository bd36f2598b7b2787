"""What an arm's motors tell while nobody asks anything of them: reads only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf

from arm_dynamics.core.errors import DriverFault
from arm_dynamics.hardware.motor_bus import MotorBus, Reading

MIN_CYCLES = 5
"""Cycles at least, however long they take."""


@dataclass(frozen=True, slots=True)
class BusSurvey:
    """Cycles of reading, at ``rate`` a second.

    ``fault`` is what is wrong with the motors' identities, "" for nothing. By motor id: how many
    cycles were answered (``heard``), the ``last`` answer, and the longest ``gap`` [s] without one.
    """

    fault: str
    cycles: int
    rate: float
    heard: Mapping[int, int]
    last: Mapping[int, Reading]
    gap: Mapping[int, float]


def survey_bus(bus: MotorBus, seconds: float) -> BusSurvey:
    """Open, see who is there, read for ``seconds`` [s], close; no motor is told anything.

    Raises DriverFault where the port cannot be opened, or is lost.
    """
    try:
        bus.open()
        return _read(bus, _identity(bus), seconds)
    finally:
        bus.close()


def _identity(bus: MotorBus) -> str:
    try:
        bus.identify()
    except DriverFault as error:
        return str(error)
    return ""


def _read(bus: MotorBus, fault: str, seconds: float) -> BusSurvey:
    start = bus.now()
    heard: Counter[int] = Counter()
    last: dict[int, Reading] = {}
    since, gap, cycles = dict.fromkeys(bus.motors, start), dict.fromkeys(bus.motors, 0.0), 0
    while cycles < MIN_CYCLES or bus.now() < start + seconds:
        readings, cycles = bus.read(), cycles + 1
        for id, reading in readings.items():
            if id not in last or reading.time > last[id].time:
                heard[id] += 1
                gap[id] = max(gap[id], reading.time - since[id])
                since[id], last[id] = reading.time, reading
    end = bus.now()
    for id in bus.motors:
        gap[id] = max(gap[id], end - since[id]) if id in last else inf
    return BusSurvey(fault, cycles, cycles / max(end - start, 1e-9), heard, last, gap)
