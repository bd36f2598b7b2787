"""What a Monte Carlo found, as a picture, a table of runs and a list of the worst."""

from __future__ import annotations

from typing import Any

import numpy as np

from arm_dynamics.batch.tuning.montecarlo import MonteCarlo
from arm_dynamics.batch.tuning.objective import QUANTITIES
from arm_dynamics.batch.tuning.report import tick_labels
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.figure_style import FAINT, INK, PALETTE, figure, label, styled

TITLES = {
    "settling": "settling time", "overshoot": "overshoot", "peak_torque": "peak torque",
    "peak_current": "peak current",
}  # fmt: skip
BINS = 60
MARKED = (50.0, 99.0)
"""Percentiles that are marked."""


@styled
def montecarlo_report(found: MonteCarlo) -> Any:
    """A row a quantity: histogram of the largest joint's over the runs, and by joint 5 to 95 %."""
    rows = [name for name in QUANTITIES if name in found.values]
    title = f"{found.arm.name}: {len(found)} runs over its tolerances"
    drawn, axes = figure(title, len(rows), 2, 3.2 * len(rows))
    for (left, right), name in zip(axes, rows, strict=True):
        _histogram(left, found, name)
        _joints(right, found, name)
    return drawn


@styled
def _histogram(axis: Any, found: MonteCarlo, name: str) -> None:
    values = _finite(found.max_over_joints(name))
    axis.set_title(TITLES[name], fontweight="bold", pad=12)
    label(axis, f"{TITLES[name]}, largest of all joints [{QUANTITIES[name]}]", "runs")
    if not len(values):
        axis.text(0.5, 0.5, "none", ha="center", transform=axis.transAxes)
        return
    axis.hist(values, bins=_edges(values, name, found.motion.period), color=PALETTE[0])
    axis.locator_params(axis="x", nbins=6)
    for k, percent in enumerate(MARKED):
        at = float(np.percentile(values, percent))
        axis.axvline(at, color=INK, linewidth=1.0, linestyle="--")
        place = axis.get_xaxis_transform()
        axis.text(
            at, 0.97 - 0.08 * k, f" {percent:g} %", transform=place, va="top", fontsize=8, color=INK
        )


def _edges(values: Vector, name: str, period: float) -> Vector:
    """Edges of the bins; of times, which are whole periods, between whole periods."""
    low, high = float(values.min()), float(values.max())
    if name != "settling":
        return np.histogram_bin_edges(values, BINS)
    width = period * max(1, round((high - low) / period / BINS))
    return np.arange(low - period / 2, high + width, width)


@styled
def _joints(axis: Any, found: MonteCarlo, name: str) -> None:
    axis.set_title("by joint: 5 to 95 %, middle, largest", fontweight="bold", pad=12)
    axis.grid(axis="x", visible=False)
    for j in range(found.arm.nv):
        values = _finite(found.values[name][:, j])
        if not len(values):
            continue
        low, middle, high = np.percentile(values, (5, 50, 95))
        axis.vlines(j, low, high, color=PALETTE[0], linewidth=8)
        axis.plot(j, middle, "_", color="white", markersize=9)
        axis.plot(j, values.max(), "_", color=FAINT, markersize=12, markeredgewidth=2)
    tick_labels(axis, found.arm.joint_names)
    label(axis, "", f"{TITLES[name]} [{QUANTITIES[name]}]")


def _finite(values: Vector) -> Vector:
    return values[np.isfinite(values)]
