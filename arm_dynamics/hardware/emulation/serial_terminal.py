"""Pseudo terminal with emulated motors at its other end, in real time."""

from __future__ import annotations

import os
import select
import time
import tty
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from arm_dynamics.hardware.emulation.emulated_arm import EmulatedArm
from arm_dynamics.hardware.emulation.emulated_motors import EmulatedMotors

IDLE = 5e-4
"""Maximum sleep [s]."""
BEHIND = 0.02
"""Delay [s] above which the arm skips time instead of simulating it: the machine was busy."""


class SerialTerminal:
    """Emulated motors behind a pseudo terminal, which a program opens as its serial port.

    ``serve`` transfers bytes and advances the arm; call it in a loop.

    Parameters
    ----------
    motors : EmulatedMotors
        The motors.
    arm : EmulatedArm, optional
        Arm that they move; without one their shafts stand still.
    link : Path, optional
        Symbolic link to the terminal, replaced if it exists.
    baud : float
        Rate of the simulated wire [bit/s]; 0: bytes take no time.

    """

    def __init__(
        self,
        motors: EmulatedMotors,
        arm: EmulatedArm | None = None,
        link: Path | None = None,
        baud: float = 0.0,
    ) -> None:
        self.motors, self.arm, self.link = motors, arm, link
        self.byte = 10 / baud if baud else 0.0
        self.skipped = 0.0
        """Time [s] that the arm skipped because the machine was busy."""
        self._start = time.monotonic()
        self._free = 0.0
        self._waiting: deque[tuple[float, bytes]] = deque()
        self._ours = self._theirs = -1
        self.plug()

    @property
    def path(self) -> str:
        """Path of the terminal."""
        return os.ttyname(self._theirs)

    def now(self) -> float:
        """Return the time of the motors [s]."""
        return time.monotonic() - self._start

    def plug(self) -> None:
        """Open a terminal and create the link to it."""
        self.unplug()
        self._ours, self._theirs = os.openpty()
        tty.setraw(self._theirs)
        os.set_blocking(self._ours, False)
        if self.link is not None:
            made = self.link.with_name(f"{self.link.name}.new")
            made.unlink(missing_ok=True)
            made.symlink_to(self.path)
            made.replace(self.link)

    def unplug(self) -> None:
        """Close the terminal, as if the cable were pulled; remove the link."""
        if self.link is not None and self.link.is_symlink():
            self.link.unlink()
        for fd in (self._ours, self._theirs):
            with suppress(OSError):
                os.close(fd)
        self._ours = self._theirs = -1
        self._waiting.clear()

    def serve(self, *others: Any) -> Sequence[Any]:
        """Sleep at most IDLE, transfer bytes, advance the arm; return the readable ``others``."""
        until = self._waiting[0][0] - self.now() if self._waiting else IDLE
        listen = [*others, *([self._ours] if self._ours >= 0 else [])]
        readable: list[Any] = select.select(listen, [], [], max(0.0, min(until, IDLE)))[0]
        if self._ours in readable:
            with suppress(OSError):
                self._receive(os.read(self._ours, 4096))
        self._send()
        self._advance()
        return [end for end in readable if end in others]

    def _advance(self) -> None:
        """Advance motors and arm to the present time."""
        if self.arm is None:
            self.motors.step(self.now())
            return
        behind = self.now() - self.arm.time
        if behind > BEHIND:  # the arm was paused during this time
            self.arm.time += behind
            self.skipped += behind
        self.arm.advance(self.now())

    def _receive(self, data: bytes) -> None:
        """Pass bytes to the motors; their replies arrive after the transmission of both."""
        now = self.now()
        self._free = max(now, self._free) + len(data) * self.byte
        for reply in self._replies(data, now):
            self._free += len(reply) * self.byte
            self._queue(self._free, reply)

    def _replies(self, data: bytes, now: float) -> list[bytes]:
        """Return the replies of the motors, in the parts that arrive together."""
        return [self.motors.receive(data, now)]

    def _queue(self, arrival: float, reply: bytes) -> None:
        self._waiting.append((arrival, reply))

    def _send(self) -> None:
        due = b""
        while self._waiting and self._waiting[0][0] <= self.now():
            due += self._waiting.popleft()[1]
        if due and self._ours >= 0:
            with suppress(OSError):  # no reader: bytes beyond the buffer are lost
                os.write(self._ours, due)
