"""Whether a motor that does not tell so is on: what it gives of what it is asked for.

A CubeMars motor tells no state, and one that was without power for a moment answers commands
like one that obeys (so does the public firmware of the Mini Cheetah, in its rest mode).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from arm_dynamics.drivers.mit_can.exchange import Answer
from arm_dynamics.drivers.mit_can.law import Law, effort_of
from arm_dynamics.drivers.mit_can.motors import MitMotor

ASKED = 0.02
"""Share of the range of torque that must be asked for: a smaller one drowns in what is told."""
MOST = 0.1
"""Share of that range beyond which no more is expected: motors bound their currents."""
GIVEN = 0.3
"""Share of what is expected below which nothing is given."""
CYCLES = 20
"""Answers of that kind in a row, leaving out those where little was asked for."""


class Given:
    """Motors that give nothing: |τ| < GIVEN min(|τ*|, MOST τmax) while |τ*| > ASKED τmax.

    τ* is the smaller one of what the last two commands ask for at the answer's own q and v: an
    answer tells a torque from before the command that it answers.
    """

    def __init__(self, models: Mapping[int, MitMotor]) -> None:
        """Those of ``models`` that do not tell whether they are on."""
        untold = {id: model for id, model in models.items() if not model.maker.registers}
        self._range = {id: model.ranges.torque for id, model in untold.items()}
        self.ids = frozenset(untold)
        self._sent: dict[int, tuple[Law, Law]] = {}
        self._missed: dict[int, int] = {}

    def forget(self, ids: Collection[int]) -> None:
        """These begin anew: nothing has been asked of them."""
        for id in ids:
            self._sent.pop(id, None)
            self._missed.pop(id, None)

    def sent(self, id: int, law: Law) -> None:
        """A command to one of ``ids``."""
        self._sent[id] = self._sent.get(id, (law, law))[1], law

    def look(self, answers: Mapping[int, Answer]) -> None:
        """What they gave."""
        for id in self._sent.keys() & answers.keys():
            said, top = answers[id].feedback, self._range[id]
            asked = min(abs(effort_of(law, said.position, said.velocity)) for law in self._sent[id])
            if asked > ASKED * top:
                missing = abs(said.torque) < GIVEN * min(asked, MOST * top)
                self._missed[id] = self._missed.get(id, 0) + 1 if missing else 0

    def lost(self, id: int) -> bool:
        """Whether the motor gives nothing."""
        return self._missed.get(id, 0) >= CYCLES
