"""Feedback of Dynamixel motors: one block of registers of each motor in every control cycle.

The block is gathered by indirect addresses. It contains torque enable, hardware error, bus
watchdog, current, velocity, position, supply, temperature and the realtime tick. Two more bytes
give blocks of three lengths: a different length in each cycle distinguishes a late reply from the
requested one. A motor that was powered off has forgotten its indirect addresses and replies zeros,
which a supply of 0 V reveals.

References
----------
ROBOTIS e-manual, "Indirect Address", "Realtime Tick" and units in "Control Table".

"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from arm_dynamics.hardware.dynamixel import control_table as table
from arm_dynamics.hardware.dynamixel import packets
from arm_dynamics.hardware.dynamixel.control_table import DynamixelModel
from arm_dynamics.hardware.dynamixel.packets import StatusData
from arm_dynamics.hardware.dynamixel.transport import DynamixelTransport
from arm_dynamics.hardware.motor_bus import Reading

_REGISTERS = (
    table.TORQUE_ENABLE,
    table.HARDWARE_ERROR,
    table.BUS_WATCHDOG,
    table.PRESENT_CURRENT,
    table.PRESENT_VELOCITY,
    table.PRESENT_POSITION,
    table.INPUT_VOLTAGE,
    table.TEMPERATURE,
    table.REALTIME_TICK,
    table.MOVING,
    table.MOVING_STATUS,
)
_ADDRESSES = [r.address + k for r in _REGISTERS for k in range(r.size)]
_BLOCK = struct.Struct("<BBBhiiHBH")

ADDRESSES = struct.pack(f"<{len(_ADDRESSES)}H", *_ADDRESSES)
"""Content of the indirect addresses, from the first one on."""
SIZES = tuple(range(_BLOCK.size, len(_ADDRESSES) + 1))
"""Lengths of a block that may be requested."""

DIRECT_ADDRESS = table.PRESENT_CURRENT.address
_DIRECT = struct.Struct("<hii8xHB")
DIRECT_SIZE = _DIRECT.size
"""Size of the present values in the table, for a motor without indirect addresses."""

TICK_UNIT = 1e-3
"""[s]"""
TICK_PERIOD = 32.768
"""Time [s] after which a tick restarts at 0."""
TICK_TOLERANCE = 2e-3
"""Tolerance [s] of two ticks in whole milliseconds."""
MAX_COMPARISON_AGE = 10.0
"""Age [s] of a fresh reply up to which later ones are compared with it."""
CLOCK_DRIFT = 0.02
"""Drift of a motor's clock relative to the host's."""
MAX_MISSED_CYCLES = 8
"""Cycles in a row without a reply after which a motor is read in every RETRY_CYCLES-th only."""
RETRY_CYCLES = 4


class Block(NamedTuple):
    """Raw values; None if they were not requested."""

    torque: int | None
    hardware_error: int | None
    watchdog: int | None
    current: int
    velocity: int
    position: int
    supply: int
    temperature: int
    tick: int | None = None


def unpack(data: bytes) -> Block | None:
    """Return a block of one of the SIZES; None if the motor has lost its indirect addresses."""
    block = Block(*_BLOCK.unpack_from(data))
    return block if block.supply else None


def unpack_direct(data: bytes) -> Block:
    """Return the block of the DIRECT_SIZE bytes from DIRECT_ADDRESS on."""
    return Block(None, None, None, *_DIRECT.unpack(data))


def to_reading(model: DynamixelModel, block: Block, time: float, fault: str) -> Reading:
    """Return ``block`` in SI units at the output shaft; ``fault`` is a fault known otherwise.

    τ = k_t i,   q = (position - 2048) 2π / 4096
    """
    faults = [fault] if fault else []
    if block.hardware_error:
        faults += table.hardware_error_text(block.hardware_error)
    if block.watchdog == table.WATCHDOG_TRIPPED:
        faults.append("bus watchdog")
    return Reading(
        time,
        (block.position - table.CENTER) * table.POSITION_UNIT,
        block.velocity * table.VELOCITY_UNIT,
        model.torque_unit * block.current,
        float(block.temperature),
        block.supply * table.VOLTAGE_UNIT,
        ", ".join(faults),
        None if block.torque is None else block.torque == 1,
    )


class MotorClocks:
    """Detect late replies by the clock in each motor.

    A reply carries no number of its request: one that is some cycles late would pass as fresh. The
    last reply known to be fresh has host time t and tick k. A fresh reply satisfies

    (t' - t) - (k' - k) <= TICK_TOLERANCE + latency + CLOCK_DRIFT (t' - t)

    After MAX_COMPARISON_AGE every reply is accepted, so that no motor is excluded indefinitely.
    """

    def __init__(self, transport: DynamixelTransport) -> None:
        self._transport = transport
        self._fresh: dict[int, tuple[float, float]] = {}

    def reset(self, id: int | None = None) -> None:
        """Discard the tick of a motor that was restarted; None for all motors."""
        if id is None:
            self._fresh.clear()
        else:
            self._fresh.pop(id, None)

    def is_fresh(self, id: int, block: Block, arrived: float, uncertain: bool) -> bool:
        """Return whether a block that ``arrived`` [s] is not late; compared if ``uncertain``."""
        if block.tick is None:
            return True
        tick = block.tick * TICK_UNIT
        last_arrived, last_tick = self._fresh.get(id, (arrived, tick))
        elapsed = arrived - last_arrived
        if uncertain and elapsed < MAX_COMPARISON_AGE:
            delay = elapsed - (tick - last_tick)  # modulo TICK_PERIOD: the tick restarts at 0
            delay = (delay + TICK_PERIOD / 2) % TICK_PERIOD - TICK_PERIOD / 2
            if delay > TICK_TOLERANCE + self._transport.latency + CLOCK_DRIFT * elapsed:
                return False
        self._fresh[id] = arrived, tick
        return True


class FeedbackReader:
    """Read every motor's block once a cycle; one bad motor never costs the others theirs.

    Mapped motors reply all together, the others to several requests each. A motor that did not
    reply is read last and without the fast read, in which the motors after it would not reply
    either.

    Attributes
    ----------
    fast : bool
        Whether fast reads are used.
    mapped : set of int
        Motors with a block at their indirect addresses.
    rebooted : set of int
        Motors that have lost their block since they were mapped.

    """

    def __init__(self, transport: DynamixelTransport, models: Mapping[int, DynamixelModel]) -> None:
        self._transport, self._models = transport, models
        self._clocks = MotorClocks(transport)
        self.fast = False
        self.mapped: set[int] = set()
        self.rebooted: set[int] = set()
        self._misses = dict.fromkeys(models, 0)
        self._requests: dict[tuple[tuple[int, ...], int, bool], bytes] = {}
        self._cycle = 0

    def map_block(self, id: int) -> bool:
        """Write the block's indirect addresses; return whether they read back correctly."""
        if not self._transport.write(id, table.INDIRECT_ADDRESS, ADDRESSES):
            return False
        request = packets.read(id, table.INDIRECT_ADDRESS, len(ADDRESSES))
        reply = self._transport.request(request, (id,), len(ADDRESSES)).get(id)
        if reply is None or reply.data != ADDRESSES:
            return False
        self.mapped.add(id)
        return True

    def reset(self) -> None:
        """Discard everything: the motors may have been powered off."""
        self.mapped.clear()
        self.rebooted.clear()
        self._misses = dict.fromkeys(self._models, 0)
        self._clocks.reset()

    def read(self) -> dict[int, tuple[Block, float]]:
        """Return the received blocks with their times of arrival [s], by id."""
        self._cycle += 1
        ids = self._order()
        blocks = self._read_mapped([id for id in ids if id in self.mapped])
        blocks |= self._read_direct([id for id in ids if id not in self.mapped])
        for id in ids:
            self._misses[id] = 0 if id in blocks else self._misses[id] + 1
        lost = [id for id in blocks if id in self.rebooted and id not in self.mapped]
        if lost:
            self.map_block(lost[0])  # one motor a cycle: its duration stays bounded
        return blocks

    def _order(self) -> list[int]:
        """Motors to read now; those without a reply last, each of them first in turn."""
        misses = self._misses
        due = [
            i for i in misses
            if misses[i] < MAX_MISSED_CYCLES or (self._cycle + i) % RETRY_CYCLES == 0
        ]  # fmt: skip
        missing = [id for id in due if misses[id]]
        start = self._cycle % len(missing) if missing else 0
        return [id for id in due if not misses[id]] + missing[start:] + missing[:start]

    def _read_mapped(self, ids: Sequence[int]) -> dict[int, tuple[Block, float]]:
        size = SIZES[self._cycle % len(SIZES)]
        blocks: dict[int, tuple[Block, float]] = {}
        fast = self.fast and not any(self._misses[id] for id in ids)
        self._collect(self._request(ids, size, fast, self._expected(ids)), blocks)
        lost = [i for i in ids if i not in blocks and i in self.mapped and not self._misses[i]]
        if len(lost) > (0 if fast else 1):
            again = lost[1:] + lost[:1]  # the first may have kept the others from replying
            self._collect(self._request(again, size, False, len(again) - 1), blocks)
        return blocks

    def _expected(self, ids: Sequence[int]) -> int:
        return sum(not self._misses[id] for id in ids)

    def _collect(
        self, replies: Mapping[int, StatusData], blocks: dict[int, tuple[Block, float]]
    ) -> None:
        for id, reply in replies.items():
            block = unpack(reply.data) if reply.data else None
            arrived = self._transport.arrived[id]
            if block is None:
                self.mapped.discard(id)
                self.rebooted.add(id)
                self._clocks.reset(id)
            elif self._clocks.is_fresh(id, block, arrived, self._misses[id] > 0):
                blocks[id] = block, arrived

    def _request(
        self, ids: Sequence[int], size: int, fast: bool, expected: int
    ) -> dict[int, StatusData]:
        if not ids:
            return {}
        key = tuple(ids), size, fast
        if key not in self._requests:
            addresses = {id: self._models[id].indirect_data for id in ids}
            self._requests[key] = packets.sync_or_bulk_read(addresses, size, fast)
        return self._transport.request(self._requests[key], ids, size, fast, expected)

    def _read_direct(self, ids: Sequence[int]) -> dict[int, tuple[Block, float]]:
        if not ids:
            return {}
        transport = self._transport
        request = packets.sync_or_bulk_read(dict.fromkeys(ids, DIRECT_ADDRESS), DIRECT_SIZE)
        replies = transport.request(request, ids, DIRECT_SIZE, expected=self._expected(ids))
        data = {id: reply.data for id, reply in replies.items() if reply.data}
        arrived = dict(transport.arrived)
        torque = transport.read(data, table.TORQUE_ENABLE)
        errors = transport.read(data, table.HARDWARE_ERROR)
        watchdog = transport.read(data, table.BUS_WATCHDOG)
        return {
            id: (
                unpack_direct(values)._replace(
                    torque=torque.get(id), hardware_error=errors.get(id), watchdog=watchdog.get(id)
                ),
                arrived[id],
            )
            for id, values in data.items()
        }
