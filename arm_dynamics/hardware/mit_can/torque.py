"""Whether a motor that does not tell so is on: what it gives of what it is asked for.

A CubeMars motor tells no state, and one that was without power for a moment answers commands
like one that obeys (so does the public firmware of the Mini Cheetah, in its rest mode).

Torque on and off, each confirmed by an answer, and what may be asked without changing it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from arm_dynamics.hardware.mit_can import can_frames
from arm_dynamics.hardware.mit_can.can_frames import CanFrame
from arm_dynamics.hardware.mit_can.exchange import Exchange, MotorReply
from arm_dynamics.hardware.mit_can.mit_command import MitCommand, commanded_torque
from arm_dynamics.hardware.mit_can.motors import MitMotor

MIN_TORQUE_FRACTION = 0.02
"""Share of the range of torque that must be asked for: a smaller one drowns in what is told."""
MAX_TORQUE_FRACTION = 0.1
"""Share of that range beyond which no more is expected: motors bound their currents."""
GIVEN = 0.3
"""Share of what is expected below which nothing is given."""
CYCLES = 20
"""Answers of that kind in a row, leaving out those where little was asked for."""


class TorqueLossDetector:
    """Motors that give nothing: |τ| < GIVEN min(|τ*|, MOST τmax) while |τ*| > ASKED τmax.

    τ* is the smaller one of what the last two commands ask for at the answer's own q and v: an
    answer tells a torque from before the command that it answers.
    """

    def __init__(self, models: Mapping[int, MitMotor]) -> None:
        """Those of ``models`` that do not tell whether they are on."""
        untold = {id: model for id, model in models.items() if not model.maker.registers}
        self._range = {id: model.ranges.torque for id, model in untold.items()}
        self.ids = frozenset(untold)
        self._sent: dict[int, tuple[MitCommand, MitCommand]] = {}
        self._missed: dict[int, int] = {}

    def reset(self, ids: Collection[int]) -> None:
        """These begin anew: nothing has been asked of them."""
        for id in ids:
            self._sent.pop(id, None)
            self._missed.pop(id, None)

    def command_sent(self, id: int, law: MitCommand) -> None:
        """A command to one of ``ids``."""
        self._sent[id] = self._sent.get(id, (law, law))[1], law

    def update(self, answers: Mapping[int, MotorReply]) -> None:
        """What they gave."""
        for id in self._sent.keys() & answers.keys():
            said, top = answers[id].feedback, self._range[id]
            asked = min(
                abs(commanded_torque(law, said.position, said.velocity)) for law in self._sent[id]
            )
            if asked > MIN_TORQUE_FRACTION * top:
                missing = abs(said.torque) < GIVEN * min(asked, MAX_TORQUE_FRACTION * top)
                self._missed[id] = self._missed.get(id, 0) + 1 if missing else 0

    def torque_lost(self, id: int) -> bool:
        """Whether the motor gives nothing."""
        return self._missed.get(id, 0) >= CYCLES


MAX_ATTEMPTS = 3
ZERO_TOLERANCE = 0.01
"""Largest position [rad] that counts as 0 once it has been called so."""


class TorqueSwitch:
    """Knows which motors were enabled from here, and the last goal of each since then."""

    def __init__(self, exchange: Exchange, models: Mapping[int, MitMotor]) -> None:
        self._exchange, self._models = exchange, models
        self._goals: dict[int, CanFrame] = {}
        self._on: set[int] = set()

    def reset(self) -> None:
        """Of a line opened anew nothing is known: no motor is taken for enabled from here."""
        self._goals.clear()
        self._on.clear()

    def command(self, goals: Mapping[int, CanFrame]) -> dict[int, MotorReply]:
        """Send goals; the answers that come."""
        self._goals |= goals
        return self._exchange.ask({id: [frame] for id, frame in goals.items()})

    def ask(self, ids: Collection[int]) -> dict[int, MotorReply]:
        """Ask once; the answers that come."""
        return self._exchange.ask({id: [self._request(id)] for id in ids})

    def wait_for_all(self, ids: Collection[int]) -> dict[int, MotorReply]:
        """Ask until everyone has answered, or some have not in several attempts."""
        found: dict[int, MotorReply] = {}
        for _ in range(MAX_ATTEMPTS):
            found |= self.ask([id for id in ids if id not in found])
        return found

    def enable(self, ids: Collection[int]) -> set[int]:
        """Torque on where a motor answers and then says that it is on; off again elsewhere.

        A goal that was written since it was disabled follows at once: without one, it is limp.
        """
        present = self.wait_for_all(ids).keys()
        self._on |= present
        sent = {id: [_instruction(id, can_frames.ENABLE)] for id in present}
        for id in present & self._goals.keys():
            sent[id].append(self._goals[id])
        done = self._instruct(sent, lambda answer: answer.feedback.enabled is not False)
        self.disable(set(ids) - done)
        return done

    def disable(self, ids: Collection[int]) -> set[int]:
        """Torque off; those that answer, and do not say that they are enabled."""
        self._on -= set(ids)
        for id in ids:
            self._goals.pop(id, None)
        sent = {id: [_instruction(id, can_frames.DISABLE)] for id in ids}
        return self._instruct(sent, lambda answer: not answer.feedback.enabled)

    def clear_faults(self, ids: Collection[int]) -> set[int]:
        """Clear and disable; those that say they have no fault. CubeMars knows no clearing."""
        sent: dict[int, list[CanFrame]] = {}
        for id in self.disable(ids):
            known = self._models[id].maker.registers
            codes = (can_frames.CLEAR_FAULT, can_frames.DISABLE) if known else (can_frames.DISABLE,)
            sent[id] = [_instruction(id, code) for code in codes]
        return self._instruct(sent, lambda answer: not answer.feedback.fault)

    def clear_timeouts(self, ids: Collection[int]) -> set[int]:
        """Clear the trips of watchdogs alone; those that stay, or have not answered.

        An ended program or a lost line is no fault of a motor.
        """
        said = self.wait_for_all(ids)
        tripped = {
            id for id, a in said.items() if a.feedback.fault == can_frames.COMMUNICATION_LOST
        }
        return set(ids) - said.keys() | tripped - self.clear_faults(tripped)

    def set_zero(self, ids: Collection[int]) -> set[int]:
        """Disable and call the present position 0; those that read so then."""
        off = self.disable(ids)
        self._exchange.ask({id: [_instruction(id, can_frames.ZERO)] for id in off})
        answers = self.ask(off)
        return {
            id for id, answer in answers.items() if abs(answer.feedback.position) < ZERO_TOLERANCE
        }

    def _request(self, id: int) -> CanFrame:
        """What provokes an answer of the motor without changing what it does."""
        if self._models[id].maker.registers:
            return can_frames.refresh(id)
        if id not in self._on:
            return _instruction(id, can_frames.DISABLE)
        return self._goals.get(id, _instruction(id, can_frames.ENABLE))

    def _instruct(
        self, sent: Mapping[int, list[CanFrame]], done: Callable[[MotorReply], bool]
    ) -> set[int]:
        """Repeat ``sent`` until a request shows that it is ``done``; the ids where it is."""
        confirmed: set[int] = set()
        for _ in range(MAX_ATTEMPTS):
            left = {id: each for id, each in sent.items() if id not in confirmed}
            self._exchange.ask(left)
            confirmed |= {id for id, answer in self.ask(left).items() if done(answer)}
        return confirmed


def _instruction(id: int, code: int) -> CanFrame:
    return id, can_frames.encode_instruction(code)
