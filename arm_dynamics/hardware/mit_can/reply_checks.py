"""Checks of MIT-mode replies: implausible ones, late ones, and motors that lost their torque."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import cycle

from arm_dynamics.hardware.mit_can.can_frames import MitCommand, Ranges, commanded_torque
from arm_dynamics.hardware.mit_can.discovery import Registers
from arm_dynamics.hardware.mit_can.exchange import MotorReply
from arm_dynamics.hardware.mit_can.motors import MitMotor

Request = Callable[[Collection[int]], Mapping[int, MotorReply]]

MAX_TEMPERATURE_CHANGE = 5.0
"""Largest change [°C] between two replies that needs no confirmation."""
VELOCITY_FRACTION = 0.1
"""Largest change of velocity that needs no confirmation, relative to its range."""
POSITION_TOLERANCE = 0.06
"""Change of position [rad] that needs no confirmation after any time."""


class ReplyFilter:
    """Accept replies that are consistent with the last ones or that a second reply confirms.

    On the serial connection of an slcan adapter no checksum protects a digit: a corrupt one is
    another position, temperature or fault. A real change costs one more request.
    """

    def __init__(self, ranges: Mapping[int, Ranges]) -> None:
        """Use the ``ranges`` of each motor's frames."""
        self._ranges = ranges
        self._accepted: dict[int, MotorReply] = {}

    def reset(self) -> None:
        """Discard the accepted replies."""
        self._accepted.clear()

    def filter(self, replies: Mapping[int, MotorReply], request: Request) -> dict[int, MotorReply]:
        """Return the accepted replies; uncertain ones are requested again by ``request``."""
        accepted = {id: reply for id, reply in replies.items() if self._follows(id, reply)}
        uncertain = replies.keys() - accepted.keys()
        for id, again in (request(uncertain) if uncertain else {}).items():
            if self._follows(id, again) or self._agree(id, replies[id], again):
                accepted[id] = again
        self._accepted |= accepted
        return accepted

    def _follows(self, id: int, reply: MotorReply) -> bool:
        return id in self._accepted and self._agree(id, self._accepted[id], reply)

    def _agree(self, id: int, one: MotorReply, two: MotorReply) -> bool:
        """Same state, |q - q'| <= V |t - t'| + 0.06 rad, |v - v'| <= V / 10, |T - T'| <= 5 °C."""
        a, b, limit = one.feedback, two.feedback, self._ranges[id].velocity
        reachable = limit * abs(two.time - one.time) + POSITION_TOLERANCE
        drive_change = abs(a.drive_temperature - b.drive_temperature)
        return (
            (a.fault, a.enabled) == (b.fault, b.enabled)
            and abs(a.position - b.position) <= reachable
            and abs(a.velocity - b.velocity) <= VELOCITY_FRACTION * limit
            and abs(a.rotor_temperature - b.rotor_temperature) <= MAX_TEMPERATURE_CHANGE
            and not drive_change > MAX_TEMPERATURE_CHANGE  # NaN: not reported
        )


MARK_REGISTERS = range(36)
"""Registers of Damiao motors that may be read; replies up to as many cycles late are detected."""
MARKS_PER_CYCLE = 2


class LatencyGuard:
    """Distinguish a bus with late replies from one that lost some, by a request with a mark.

    A feedback frame carries no number of its request: one that is cycles late would pass as fresh.
    Before a bus gets so late there is a cycle without any reply. After such a cycle, a register is
    requested, another one each time, before any reply is accepted. Frames keep their order: what
    follows that register's reply was requested after it. CubeMars motors have no registers: a bus
    with these motors only is not checked.

    Attributes
    ----------
    uncertain : bool
        Set by a cycle without any reply, until a mark has returned.

    """

    def __init__(self, registers: Registers, ids: Sequence[int]) -> None:
        """Use the ``ids`` of motors with registers."""
        self._registers = registers
        self._ids, self._marks = cycle(ids), cycle(MARK_REGISTERS)
        self._known = frozenset(ids)
        self.uncertain = False

    def resynchronize(self) -> bool:
        """Request marks, of one motor after another; return whether one has returned."""
        for _ in range(MARKS_PER_CYCLE):
            if self._registers.read_int(next(self._ids), next(self._marks), 1) is not None:
                self.uncertain = False
                return True
        return False

    def update(self, replied: Collection[int]) -> None:
        """Take the ids of the motors that ``replied`` in a cycle."""
        self.uncertain = bool(self._known) and self._known.isdisjoint(replied)


MIN_TORQUE_FRACTION = 0.02
"""Smallest command that is checked, relative to the torque range: less is lost in noise."""
MAX_TORQUE_FRACTION = 0.1
"""Largest torque that is expected, relative to the range: motors limit their currents."""
MIN_RESPONSE = 0.3
"""Fraction of the expected torque below which a motor counts as without torque."""
MAX_MISSES = 20
"""Replies of that kind in a row; those to small commands are not counted."""


class TorqueLossDetector:
    """Detect motors without torque by the torque that they report.

    A reply counts if |τ| < MIN_RESPONSE min(|τ*|, MAX_TORQUE_FRACTION τ_max) while
    |τ*| > MIN_TORQUE_FRACTION τ_max. τ* is the smaller of the torques that the last two commands
    require at the reported q and v: a reply reports a torque from before the command that it
    answers. CubeMars motors do not report whether they are enabled. After a brown-out they reply to
    commands as before (so does the public firmware of the Mini Cheetah, in its rest mode).

    Attributes
    ----------
    ids : frozenset of int
        Motors that do not report whether they are enabled.

    """

    def __init__(self, models: Mapping[int, MitMotor]) -> None:
        """Check those of ``models`` that do not report whether they are enabled."""
        self._range = {
            id: model.ranges.torque
            for id, model in models.items()
            if not model.vendor.has_registers
        }
        self.ids = frozenset(self._range)
        self._sent: dict[int, tuple[MitCommand, MitCommand]] = {}
        self._misses: dict[int, int] = {}

    def reset(self, ids: Collection[int]) -> None:
        """Discard the commands and counts of these motors."""
        for id in ids:
            self._sent.pop(id, None)
            self._misses.pop(id, None)

    def command_sent(self, id: int, command: MitCommand) -> None:
        """Record a command to one of ``ids``."""
        self._sent[id] = self._sent.get(id, (command, command))[1], command

    def update(self, replies: Mapping[int, MotorReply]) -> None:
        """Take the replies of a cycle."""
        for id in self._sent.keys() & replies.keys():
            reply, limit = replies[id].feedback, self._range[id]
            expected = min(
                abs(commanded_torque(command, reply.position, reply.velocity))
                for command in self._sent[id]
            )
            if expected > MIN_TORQUE_FRACTION * limit:
                missing = abs(reply.torque) < MIN_RESPONSE * min(
                    expected, MAX_TORQUE_FRACTION * limit
                )
                self._misses[id] = self._misses.get(id, 0) + 1 if missing else 0

    def torque_lost(self, id: int) -> bool:
        """Return whether the motor has no torque."""
        return self._misses.get(id, 0) >= MAX_MISSES
