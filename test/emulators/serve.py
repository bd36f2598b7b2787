"""Emulated arm in a separate process, in real time, connected by a pseudo terminal.

    python -m emulators.serve MOTORS LINK [--wire] [--arm so101] [--payload 0.1] [--friction 1.5]

MOTORS is a name of emulators.vendors.VENDORS. LINK becomes a symbolic link to the terminal. --arm
selects a bundled arm or URDF with these motors (default: a small arm of three joints). --payload
[kg] and --friction (a factor) make the emulated arm differ from its URDF. --wire simulates the
transmission time of each byte. Each line of stdin is one command; each reply is one
line of JSON:

    loss 0.1    corrupt 0.1    truncate 0.1    duplicate 0.1    noise 0.1    delay 0.01 [s]
    jitter 0.01 [s]    lag 1    baud 1 (a wrong baud rate)    heal    unplug    plug
    silent ID    heat ID 90    reboot ID    trip ID overload
    wrong_id ID 9    double ID 2    wrong_model ID NAME    forget    hold    release
    state    quit
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import termios
from collections.abc import Sequence
from fcntl import ioctl
from pathlib import Path

from arm_dynamics.hardware.emulation.serial_terminal import SerialTerminal

from .faults import Faults
from .vendors import VENDORS, Vendor, WiredArm

FAULT_FIELDS = {
    "loss": "loss", "corrupt": "corruption", "truncate": "truncation", "noise": "noise",
    "duplicate": "duplication", "delay": "delay", "jitter": "jitter",
}  # fmt: skip


class Server(SerialTerminal):
    """Motors, arm and bus with faults; ``run`` ends at the end of stdin or at ``quit``."""

    def __init__(self, vendor: Vendor, link: Path, wire: bool = False) -> None:
        self.vendor = vendor
        self.requests, self.answers = Faults(1, split=vendor.split), Faults(2, split=vendor.split)
        self.shafts = vendor.shafts()
        self.last = 0.0
        motors = vendor.motors(self.shafts)
        super().__init__(motors, vendor.body(motors), link, vendor.baud if wire else 0.0)

    def release(self) -> None:
        """Clear the exclusive mode of the terminal, as if its user were killed."""
        ioctl(self._theirs, termios.TIOCNXCL)

    def run(self) -> None:
        """Simulate until stdin ends."""
        text = ""
        while True:
            if self.serve(sys.stdin):
                received = os.read(sys.stdin.fileno(), 4096).decode()
                if not received:
                    return
                *lines, text = (text + received).split("\n")
                for line in lines:
                    if line == "quit":
                        return
                    print(json.dumps(self.obey(line.split())), flush=True)

    def obey(self, words: list[str]) -> dict[str, object]:
        """Execute a command and return the reply."""
        name, *more = words
        if name in FAULT_FIELDS or name in ("lag", "baud"):
            self._distort(name, float(more[0]))
        elif name == "heal":
            self._heal()
        elif name in ("silent", "heat", "reboot", "trip"):
            self._harm(name, int(more[0]), more[1:])
        elif name in ("wrong_id", "double", "wrong_model"):
            self._replace(name, int(more[0]), more[1:])
        elif name == "hold":
            self.arm.hold_at(self.arm.state.q)
        elif name in ("plug", "unplug", "release"):
            getattr(self, name)()
        elif name == "forget":
            self.arm.forget()
        elif name != "state":
            return {"error": f"unknown command {name}"}
        return self.state()

    def state(self) -> dict[str, object]:
        """Return the state of the arm and its maxima since ``forget``."""
        body = self.arm
        return {
            "time": body.time,
            "q": body.state.q.tolist(),
            "v": body.state.v.tolist(),
            "effort": [shaft.effort for shaft in self.shafts],
            "torque": [self.motors.torque_is_on(shaft.id) for shaft in self.shafts],
            "stopped": all(self.vendor.at_rest(self.motors, shaft.id) for shaft in self.shafts),
            "moved": body.moved.tolist(),
            "strongest": body.strongest.tolist(),
            "fastest": body.fastest.tolist(),
            "skipped": self.skipped,
        }

    def _distort(self, name: str, value: float) -> None:
        if name == "lag":
            self.answers.lag = int(value)
        for faults in (self.requests, self.answers):
            if name == "baud":
                faults.corrupt = bool(value)
            elif name in FAULT_FIELDS and not (
                name in ("delay", "jitter") and faults is self.requests
            ):
                setattr(faults, FAULT_FIELDS[name], value)

    def _heal(self) -> None:
        for faults in (self.requests, self.answers):
            faults.heal()
        for shaft in self.shafts:
            shaft.silent, shaft.temperature = False, 30.0

    def _harm(self, name: str, id: int, more: list[str]) -> None:
        shaft = next(shaft for shaft in self.shafts if shaft.id == id)
        if name == "silent":
            shaft.silent = True
        elif name == "heat":
            shaft.temperature = float(more[0])
        elif name == "reboot":
            self.motors.reboot(id)
        else:
            self.motors.trip(id, more[0])

    def _replace(self, name: str, id: int, more: list[str]) -> None:
        """Replace a motor by another one, with the power of all motors switched off and on."""
        shaft = next(shaft for shaft in self.shafts if shaft.id == id)
        if name == "wrong_model":
            shaft.model = more[0] if more else self.vendor.other
        else:
            shaft.id = int(more[0])
        self.motors = self.arm.motors = self.vendor.motors(self.shafts)

    def _replies(self, data: bytes, now: float) -> list[bytes]:
        replies = self.motors.receive(self.requests.distort(data), now)
        return self.answers.split(self.answers.lagging(replies))

    def _queue(self, arrival: float, reply: bytes) -> None:
        self.last = max(self.last, arrival + self.answers.late())
        super()._queue(self.last, self.answers.distort(reply))


def parse(words: Sequence[str] | None = None) -> tuple[Vendor, Path, bool]:
    """Return the motors, the link and whether transmission times are simulated."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("motors", choices=VENDORS)
    parser.add_argument("link", type=Path)
    parser.add_argument("--wire", action="store_true")
    parser.add_argument("--arm")
    parser.add_argument("--payload", type=float, default=0.0)
    parser.add_argument("--friction", type=float, default=1.0)
    args = parser.parse_args(words)
    vendor = VENDORS[args.motors]
    if args.arm:
        vendor = WiredArm(
            **vars(vendor), wired=args.arm, payload=args.payload, friction=args.friction
        )
    return vendor, args.link, args.wire


def main() -> None:
    """Simulate one arm until its standard input ends."""
    server = Server(*parse())
    print(json.dumps(server.state()), flush=True)
    try:
        server.run()
    finally:
        server.unplug()


if __name__ == "__main__":
    main()
