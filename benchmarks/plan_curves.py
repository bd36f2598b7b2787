"""Curves of the tables of docs/predictive_control.md: cost of a motion against budget and noise.

    python benchmarks/plan_curves.py

``make bench`` runs it. The picture contains the digest of the tables that it shows.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import matplotlib as mpl
import numpy as np
from tables import BLOCK, TEMPERATURES

mpl.use("svg")
import matplotlib.pyplot as plt

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE, PICTURE = DOCS / "predictive_control.md", DOCS / "images" / "predictive_control.svg"
TABLES = ("budget", "temperature")


def rows(page: str) -> dict[str, list[list[str]]]:
    """Return the cells of the tables that the curves show."""
    found = {block["name"]: block["text"] for block in BLOCK.finditer(page)}
    lines = {name: [x for x in found[name].splitlines() if x.startswith("|")] for name in TABLES}
    return {
        name: [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]
        for name, table in lines.items()
    }


def digest(page: str) -> str:
    """Return the digest of the cells that the curves show."""
    return hashlib.sha256(repr(rows(page)).encode()).hexdigest()[:16]


def draw() -> None:
    """Write the picture of the tables of the page."""
    page = PAGE.read_text("utf-8")
    cells = rows(page)
    plt.rcParams["svg.hashsalt"] = "arm_dynamics"
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="tight")
    panda = [row for row in cells["budget"] if row[0] == "panda"]
    for periods in dict.fromkeys(row[2] for row in panda):
        budget = np.array([(row[3], row[5]) for row in panda if row[2] == periods], float)
        left.plot(*budget.T, "o-", label=f"{periods} periods of 20 ms")
    left.set(xscale="log", xlabel="plans per second, one core (2048, 512, 128 samples)")
    left.set_ylabel("cost of a motion")
    for noise, *costs in cells["temperature"]:
        right.plot(TEMPERATURES, np.array(costs, float), "o-", label=f"noise {noise} rad/s²")
    right.set(xscale="log", xlabel="temperature (512 samples, 30 periods)")
    for axes, ticks in ((left, (100, 200, 500, 1000, 2000, 5000)), (right, TEMPERATURES)):
        axes.set_xticks(ticks, map(str, ticks))
        axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.legend(fontsize=8)
    metadata = {"Date": None, "Creator": None, "Description": f"tables {digest(page)}"}
    figure.savefig(PICTURE, metadata=metadata)


if __name__ == "__main__":
    draw()
