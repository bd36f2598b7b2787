"""Registers of Damiao motors: questions on CAN id 0x7FF that move nothing.

Source: Damiao, DM-J4310-2EC user manual, "read and write parameters over CAN"; names and units as
in the register list of damiao-motor (J. Xie).
"""

from __future__ import annotations

import struct

from arm_dynamics.hardware.mit_can import can_frames
from arm_dynamics.hardware.mit_can.transport import CanLine

MASTER_ID, TIMEOUT, CONTROL_MODE, VERSION = 7, 9, 10, 14
POSITION_RANGE, VELOCITY_RANGE, TORQUE_RANGE = 21, 22, 23
MIT_MODE = 1
TICK = 50e-6
"""Unit of TIMEOUT [s]."""
MORE = 3e-3
"""Time [s] for a second motor of the same id to answer too."""


class Registers:
    """Reads and writes single registers, waiting for each answer."""

    def __init__(self, line: CanLine, quiet: float) -> None:
        self._line = line
        self._quiet = quiet

    def replies(self, id: int, register: int) -> list[tuple[int, bytes]]:
        """Everything that answers for motor ``id``: CAN id of the answer, four bytes."""
        return self._asked(can_frames.read_register(id, register), id, register, MORE)

    def read_int(self, id: int, register: int, attempts: int = 3) -> int | None:
        """A whole-numbered register; None where nothing answers."""
        data = self._first(id, register, attempts)
        return None if data is None else int(struct.unpack("<I", data)[0])

    def read_float(self, id: int, register: int, attempts: int = 3) -> float | None:
        """A real-numbered register; None where nothing answers."""
        data = self._first(id, register, attempts)
        return None if data is None else float(struct.unpack("<f", data)[0])

    def set(self, id: int, register: int, value: int, attempts: int) -> bool:
        """Write a whole-numbered register; whether it holds ``value`` when read back."""
        for _ in range(attempts):
            if self.read_int(id, register, 1) == value:
                return True
            self._asked(can_frames.write_register(id, register, value), id, register)
        return self.read_int(id, register, 1) == value

    def _first(self, id: int, register: int, attempts: int) -> bytes | None:
        question = can_frames.read_register(id, register)
        for _ in range(attempts):
            for _, data in self._asked(question, id, register):
                return data
        return None

    def _asked(
        self, question: can_frames.CanFrame, id: int, register: int, more: float = 0.0
    ) -> list[tuple[int, bytes]]:
        """The first answer within the quiet time, and those that follow within ``more`` [s]."""
        while self._line.receive(self._line.now()) is not None:
            pass
        self._line.send(question)
        found: list[tuple[int, bytes]] = []
        end = self._line.now() + self._quiet
        while (frame := self._line.receive(end)) is not None:
            answer = can_frames.register_answer(frame[1], register)
            if frame[0] != can_frames.BROADCAST and answer is not None and answer[0] == id:
                found.append((frame[0], answer[1]))
                end = self._line.now() + more
                if not more:
                    break
        return found
