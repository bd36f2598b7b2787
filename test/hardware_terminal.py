"""A user at a pseudo terminal, and emulated motors on another one or in virtual time."""

from __future__ import annotations

import os
import pty
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress

from emulators.memory import MemoryPort
from virtual_time import VirtualTime

from arm_dynamics import load_arm
from arm_dynamics.hardware.emulation.emulated_arm import EmulatedArm
from arm_dynamics.hardware.emulation.emulated_motors import EmulatedMotors, Shaft
from arm_dynamics.hardware.emulation.feetech_servos import EmulatedFeetech
from arm_dynamics.hardware.emulation.serial_terminal import SerialTerminal
from arm_dynamics.model.hardware_info import read_hardware_info


class Motors:
    """Emulated motors, and the arm that they move.

    ``torques`` is the number of motors with torque enabled; ``most`` is its maximum.
    """

    def __init__(self, motors: EmulatedMotors, arm: EmulatedArm | None = None) -> None:
        self.motors, self.arm, self.most = motors, arm, 0

    @property
    def torques(self) -> int:
        return sum(self.motors.torque_is_on(id) for id in {s.id for s in self.motors.shafts})

    def advance(self, now: float) -> None:
        if self.arm is not None:
            self.arm.advance(now)
        else:
            self.motors.step(now)
        self.most = max(self.most, self.torques)


class VirtualPort(MemoryPort):
    """Port to emulated motors on a virtual time that other threads have too."""

    def __init__(self, motors: EmulatedMotors, time: VirtualTime) -> None:
        super().__init__(motors)
        self._clock = time

    def now(self) -> float:
        self.time = self._clock.monotonic()
        return self.time

    def write(self, data: bytes) -> None:
        self.now()
        super().write(data)

    def read(self, size: int, until: float) -> bytes:
        self.now()
        return super().read(size, until)

    def pass_until(self, time: float) -> None:
        self._clock.sleep(time - self._clock.monotonic())
        self.now()


class VirtualLine(Motors):
    """Motors in virtual time; each serial port that is opened leads to them."""

    name = "virtual"

    def __init__(
        self, time: VirtualTime, motors: EmulatedMotors, arm: EmulatedArm | None = None
    ) -> None:
        super().__init__(motors, arm)
        time.on_advance = self.advance
        self._port = VirtualPort(motors, time)

    def open(self, name: str, baud: int) -> VirtualPort:
        """Return the port; it replaces ``SerialPort``."""
        return self._port

    def unplug(self) -> None:
        self._port.requests.unplugged = True


class Line(Motors):
    """Motors that reply in a thread behind a pseudo terminal, in real time."""

    def __init__(self, motors: EmulatedMotors, arm: EmulatedArm | None = None) -> None:
        super().__init__(motors, arm)
        self._terminal = SerialTerminal(motors, arm)
        self.name = self._terminal.path
        self._closed = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def unplug(self) -> None:
        """Disconnect the cable; the motors keep their state."""
        self._closed = True
        self._thread.join(10)
        self._terminal.unplug()

    def close(self) -> None:
        self.unplug()

    def _run(self) -> None:
        while not self._closed:
            self._terminal.serve()
            self.most = max(self.most, self.torques)


class User:
    """Thread that reads a program's output at a pseudo terminal and presses keys.

    ``does`` is called with the user; ``leave`` raises its errors.
    """

    def __init__(self, monkeypatch, does, time: VirtualTime) -> None:
        self.output, self._time = "", time
        self._ours, theirs = pty.openpty()
        os.set_blocking(self._ours, False)
        self._streams = os.fdopen(theirs, "r"), os.fdopen(os.dup(theirs), "w")
        monkeypatch.setattr(sys, "stdin", self._streams[0])
        monkeypatch.setattr(sys, "stdout", self._streams[1])
        self._errors: list[BaseException] = []
        self._left = False
        self._thread = time.thread(lambda: self._run(does))

    def press(self, keys: str) -> None:
        os.write(self._ours, keys.encode())

    def hold(self, key: str, seconds: float) -> float:
        """Repeat a key as a keyboard does; return the time of its release."""
        until = self._time.monotonic() + seconds
        while self._time.monotonic() < until:
            self.press(key)
            self.look(0.03)
        return self._time.monotonic()

    def wait(self, words: str, seconds: float = 120.0) -> None:
        until = self._time.monotonic() + seconds
        while words not in self.output:
            assert self._time.monotonic() < until, f"{words!r} not in {self.output!r}"
            self.look(0.02)

    def look(self, seconds: float) -> None:
        until = self._time.monotonic() + seconds
        while True:
            with suppress(BlockingIOError):
                self.output += os.read(self._ours, 65536).decode("utf-8", "replace")
            if self._time.monotonic() >= until:
                return
            self._time.sleep(0.005)

    def leave(self) -> str:
        """Return all output; raise an error of the user's thread."""
        sys.stdout.flush()
        self._left = True
        with self._time.idle():
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


def so101_motors(
    q: Sequence[float], flipped: Sequence[str] = (), offset=None, ratio=None, payload=0.0
) -> tuple[EmulatedFeetech, EmulatedArm]:
    """Return the servos and the body of an SO-101; ``flipped`` joints have inverted signs.

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
    return motors, EmulatedArm(arm, motors, q, sign=sign, offset=offsets, ratio=ratios, step=1e-3)
