"""Cycles of six motors on the buses of this package and others; time of the safety checks.

    python benchmarks/drivers.py [--cycles 400]

A cycle reads all motors and writes a command to each. The motors are emulated in another process on
a pseudo terminal: "unpaced" as fast as possible, "paced" with ten bits per byte at the baud rate.
CPU is that of the host process. LeRobot's rows require its installation. Its cycles read positions;
those of dynamixel-sdk read position, velocity and current. The buses of this package also read
temperature, supply voltage, faults and torque status, those of Feetech in turn. "good of 5" is the
number of motors that are read while the third is silent.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from machine import machine
from motor_lines import COUNT, served

from arm_dynamics import load_arm
from arm_dynamics.core import plugins
from arm_dynamics.core.state import Command
from arm_dynamics.hardware.motor_bus import MotorBus, MotorCommand, Reading
from arm_dynamics.hardware.motor_bus_driver import MotorBusDriver
from arm_dynamics.model.hardware_info import JointMotor, read_hardware_info

IDS = range(1, COUNT + 1)
Cycle = Callable[[], int]
"""One cycle; returns the number of motors read."""


@dataclass(frozen=True)
class Row:
    """Measured bus; ``open`` makes its cycle from the path of the terminal."""

    name: str
    vendor: str
    open: Callable[[str], Any]


@contextmanager
def bus(driver: str, model: str, interface: str, port: str, **more: str) -> Iterator[Cycle]:
    """Open a bus of this package; yield its cycle."""
    wired = [JointMotor(f"J{i}", i, model) for i in IDS]
    settings = {"port": port, "baud": "1000000", "interface": "slcan", **more}
    made: MotorBus = plugins.load_class("drivers", driver)(wired, settings)
    made.open()
    try:
        made.prepare(interface)
        made.enable_watchdog(2.0)
        made.enable(IDS)
        goals = {i: MotorCommand(interface, 0.0) for i in IDS}

        def cycle() -> int:
            count = len(made.read())
            made.write(goals)
            return count

        yield cycle
    finally:
        made.close()


def ours(driver: str, model: str, interface: str, **more: str) -> Callable[[str], Any]:
    """Return a function of the port that opens ``bus``."""
    return lambda port: bus(driver, model, interface, port, **more)


@contextmanager
def dynamixel_sdk(port: str, fast: bool = False) -> Iterator[Cycle]:
    """Open a bus of dynamixel-sdk: reads current, velocity and position; writes currents."""
    import dynamixel_sdk as sdk  # noqa: PLC0415  # only for this row

    handler, packets = sdk.PortHandler(port), sdk.PacketHandler(2.0)
    handler.setBaudRate(1_000_000)
    reader = sdk.GroupSyncRead(handler, packets, 126, 10)
    writer = sdk.GroupSyncWrite(handler, packets, 102, 2)
    for i in IDS:
        reader.addParam(i)
        writer.addParam(i, bytes(2))

    def cycle() -> int:
        (reader.fastSyncRead if fast else reader.txRxPacket)()
        count = 0
        for i in IDS:
            if reader.isAvailable(i, 126, 10):
                values = [reader.getData(i, *at) for at in ((126, 2), (128, 4), (132, 4))]
                count += len(values) == 3
        for i in IDS:
            writer.changeParam(i, bytes(2))
        writer.txPacket()
        return count

    try:
        yield cycle
    finally:
        handler.closePort()


@contextmanager
def lerobot(kind: str, model: str, port: str) -> Iterator[Cycle]:
    """Open a bus of LeRobot: reads and writes positions."""
    _stand_ins()
    motors = __import__("lerobot.motors", fromlist=["Motor"])
    module = __import__(f"lerobot.motors.{kind}", fromlist=["x"])
    each = {f"J{i}": motors.Motor(i, model, motors.MotorNormMode.DEGREES) for i in IDS}
    made = getattr(module, f"{kind.capitalize()}MotorsBus")(port, each)
    made.connect(handshake=False)
    made.set_baudrate(1_000_000)
    goals = dict.fromkeys(each, 2048)

    def cycle() -> int:
        try:
            count = len(made.sync_read("Present_Position", normalize=False))
        except ConnectionError:
            count = 0
        made.sync_write("Goal_Position", goals, normalize=False)
        return count

    try:
        yield cycle
    finally:
        made.port_handler.closePort()


class _StandIn(types.ModuleType):
    """Replacement of a heavy import of LeRobot that its buses do not use."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"device": object, "dtype": object})


def _stand_ins() -> None:
    for name in ("torch", "accelerate", "datasets", "datasets.utils", "datasets.utils.logging"):
        try:
            __import__(name)
        except ImportError:
            sys.modules[name] = _StandIn(name)


