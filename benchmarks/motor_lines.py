"""Emulated motors without an arm, answering on a pseudo terminal from another process."""

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

from emulators.base import EmulatedMotors, Shaft  # no package that is installed
from emulators.makers import MAKERS

COUNT = 6


@dataclass(frozen=True)
class Line:
    """A terminal's path; ``silence`` has a motor answer no more."""

    port: str
    silence: Callable[[int], None]


@contextmanager
def served(maker: str, paced: bool = False) -> Iterator[Line]:
    """A line with COUNT motors; ``paced``: bytes take their time on the wire."""
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_serve, args=(maker, paced, theirs), daemon=True)
    process.start()
    try:
        yield Line(ours.recv(), ours.send)
    finally:
        process.kill()
        process.join()


def _serve(name: str, paced: bool, said: Connection) -> None:
    maker = MAKERS[name]
    shafts = [Shaft(i, maker.drive.model, supply=maker.drive.supply) for i in range(1, COUNT + 1)]
    motors, byte = maker.motors(shafts), 10 / maker.baud if paced else 0.0
    ours, theirs = os.openpty()
    tty.setraw(theirs)
    said.send(os.ttyname(theirs))
    while True:
        heard = select.select([ours, said], [], [])[0]
        if said in heard:
            shafts[said.recv() - 1].silent = True
        if ours in heard:
            _answer(ours, motors, byte)


def _answer(line: int, motors: EmulatedMotors, byte: float) -> None:
    data, start = os.read(line, 4096), time.perf_counter()
    told = motors.receive(data, time.monotonic())
    due = start + byte * (len(data) + len(told))
    while time.perf_counter() < due:
        pass
    with suppress(OSError):
        os.write(line, told)
