"""STS3215 servos according to data sheet and memory table, on one half-duplex bus."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import zip_longest

from arm_dynamics.hardware.emulation.emulated_motors import EmulatedMotors, Shaft

MODELS = {"sts3215": (9, 3), "sts3250": (9, 11)}  # contents of addresses 3 and 4
STALL, IDLE, NOMINAL = 2.94, 4.71, 12.0  # N·m and rad/s at 12 V
TORQUE_PER_AMPERE = 1.08
BITS = {"voltage": 0, "sensor": 1, "overheating": 2, "overcurrent": 3, "overload": 5}
MAX_TEMPERATURE = 70.0
LAST = 95
READ_ONLY = {*range(5), *range(56, LAST + 1)}
EEPROM = range(5, 40)
REBOOT_TIME = 0.8
POSITION, SPEED, PWM = 0, 1, 2
NEEDED = {0x02: 2, 0x03: 2, 0x82: 2, 0x83: 2}  # least number of parameters


class Servo:
    """One servo: its memory and its motor."""

    def __init__(self, shaft: Shaft) -> None:
        self.shaft = shaft
        self.saved = bytearray(LAST + 1)
        self.saved[0:2] = bytes((3, 10))
        self.saved[3:5] = bytes(MODELS.get(shaft.model, (0, 99)))
        self.saved[5], self.saved[8] = shaft.id, 1
        self.put(self.saved, 11, 4095)
        self.saved[13], self.saved[18], self.saved[19] = int(MAX_TEMPERATURE), 12, 44
        self.put(self.saved, 16, 1000)
        self.saved[21], self.saved[22] = 32, 32
        self.away_until = -math.inf
        self.latched = 0
        self.power_on()

    def power_on(self) -> None:
        """Start with the saved registers and torque disabled."""
        self.memory = bytearray(self.saved)
        self.put(self.memory, 48, int.from_bytes(self.saved[16:18], "little"))
        self.put(self.memory, 44, 1000)  # factory value; a driver must clear it before PWM mode
        self.put(self.memory, 42, 2048)
        self.memory[55] = 1
        self.latched, self.duty = 0, 0.0

    @staticmethod
    def put(memory: bytearray, address: int, value: int, sign: int = 0) -> None:
        """Store a number of two bytes; bit ``sign`` is that of negative numbers."""
        raw = abs(value) | (1 << sign if value < 0 else 0)
        memory[address : address + 2] = raw.to_bytes(2, "little")

    def get(self, address: int, sign: int = 0) -> int:
        """Return a number of two bytes; bit ``sign`` is that of negative numbers."""
        raw = int.from_bytes(self.memory[address : address + 2], "little")
        return -(raw ^ 1 << sign) if sign and raw >> sign & 1 else raw

    @property
    def on(self) -> bool:
        """Whether torque is enabled."""
        return self.memory[40] == 1

    @property
    def status(self) -> int:
        """Status byte of the replies."""
        hot = self.shaft.temperature > self.memory[13]
        return self.latched | hot << BITS["overheating"]

    def steps(self) -> int:
        """Return the encoder count: 2048 at 0 rad, minus the homing offset, within one turn."""
        steps = round(self.shaft.q / (2 * math.pi) * 4096) + 2048 - self.get(31, 11)
        return steps if self.memory[18] & 16 else steps % 4096

    def write(self, address: int, data: bytes) -> None:
        """Store the bytes of writable registers, with their effects."""
        for at, byte in enumerate(data, address):
            if at in READ_ONLY or at > LAST:
                continue
            self.memory[at] = byte
            if at in EEPROM and self.memory[55] == 0:
                self.saved[at] = byte
        touched = range(address, address + len(data))
        if 42 in touched and 40 not in touched:
            self.memory[40] = 1  # a goal enables torque; Feetech's examples depend on it
        if 40 in touched and self.memory[40] == 0:
            self.latched &= ~(1 << BITS["overload"])

    def read(self, address: int, size: int) -> bytes:
        """Return registers with the present measurements."""
        m, shaft = self.memory, self.shaft
        unit = 1 if m[18] & 4 else 50
        self.put(m, 56, self.steps(), 15)
        self.put(m, 58, round(shaft.v / (2 * math.pi) * 4096 / unit), 15)
        self.put(m, 60, round(self.duty * 1000), 10)
        m[62] = round(max(0.0, min(25.4, shaft.supply)) * 10)
        m[63] = round(max(0.0, min(254.0, shaft.temperature)))
        m[65] = self.status
        m[66] = int(abs(shaft.v) > 0.01)
        self.put(m, 69, round(abs(shaft.effort) / TORQUE_PER_AMPERE / 6.5e-3))
        self.put(m, 71, self.get(42, 15), 15)
        return bytes(m[address : address + size])

    def step(self) -> None:
        """Set the duty cycle of the mode and the torque of a DC motor with back-EMF."""
        self.duty = self._commanded_duty() if self.on and not self._unloads() else 0.0
        limit = self.get(48) / 1000
        self.duty = max(-limit, min(limit, self.duty))
        if not self.on or self._unloads():
            self.shaft.effort = 0.0
            return
        volts = self.duty * self.shaft.supply
        torque = STALL / NOMINAL * volts - STALL / IDLE * self.shaft.v
        self.shaft.effort = max(-STALL, min(STALL, torque))  # no more current than at stall

    def _unloads(self) -> bool:
        return bool(self.status & self.memory[19])

    def _commanded_duty(self) -> float:
        mode = self.memory[33]
        if mode == PWM:
            return self.get(44, 10) / 1000
        if mode == SPEED:
            unit = 1 if self.memory[18] & 4 else 50
            return (self.get(46, 15) * unit * 2 * math.pi / 4096 - self.shaft.v) / IDLE * 4
        goal = self.get(42, 15)
        if not self.memory[18] & 16:
            goal = max(self.get(9), min(self.get(11), goal))
        return self.memory[21] / 1000 * (goal - self.steps())


class EmulatedFeetech(EmulatedMotors):
    """Servos on one bus. Every servo with the id of an instruction executes it."""

    def __init__(self, shafts: Sequence[Shaft]) -> None:
        super().__init__(shafts)
        self.servos = [Servo(shaft) for shaft in shafts]
        self.instructions: list[tuple[int, int, bytes]] = []
        self._bytes = bytearray()
        self._now = 0.0

    def receive(self, data: bytes, now: float) -> bytes:
        """Return the replies to bytes that arrive at the time ``now`` [s]."""
        self._now = now
        self._bytes += data
        replies = [self._obey(*frame) for frame in self._frames()]
        return b"".join(replies)

    def step(self, now: float) -> None:
        """Set the effort of each servo."""
        self._now = now
        for servo in self.servos:
            servo.step()

    def reboot(self, id: int) -> None:
        """Switch power off and on; the servo does not reply for REBOOT_TIME."""
        for servo in self._all(id):
            servo.power_on()
            servo.step()
            servo.away_until = self._now + REBOOT_TIME

    def trip(self, id: int, fault: str) -> None:
        """Set a fault of BITS."""
        for servo in self._all(id):
            servo.latched |= 1 << BITS[fault]

    def torque_is_on(self, id: int) -> bool:
        """Return whether any servo with this id applies torque."""
        return any(servo.on for servo in self._all(id))

    def _all(self, id: int) -> list[Servo]:
        return [servo for servo in self.servos if id in (254, servo.memory[5])]

    def _frames(self) -> Iterator[tuple[int, int, bytes]]:
        while (start := self._bytes.find(b"\xff\xff")) >= 0:
            del self._bytes[:start]
            if len(self._bytes) < 4:
                return
            id, length = self._bytes[2], self._bytes[3]
            if id == 255 or length < 2:
                del self._bytes[:1]
                continue
            if len(self._bytes) < 4 + length:
                return
            body = bytes(self._bytes[2 : 4 + length])
            if sum(body) & 255 == 255:
                del self._bytes[: 4 + length]
                yield id, body[2], body[3:-1]
            else:
                del self._bytes[:1]

    def _obey(self, id: int, instruction: int, params: bytes) -> bytes:
        self.instructions.append((id, instruction, params))
        if len(params) < NEEDED.get(instruction, 0):
            return b""
        here = [s for s in self._all(id) if not s.shaft.silent and self._now >= s.away_until]
        if instruction == 0x82 and id == 254:
            return self._sync_read(here, params)
        if instruction == 0x83 and id == 254:
            self._sync_write(here, params)
            return b""
        replies = [self._single(servo, instruction, params) for servo in here]
        return b"" if id == 254 else _collide(replies)

    def _sync_read(self, here: list[Servo], params: bytes) -> bytes:
        address, size, ids = params[0], params[1], params[2:]
        replies = b""
        for id in ids:
            named = [servo for servo in here if servo.memory[5] == id]
            replies += _collide([_reply(servo, servo.read(address, size)) for servo in named])
        return replies

    def _sync_write(self, here: list[Servo], params: bytes) -> None:
        address, size = params[0], params[1]
        for at in range(2, len(params) - size, size + 1):
            for servo in here:
                if servo.memory[5] == params[at]:
                    servo.write(address, params[at + 1 : at + 1 + size])

    def _single(self, servo: Servo, instruction: int, params: bytes) -> bytes:
        if instruction == 0x01:
            return _reply(servo)
        if instruction == 0x02:
            return _reply(servo, servo.read(params[0], params[1]))
        if instruction == 0x03:
            servo.write(params[0], params[1:])
            return _reply(servo) if servo.memory[8] else b""
        if instruction == 0x08:
            self.reboot(servo.memory[5])
        return b""


def _reply(servo: Servo, data: bytes = b"") -> bytes:
    body = bytes((servo.memory[5], len(data) + 2, servo.status)) + data
    return b"\xff\xff" + body + bytes((255 - sum(body) % 256,))


def _collide(replies: list[bytes]) -> bytes:
    """Return simultaneous replies, each a byte later: a bit is 0 where any reply has a 0."""
    if len(replies) < 2:
        return b"".join(replies)
    late = [bytes((255,)) * k + reply for k, reply in enumerate(replies)]
    merged = bytearray()
    for column in zip_longest(*late, fillvalue=255):
        byte = 255
        for other in column:
            byte &= other
        merged.append(byte)
    return bytes(merged)
