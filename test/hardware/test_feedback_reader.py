"""Feedback requests of a Dynamixel bus: motors of a cycle, their order and repetitions."""

import struct
from itertools import pairwise

import pytest

from arm_dynamics.hardware.dynamixel.control_table import MODELS
from arm_dynamics.hardware.dynamixel.feedback_reader import (
    MAX_MISSED_CYCLES,
    RETRY_CYCLES,
    FeedbackReader,
)
from arm_dynamics.hardware.dynamixel.packets import StatusData

pytestmark = pytest.mark.hardware

IDS = (1, 2, 3, 4, 5, 6)
PERIOD = 5e-3


class FakeBus:
    """Motors that reply immediately, except the silent ones; a fast read ends at the first of them.

    ``requests`` contains (ids, fast, expected) of every request of the last cycle.
    """

    latency = 0.0

    def __init__(self):
        self.now, self.silent, self.requests, self.arrived = 0.0, set(), [], {}

    def request(self, request, ids, size, fast=False, expected=None):
        self.requests.append((tuple(ids), fast, expected))
        tick = round(self.now * 1e3)
        data = struct.pack("<BBBhiiHBHBB", 1, 0, 0, 0, 0, 0, 120, 30, tick, 0, 0)[:size]
        behind = [i for i, id in enumerate(ids) if id in self.silent]
        replied = ids[: behind[0]] if fast and behind else [i for i in ids if i not in self.silent]
        self.arrived.update(dict.fromkeys(replied, self.now))
        return {id: StatusData(id, 0, data) for id in replied}


@pytest.fixture
def line():
    return FakeBus()


@pytest.fixture
def reader(line):
    made = FeedbackReader(line, dict.fromkeys(IDS, MODELS["XM430-W350"]))
    made.mapped = set(IDS)
    return made


def cycle(reader, line):
    """Return the requests of one cycle."""
    line.requests.clear()
    line.now += PERIOD
    reader.read()
    return list(line.requests)


def first_ids(reader, line, cycles):
    return [cycle(reader, line)[0][0] for _ in range(cycles)]


def test_a_missing_motor_is_read_in_each_cycle_up_to_a_limit_then_in_every_fourth(reader, line):
    line.silent = {2}
    is_read = [2 in ids for ids in first_ids(reader, line, MAX_MISSED_CYCLES + 10 * RETRY_CYCLES)]
    assert all(is_read[:MAX_MISSED_CYCLES])
    later = [i for i, yes in enumerate(is_read) if yes and i >= MAX_MISSED_CYCLES]
    assert {b - a for a, b in pairwise(later)} == {RETRY_CYCLES}
    assert MAX_MISSED_CYCLES < later[0] < MAX_MISSED_CYCLES + RETRY_CYCLES
    line.silent = set()
    first_ids(reader, line, RETRY_CYCLES)
    assert first_ids(reader, line, 3) == [IDS] * 3


def test_missing_motors_are_read_last_in_rotating_order(reader, line):
    line.silent = {1, 3, 5}
    cycle(reader, line)
    orders = first_ids(reader, line, 6)
    assert {ids[:3] for ids in orders} == {(2, 4, 6)}
    firsts = [ids[3] for ids in orders]
    assert set(firsts[:3]) == {1, 3, 5}
    assert firsts[3:] == firsts[:3]
    assert all(sorted(ids[3:]) == [1, 3, 5] for ids in orders)


def test_two_newly_missing_motors_are_read_again_but_a_single_one_is_not(reader, line):
    line.silent = {4}
    assert cycle(reader, line) == [(IDS, False, 6)]
    line.silent = {2, 4, 5}
    again = cycle(reader, line)
    assert again == [((1, 2, 3, 5, 6, 4), False, 5), ((5, 2), False, 1)]
    assert len(cycle(reader, line)) == 1, "already marked as missing"


def test_a_fast_read_is_repeated_for_the_motors_behind_a_missing_one(reader, line):
    reader.fast = True
    assert cycle(reader, line) == [(IDS, True, 6)]
    line.silent = {3}
    assert cycle(reader, line) == [(IDS, True, 6), ((4, 5, 6, 3), False, 3)]
    assert cycle(reader, line) == [((1, 2, 4, 5, 6, 3), False, 5)]
    line.silent = {6, 3}
    cycle(reader, line)
    line.silent = set()
    cycle(reader, line)
    assert cycle(reader, line) == [(IDS, True, 6)]
    line.silent = {6}
    assert cycle(reader, line) == [(IDS, True, 6), ((6,), False, 0)]
