"""Published gain search of five_dof, both stages.

    taskset -c 0 python benchmarks/gain_search.py [--repetitions 7]

The best time of all runs after a first one that compiles. The kernel uses one core and no threads.
The original in C++ took 13 s.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np
from machine import machine

from arm_dynamics.simulation.dynamechs import objective, published_arm

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples" / "reproductions"))

from published_kernel import LANES
from published_search import PublishedSearch, objectives_of, search

ORIGINAL = 13.0
"""Time of the C++ original [s]."""
STEPS = 30000


def main() -> None:
    """Print times, evaluations and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=7)
    repetitions = parser.parse_args().repetitions
    began = time.perf_counter()
    objectives = objectives_of(published_arm())
    ready = time.perf_counter() - began
    runs = [search(objectives) for _ in range(repetitions + 1)]
    print(f"{machine()}\nkernel generated or loaded in {ready:.2f} s")
    print("| published search: best, s | median, s | evaluations | speed-up over 13 s |")
    print("|---|---|---|---|")
    seconds = [run.seconds for run in runs[1:]]
    evaluated, best = runs[0].p.evaluated + runs[0].i.evaluated, min(seconds)
    median = statistics.median(seconds)
    print(f"| {best:.3f} | {median:.3f} | {evaluated} | {ORIGINAL / best:.0f}x |")
    assert all((run.p.point, run.i.point) == (runs[0].p.point, runs[0].i.point) for run in runs)
    print(f"gains: {runs[0].gains}, the same in every run")
    print(_evaluation(runs[0]))


def _evaluation(found: PublishedSearch) -> str:
    """Return the time of one evaluation with pin.aba from Python and with the full kernel."""
    p = np.tile(found.p.point, (LANES, 1))
    objectives, kernel, plain = objectives_of(published_arm()), [], []
    for _ in range(20):
        began = time.perf_counter()
        objectives(p, 0 * p)
        kernel.append(time.perf_counter() - began)
    for _ in range(3):
        began = time.perf_counter()
        objective(published_arm(), found.p.point)
        plain.append(time.perf_counter() - began)
    return (
        f"one evaluation: {1e3 * min(plain):.0f} ms by pin.aba, {1e3 * min(kernel):.2f} ms by the"
        f" kernel for {LANES} gains ({1e9 * min(kernel) / LANES / STEPS:.1f} ns per gain and step)"
    )


if __name__ == "__main__":
    main()
