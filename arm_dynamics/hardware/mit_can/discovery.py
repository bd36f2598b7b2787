"""Registers and discovery of Damiao motors: requests on CAN id 0x7FF that move nothing.

References
----------
Damiao, DM-J4310-2EC user manual, "read and write parameters over CAN"; names and units as in the
register list of damiao-motor (J. Xie).

"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isclose

from arm_dynamics.hardware.mit_can import can_frames
from arm_dynamics.hardware.mit_can.can_frames import Ranges
from arm_dynamics.hardware.mit_can.motors import MitMotor, model_with_torque_range
from arm_dynamics.hardware.mit_can.transport import MAX_ATTEMPTS, CanTransport
from arm_dynamics.hardware.motor_bus import DiscoveredMotor

MASTER_ID, TIMEOUT, CONTROL_MODE, VERSION = 7, 9, 10, 14
POSITION_RANGE, VELOCITY_RANGE, TORQUE_RANGE = 21, 22, 23
MIT_MODE = 1
TIMEOUT_UNIT = 50e-6
"""Unit of TIMEOUT [s]."""
SECOND_REPLY_TIME = 3e-3
"""Time [s] for a second motor of the same id to reply too."""
NO_REPLY, NO_RANGES = "does not reply", "does not report its ranges"


class Registers:
    """Read and write single registers; each call waits for the reply."""

    def __init__(self, transport: CanTransport, reply_timeout: float) -> None:
        self._transport = transport
        self._reply_timeout = reply_timeout

    def replies(self, id: int, register: int) -> list[tuple[int, bytes]]:
        """Return all replies for motor ``id``: CAN id of the reply, four bytes."""
        request = can_frames.read_register(id, register)
        return self._request(request, id, register, SECOND_REPLY_TIME)

    def read_int(self, id: int, register: int, attempts: int = MAX_ATTEMPTS) -> int | None:
        """Return an integer register; None without a reply."""
        data = self._read(id, register, attempts)
        return None if data is None else int(struct.unpack("<I", data)[0])

    def read_float(self, id: int, register: int, attempts: int = MAX_ATTEMPTS) -> float | None:
        """Return a floating-point register; None without a reply."""
        data = self._read(id, register, attempts)
        return None if data is None else float(struct.unpack("<f", data)[0])

    def write(self, id: int, register: int, value: int, attempts: int = MAX_ATTEMPTS) -> bool:
        """Write an integer register; return whether it reads back as ``value``."""
        for _ in range(attempts):
            if self.read_int(id, register, 1) == value:
                return True
            self._request(can_frames.write_register(id, register, value), id, register)
        return self.read_int(id, register, 1) == value

    def _read(self, id: int, register: int, attempts: int) -> bytes | None:
        request = can_frames.read_register(id, register)
        for _ in range(attempts):
            for _, data in self._request(request, id, register):
                return data
        return None

    def _request(
        self, request: can_frames.CanFrame, id: int, register: int, more: float = 0.0
    ) -> list[tuple[int, bytes]]:
        """Return the first reply in time, and those that follow within ``more`` [s]."""
        while self._transport.receive(self._transport.now()) is not None:
            pass
        self._transport.send(request)
        replies: list[tuple[int, bytes]] = []
        end = self._transport.now() + self._reply_timeout
        while (frame := self._transport.receive(end)) is not None:
            reply = can_frames.register_reply(frame[1], register)
            if frame[0] != can_frames.BROADCAST and reply is not None and reply[0] == id:
                replies.append((frame[0], reply[1]))
                end = self._transport.now() + more
                if not more:
                    break
        return replies


@dataclass(frozen=True, slots=True)
class MotorIdentity:
    """Identity that a Damiao motor reports: CAN id of its replies, ranges of its frames."""

    reply_id: int
    ranges: Ranges


def discover(
    registers: Registers, models: Mapping[int, MitMotor]
) -> tuple[dict[int, MotorIdentity], list[str]]:
    """Identify Damiao motors by their registers.

    The torque range identifies the model; the other ranges are used as configured. Two motors with
    one id are detected by two replies to every request. On a CAN bus, equal replies sent at the
    same time are one frame: such a pair is detected as soon as its replies differ.

    Returns
    -------
    dict of int to MotorIdentity
        Identities by motor id.
    list of str
        Problems.

    """
    identities: dict[int, MotorIdentity] = {}
    faults: list[str] = []
    for id, model in models.items():
        result = _discover(registers, id, model)
        if isinstance(result, str):
            faults.append(f"motor {id} ({model.name}) {result}")
        else:
            identities[id] = result
    return identities, faults


def _discover(registers: Registers, id: int, model: MitMotor) -> MotorIdentity | str:
    """Return the identity of one motor, or its problem."""
    rounds = [r for _ in range(MAX_ATTEMPTS) if (r := registers.replies(id, MASTER_ID))]
    if not rounds:
        return NO_REPLY
    if len(rounds) > 1 and min(map(len, rounds)) > 1:
        return f"replies {len(rounds[0])} times: two motors have this id"
    p, v, t = (registers.read_float(id, r) for r in (POSITION_RANGE, VELOCITY_RANGE, TORQUE_RANGE))
    if p is None or v is None or t is None:
        return NO_RANGES
    expected = model.ranges.torque
    if not isclose(t, expected, rel_tol=1e-6):
        return f"torque range = {t:g} N·m ({model_with_torque_range(t)}), expected {expected:g} N·m"
    if p <= 0.0 or v <= 0.0:
        return f"ranges = {p:g} rad, {v:g} rad/s, expected both above 0"
    return MotorIdentity(rounds[0][0][0], Ranges(p, v, t))


def scan_bus(registers: Registers, ids: Iterable[int], bitrate: int) -> list[DiscoveredMotor]:
    """Return every Damiao motor that replies, with the model of its torque range.

    Ids without a reply get further requests: a busy computer may read a reply late.
    """
    replies: dict[int, list[tuple[int, bytes]]] = {id: [] for id in ids}
    for _ in range(MAX_ATTEMPTS):
        replies = {
            id: readings or registers.replies(id, TORQUE_RANGE) for id, readings in replies.items()
        }
    motors = []
    for id, readings in replies.items():
        ranges = [struct.unpack("<f", data)[0] for _, data in readings]
        version = registers.read_int(id, VERSION) if ranges else None
        firmware = "" if version is None else str(version)
        for torque in ranges:
            model = model_with_torque_range(torque)
            motors.append(DiscoveredMotor(id, model, firmware, bitrate))
    return motors
