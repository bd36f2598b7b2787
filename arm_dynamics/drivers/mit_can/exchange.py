"""One round of questions and answers on a CAN line: which answer is whose, and how fresh."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan

from arm_dynamics.drivers.mit_can.frames import Feedback, Frame, Ranges
from arm_dynamics.drivers.mit_can.line import CanLine
from arm_dynamics.drivers.mit_can.motors import MitMotor
from arm_dynamics.drivers.mit_can.settings import OFFSET, QUIET, number

WIRE = 1e-3
"""Time [s] that is granted for each answer beyond the silence."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a motor said, and when [s]."""

    time: float
    feedback: Feedback


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
        self._newest: dict[int, Answer] = {}
        self._until = 0.0

    def adopt(self, id: int, reply_id: int, ranges: Ranges) -> None:
        """Take over what the motor said of itself."""
        self._reply_ids[id] = (reply_id,)
        self.ranges[id] = ranges

    def ambiguous(self) -> list[str]:
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

    def ask(self, questions: Mapping[int, Sequence[Frame]]) -> dict[int, Answer]:
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

    def late(self, ids: Collection[int]) -> dict[int, Answer]:
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

    def _collect(self, owed: dict[int, int]) -> dict[int, Answer]:
        """Answers until no motor owes one; one left unread would pass for the next one's."""
        answers: dict[int, Answer] = {}
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

    def _waiting(self) -> Iterator[tuple[int, Answer]]:
        while (frame := self.line.receive(self.line.now())) is not None:
            id, answer = self._sorted(frame)
            if answer is not None:
                yield id, answer

    def _sorted(self, frame: Frame) -> tuple[int, Answer | None]:
        """Whose answer a frame is, and what it says; None for nobody's."""
        reply_id, data = frame
        for id, model in self._models.items():
            mask = 0xF if model.maker.registers else 0xFF
            if reply_id in self._reply_ids[id] and data[0] & mask == id & mask:
                feedback = model.maker.parse(data, self.ranges[id])
                return id, None if feedback is None else Answer(self.line.now(), feedback)
        return -1, None
