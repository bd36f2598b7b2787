"""A user at a pseudo terminal, and emulated motors on another one, in real time."""

from __future__ import annotations

import os
import pty
import sys
import threading
import time
import tty
from collections.abc import Sequence
from contextlib import suppress

from emulators.arm import EmulatedArm
from emulators.base import EmulatedMotors, Shaft
from emulators.feetech import EmulatedFeetech

from arm_dynamics import load_arm
from arm_dynamics.model.hardware_info import read_hardware_info


class Line:
    """Emulated motors that reply in a thread behind a pseudo terminal; ``arm`` moves in real time.

    ``torques`` is the number of motors with torque enabled; ``most`` is its maximum.
    """

    def __init__(self, motors: EmulatedMotors, arm: EmulatedArm | None = None) -> None:
        self.motors, self.arm, self.most = motors, arm, 0
        self._ours, self._theirs = pty.openpty()
        tty.setraw(self._theirs)
        os.set_blocking(self._ours, False)
        self.name = os.ttyname(self._theirs)
        self._start, self._closed = time.monotonic(), False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def torques(self) -> int:
        return sum(self.motors.torque_is_on(id) for id in {s.id for s in self.motors.shafts})

    def unplug(self) -> None:
        """Disconnect the cable; the motors keep their state."""
        self._closed = True
        self._thread.join(10)
        for fd in (self._ours, self._theirs):
            with suppress(OSError):
                os.close(fd)
        self._ours = self._theirs = -1

    def close(self) -> None:
        self.unplug()

    def _run(self) -> None:
        while not self._closed:
            now = time.monotonic() - self._start
            if self.arm is not None:
                self.arm.time = max(self.arm.time, now - 0.05)  # a busy machine loses time
                self.arm.advance(now)
            else:
                self.motors.step(now)
            with suppress(BlockingIOError):
                os.write(self._ours, self.motors.receive(os.read(self._ours, 4096), now))
            self.most = max(self.most, self.torques)
            time.sleep(5e-4)


class User:
    """Thread that reads a program's output at a pseudo terminal and presses keys.

    ``does`` is called with the user; ``leave`` raises its errors.
    """

    def __init__(self, monkeypatch, does) -> None:
        self.output = ""
        self._ours, theirs = pty.openpty()
        os.set_blocking(self._ours, False)
        self._streams = os.fdopen(theirs, "r"), os.fdopen(os.dup(theirs), "w")
        monkeypatch.setattr(sys, "stdin", self._streams[0])
        monkeypatch.setattr(sys, "stdout", self._streams[1])
        self._errors: list[BaseException] = []
        self._left = False
        self._thread = threading.Thread(target=self._run, args=(does,), daemon=True)
        self._thread.start()

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def hold(self, key: str, seconds: float) -> float:
        """Repeat a key as a keyboard does; return the time of its release."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.press(key)
            self.look(0.03)
        return time.monotonic()

    def wait(self, words: str, seconds: float = 120.0) -> None:
        until = time.monotonic() + seconds
        while words not in self.output:
            assert time.monotonic() < until, f"{words!r} not in {self.output!r}"
            self.look(0.02)

    def look(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while True:
            with suppress(BlockingIOError):
                self.output += os.read(self._ours, 65536).decode("utf-8", "replace")
            if time.monotonic() >= until:
                return
            time.sleep(0.005)

    def leave(self) -> str:
        """Return all output; raise an error of the user's thread."""
        sys.stdout.flush()
        self._left = True
        self._thread.join(40)
        if self._errors:
            raise self._errors[0]
        return self.output

    def _run(self, does) -> None:
        try:
            does(self)
        except BaseException as error:
            self._errors.append(error)
        while not self._left:
            self.look(0.05)
        self.look(0.05)


def so101_line(
    q: Sequence[float], flipped: Sequence[str] = (), offset=None, ratio=None, payload=0.0
) -> Line:
    """Return an SO-101 with emulated servos; ``flipped`` joints have inverted signs.

    ``payload`` [kg] is a mass at the tool. ``offset`` and ``ratio`` are offsets [rad] and
    mechanical reductions by joint.
    """
    arm = load_arm("so101")
    wiring = read_hardware_info(arm).motors
    motors = EmulatedFeetech([Shaft(motor.id, "sts3215") for motor in wiring])
    for servo in motors.servos:
        servo.memory[21] = 32
    sign = [-1.0 if motor.joint in flipped else 1.0 for motor in wiring]
    offsets = [(offset or {}).get(motor.joint, motor.offset) for motor in wiring]
    ratios = [(ratio or {}).get(motor.joint, motor.mechanical_reduction) for motor in wiring]
    arm = arm.with_payload(payload)
    emulated = EmulatedArm(arm, motors, q, sign=sign, offset=offsets, ratio=ratios, step=1e-3)
    return Line(motors, emulated)
