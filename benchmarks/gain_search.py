"""The published gain search of five_dof, both stages: one evaluation after another, and batched.

    taskset -c 0 python benchmarks/gain_search.py [--repetitions 7]

The two take turns; the best time of each counts, after one run that compiles. One core: the
kernels use no threads. The C++ original took 13 s.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np
from machine import machine

from arm_dynamics.published.published_search import WIDTH, PublishedSearch, objectives_of, search
from arm_dynamics.simulation.dynamechs import objective, published_arm

ORIGINAL = 13.0
"""Seconds that the C++ original took."""
STEPS = 30000


def main() -> None:
    """Print seconds, evaluations and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=7)
    repetitions = parser.parse_args().repetitions
    began = time.perf_counter()
    objectives = objectives_of(published_arm())
    ready = time.perf_counter() - began
    rows: dict[str, int] = {"sequential": 1, f"batched, {WIDTH} gains a call": WIDTH}
    runs: dict[str, list[PublishedSearch]] = {name: [] for name in rows}
    for _ in range(repetitions + 1):
        for name, width in rows.items():
            runs[name].append(search(objectives, width=width))
    print(f"{machine()}\nkernel made or loaded in {ready:.2f} s")
    print("| published search | best, s | median, s | evaluations | calls | to 13 s |")
    print("|---|---|---|---|---|---|")
    for name, done in runs.items():
        seconds = [run.seconds for run in done[1:]]
        best, stages = min(seconds), (done[0].p, done[0].i)
        judged, calls = (sum(getattr(s, n) for s in stages) for n in ("judged", "calls"))
        print(
            f"| {name} | {best:.3f} | {statistics.median(seconds):.3f} | {judged} | {calls} |"
            f" {ORIGINAL / best:.0f}x |"
        )
    found = [run for done in runs.values() for run in done]
    assert all((f.p.point, f.i.point) == (found[0].p.point, found[0].i.point) for f in found)
    print(f"gains: {found[0].gains}, the same in every run")
    print(_evaluation(found[0]))


def _evaluation(found: PublishedSearch) -> str:
    """One evaluation by pin.aba from Python, and by the kernel with all lanes in use."""
    p = np.tile(found.p.point, (WIDTH, 1))
    objectives, kernel, plain = objectives_of(published_arm()), [], []
    for _ in range(20):
        began = time.perf_counter()
        objectives(p, 0 * p)
        kernel.append(time.perf_counter() - began)
    for _ in range(3):
        began = time.perf_counter()
        objective(published_arm(), found.p.point)
        plain.append(time.perf_counter() - began)
    lane = min(kernel) / WIDTH
    return (
        f"one evaluation: {1e3 * min(plain):.0f} ms by pin.aba, {1e3 * min(kernel):.2f} ms by the"
        f" kernel for {WIDTH} gains ({1e9 * lane / STEPS:.1f} ns a gain and step)"
    )


if __name__ == "__main__":
    main()
