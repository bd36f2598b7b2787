"""Requests and replies of MIT-mode motors: which reply belongs to which motor, and torque."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan

from arm_dynamics.hardware.mit_can import can_frames
from arm_dynamics.hardware.mit_can.can_frames import CanFrame, MitFeedback, Ranges
from arm_dynamics.hardware.mit_can.motors import REPLY_ID_OFFSET, REPLY_TIMEOUT, MitMotor, number
from arm_dynamics.hardware.mit_can.transport import MAX_ATTEMPTS, CanTransport
from arm_dynamics.hardware.motor_bus import Reading

REPLY_TIME = 1e-3
"""Time [s] for each reply in addition to the reply time-out."""
ZERO_TOLERANCE = 0.01
"""Largest position [rad] that counts as 0 after it has been set."""


@dataclass(frozen=True, slots=True)
class MotorReply:
    """Feedback of a motor and its arrival ``time`` [s]."""

    time: float
    feedback: MitFeedback

    def to_reading(self, torque_lost: bool) -> Reading:
        """Return the reply as a reading; ``torque_lost`` overrides the enabled state."""
        feedback = self.feedback
        return Reading(
            self.time,
            feedback.position,
            feedback.velocity,
            feedback.torque,
            max(feedback.rotor_temperature, feedback.drive_temperature),  # the rotor's with a NaN
            fault=feedback.fault,
            enabled=False if torque_lost else feedback.enabled,
        )


class Exchange:
    """Send requests to motors and assign their replies.

    Attributes
    ----------
    ranges : dict of int to Ranges
        Ranges of each motor's frames.
    reply_timeout : float
        Longest gap between replies [s].

    """

    def __init__(
        self, transport: CanTransport, models: Mapping[int, MitMotor], settings: Mapping[str, str]
    ) -> None:
        self.transport = transport
        self.reply_timeout = number(settings, REPLY_TIMEOUT)
        self.ranges = {id: model.ranges for id, model in models.items()}
        offset = int(number(settings, REPLY_ID_OFFSET))
        self._models = models
        self._reply_ids = {
            id: (id + offset,) if model.vendor.has_registers else (id, 0)
            for id, model in models.items()
        }
        self._newest: dict[int, MotorReply] = {}
        self._until = 0.0

    def set_identity(self, id: int, reply_id: int, ranges: Ranges) -> None:
        """Use the identity that a motor reported."""
        self._reply_ids[id] = (reply_id,)
        self.ranges[id] = ranges

    def id_conflicts(self) -> list[str]:
        """Return the problems of motors whose replies look alike, or command one another."""
        faults, owners = [], dict[tuple[int, int], int]()
        for id, reply_ids in self._reply_ids.items():
            for reply_id in reply_ids:
                if reply_id != id and reply_id in self._models:
                    faults.append(f"motor {id} replies with CAN id {reply_id}, a motor's own")
                other = owners.setdefault((reply_id, id & 0xF), id)
                if other != id:
                    faults.append(f"motors {other} and {id} reply alike, with CAN id {reply_id}")
        return faults

    def request(self, frames: Mapping[int, Sequence[CanFrame]]) -> dict[int, MotorReply]:
        """Send each motor's frames, each of which has a reply; return each motor's newest reply.

        Earlier frames are discarded. Ends with the last reply, after a gap of ``reply_timeout``, or
        1 ms for each reply later.
        """
        if not frames:
            return {}
        for _ in self._waiting():
            pass
        for each in frames.values():
            for frame in each:
                self.transport.send(frame)
        replies: dict[int, MotorReply] = {}
        owed = {id: len(each) for id, each in frames.items()}
        end = self.transport.now() + self.reply_timeout + REPLY_TIME * sum(owed.values())
        while any(
            count > 0 for count in owed.values()
        ):  # an unread one would pass for the next one
            received = self.transport.receive(min(end, self.transport.now() + self.reply_timeout))
            if received is None:
                break
            id, reply = self._assign(received)
            if reply is not None and id in owed:
                replies[id] = reply
                owed[id] -= 1
        self._until = self.transport.now()
        self._newest |= replies
        return replies

    def late_replies(self, ids: Collection[int]) -> dict[int, MotorReply]:
        """Return the replies since the last round, with the time of its end as their arrival."""
        replies = {id: replace(r, time=self._until) for id, r in self._waiting() if id in ids}
        self._newest |= replies
        return replies

    def temperatures(self, id: int) -> tuple[float, float]:
        """Return the temperatures of drive and rotor [°C] in a motor's newest reply."""
        reply = self._newest.get(id)
        if reply is None:
            return nan, nan
        return reply.feedback.drive_temperature, reply.feedback.rotor_temperature

    def _waiting(self) -> Iterator[tuple[int, MotorReply]]:
        while (frame := self.transport.receive(self.transport.now())) is not None:
            id, reply = self._assign(frame)
            if reply is not None:
                yield id, reply

    def _assign(self, frame: CanFrame) -> tuple[int, MotorReply | None]:
        """Return the motor of a frame and its content; None for a frame of no motor."""
        reply_id, data = frame
        for id, model in self._models.items():
            mask = 0xF if model.vendor.has_registers else 0xFF
            if reply_id in self._reply_ids[id] and data[0] & mask == id & mask:
                feedback = model.vendor.parse(data, self.ranges[id])
                return id, None if feedback is None else MotorReply(self.transport.now(), feedback)
        return -1, None


