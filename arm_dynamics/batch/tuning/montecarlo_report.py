"""Figure of a Monte Carlo analysis."""

from __future__ import annotations

from typing import Any

import numpy as np

from arm_dynamics.batch.tuning.montecarlo import QUANTITIES, MonteCarlo
from arm_dynamics.batch.tuning.report import tick_labels
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.figure_style import FAINT, INK, PALETTE, figure, label, styled

TITLES = {
    "settling": "settling time", "overshoot": "overshoot", "peak_torque": "peak torque",
    "peak_current": "peak current",
}  # fmt: skip
BINS = 60
MARKED_PERCENTILES = (50.0, 99.0)


@styled
def montecarlo_report(result: MonteCarlo) -> Any:
    """Draw a row per quantity: histogram of the largest joint, and 5 to 95 % of each joint."""
    rows = [name for name in QUANTITIES if name in result.values]
    title = f"{result.arm.name}: {len(result)} runs over its tolerances"
    drawn, axes = figure(title, len(rows), 2, 3.2 * len(rows))
    for (left, right), name in zip(axes, rows, strict=True):
        _histogram(left, result, name)
        _joints(right, result, name)
    return drawn


@styled
def _histogram(axis: Any, result: MonteCarlo, name: str) -> None:
    values = _finite(result.max_over_joints(name))
    axis.set_title(TITLES[name], fontweight="bold", pad=12)
    label(axis, f"{TITLES[name]}, maximum of all joints [{QUANTITIES[name]}]", "runs")
    if not len(values):
        axis.text(0.5, 0.5, "none", ha="center", transform=axis.transAxes)
        return
    axis.hist(values, bins=_edges(values, name, result.motion.period), color=PALETTE[0])
    axis.locator_params(axis="x", nbins=6)
    for k, percent in enumerate(MARKED_PERCENTILES):
        at = float(np.percentile(values, percent))
        axis.axvline(at, color=INK, linewidth=1.0, linestyle="--")
        place = axis.get_xaxis_transform()
        axis.text(
            at, 0.97 - 0.08 * k, f" {percent:g} %", transform=place, va="top", fontsize=8, color=INK
        )


def _edges(values: Vector, name: str, period: float) -> Vector:
    """Edges of the bins; those of times, multiples of the period, lie between multiples."""
    low, high = float(values.min()), float(values.max())
    if name != "settling":
        return np.histogram_bin_edges(values, BINS)
    width = period * max(1, round((high - low) / period / BINS))
    return np.arange(low - period / 2, high + width, width)


@styled
def _joints(axis: Any, result: MonteCarlo, name: str) -> None:
    axis.set_title("by joint: 5 to 95 %, median, maximum", fontweight="bold", pad=12)
    axis.grid(axis="x", visible=False)
    for j in range(result.arm.nv):
        values = _finite(result.values[name][:, j])
        if not len(values):
            continue
        low, middle, high = np.percentile(values, (5, 50, 95))
        axis.vlines(j, low, high, color=PALETTE[0], linewidth=8)
        axis.plot(j, middle, "_", color="white", markersize=9)
        axis.plot(j, values.max(), "_", color=FAINT, markersize=12, markeredgewidth=2)
    tick_labels(axis, result.arm.joint_names)
    label(axis, "", f"{TITLES[name]} [{QUANTITIES[name]}]")


def _finite(values: Vector) -> Vector:
    return values[np.isfinite(values)]
