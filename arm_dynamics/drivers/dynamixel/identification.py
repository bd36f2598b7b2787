"""Whether every motor is there, once, and the one that it should be: reads only."""

from __future__ import annotations

from collections.abc import Iterable

from arm_dynamics.drivers.dynamixel import codec
from arm_dynamics.drivers.dynamixel import control_table as table
from arm_dynamics.drivers.dynamixel.line import TRIES, Line
from arm_dynamics.drivers.dynamixel.models import DynamixelModel, name_of
from arm_dynamics.model.wiring import MotorWiring

_DELAY_UNIT = 2e-6
"""Of the return delay register [s]."""
_CLEAR, _DOUBTED = 8, 32
_LIVE = table.Register(table.REALTIME_TICK.address, 27)
"""Values that differ from motor to motor: two with one id can not say them in one voice."""


def problem_of(line: Line, motor: MotorWiring, model: DynamixelModel) -> str:
    """What is wrong with one motor, "" for nothing."""
    answer, noise = _ping(line, motor.id)
    if answer is None:
        said = "two motors with this id, or a disturbed line" if noise else "no answer"
        return f"joint '{motor.joint}' (id {motor.id}): {said}"
    number, firmware = answer
    if number != model.number:
        said = f"is {name_of(number)} with firmware {firmware}, {model.name} expected"
        return f"joint '{motor.joint}' (id {motor.id}): {said}"
    if not one_voice(line, motor.id):
        return f"joint '{motor.joint}' (id {motor.id}): two motors with this id answer at once"
    return ""


def firmware_of(line: Line, id: int) -> int:
    """The motor's firmware; 0 where it does not answer."""
    answer, _ = _ping(line, id)
    return 0 if answer is None else answer[1]


def longest_return_delay(line: Line, ids: Iterable[int]) -> float:
    """The longest time that any of the motors keeps before it answers [s]."""
    told = (line.get(id, table.RETURN_DELAY) for id in ids)
    return max((value for value in told if value is not None), default=250) * _DELAY_UNIT


def _ping(line: Line, id: int) -> tuple[tuple[int, int] | None, bool]:
    noise = False
    for _ in range(TRIES):
        answer = line.ping(id)
        noise = noise or line.disturbed
        if answer is not None:
            return answer, noise
    return None, noise


def one_voice(line: Line, id: int) -> bool:
    """Whether nearly all answers are clear; those of two motors with one id are not.

    Some of these are: by chance the CRCs of both fit what they say together.
    """
    request = codec.read(id, _LIVE.address, _LIVE.size)
    garbled = 0
    for asked in range(1, _DOUBTED + 1):
        line.ask(request, (id,), _LIVE.size)
        garbled += line.disturbed
        if asked == _CLEAR and not garbled:
            return True
    return garbled < _DOUBTED // 4