class TorqueSwitch:
    """Torque on and off, each confirmed by a reply, and requests that do not change it.

    Stores which motors this program has enabled, and the last command of each since then.
    """

    def __init__(self, exchange: Exchange, models: Mapping[int, MitMotor]) -> None:
        self._exchange, self._models = exchange, models
        self._commands: dict[int, CanFrame] = {}
        self._enabled: set[int] = set()

    def reset(self) -> None:
        """Discard everything after the bus was opened: no motor counts as enabled."""
        self._commands.clear()
        self._enabled.clear()

    def command(self, commands: Mapping[int, CanFrame]) -> dict[int, MotorReply]:
        """Send commands; return the replies."""
        self._commands |= commands
        return self._exchange.request({id: [frame] for id, frame in commands.items()})

    def request(self, ids: Collection[int]) -> dict[int, MotorReply]:
        """Request feedback once; return the replies."""
        return self._exchange.request({id: [self._request(id)] for id in ids})

    def wait_for_all(self, ids: Collection[int]) -> dict[int, MotorReply]:
        """Request feedback until all have replied, MAX_ATTEMPTS at most."""
        replies: dict[int, MotorReply] = {}
        for _ in range(MAX_ATTEMPTS):
            replies |= self.request([id for id in ids if id not in replies])
        return replies

    def enable(self, ids: Collection[int]) -> set[int]:
        """Enable torque of motors that reply; disable those that do not report it then.

        A command that was written since a motor was disabled follows immediately: without one it
        has no torque.
        """
        present = self.wait_for_all(ids).keys()
        self._enabled |= present
        frames = {id: [_instruction(id, can_frames.ENABLE)] for id in present}
        for id in present & self._commands.keys():
            frames[id].append(self._commands[id])
        confirmed = self._confirm(frames, lambda reply: reply.feedback.enabled is not False)
        self.disable(set(ids) - confirmed)
        return confirmed

    def disable(self, ids: Collection[int]) -> set[int]:
        """Disable torque; return the motors that reply and do not report that they are enabled."""
        self._enabled -= set(ids)
        for id in ids:
            self._commands.pop(id, None)
        frames = {id: [_instruction(id, can_frames.DISABLE)] for id in ids}
        return self._confirm(frames, lambda reply: not reply.feedback.enabled)

    def clear_faults(self, ids: Collection[int]) -> set[int]:
        """Clear faults and disable; return motors without a fault. CubeMars has no such frame."""
        frames: dict[int, list[CanFrame]] = {}
        for id in self.disable(ids):
            clears = self._models[id].vendor.has_registers
            codes = (
                (can_frames.CLEAR_FAULT, can_frames.DISABLE) if clears else (can_frames.DISABLE,)
            )
            frames[id] = [_instruction(id, code) for code in codes]
        return self._confirm(frames, lambda reply: not reply.feedback.fault)

    def clear_timeouts(self, ids: Collection[int]) -> set[int]:
        """Clear tripped watchdogs only; return motors where that failed, or without a reply.

        A tripped watchdog after the end of a program is not a fault of the motor.
        """
        replies = self.wait_for_all(ids)
        lost = can_frames.COMMUNICATION_LOST
        tripped = {id for id, reply in replies.items() if reply.feedback.fault == lost}
        return set(ids) - replies.keys() | tripped - self.clear_faults(tripped)

    def set_zero(self, ids: Collection[int]) -> set[int]:
        """Disable torque and make the present position 0; return motors that report it then."""
        off = self.disable(ids)
        self._exchange.request({id: [_instruction(id, can_frames.ZERO)] for id in off})
        replies = self.request(off)
        return {id for id, r in replies.items() if abs(r.feedback.position) < ZERO_TOLERANCE}

    def _request(self, id: int) -> CanFrame:
        """Frame that makes the motor reply without changing its state."""
        if self._models[id].vendor.has_registers:
            return can_frames.refresh(id)
        if id not in self._enabled:
            return _instruction(id, can_frames.DISABLE)
        return self._commands.get(id, _instruction(id, can_frames.ENABLE))

    def _confirm(
        self, frames: Mapping[int, list[CanFrame]], confirms: Callable[[MotorReply], bool]
    ) -> set[int]:
        """Repeat ``frames`` until a reply ``confirms`` them; return the ids where one does."""
        confirmed: set[int] = set()
        for _ in range(MAX_ATTEMPTS):
            unconfirmed = {id: each for id, each in frames.items() if id not in confirmed}
            self._exchange.request(unconfirmed)
            confirmed |= {id for id, reply in self.request(unconfirmed).items() if confirms(reply)}
        return confirmed


def _instruction(id: int, code: int) -> CanFrame:
    return id, can_frames.encode_instruction(code)
