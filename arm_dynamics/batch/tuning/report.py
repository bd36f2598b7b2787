"""Figures of a gain search and of a Monte Carlo analysis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from arm_dynamics.batch.tuning.gain_search import TuningResult
from arm_dynamics.batch.tuning.margins import MarginRows
from arm_dynamics.batch.tuning.montecarlo import QUANTITIES, MonteCarlo
from arm_dynamics.batch.tuning.validation import MAX_RESIDUAL_ERROR, ValidationResult
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.figure_style import (
    FAINT,
    INK,
    PALETTE,
    curves,
    figure,
    label,
    legend,
    styled,
)
from arm_dynamics.core.files import output_file

MAX_LABEL_LENGTH = 6
"""Longer joint names are rotated below an axis, and numbered in legends."""
INITIAL, TUNED = FAINT, PALETTE[0]
"""Colors of the initial and of the tuned gains."""
MIN_ERROR = 1e-5
"""Smallest drawn error [rad]."""
LEGEND_FACTOR = 1e2
"""Upper limit of an axis over its largest value, for the legend."""
MARGIN_TITLES = ("initial configuration", "minimum of all cases")
MAX_FACTOR = 1e3
"""Larger gain margins are drawn as this value."""
TITLES = {
    "settling": "settling time", "overshoot": "overshoot", "peak_torque": "peak torque",
    "peak_current": "peak current",
}  # fmt: skip
BINS = 60
MARKED_PERCENTILES = (50.0, 99.0)


def _are_long(names: Sequence[str]) -> bool:
    return max(map(len, names)) > MAX_LABEL_LENGTH


def in_legend(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names, or the numbers that ``tick_labels`` gives to long ones."""
    return tuple(map(str, range(1, len(names) + 1))) if _are_long(names) else tuple(names)


def tick_labels(axis: Any, names: Sequence[str]) -> None:
    """Label the positions 0, 1 ... of an axis; long names are rotated and numbered."""
    if not _are_long(names):
        axis.set_xticks(range(len(names)), names)
        return
    labels = [f"{k} {name}" for k, name in enumerate(names, 1)]
    axis.set_xticks(range(len(names)), labels, rotation=30, ha="right", rotation_mode="anchor")


@styled
def draw_report(
    tuned: TuningResult, held: Mapping[str, ValidationResult], margins: MarginRows | None
) -> Any:
    """Draw costs, progress, responses, gains, validation and margins of a search."""
    arm, task = tuned.task.arm, tuned.task
    title = f"{arm.name}: gains of {type(task.controller).__name__} over {task.cases} cases"
    drawn, axes = figure(title, 4, 2, 13.0)
    _costs(axes[0, 0], tuned)
    _progress(axes[0, 1], tuned)
    batch = tuned.cases.run(tuned.controller, outputs=("q",))
    for place, case, name in ((0, tuned.best_case, "best"), (1, tuned.worst_case, "worst")):
        errors = tuned.cases.target[case] - batch.q[case]
        time = np.broadcast_to(batch.time, batch.q.shape[:2])[case]
        curves(axes[1, place], time, 1e3 * errors, in_legend(arm.joint_names))
        axes[1, place].set_title(f"error, {name} case", fontweight="bold", pad=24)
        label(axes[1, place], "time [s]", "q_ref - q [mrad]")
    _gains(axes[2, 0], tuned)
    _validation(axes[2, 1], held)
    for axis, drawing in zip(axes[3], (_phase, _factors), strict=True):
        if margins is None:
            axis.text(0.5, 0.5, "no margins: the loop has no linear form", ha="center")
        else:
            drawing(axis, arm.joint_names, margins)
    return drawn


@styled
def save_figure(drawn: Any, file: Path) -> Path:
    """Write a figure to a file; raises ConfigError if that fails."""
    with output_file(file):
        drawn.savefig(file)
    return file


@styled
def _costs(axis: Any, tuned: TuningResult) -> None:
    order, number = np.argsort(tuned.initial_costs), np.arange(len(tuned.initial_costs))
    style = {"linestyle": "", "marker": "o", "markersize": 4}
    axis.semilogy(number, tuned.initial_costs[order], color=INITIAL, label="initial", **style)
    axis.semilogy(number, tuned.final_costs[order], color=TUNED, label="tuned", **style)
    legend(axis)
    axis.set_title("cost of each case", fontweight="bold", pad=24)
    label(axis, "case, ordered by initial cost", "J [rad s]")


