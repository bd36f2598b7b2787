"""Dynamixel X motors according to the e-manual: registers, packets, watchdog, shutdown.

Written only from the e-manual (protocol 2.0; control tables of XM430-W350, XL430-W250, XL330-M288,
XC330-T288). No code is common with a driver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from math import pi

from arm_dynamics.hardware.emulation.emulated_motors import EmulatedMotors, Shaft

RPM = 2 * pi / 60
EVERYONE = 254
NO_ERROR, RESULT_FAIL, BAD_INSTRUCTION, BAD_CRC = 0, 1, 2, 3
OUT_OF_RANGE, TOO_SHORT, OVER_LIMIT, NO_ACCESS = 4, 5, 6, 7
ALERT = 128
FAULT_BITS = {
    "input voltage": 0,
    "overheating": 2,
    "encoder": 3,
    "electrical shock": 4,
    "overload": 5,
}
GOALS = (100, 102, 104, 116)
OVERLOAD_TIME = 2.0  # [s] at full output
OVERLOAD_FRACTION = 0.98


@dataclass(frozen=True)
class Sheet:
    """Data-sheet values: stall [N·m, A] and no-load speed [rev/min] at a supply [V]."""

    number: int
    supply: float
    stall: float
    amps: float
    rpm: float
    amps_unit: float  # [A], 0: no current control
    amps_limit: int
    max_temperature: int  # [°C]
    shutdown: int = 0x34


SHEETS = {
    "XL330-M077": Sheet(1190, 5.0, 0.215, 1.47, 383, 1e-3, 1750, 70, 0x35),
    "XL330-M288": Sheet(1200, 5.0, 0.52, 1.47, 103, 1e-3, 1750, 70, 0x35),
    "XC330-T288": Sheet(1220, 11.1, 0.92, 0.80, 65, 1e-3, 910, 70),
    "XL430-W250": Sheet(1060, 11.1, 1.4, 1.3, 57, 0.0, 0, 72),
    "XM430-W210": Sheet(1030, 12.0, 3.0, 2.3, 77, 2.69e-3, 1193, 80),
    "XM430-W350": Sheet(1020, 12.0, 4.1, 2.3, 46, 2.69e-3, 1193, 80),
    "XM540-W270": Sheet(1120, 12.0, 10.6, 4.4, 30, 2.69e-3, 2047, 80),
    "XH540-W270": Sheet(1100, 12.0, 9.9, 4.9, 39, 2.69e-3, 2047, 80),
}

Register = tuple[int, bool, bool, int, int, int]

# address: (bytes, writable, signed, initial, lowest, highest)
EEPROM = {
    0: (2, False, False, 0, 0, 0),
    2: (4, False, False, 0, 0, 0),
    6: (1, False, False, 0, 0, 0),
    7: (1, True, False, 1, 0, 252),
    8: (1, True, False, 1, 0, 7),
    9: (1, True, False, 250, 0, 254),
    10: (1, True, False, 0, 0, 13),
    11: (1, True, False, 3, 0, 16),
    12: (1, True, False, 255, 0, 255),
    13: (1, True, False, 2, 1, 22),
    20: (4, True, True, 0, -1_044_479, 1_044_479),
    24: (4, True, False, 10, 0, 1023),
    31: (1, True, False, 80, 0, 100),
    32: (2, True, False, 160, 31, 160),
    34: (2, True, False, 31, 31, 160),
    36: (2, True, False, 885, 0, 885),
    38: (2, True, False, 0, 0, 2047),
    44: (4, True, False, 1023, 0, 2047),
    48: (4, True, False, 4095, 0, 4095),
    52: (4, True, False, 0, 0, 4095),
    60: (1, True, False, 0, 0, 3),
    63: (1, True, False, 0x34, 0, 255),
}
MEMORY = {
    64: (1, True, False, 0, 0, 1),
    65: (1, True, False, 0, 0, 1),
    68: (1, True, False, 2, 0, 2),
    69: (1, False, False, 0, 0, 1),
    70: (1, False, False, 0, 0, 255),
    76: (2, True, False, 1920, 0, 16383),
    78: (2, True, False, 100, 0, 16383),
    80: (2, True, False, 0, 0, 16383),
    82: (2, True, False, 0, 0, 16383),
    84: (2, True, False, 800, 0, 16383),
    88: (2, True, False, 0, 0, 16383),
    90: (2, True, False, 0, 0, 16383),
    98: (1, True, True, 0, 0, 127),
    100: (2, True, True, 885, -885, 885),
    102: (2, True, True, 0, -2047, 2047),
    104: (4, True, True, 0, -2047, 2047),
    108: (4, True, False, 0, 0, 32767),
    112: (4, True, False, 0, 0, 32767),
    116: (4, True, True, 2048, -1_048_575, 1_048_575),
    120: (2, False, False, 0, 0, 32767),
    122: (1, False, False, 0, 0, 1),
    123: (1, False, False, 0, 0, 255),
    124: (2, False, True, 0, -885, 885),
    126: (2, False, True, 0, -2047, 2047),
    128: (4, False, True, 0, 0, 0),
    132: (4, False, True, 0, 0, 0),
    136: (4, False, True, 0, 0, 0),
    140: (4, False, True, 0, 0, 0),
    144: (2, False, False, 0, 0, 0),
    146: (1, False, False, 0, 0, 0),
    147: (1, False, False, 0, 0, 1),
}


class EmulatedDynamixels(EmulatedMotors):
    """Dynamixel motors on one bus.

    ``chained``: after a silent motor, later motors of a plain sync or bulk read do not reply, as in
    every fast read. ``echo``: the adapter receives its own bytes.
    """

    def __init__(
        self,
        shafts: Sequence[Shaft],
        firmware: int = 46,
        chained: bool = False,
        echo: bool = False,
    ) -> None:
        super().__init__(shafts)
        self.motors = tuple(_Motor(shaft, firmware) for shaft in shafts)
        self.chained, self.echo = chained, echo
        self.served = 0
        """Number of valid instructions."""
        self._line = bytearray()

    def receive(self, data: bytes, now: float) -> bytes:
        """Return the replies to bytes that arrive at the time ``now`` [s]."""
        self._line += data
        back = bytearray(data if self.echo else b"")
        while (packet := self._cut()) is not None:
            back += self._serve(packet, now)
        return bytes(back)

    def step(self, now: float) -> None:
        """Run watchdogs, protections and control loops."""
        for motor in self.motors:
            motor.step(now)

    def reboot(self, id: int) -> None:
        """Switch power off and on."""
        for motor in self._with(id):
            motor.restart()

    def trip(self, id: int, fault: str) -> None:
        """Set a fault of ``FAULT_BITS``."""
        for motor in self._with(id):
            motor.fail(FAULT_BITS[fault])

    def torque_is_on(self, id: int) -> bool:
        """Return whether any motor with this id applies torque."""
        return any(motor.get(64) == 1 for motor in self._with(id))

    def get(self, id: int, address: int) -> int:
        """Return the value of a register in the motor."""
        return self._with(id)[0].get(address)

    def set(self, id: int, address: int, value: int) -> None:
        """Set a register without any check, as another program could have set it."""
        for motor in self._with(id):
            motor.put(address, value)

    def _with(self, id: int) -> list[_Motor]:
        return [motor for motor in self.motors if motor.shaft.id == id]

    def _cut(self) -> bytes | None:
        """Return the next instruction packet, with its byte stuffing."""
        line = self._line
        while len(line) >= 10:
            if line[:4] != b"\xff\xff\xfd\x00" or line[4] in (0xFD, 0xFF):
                del line[0]
                continue
            total = 7 + line[5] + 256 * line[6]
            if not 10 <= total <= 2048:
                del line[0]
                continue
            inner = line.find(b"\xff\xff\xfd\x00", 4, min(total, len(line)))
            if inner > 0:  # cut off by the next packet's header
                del line[:inner]
                continue
            if len(line) < total:
                return None
            packet = bytes(line[:total])
            del line[:total]
            return packet
        return None

    def _serve(self, packet: bytes, now: float) -> bytes:
        id, body = packet[4], _without_stuffing(packet[7:-2])
        if _checksum(packet[:-2]) != packet[-2] + 256 * packet[-1]:
            return self._collide([m.answer(BAD_CRC) for m in self._with(id) if m.is_connected()])
        self.served += 1
        code, parameters = body[0], body[1:]
        for motor in self.motors:
            if motor.is_connected():
                motor.last_instruction = now
        if id != EVERYONE:
            replies = [m.obey(code, parameters, now) for m in self._with(id) if m.is_connected()]
            return self._collide([reply for reply in replies if reply])
        return self._serve_all(code, parameters, now)

    def _serve_all(self, code: int, p: bytes, now: float) -> bytes:
        if code == 0x01:
            ids = sorted({motor.shaft.id for motor in self.motors})
            return b"".join(
                self._collide([m.pong() for m in self._with(i) if m.is_connected()]) for i in ids
            )
        if code in (0x82, 0x8A):
            where = [(id, p[0] + 256 * p[1], p[2] + 256 * p[3]) for id in p[4:]]
            return self._read_out(where, code == 0x8A, now)
        if code in (0x92, 0x9A):
            five = [p[k : k + 5] for k in range(0, len(p) - 4, 5)]
            where = [(f[0], f[1] + 256 * f[2], f[3] + 256 * f[4]) for f in five]
            return self._read_out(where, code == 0x9A, now)
        if code in (0x83, 0x93):
            self._write_in(code, p)
        elif code == 0x08:
            for motor in self.motors:
                motor.restart()
        return b""

    def _write_in(self, code: int, p: bytes) -> None:
        if code == 0x83:
            address, size = p[0] + 256 * p[1], p[2] + 256 * p[3]
            step = size + 1
            for k in range(4, len(p) - size, step):
                self._store(p[k], address, p[k + 1 : k + step])
            return
        k = 0
        while k + 5 <= len(p):
            size = p[k + 3] + 256 * p[k + 4]
            self._store(p[k], p[k + 1] + 256 * p[k + 2], p[k + 5 : k + 5 + size])
            k += 5 + size

    def _store(self, id: int, address: int, data: bytes) -> None:
        for motor in self._with(id):
            if motor.is_connected():
                motor.write(address, data)

    def _read_out(self, where: list[tuple[int, int, int]], fast: bool, now: float) -> bytes:
        if fast:
            return self._read_fast(where, now)
        back = bytearray()
        for id, address, size in where:
            motors = [m for m in self._with(id) if m.is_connected()]
            if not motors and self.chained:
                break
            back += self._collide([m.obey(0x02, _words(address, size), now) for m in motors])
        return bytes(back)

    def _read_fast(self, where: list[tuple[int, int, int]], now: float) -> bytes:
        length = 1 + sum(size + 4 for _, _, size in where)
        back = bytearray(b"\xff\xff\xfd\x00" + bytes((EVERYONE, length & 255, length >> 8, 0x55)))
        started = False
        for id, address, size in where:
            motors = [m for m in self._with(id) if m.is_connected() and m.has_fast_read()]
            if not motors:
                break
            data = self._collide([self._status_data(m, address, size, now) for m in motors])
            sum_ = _checksum(bytes(back) + data)
            back += data + bytes((sum_ & 255, sum_ >> 8))
            started = True
        return bytes(back) if started else b""

    @staticmethod
    def _status_data(motor: _Motor, address: int, size: int, now: float) -> bytes:
        error, data = motor.read(address, size, now)
        data = data if len(data) == size else bytes(size)
        return bytes((error | motor.alert(), motor.shaft.id)) + data

    @staticmethod
    def _collide(replies: list[bytes]) -> bytes:
        """Return simultaneous replies: a bit is 0 where any reply has a 0."""
        if len(replies) < 2:
            return replies[0] if replies else b""
        low = bytearray()
        for bytes_ in zip_longest(*replies, fillvalue=0xFF):
            value = 0xFF
            for byte in bytes_:
                value &= byte
            low.append(value)
        return bytes(low)


class _Motor:
    """One motor: its registers and their effects."""

    def __init__(self, shaft: Shaft, firmware: int) -> None:
        self.shaft, self.firmware = shaft, firmware
        self.sheet = SHEETS[shaft.model]
        self.small = "330" in shaft.model
        self.indirect = (168, 208, 20) if self.small else (168, 224, 28)
        self.table = {**EEPROM, **MEMORY}
        if not self.sheet.amps_unit:
            del self.table[38], self.table[102]
        if firmware < 38 and not shaft.model.startswith("XL330"):
            del self.table[98]
        first, _, count = self.indirect
        for k in range(count):
            at = self.indirect[1] + k
            self.table[first + 2 * k] = (2, True, False, at, 64, at + count)
        self.bytes = bytearray(1024)
        for address, (*_, initial, _low, _high) in self.table.items():
            self.put(address, initial)
        self.put(7, shaft.id)
        self.put(31, self.sheet.max_temperature)
        self.put(63, self.sheet.shutdown)
        if self.sheet.amps_unit:
            self.put(38, self.sheet.amps_limit)
        self.last_instruction = self.now = self.wound = 0.0
        self.reboots = -1  # the first start does not count
        self.full_since: float | None = None
        self.restart()

    def restart(self) -> None:
        """Reset the registers from address 64 on and the clock, as at power-on."""
        self.reboots, self.started = self.reboots + 1, self.now
        for address, (*_, initial, _low, _high) in self.table.items():
            if address >= 64:
                self.put(address, initial)
        _, data, count = self.indirect
        self.bytes[data : data + count] = bytes(count)
        if self.sheet.amps_unit:
            self.put(102, self.get(38))
        self.put(100, self.get(36))
        self.full_since = None

    def is_connected(self) -> bool:
        return not self.shaft.silent

    def has_fast_read(self) -> bool:
        return self.firmware >= (46 if self.small else 45)

    def get(self, address: int) -> int:
        entry = self.table.get(address)
        if entry is None:
            return 0
        return int.from_bytes(self.bytes[address : address + entry[0]], "little", signed=entry[2])

    def put(self, address: int, value: int) -> None:
        size = self.table[address][0]
        whole = value % (1 << 8 * size)
        self.bytes[address : address + size] = whole.to_bytes(size, "little")

    def alert(self) -> int:
        return ALERT if self.get(70) else 0

    def answer(self, error: int, data: bytes = b"") -> bytes:
        inside = _with_stuffing(bytes((0x55, error | self.alert())) + data)
        head = b"\xff\xff\xfd\x00" + bytes((self.shaft.id,)) + _words(len(inside) + 2) + inside
        return head + _words(_checksum(head))

    def pong(self) -> bytes:
        return self.answer(
            NO_ERROR, _words(SHEETS[self.shaft.model].number) + bytes((self.firmware,))
        )

    def obey(self, code: int, p: bytes, now: float) -> bytes:
        """Execute one instruction; return the status packet, or nothing if it is not sent."""
        if code == 0x01:
            return self.pong()
        level = self.get(68)
        if code == 0x02 and len(p) == 4:
            error, data = self.read(p[0] + 256 * p[1], p[2] + 256 * p[3], now)
            return self.answer(error, data) if level >= 1 else b""
        if code == 0x03 and len(p) > 2:
            error = self.write(p[0] + 256 * p[1], p[2:])
        elif code == 0x08:
            reply = self.answer(NO_ERROR)
            self.restart()
            return reply if level == 2 else b""
        else:
            error = BAD_INSTRUCTION
        return self.answer(error) if level == 2 else b""

    def read(self, address: int, size: int, now: float) -> tuple[int, bytes]:
        self._refresh(now)
        last = self.indirect[1] + self.indirect[2]
        known = any(address <= a < address + size for a in self.table)
        indirect = self.indirect[1] <= address < last
        if not (known or indirect) or address + size > len(self.bytes):
            return NO_ACCESS, b""
        return NO_ERROR, bytes(self.bytes[self._real(a)] for a in range(address, address + size))

    def write(self, address: int, data: bytes) -> int:
        """Store ``data`` register by register; return the error number."""
        real = [self._real(address + k) for k in range(len(data))]
        k = 0
        while k < len(data):
            if self.indirect[1] <= real[k] < self.indirect[1] + self.indirect[2]:
                self.bytes[real[k]] = data[k]  # points at itself: plain memory
                k += 1
                continue
            entry = self.table.get(real[k])
            if entry is None or not entry[1]:
                return NO_ACCESS
            size = entry[0]
            if k + size > len(data):
                return TOO_SHORT
            error = self._write_one(real[k], int.from_bytes(data[k : k + size], "little"), entry)
            if error:
                return error
            k += size
        return NO_ERROR

    def _write_one(self, address: int, raw: int, entry: Register) -> int:
        size, signed = entry[0], entry[2]
        value = raw - (1 << 8 * size) if signed and raw >> (8 * size - 1) else raw
        error = self._write_error(address, value, entry)
        if not error:
            if address == 11 and value != self.get(11) and self.get(98) != -1:
                self.put(100, self.get(36))  # goals are read-only after a trip, for the motor too
            self.put(address, value)
        return error

    def _write_error(self, address: int, value: int, entry: Register) -> int:
        """Return the error number of the first rule that forbids this write."""
        tripped = self.get(98) == -1
        rules = (
            (address < 64 and self.get(64) == 1, NO_ACCESS),
            (address in GOALS and tripped, OUT_OF_RANGE),
            (not entry[4] <= value <= entry[5], OUT_OF_RANGE),
            (abs(value) > self._limit(address), OVER_LIMIT),
            (address == 11 and value not in self._modes(), OUT_OF_RANGE),
            (address == 64 and value == 1 and self.get(70) & self.get(63) > 0, RESULT_FAIL),
            (address == 98 and value != 0 and tripped, OUT_OF_RANGE),
        )
        return next((code for forbidden, code in rules if forbidden), NO_ERROR)

    def _modes(self) -> tuple[int, ...]:
        return (0, 1, 3, 4, 5, 16) if self.sheet.amps_unit else (1, 3, 4, 16)

    def _limit(self, address: int) -> float:
        guard = {100: 36, 102: 38, 104: 44}.get(address)
        return self.get(guard) if guard in self.table else float("inf")

    def _real(self, address: int) -> int:
        first, data, count = self.indirect
        if data <= address < data + count:
            at = first + 2 * (address - data)
            return self.bytes[at] + 256 * self.bytes[at + 1]
        return address

    def _ticks(self) -> int:
        return round(self.shaft.q / (2 * pi) * 4096) + 2048

    def _refresh(self, now: float) -> None:
        shaft, sheet = self.shaft, self.sheet
        self.put(0, SHEETS[shaft.model].number)
        self.put(6, self.firmware)
        self.put(120, int((now - self.started) * 1000) % 32768)
        amps = shaft.effort / (sheet.stall / sheet.amps)
        amps *= self._duty() if self.small else 1.0  # supply current
        load = shaft.effort / sheet.stall
        self.put(126, round(amps / sheet.amps_unit) if sheet.amps_unit else round(load * 1000))
        self.put(128, round(shaft.v / (0.229 * RPM)))
        self.put(132, self._ticks())
        self.put(144, round(shaft.supply * 10))
        self.put(146, round(max(0.0, min(255.0, shaft.temperature))))

    def fail(self, bit: int) -> None:
        self.put(70, self.get(70) | 1 << bit)
        if self.get(70) & self.get(63):
            self.put(64, 0)

    def step(self, now: float) -> None:
        self._protect(now)
        self._check_watchdog(now)
        self._wind(now)
        self.shaft.effort = self._effort() if self.get(64) else 0.0
        full = abs(self.shaft.effort) >= OVERLOAD_FRACTION * self.sheet.stall
        self.full_since = (self.full_since or now) if full else None

    def _wind(self, now: float) -> None:
        """Integrate the velocity error [rev/min] while torque is enabled."""
        dt, self.now = now - self.now, now
        on = self.get(64) == 1 and self.get(11) == 1
        error = self.get(104) * 0.229 - self.shaft.v / RPM
        bound = self.sheet.rpm
        self.wound = max(-bound, min(bound, self.wound + 100.0 * error * dt)) if on else 0.0

    def _protect(self, now: float) -> None:
        shaft = self.shaft
        if shaft.temperature > self.get(31):
            self.fail(FAULT_BITS["overheating"])
        if not self.get(34) <= round(shaft.supply * 10) <= self.get(32):
            self.fail(FAULT_BITS["input voltage"])
        if self.full_since is not None and now - self.full_since > OVERLOAD_TIME:
            self.fail(FAULT_BITS["overload"])

    def _check_watchdog(self, now: float) -> None:
        allowed = self.get(98)
        if allowed > 0 and self.get(64) and now - self.last_instruction > allowed * 0.020:
            self.put(98, -1)
            if self.small and self.firmware == 51:  # reported by users: the motor keeps turning
                return
            self.put(116, self._ticks())
            self.put(104, 0)
            self.put(100, 0 if self.get(11) == 16 else self.get(100))
            if self.sheet.amps_unit and self.get(11) == 0:
                self.put(102, 0)

    def _effort(self) -> float:
        """Return the torque of the control mode: a DC motor within its supply voltage."""
        sheet, mode = self.sheet, self.get(11)
        if mode == 0:
            desired = self.get(102) * sheet.amps_unit * sheet.stall / sheet.amps
            return max(-self._max_torque(-1), min(self._max_torque(1), desired))
        return self._torque_of(self._volts(mode))

    def _volts(self, mode: int) -> float:
        supply = self.shaft.supply
        if mode == 16:
            return self.get(100) / 885 * supply
        bound = abs(self.get(100)) / 885 * supply
        if mode == 1:
            volts = self.get(104) * 0.229 + self.wound
            return max(-bound, min(bound, volts * self.sheet.supply / self.sheet.rpm))
        error = self.get(116) - (self.shaft.q / (2 * pi) * 4096 + 2048)
        volts = self.get(84) / 128 * error / 885 * supply
        return max(-bound, min(bound, volts))

    def _torque_of(self, volts: float) -> float:
        sheet = self.sheet
        return sheet.stall * (volts / sheet.supply - self.shaft.v / (sheet.rpm * RPM))

    def _duty(self) -> float:
        """Return the fraction of the supply voltage that the present torque and speed require."""
        sheet, shaft = self.sheet, self.shaft
        volts = shaft.effort / sheet.stall + shaft.v / (sheet.rpm * RPM)
        return min(1.0, abs(volts * sheet.supply / shaft.supply))

    def _max_torque(self, direction: int) -> float:
        """Return the torque at full supply voltage in a direction, at least 0."""
        return max(0.0, direction * self._torque_of(direction * self.shaft.supply))


def _words(*values: int) -> bytes:
    return b"".join(bytes((value & 255, value >> 8)) for value in values)


def _remainder(rest: int) -> int:
    """Return the CRC remainder of one byte: x¹⁶ + x¹⁵ + x² + 1, bit by bit."""
    for _ in range(8):
        rest = (rest << 1 & 0xFFFF) ^ (0x8005 if rest >> 15 else 0)
    return rest


_REMAINDERS = [_remainder(byte << 8) for byte in range(256)]


def _checksum(data: bytes) -> int:
    rest = 0
    for byte in data:
        rest = (rest << 8 & 0xFFFF) ^ _REMAINDERS[rest >> 8 ^ byte]
    return rest


def _with_stuffing(data: bytes) -> bytes:
    out = bytearray()
    for byte in data:
        out.append(byte)
        if out[-3:] == b"\xff\xff\xfd":
            out.append(0xFD)
    return bytes(out)


def _without_stuffing(data: bytes) -> bytes:
    out = bytearray()
    skip = False
    for byte in data:
        if skip and byte == 0xFD:
            skip = False
            continue
        out.append(byte)
        skip = out[-3:] == b"\xff\xff\xfd"
    return bytes(out)
