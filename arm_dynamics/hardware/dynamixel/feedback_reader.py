"""Tells a motor's late answer from a fresh one by the clock in the motor.

An answer has no number of its question: one that comes a few cycles late would pass for a fresh
one. Its realtime tick [ms] gives it away. With host time t and tick k of the last answer that was
beyond doubt, a fresh one has  (t' - t) - (k' - k) ≤ TOLERANCE + latency + DRIFT (t' - t).
After MEMORY [s] that answer is forgotten, lest a motor be doubted for ever. Source: e-manual,
"Realtime Tick".

Reads every motor's block once a cycle; one bad motor never costs the others theirs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from arm_dynamics.hardware.dynamixel import control_table as table
from arm_dynamics.hardware.dynamixel import conversion, packets
from arm_dynamics.hardware.dynamixel.control_table import DynamixelModel
from arm_dynamics.hardware.dynamixel.conversion import Block
from arm_dynamics.hardware.dynamixel.packets import StatusData
from arm_dynamics.hardware.dynamixel.transport import DynamixelTransport

UNIT = 1e-3
"""Of a tick [s]."""
TURN = 32.768
"""Time after which a tick begins again at 0 [s]."""
TOLERANCE = 2e-3
"""Of two ticks that are told in whole milliseconds [s]."""
MEMORY = 10.0
"""How long an answer beyond doubt is compared with [s]."""
DRIFT = 0.02
"""Of a motor's clock against the host's."""


class MotorClocks:
    """Host time and tick of the last answer beyond doubt, by id."""

    def __init__(self, line: DynamixelTransport) -> None:
        self._line = line
        self._known: dict[int, tuple[float, float]] = {}

    def reset(self, id: int | None = None) -> None:
        """A motor was restarted: its clock began anew; None for all motors."""
        if id is None:
            self._known.clear()
        else:
            self._known.pop(id, None)

    def is_fresh(self, id: int, block: Block, arrived: float, doubtful: bool) -> bool:
        """Whether a block that ``arrived`` [s] is no late one, where that is ``doubtful``."""
        if block.tick is None:
            return True
        tick = block.tick * UNIT
        if doubtful and id in self._known and self._late(id, tick, arrived):
            return False
        self._known[id] = arrived, tick
        return True

    def _late(self, id: int, tick: float, arrived: float) -> bool:
        then, before = self._known[id]
        passed = arrived - then
        apart = (passed - (tick - before) + TURN / 2) % TURN - TURN / 2
        late = apart > TOLERANCE + self._line.latency + DRIFT * passed
        return late and passed < MEMORY


MAX_MISSED_CYCLES = 8
"""Cycles in a row without an answer after which a motor is asked in every SELDOM-th only."""
SELDOM = 4


class FeedbackReader:
    """Motors that were mapped answer all together, the others by several questions each.

    A motor that did not answer is asked last, so that none waits behind it, and without the
    fast read, in which those behind it would fall silent.
    """

    def __init__(self, line: DynamixelTransport, models: Mapping[int, DynamixelModel]) -> None:
        self._line, self._models = line, models
        self._clocks = MotorClocks(line)
        self.fast = False
        self.mapped: set[int] = set()
        self.rebooted: set[int] = set()
        """Motors that have forgotten their block since they were mapped."""
        self._misses = dict.fromkeys(models, 0)
        self._requests: dict[tuple[tuple[int, ...], int, bool], bytes] = {}
        self._cycle = 0

    def map_block(self, id: int) -> bool:
        """Have a motor gather its block; whether it reads back so."""
        addresses = conversion.ADDRESSES
        if not self._line.write(id, table.INDIRECT_ADDRESS, addresses):
            return False
        request = packets.read(id, table.INDIRECT_ADDRESS, len(addresses))
        share = self._line.request(request, (id,), len(addresses)).get(id)
        if share is None or share.data != addresses:
            return False
        self.mapped.add(id)
        return True

    def reset(self) -> None:
        """Nothing is known of the motors: they may have been switched off."""
        self.mapped.clear()
        self.rebooted.clear()
        self._misses = dict.fromkeys(self._models, 0)
        self._clocks.reset()

    def read(self) -> dict[int, tuple[Block, float]]:
        """The blocks that came, with their times of arrival [s]."""
        self._cycle += 1
        asked = self._asked()
        found = self._mapped([id for id in asked if id in self.mapped])
        found |= self._direct([id for id in asked if id not in self.mapped])
        for id in asked:
            self._misses[id] = 0 if id in found else self._misses[id] + 1
        self._map_again(found)
        return found

    def _asked(self) -> list[int]:
        """Those to ask now, the silent ones last and each in turn first of them."""
        misses = self._misses
        turn = [
            i for i in misses if misses[i] < MAX_MISSED_CYCLES or (self._cycle + i) % SELDOM == 0
        ]
        silent = [id for id in turn if misses[id]]
        start = self._cycle % len(silent) if silent else 0
        return [id for id in turn if not misses[id]] + silent[start:] + silent[:start]

    def _mapped(self, ids: Sequence[int]) -> dict[int, tuple[Block, float]]:
        size = conversion.SIZES[self._cycle % len(conversion.SIZES)]
        found: dict[int, tuple[Block, float]] = {}
        fast = self.fast and not any(self._misses[id] for id in ids)
        self._collect(self._ask(ids, size, fast, self._sure(ids)), found)
        lost = [i for i in ids if i not in found and i in self.mapped and not self._misses[i]]
        if len(lost) > (0 if fast else 1):
            behind = lost[1:] + lost[:1]  # the first may have kept the others from answering
            self._collect(self._ask(behind, size, False, len(behind) - 1), found)
        return found

    def _sure(self, ids: Sequence[int]) -> int:
        return sum(not self._misses[id] for id in ids)

    def _collect(
        self, got: Mapping[int, StatusData], found: dict[int, tuple[Block, float]]
    ) -> None:
        for id, share in got.items():
            block = conversion.unpack(share.data) if share.data else None
            arrived = self._line.arrived[id]
            if block is None:
                self.mapped.discard(id)
                self.rebooted.add(id)
                self._clocks.reset(id)
            elif self._clocks.is_fresh(id, block, arrived, self._misses[id] > 0):
                found[id] = block, arrived

    def _ask(self, ids: Sequence[int], size: int, fast: bool, sure: int) -> dict[int, StatusData]:
        if not ids:
            return {}
        key = tuple(ids), size, fast
        if key not in self._requests:
            addresses = {id: self._models[id].indirect_data for id in ids}
            self._requests[key] = packets.sync_or_bulk_read(addresses, size, fast)
        return self._line.request(self._requests[key], ids, size, fast, sure)

    def _direct(self, ids: Sequence[int]) -> dict[int, tuple[Block, float]]:
        if not ids:
            return {}
        line, size = self._line, conversion.DIRECT_SIZE
        request = packets.sync_or_bulk_read(dict.fromkeys(ids, conversion.DIRECT), size)
        shares = line.request(request, ids, size, sure=self._sure(ids))
        got = {id: share for id, share in shares.items() if share.data}
        arrived = dict(line.arrived)
        torque = line.read(got, table.TORQUE_ENABLE)
        errors = line.read(got, table.HARDWARE_ERROR)
        watchdog = line.read(got, table.BUS_WATCHDOG)
        return {
            id: (
                conversion.unpack_direct(share.data)._replace(
                    torque=torque.get(id), hardware_error=errors.get(id), watchdog=watchdog.get(id)
                ),
                arrived[id],
            )
            for id, share in got.items()
        }

    def _map_again(self, found: Mapping[int, object]) -> None:
        """One motor a cycle, so that a cycle's length stays bounded."""
        lost = [id for id in found if id in self.rebooted and id not in self.mapped]
        if lost:
            self.map_block(lost[0])
