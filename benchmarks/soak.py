"""Whether a driver lasts: full rate, real time, an emulated arm in another process.

    python benchmarks/soak.py [--seconds 3600] [--maker dynamixel] [--rate 200] [--loss 0.001]

Prints one line a minute and a last one: cycles, missed deadlines, events, memory, rate. Exits with
1 where an error left the loop, the arm was not active at the end, or memory grew by more than
LEAK. One packet in a thousand is lost, so that the ways of recovery are used too.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

from machine import machine

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from emulators.makers import MAKERS
from emulators.served import served
from fault_injection.host import Host, built  # tests are no package that is installed

from arm_dynamics.core.errors import DriverFault
from arm_dynamics.core.timing import Pacer
from arm_dynamics.hardware.driver import DriverState

LEAK = 8.0
"""Growth of memory [MiB] after the first tenth that is taken for a leak."""
COLUMNS = ("time [s]", "cycles", "rate [1/s]", "missed", "events", "resident [MiB]")


def resident() -> float:
    """Memory of this process [MiB]."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def revive(host: Host) -> None:
    """What a supervisor would do with an arm that has stopped for good."""
    driver = host.driver
    try:
        if driver.status is DriverState.STOPPED and any(
            not trip.self_clearing for trip in driver.trips
        ):
            driver.reset()
        if driver.status is DriverState.INACTIVE:
            driver.reset()  # motors may have faults of the time when nobody talked to them
            host.activate()
    except DriverFault:
        pass  # tried again a second later


def line(host: Host, start: float) -> str:
    """One row of figures."""
    passed = time.monotonic() - start
    counts = " ".join(f"{k} {n}" for k, n in sorted(host.driver.events.counts.items())) or "none"
    cells = (f"{passed:.0f}", f"{host.cycles}", f"{host.cycles / passed:.1f}",
             f"{host.pacer.missed}", counts, f"{resident():.1f}")  # fmt: skip
    return f"| {' | '.join(cells)} |"


def run(host: Host, seconds: float) -> float:
    """Cycle for so long; growth of memory [MiB] after the first tenth."""
    start, told, before = time.monotonic(), 0.0, 0.0
    host.pacer.restart()
    while (passed := time.monotonic() - start) < seconds:
        host.cycle()
        if (
            host.cycles % round(1 / host.pacer.period) == 0
            and host.driver.status != DriverState.ACTIVE
        ):
            revive(host)
        before = before or (resident() if passed > seconds / 10 else 0.0)
        if passed - told >= 60:
            told = passed
            print(line(host, start), flush=True)
        host.pacer.wait()
    print(line(host, start), flush=True)
    return resident() - before


def comes_back(host: Host) -> bool:
    """Whether the arm is active once more when the line is good, within a few seconds."""
    for _ in range(5):
        for _ in range(100):
            host.cycle()
            host.pacer.wait()
        if host.driver.status is DriverState.ACTIVE:
            return True
        revive(host)
    return False


def main() -> int:
    """Serve, drive, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--maker", choices=MAKERS, default="dynamixel")
    parser.add_argument("--rate", type=float, default=200.0)
    parser.add_argument("--loss", type=float, default=1e-3)
    asked = parser.parse_args()
    maker = MAKERS[asked.maker]
    with tempfile.TemporaryDirectory() as folder:
        port = Path(folder) / "port"
        with served(maker.name, port) as arm:
            host = Host(built(maker, str(port), {}), maker.interface)
            host.pacer = Pacer(1 / asked.rate)
            error = host.begin()  # laws that compile meanwhile let motors trip
            if error and not (host.driver.status is DriverState.INACTIVE and comes_back(host)):
                print(error)
                return 1
            arm.tell(f"loss {asked.loss}")
            print(f"{machine()}\n{maker.title}, {asked.rate:g} cycles/s asked")
            print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
            grown = run(host, asked.seconds)
            arm.tell("heal")
            alive = comes_back(host)
            host.driver.close()
    print(f"memory grew by {grown:.1f} MiB; {'active' if alive else 'not active'} at the end")
    return int(grown > LEAK or not alive)


if __name__ == "__main__":
    sys.exit(main())
