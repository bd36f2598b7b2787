"""Streams of single waypoints: error, lag and acceleration of the reference; time per message.

    python benchmarks/streams.py [--arm five_dof] [--seconds 4]

A client samples q = A sin(0.9 t), A = 0.3 rad, and sends one waypoint per period with stamp 0 to a
control loop at 500 Hz. Measured are the maximum error of the reference, its lag (least squares),
and the rms of its second differences divided by the acceleration of the source.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "test"))

from stream_rig import Rig, Sine, figures, stream
from tables import Table, table

CASES = {"even": {}, "±3 ms": {"jitter": 3e-3}, "one lost": {"lost": True}}


def print_rows(printed: Table, arm: str, seconds: float) -> None:
    """Print a row for each rate, time ahead and kind of waypoint."""
    for velocities in (False, True):
        for rate in (50, 100, 250):
            for ahead in (0.0, 0.01, 0.02, 0.05):
                cells = []
                for case in CASES.values():
                    lost = (round(rate * seconds / 2),) if "lost" in case else ()
                    jitter = case.get("jitter", 0.0)
                    found = figures(*stream(arm, rate, ahead, velocities, jitter, lost, seconds))
                    cells.append(
                        f"{1e3 * found.error:.2f}, {1e3 * found.lag:.1f}, {found.ratio:.2f}"
                    )
                kind = "positions, velocities" if velocities else "positions"
                printed.row(kind, rate, f"{1e3 * ahead:g}", *cells)


def cost(arm: str) -> None:
    """Print the time of one message without its decoding."""
    for name, count in (("one waypoint", 1), ("window of 20", 20), ("window of 200", 200)):
        rig = Rig(arm)
        source, times = Sine(rig.arm), np.arange(1, count + 1) * 0.01
        rig = Rig(rig.arm, source(0.0)[0])
        spent, cycle = [], []
        for k in range(1, 200):
            begin = time.perf_counter()
            rig.step(k * 0.01)
            cycle.append((time.perf_counter() - begin) / 5)
            rows = [source(rig.now + t)[:2] for t in times]
            q, v = zip(*rows, strict=True)
            begin = time.perf_counter()
            rig.send(times.tolist(), q, v)
            spent.append(time.perf_counter() - begin)
        print(f"{arm}, {name}: {1e6 * np.median(spent):.0f} µs per message,"
              f" {1e6 * np.median(cycle):.0f} µs per control cycle with it")  # fmt: skip


def main() -> None:
    """Print the table and the times."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--arm", default="five_dof")
    parser.add_argument("--seconds", type=float, default=4.0)
    given = parser.parse_args()
    with table("streams") as printed:
        print_rows(printed, given.arm, given.seconds)
    for arm in (given.arm, "puma560"):
        cost(arm)


if __name__ == "__main__":
    main()
