"""Damiao and CubeMars motors behind an slcan adapter, written from the manufacturers' manuals.

Damiao: DM-J4310-2EC user manual (MIT mode, feedback frame, parameters over CAN). CubeMars: AK
series actuator driver manual V1.0.8, section 5.3. Adapter: LAWICEL CAN232 manual, ASCII commands.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

from arm_dynamics.hardware.emulation.emulated_motors import EmulatedMotors, Shaft

Frame = tuple[int, bytes]
"""Identifier and data of a CAN frame."""

# model: maximum position [rad], velocity [rad/s], torque [N·m]
DAMIAO = {"DM4310": (12.5, 30.0, 10.0), "DM4340": (12.5, 10.0, 28.0), "DM8009": (12.5, 45.0, 54.0)}
CUBEMARS = {"AK60-6": (12.5, 45.0, 15.0), "AK80-9": (12.5, 50.0, 18.0)}
DAMIAO_ERRORS = {
    "over-voltage": 8,
    "under-voltage": 9,
    "over-current": 10,
    "drive overheating": 11,
    "overheating": 12,
    "communication lost": 13,
    "overload": 14,
}
CUBEMARS_ERRORS = {
    "overheating": 1,
    "over-current": 2,
    "over-voltage": 3,
    "under-voltage": 4,
    "encoder": 5,
    "drive overheating": 6,
    "overload": 7,
}
HOT = 100.0  # °C, over-temperature protection
PASSES = 0.1  # time after its cause [s] at which an error of a CubeMars motor clears
STORM = 32  # limit of the frames that motors send in reply to each other's frames
FLOATS = (0, 1, 2, 3, 4, 5, 6, 11, 12, *range(17, 35))  # registers of type float


@dataclass
class MitMotor:
    """Firmware of one motor; ``restart`` resets the state that is lost without power."""

    shaft: Shaft
    master: int
    flash: dict[int, float] = field(default_factory=dict)
    offset: float = 0.0
    drive_temperature: float = 28.0

    def __post_init__(self) -> None:
        """Set the registers to the factory values."""
        self.damiao = self.shaft.model in DAMIAO
        self.ranges = {**DAMIAO, **CUBEMARS}[self.shaft.model]
        if self.damiao:
            values: dict[int, float] = dict(zip((21, 22, 23), self.ranges, strict=True))
            self.flash = dict.fromkeys(range(36), 0)
            self.flash |= {7: self.master, 8: self.shaft.id, 9: 0, 10: 1, 14: 5017, **values}
        self.restart()

    def restart(self) -> None:
        """Start as at power-on: with torque disabled and the stored registers."""
        self.registers = dict(self.flash)
        self.on, self.error, self.last_frame = False, 0, 0.0
        self.time = self.tripped = 0.0
        self.rest()

    def rest(self) -> None:
        """Set the command before the first one: gains and torque are 0."""
        self.command = (0.0, 0.0, 0.0, 0.0, 0.0)

    def frame(self, id: int, data: bytes, now: float) -> list[Frame]:
        """Return the replies of the motor to a frame on its bus."""
        if id == 0x7FF and self.damiao and int.from_bytes(data[:2], "little") == self.shaft.id:
            return self.parameter(data)
        if id != self.shaft.id:
            return []
        self.last_frame = now
        if data[:7] == b"\xff" * 7 and data[7] >= 0xFB:
            self.instruct(data[7])
        else:
            self.command = self.unpacked(data)
        return [self.feedback()]

    def instruct(self, code: int) -> None:
        """Execute an instruction: enable, disable, set zero or clear the error."""
        if code == 0xFC and not self.error:
            self.on = True
        if code == 0xFD:
            self.on = False
        if code == 0xFE:
            self.offset = self.shaft.q
        if code == 0xFB and self.damiao:
            self.error = 0
        if code != 0xFE:
            self.rest()

    def unpacked(self, data: bytes) -> tuple[float, float, float, float, float]:
        """Return position, velocity, kp, kd and torque of a command."""
        bits = int.from_bytes(data, "big")
        pmax, vmax, tmax = self.scales()
        return (
            (bits >> 48) / 65535 * 2 * pmax - pmax,
            (bits >> 36 & 4095) / 4095 * 2 * vmax - vmax,
            (bits >> 24 & 4095) / 4095 * 500,
            (bits >> 12 & 4095) / 4095 * 5,
            (bits & 4095) / 4095 * 2 * tmax - tmax,
        )

    def scales(self) -> tuple[float, float, float]:
        """Return the maximum position, velocity and torque of the packed numbers."""
        if not self.damiao:
            return self.ranges
        position, velocity, torque = (self.registers[r] for r in (21, 22, 23))
        return position, velocity, torque

    def parameter(self, data: bytes) -> list[Frame]:
        """Return the reply to a request of a register or of the feedback."""
        verb, number = data[2], data[3]
        if verb == 0xCC:
            return [self.feedback()]
        if number not in self.registers or verb not in (0x33, 0x55):
            return []
        kind = "<f" if number in FLOATS else "<I"
        if verb == 0x55:
            (self.registers[number],) = struct.unpack(kind, data[4:])
        held = self.registers[number]
        value = struct.pack(kind, held if kind == "<f" else int(held))
        return [(int(self.registers[7]), data[:4] + value)]

    def feedback(self) -> Frame:
        """Return the feedback frame."""
        pmax, vmax, tmax = self.scales()
        shaft = self.shaft
        p = self.truncated(shaft.q - self.offset, pmax, 65535)
        v = self.truncated(shaft.v, vmax, 4095)
        t = self.truncated(shaft.effort, tmax, 4095)
        body = bytes((p >> 8, p & 255, v >> 4, (v & 15) << 4 | t >> 8, t & 255))
        if self.damiao:
            head = (self.error or int(self.on)) << 4 | shaft.id & 15
            tail = bytes((byte(self.drive_temperature), byte(shaft.temperature)))
            return int(self.registers[7]), bytes((head,)) + body + tail
        tail = bytes((byte(shaft.temperature + 40), self.error))
        return shaft.id, bytes((shaft.id,)) + body + tail

    @staticmethod
    def truncated(x: float, limit: float, top: int) -> int:
        """Return a number within ±``limit`` as an integer from 0 to ``top``."""
        return int((min(max(x, -limit), limit) + limit) / (2 * limit) * top)

    def trip(self, fault: str) -> None:
        """Set an error of the manufacturer's table."""
        self.error = (DAMIAO_ERRORS if self.damiao else CUBEMARS_ERRORS)[fault]
        self.tripped = self.time

    def protect(self, now: float) -> None:
        """Set and clear errors: those of Damiao are latched, those of CubeMars are not."""
        self.time = now
        watchdog_active = self.damiao and self.on and self.registers[9]
        if watchdog_active and now - self.last_frame > self.registers[9] * 50e-6:
            self.error = DAMIAO_ERRORS["communication lost"]
        if self.shaft.temperature >= HOT and (not self.error or not self.damiao):
            self.trip("overheating")
        if self.error and self.damiao:
            self.on = False
        if self.error and not self.damiao and now - self.tripped > PASSES:
            self.error = 0

    def step(self, now: float) -> None:
        """Apply protections, then set the torque of the command."""
        self.protect(now)
        limp = not self.on or self.error
        p, v, kp, kd, t = self.command
        q = self.shaft.q - self.offset
        effort = 0.0 if limp else kp * (p - q) + kd * (v - self.shaft.v) + t
        self.shaft.effort = min(max(effort, -self.ranges[2]), self.ranges[2])


