"""Emulated motors without an arm on a pseudo terminal, in another process."""

from __future__ import annotations

import multiprocessing
import os
import select
import sys
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from emulators.vendors import VENDORS

from arm_dynamics.hardware.emulation.emulated_motors import (  # not an installed package
    EmulatedMotors,
    Shaft,
)

COUNT = 6


@dataclass(frozen=True)
class Line:
    """Path of the terminal; ``silence`` disconnects a motor."""

    port: str
    silence: Callable[[int], None]


@contextmanager
def served(vendor: str, paced: bool = False) -> Iterator[Line]:
    """Run a bus with COUNT motors; ``paced`` simulates the transmission time."""
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_serve, args=(vendor, paced, theirs), daemon=True)
    process.start()
    try:
        yield Line(ours.recv(), ours.send)
    finally:
        process.kill()
        process.join()


def _serve(name: str, paced: bool, requests: Connection) -> None:
    vendor = VENDORS[name]
    shafts = [Shaft(i, vendor.drive.model, supply=vendor.drive.supply) for i in range(1, COUNT + 1)]
    motors, byte = vendor.motors(shafts), 10 / vendor.baud if paced else 0.0
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    requests.send(os.ttyname(theirs))
    while True:
        readable = select.select([ours, requests], [], [])[0]
        if requests in readable:
            shafts[requests.recv() - 1].silent = True
        if ours in readable:
            _answer(ours, motors, byte)


def _answer(line: int, motors: EmulatedMotors, byte: float) -> None:
    data, start = os.read(line, 4096), time.perf_counter()
    replies = motors.receive(data, time.monotonic())
    due = start + byte * (len(data) + len(replies))
    while time.perf_counter() < due:
        pass
    with suppress(OSError):
        os.write(line, replies)