@styled
def _progress(axis: Any, tuned: TuningResult) -> None:
    history = tuned.found.history
    tried, best = [g.evaluations for g in history], [g.best for g in history]
    axis.semilogy(tried, best, color=TUNED)
    simplex = [g.evaluations for g in history if g.stage == "refine"]
    if simplex:
        axis.axvline(simplex[0], color=FAINT, linestyle="--")
        axis.text(simplex[0], best[0], " simplex", color=INK, va="top", fontsize=9)
    axis.set_title("best so far", fontweight="bold", pad=24)
    label(axis, "evaluations", "J [rad s]")


@styled
def _gains(axis: Any, tuned: TuningResult) -> None:
    """Draw the ratio of tuned to initial gains by joint."""
    joints, names = tuned.controller.arm.joint_names, tuned.task.names
    start = tuned.task.controller.gains
    for k, name in enumerate(names):
        values = [tuned.gains[joint][name] for joint in joints]
        ratio = np.array(values) / np.where(start[name] > 0, start[name], np.nan)
        place = np.arange(len(joints)) + (k - (len(names) - 1) / 2) * 0.8 / len(names)
        axis.bar(place, ratio - 1, 0.8 / len(names), bottom=1, color=PALETTE[k], label=name)
    axis.set_yscale("log")
    axis.axhline(1.0, color=INK, linewidth=0.8)
    tick_labels(axis, joints)
    legend(axis)
    axis.set_title("gains", fontweight="bold", pad=24)
    label(axis, "", "tuned / initial")


@styled
def _validation(axis: Any, held: Mapping[str, ValidationResult]) -> None:
    colors = (TUNED, INITIAL, PALETTE[1], PALETTE[4])
    for (name, one), color in zip(held.items(), colors, strict=False):
        error = np.sort(np.where(np.isnan(one.residual_error), np.inf, one.residual_error))
        shown = np.where(np.isfinite(error), np.maximum(error, MIN_ERROR), np.nan)
        text = f"{name.replace(', ', ',' + chr(10), 1)}: {one.count} of {len(error)}"
        axis.semilogy(np.arange(1, len(error) + 1), 1e3 * shown, color=color, label=text)
    axis.axhline(1e3 * MAX_RESIDUAL_ERROR, color=INK, linewidth=0.8, linestyle="--")
    axis.set_ylim(top=axis.get_ylim()[1] * LEGEND_FACTOR)
    axis.legend(frameon=False, fontsize=7, loc="upper left")
    axis.set_title("passed validation cases", fontweight="bold", pad=24)
    label(axis, "case, sorted; without diverged ones", "residual error [mrad]")


@styled
def _phase(axis: Any, joints: tuple[str, ...], margins: MarginRows) -> None:
    for k, (rows, name) in enumerate(zip(margins, MARGIN_TITLES, strict=True)):
        values = [min(m.phase_margin, 180.0) for m in rows]
        axis.bar(np.arange(len(joints)) + 0.4 * k - 0.2, values, 0.4, color=PALETTE[k], label=name)
    tick_labels(axis, joints)
    legend(axis)
    axis.set_title("phase margin", fontweight="bold", pad=24)
    label(axis, "", "degrees")


@styled
def _factors(axis: Any, joints: tuple[str, ...], margins: MarginRows) -> None:
    for k, (rows, name) in enumerate(zip(margins, MARGIN_TITLES, strict=True)):
        low = np.array([max(m.gain_reduction, 1 / MAX_FACTOR) for m in rows])
        high = np.array([min(m.gain_margin, MAX_FACTOR) for m in rows])
        place = np.arange(len(joints)) + 0.3 * k - 0.15
        axis.vlines(place, low, high, color=PALETTE[k], linewidth=8, label=name)
    axis.set_yscale("log")
    axis.axhline(1.0, color=INK, linewidth=0.8)
    tick_labels(axis, joints)
    legend(axis)
    axis.set_title("stable gain factors", fontweight="bold", pad=24)
    label(axis, "", "factor of one joint's loop")


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
    """Return the edges of the bins; edges of times lie between multiples of the period."""
    low, high = float(values.min()), float(values.max())
    if high - low <= 1e-9 * max(abs(low), abs(high)):  # equal values, for example at a limit
        return np.array([low - 0.5, high + 0.5])
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