def byte(x: float) -> int:
    """Return ``x`` rounded to a byte."""
    return min(max(round(x), 0), 255)


class MitMotors(EmulatedMotors):
    """Motors on one adapter; Damiao motors reply with their id + ``master``."""

    def __init__(self, shafts: Sequence[Shaft], master: int = 0x10) -> None:
        super().__init__(shafts)
        self.motors = [MitMotor(shaft, shaft.id + master) for shaft in self.shafts]
        self._line, self._open, self._speed = b"", False, b""

    def receive(self, data: bytes, now: float) -> bytes:
        """Return the adapter's replies to bytes that arrive at the time ``now`` [s]."""
        *lines, self._line = (self._line + data).split(b"\r")
        self._line = self._line[-64:]
        return b"".join(self._command(line, now) for line in lines)

    def frame(self, id: int, data: bytes, now: float) -> list[Frame]:
        """Return the replies to one frame, before the adapter encodes them in ASCII.

        Each motor receives the frames of the adapter and of all other motors.
        """
        frames: list[tuple[MitMotor | None, Frame]] = [(None, (id, data))]
        answers: list[Frame] = []
        for sender, frame in frames:
            for motor in self.motors:
                replies = motor.frame(*frame, now) if motor is not sender else []
                sent = [] if motor.shaft.silent else replies
                frames += [(motor, each) for each in sent if len(frames) < STORM]
                answers += sent
        self.step(now)
        return answers

    def _command(self, line: bytes, now: float) -> bytes:
        if line in (b"O", b"C"):
            self._open = line == b"O"
        elif line[:1] == b"S" and len(line) == 2 and not self._open:
            self._speed = line[1:]
        elif line[:1] == b"t":
            return self._sent(line, now)
        return b"\r" if line[:1] in b"OCSs" else b"\x07"

    def _sent(self, line: bytes, now: float) -> bytes:
        try:
            id, size = int(line[1:4], 16), int(line[4:5])
            data = bytes.fromhex(line[5:].decode())
        except ValueError:
            return b"\x07"
        if not self._open or len(data) != size or size != 8:
            return b"\x07"
        # Motors receive frames only at 1 Mbit/s.
        frames = self.frame(id, data, now) if self._speed == b"8" else []
        return b"\r" + b"".join(b"t%03X8%s\r" % (i, d.hex().upper().encode()) for i, d in frames)

    def step(self, now: float) -> None:
        """Run the control loops and watchdogs of all motors."""
        for motor in self.motors:
            motor.step(now)

    def motor(self, id: int) -> MitMotor:
        """Return the motor ``id``."""
        return next(motor for motor in self.motors if motor.shaft.id == id)

    def reboot(self, id: int) -> None:
        """Switch power off and on."""
        self.motor(id).restart()

    def trip(self, id: int, fault: str) -> None:
        """Set an error of one motor."""
        self.motor(id).trip(fault)

    def torque_is_on(self, id: int) -> bool:
        """Return whether the motor applies torque."""
        motor = self.motor(id)
        return motor.on and not motor.error