ROWS = (
    Row("dynamixel, here", "dynamixel", ours("dynamixel", "XM430-W350", "effort")),
    Row("dynamixel, here, no fast read", "dynamixel",
        ours("dynamixel", "XM430-W350", "effort", fast_sync_read="0")),
    Row("dynamixel-sdk, sync read", "dynamixel", dynamixel_sdk),
    Row("dynamixel-sdk, fast sync read", "dynamixel", lambda port: dynamixel_sdk(port, True)),
    Row("LeRobot, Dynamixel", "dynamixel", lambda port: lerobot("dynamixel", "xm430-w350", port)),
    Row("feetech, here", "feetech", ours("feetech", "sts3215", "position")),
    Row("LeRobot, Feetech", "feetech", lambda port: lerobot("feetech", "sts3215", port)),
    Row("mit_can, here, slcan", "mit_can", ours("mit_can", "DM4310", "effort")),
    Row("mit_can, here, python-can's slcan", "mit_can",
        ours("mit_can", "DM4310", "effort", codec="python-can")),
)  # fmt: skip


def measured(row: Row, paced: bool, cycles: int) -> tuple[float, float]:
    """Return cycles per second and processor time of this process per cycle [µs]."""
    with served(row.vendor, paced) as line, row.open(line.port) as cycle:
        for _ in range(20):
            cycle()
        start, cpu = time.perf_counter(), time.process_time()
        for _ in range(cycles):
            cycle()
        spent = time.process_time() - cpu
        return cycles / (time.perf_counter() - start), 1e6 * spent / cycles


def good(row: Row) -> float:
    """Return the median number of motors read while the third is silent."""
    with served(row.vendor) as line, row.open(line.port) as cycle:
        cycle()
        line.silence(3)
        return statistics.median(cycle() for _ in range(21))


class Still(MotorBus):
    """Bus in memory with motors at rest and without transmission time."""

    def __init__(self, motors: tuple[JointMotor, ...], q: Mapping[int, float]) -> None:
        super().__init__(motors, {"allow_missing_watchdog": "true"})
        self.q, self.time, self.on = q, 0.0, False

    def now(self) -> float:
        """Return the time of the motors [s]."""
        return self.time

    def read(self) -> dict[int, Reading]:
        """Return the readings of all motors."""
        self.time += 1e-3
        return {i: Reading(self.time, q, 0.0, 0.0, 30.0, 12.0, "", self.on)
                for i, q in self.q.items()}  # fmt: skip

    def _switched(self, on: bool) -> Any:
        self.on = on
        return self.motors.keys()

    def interfaces(self, id: int) -> tuple[str, ...]:
        """Return efforts and positions."""
        return ("effort", "position")

    def enable(self, ids: Any) -> Any:
        """Enable torque."""
        return self._switched(True)

    def disable(self, ids: Any) -> Any:
        """Disable torque."""
        return self._switched(False)

    def enable_watchdog(self, timeout: float) -> Any:
        """Confirm the watchdogs of all motors."""
        return self.motors.keys()

    def _nothing(self, *_: Any) -> None:
        """Do nothing."""

    open = discover = prepare = write = close = _nothing  # type: ignore[assignment]


def safety(interface: str, cycles: int) -> tuple[float, float]:
    """Return the time of a cycle of a bus in memory, alone and with MotorBusDriver [µs]."""
    arm = load_arm("so101")
    wiring = read_hardware_info(arm).motors
    middle = (arm.lower + arm.upper) / 2
    here = {m.id: m.shaft_position(q) for m, q in zip(wiring, middle, strict=True)}
    made = Still(wiring, here)
    driver = MotorBusDriver(arm, made, wiring=wiring, interface=interface)
    driver.configure()
    driver.read()
    driver.activate()
    value = middle if interface == "position" else np.zeros(arm.nv)
    command = Command(interface, value)
    goals = {m.id: MotorCommand(interface, 0.0) for m in wiring}

    def alone() -> None:
        made.read()
        made.write(goals)

    def whole() -> None:
        driver.read()
        driver.write(command)

    return _each(alone, cycles), _each(whole, cycles)


def _each(call: Callable[[], None], cycles: int) -> float:
    times = []
    for _ in range(cycles):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return 1e6 * statistics.median(times)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=400)
    cycles = parser.parse_args().cycles
    print(f"{machine()}\n{COUNT} motors")
    print("| bus | unpaced [1/s] | CPU [µs] | paced [1/s] | good of 5 |\n|---|---|---|---|---|")
    for row in ROWS:
        try:
            (rate, cpu), (paced, _) = measured(row, False, cycles), measured(row, True, cycles)
        except ImportError as error:
            print(f"| {row.name} | not installed: {error} | | | |")
            continue
        print(f"| {row.name} | {rate:.0f} | {cpu:.0f} | {paced:.0f} | {good(row):.0f} |")
    print(
        "\n| safety, six joints | bus [µs] | with all checks [µs] | added [µs] |\n|---|---|---|---|"
    )
    for interface in ("position", "effort"):
        bare, whole = safety(interface, 5 * cycles)
        print(f"| {interface} | {bare:.0f} | {whole:.0f} | {whole - bare:.0f} |")


if __name__ == "__main__":
    main()
