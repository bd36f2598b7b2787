"""Soak test of a driver: full rate, real time, an emulated arm in another process.

    python benchmarks/soak.py [--seconds 3600] [--motors dynamixel] [--rate 200] [--loss 0.001]

Print one row per minute and a last one: cycles, missed deadlines, events, memory, rate. Exit with 1
after an error in the loop, if the arm is not active at the end, or if memory grew by more than
LEAK. One packet in a thousand is lost, so that recovery is tested too.
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

from emulators.served import served
from emulators.vendors import VENDORS
from fault_injection.host import Host, built  # tests are not an installed package

from arm_dynamics.core.errors import DriverFault
from arm_dynamics.core.timing import Pacer
from arm_dynamics.hardware.driver import DriverState

LEAK = 8.0
"""Growth of memory [MiB] after the first tenth of the time that counts as a leak."""
COLUMNS = ("time [s]", "cycles", "rate [1/s]", "missed", "events", "resident [MiB]")


def resident() -> float:
    """Return the memory of this process [MiB]."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def revive(host: Host) -> None:
    """Reset and activate an arm that has stopped, as a supervisor would."""
    driver = host.driver
    try:
        if driver.status is DriverState.STOPPED and any(
            not trip.self_clearing for trip in driver.trips
        ):
            driver.reset()
        if driver.status is DriverState.INACTIVE:
            driver.reset()  # motor watchdogs may have tripped while inactive
            host.activate()
    except DriverFault:
        pass  # the next attempt follows after 1 s


def line(host: Host, start: float) -> str:
    """Return one row of the table."""
    passed = time.monotonic() - start
    counts = " ".join(f"{k} {n}" for k, n in sorted(host.driver.events.counts.items())) or "none"
    cells = (f"{passed:.0f}", f"{host.cycles}", f"{host.cycles / passed:.1f}",
             f"{host.pacer.missed}", counts, f"{resident():.1f}")  # fmt: skip
    return f"| {' | '.join(cells)} |"


def run(host: Host, seconds: float) -> float:
    """Run for ``seconds``; return the growth of memory [MiB] after the first tenth."""
    start, printed, before = time.monotonic(), 0.0, 0.0
    host.pacer.restart()
    while (passed := time.monotonic() - start) < seconds:
        host.cycle()
        if (
            host.cycles % round(1 / host.pacer.period) == 0
            and host.driver.status != DriverState.ACTIVE
        ):
            revive(host)
        before = before or (resident() if passed > seconds / 10 else 0.0)
        if passed - printed >= 60:
            printed = passed
            print(line(host, start), flush=True)
        host.pacer.wait()
    print(line(host, start), flush=True)
    return resident() - before


def comes_back(host: Host) -> bool:
    """Return whether the arm is active again within a few seconds of fault-free communication."""
    for _ in range(5):
        for _ in range(100):
            host.cycle()
            host.pacer.wait()
        if host.driver.status is DriverState.ACTIVE:
            return True
        revive(host)
    return False


def main() -> int:
    """Run the soak test; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--motors", choices=VENDORS, default="dynamixel")
    parser.add_argument("--rate", type=float, default=200.0)
    parser.add_argument("--loss", type=float, default=1e-3)
    args = parser.parse_args()
    vendor = VENDORS[args.motors]
    with tempfile.TemporaryDirectory() as folder:
        port = Path(folder) / "port"
        with served(vendor.name, port) as arm:
            host = Host(built(vendor, str(port), {}), vendor.interface)
            host.pacer = Pacer(1 / args.rate)
            error = host.begin()  # compilation of controllers can trip motor watchdogs
            if error and not (host.driver.status is DriverState.INACTIVE and comes_back(host)):
                print(error)
                return 1
            arm.request(f"loss {args.loss}")
            print(f"{machine()}\n{vendor.title}, requested rate {args.rate:g} cycles/s")
            print(f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}")
            grown = run(host, args.seconds)
            arm.request("heal")
            alive = comes_back(host)
            host.driver.close()
    print(f"memory grew by {grown:.1f} MiB; {'active' if alive else 'not active'} at the end")
    return int(grown > LEAK or not alive)


if __name__ == "__main__":
    sys.exit(main())
