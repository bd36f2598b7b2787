"""Answers that cannot follow the last ones are believed when a second answer says the same.

On the serial stretch of an slcan adapter nothing protects a digit: a changed one is another
position, temperature or fault. A true change costs one more question.

Tells a line whose answers come late from one that lost some: a question with a mark.

A feedback frame has no number of its question: one that comes cycles late would pass for a fresh
one. Before a line gets so late there is a cycle in which nobody answers. After one, a motor is
asked for a register, another one each time, before anything is believed. Frames keep their order:
what comes after that register was asked for after it. CubeMars motors have no registers: a line
of them alone is not told apart.

One round of questions and answers on a CAN line: which answer is whose, and how fresh.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from math import nan

from arm_dynamics.hardware.mit_can.can_frames import CanFrame, MitFeedback, Ranges
from arm_dynamics.hardware.mit_can.motors import OFFSET, QUIET, MitMotor, number
from arm_dynamics.hardware.mit_can.registers import Registers
from arm_dynamics.hardware.mit_can.transport import CanLine

WARMING = 5.0
"""Largest change [°C] between two answers that is taken at once."""
VELOCITY_FRACTION = 0.1
"""Largest change of velocity between two answers that is taken at once, of its range."""
Ask = Callable[[Collection[int]], Mapping[int, "MotorReply"]]


class ReplyFilter:
    """Remembers the last believed answer of each motor; ``ranges`` are those of its frames."""

    def __init__(self, ranges: Mapping[int, Ranges]) -> None:
        self._ranges = ranges
        self._believed: dict[int, MotorReply] = {}

    def reset(self) -> None:
        """Believe nothing of what was said before."""
        self._believed.clear()

    def filter(self, answers: Mapping[int, MotorReply], ask: Ask) -> dict[int, MotorReply]:
        """Those to believe: what follows from the last ones, else what is said twice."""
        clear = {id: a for id, a in answers.items() if self._follows(id, a)}
        doubted = answers.keys() - clear.keys()
        for id, again in (ask(doubted) if doubted else {}).items():
            if self._follows(id, again) or self._agree(id, answers[id], again):
                clear[id] = again
        self._believed |= clear
        return clear

    def _follows(self, id: int, answer: MotorReply) -> bool:
        return id in self._believed and self._agree(id, self._believed[id], answer)

    def _agree(self, id: int, one: MotorReply, two: MotorReply) -> bool:
        """Same state, |q - q'| ≤ V |t - t'| + 0.06 rad, |v - v'| ≤ V / 10, |T - T'| ≤ 5 °C."""
        a, b, top = one.feedback, two.feedback, self._ranges[id].velocity
        reach = top * abs(two.time - one.time) + 0.06
        return (
            (a.fault, a.enabled) == (b.fault, b.enabled)
            and abs(a.position - b.position) <= reach
            and abs(a.velocity - b.velocity) <= VELOCITY_FRACTION * top
            and abs(a.rotor_temperature - b.rotor_temperature) <= WARMING
            and not abs(a.drive_temperature - b.drive_temperature) > WARMING  # NaN: not told
        )


MARKS = range(36)
"""Registers of Damiao motors that may be read; as many cycles late are noticed."""
MAX_ATTEMPTS = 2
"""Marks that are asked for in one cycle."""


class LatencyGuard:
    """``doubtful`` from a cycle without any answer until a mark has passed."""

    def __init__(self, registers: Registers, ids: Sequence[int]) -> None:
        """``ids`` are those of the motors that have registers."""
        self._registers = registers
        self._ids, self._marks = cycle(ids), cycle(MARKS)
        self._known = frozenset(ids)
        self.doubtful = False

    def resynchronize(self) -> bool:
        """Ask for marks, of one motor after the other."""
        for _ in range(MAX_ATTEMPTS):
            if self._registers.read_int(next(self._ids), next(self._marks), 1) is not None:
                self.doubtful = False
                return True
        return False

    def update(self, heard: Collection[int]) -> None:
        """Who was ``heard`` in a cycle."""
        self.doubtful = bool(self._known) and self._known.isdisjoint(heard)


WIRE = 1e-3
"""Time [s] that is granted for each answer beyond the silence."""


@dataclass(frozen=True, slots=True)
class MotorReply:
    """What a motor said, and when [s]."""

    time: float
    feedback: MitFeedback


class Exchange:
    """Asks motors and sorts their answers; knows the ranges and identifiers of each."""

    def __init__(
        self, line: CanLine, models: Mapping[int, MitMotor], settings: Mapping[str, str]
    ) -> None:
        self.line = line
        self.quiet = number(settings, QUIET)
        self.ranges = {id: model.ranges for id, model in models.items()}
        offset = int(number(settings, OFFSET))
        self._models = models
        self._reply_ids = {
            id: (id + offset,) if model.maker.registers else (id, 0) for id, model in models.items()
        }
        self._newest: dict[int, MotorReply] = {}
        self._until = 0.0

    def set_identity(self, id: int, reply_id: int, ranges: Ranges) -> None:
        """Take over what the motor said of itself."""
        self._reply_ids[id] = (reply_id,)
        self.ranges[id] = ranges

    def id_conflicts(self) -> list[str]:
        """Pairs of motors whose answers look alike, or command one another, in words."""
        faults, owners = [], dict[tuple[int, int], int]()
        for id, reply_ids in self._reply_ids.items():
            for reply_id in reply_ids:
                if reply_id != id and reply_id in self._models:
                    faults.append(f"motor {id} answers with CAN id {reply_id}, a motor's own")
                other = owners.setdefault((reply_id, id & 0xF), id)
                if other != id:
                    faults.append(f"motors {other} and {id} answer alike, with CAN id {reply_id}")
        return faults

    def ask(self, questions: Mapping[int, Sequence[CanFrame]]) -> dict[int, MotorReply]:
        """Send every motor's frames, each of which has an answer; the newest of each motor.

        What came before is forgotten. Ends with the last answer, after a silence of ``quiet``, or
        1 ms for each answer later.
        """
        if not questions:
            return {}
        for _ in self._waiting():
            pass
        for frames in questions.values():
            for frame in frames:
                self.line.send(frame)
        answers = self._collect({id: len(frames) for id, frames in questions.items()})
        self._newest |= answers
        return answers

    def late_replies(self, ids: Collection[int]) -> dict[int, MotorReply]:
        """Answers that came since the last round, as old as they may be: as its end."""
        found = {id: replace(a, time=self._until) for id, a in self._waiting() if id in ids}
        self._newest |= found
        return found

    def temperatures(self, id: int) -> tuple[float, float]:
        """Of drive and rotor [°C] in the newest answer of a motor."""
        answer = self._newest.get(id)
        if answer is None:
            return nan, nan
        return answer.feedback.drive_temperature, answer.feedback.rotor_temperature

    def _collect(self, owed: dict[int, int]) -> dict[int, MotorReply]:
        """Answers until no motor owes one; one left unread would pass for the next one's."""
        answers: dict[int, MotorReply] = {}
        end = self.line.now() + self.quiet + WIRE * sum(owed.values())
        while any(left > 0 for left in owed.values()):
            frame = self.line.receive(min(end, self.line.now() + self.quiet))
            if frame is None:
                break
            id, answer = self._sorted(frame)
            if answer is not None and id in owed:
                answers[id] = answer
                owed[id] -= 1
        self._until = self.line.now()
        return answers

    def _waiting(self) -> Iterator[tuple[int, MotorReply]]:
        while (frame := self.line.receive(self.line.now())) is not None:
            id, answer = self._sorted(frame)
            if answer is not None:
                yield id, answer

    def _sorted(self, frame: CanFrame) -> tuple[int, MotorReply | None]:
        """Whose answer a frame is, and what it says; None for nobody's."""
        reply_id, data = frame
        for id, model in self._models.items():
            mask = 0xF if model.maker.registers else 0xFF
            if reply_id in self._reply_ids[id] and data[0] & mask == id & mask:
                feedback = model.maker.parse(data, self.ranges[id])
                return id, None if feedback is None else MotorReply(self.line.now(), feedback)
        return -1, None
