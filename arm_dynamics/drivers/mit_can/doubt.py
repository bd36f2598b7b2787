"""Answers that cannot follow the last ones are believed when a second answer says the same.

On the serial stretch of an slcan adapter nothing protects a digit: a changed one is another
position, temperature or fault. A true change costs one more question.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from arm_dynamics.drivers.mit_can.exchange import Answer
from arm_dynamics.drivers.mit_can.frames import Ranges

WARMING = 5.0
"""Largest change [°C] between two answers that is taken at once."""
SHARE = 0.1
"""Largest change of velocity between two answers that is taken at once, of its range."""
Ask = Callable[[Collection[int]], Mapping[int, Answer]]


class Doubt:
    """Remembers the last believed answer of each motor; ``ranges`` are those of its frames."""

    def __init__(self, ranges: Mapping[int, Ranges]) -> None:
        self._ranges = ranges
        self._believed: dict[int, Answer] = {}

    def forget(self) -> None:
        """Believe nothing of what was said before."""
        self._believed.clear()

    def sift(self, answers: Mapping[int, Answer], ask: Ask) -> dict[int, Answer]:
        """Those to believe: what follows from the last ones, else what is said twice."""
        clear = {id: a for id, a in answers.items() if self._follows(id, a)}
        doubted = answers.keys() - clear.keys()
        for id, again in (ask(doubted) if doubted else {}).items():
            if self._follows(id, again) or self._agree(id, answers[id], again):
                clear[id] = again
        self._believed |= clear
        return clear

    def _follows(self, id: int, answer: Answer) -> bool:
        return id in self._believed and self._agree(id, self._believed[id], answer)

    def _agree(self, id: int, one: Answer, two: Answer) -> bool:
        """Same state, |q - q'| ≤ V |t - t'| + 0.06 rad, |v - v'| ≤ V / 10, |T - T'| ≤ 5 °C."""
        a, b, top = one.feedback, two.feedback, self._ranges[id].velocity
        reach = top * abs(two.time - one.time) + 0.06
        return (
            (a.fault, a.enabled) == (b.fault, b.enabled)
            and abs(a.position - b.position) <= reach
            and abs(a.velocity - b.velocity) <= SHARE * top
            and abs(a.rotor_temperature - b.rotor_temperature) <= WARMING
            and not abs(a.drive_temperature - b.drive_temperature) > WARMING  # NaN: not told
        )
