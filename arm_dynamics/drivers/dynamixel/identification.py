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


def look(line: Line, motor: MotorWiring, model: DynamixelModel) -> tuple[str, int | None]:
    """What is wrong with one motor, "" for nothing; and its firmware, where it tells."""
    answer, noise = _ping(line, motor.id)
    if answer is None:
        said = "two motors with this id, or a disturbed line" if noise else "no answer"
    elif answer[0] != model.number:
        number, firmware = answer
        said = f"is {name_of(number)} with firmware {firmware}, {model.name} expected"
    else:
        said = "" if one_voice(line, motor.id) else "two motors with this id answer at once"
    problem = f"joint '{motor.joint}' (id {motor.id}): {said}" if said else ""
    return problem, None if answer is None else answer[1]


def firmwares(line: Line, ids: Iterable[int]) -> dict[int, int]:
    """The firmware of every motor that answers, by id."""
    answers = {id: _ping(line, id)[0] for id in ids}
    return {id: answer[1] for id, answer in answers.items() if answer is not None}


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
