"""Names of joints in a picture, long ones without covering each other.

What a gain search found, as one picture.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from arm_dynamics.batch.tuning.gain_search import TuningResult
from arm_dynamics.batch.tuning.margins import Margins
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

LONG = 6
"""Letters beyond which names stand aslant, and numbers stand for them in legends."""


def _are_long(names: Sequence[str]) -> bool:
    return max(map(len, names)) > LONG


def in_legend(names: Sequence[str]) -> tuple[str, ...]:
    """Names, or the numbers that ``tick_labels`` gives to long ones."""
    return tuple(map(str, range(1, len(names) + 1))) if _are_long(names) else tuple(names)


def tick_labels(axis: Any, names: Sequence[str]) -> None:
    """Names below the places 0, 1 ... of an axis; long ones aslant, with their numbers."""
    if not _are_long(names):
        axis.set_xticks(range(len(names)), names)
        return
    told = [f"{k} {name}" for k, name in enumerate(names, 1)]
    axis.set_xticks(range(len(names)), told, rotation=30, ha="right", rotation_mode="anchor")


START, FOUND = FAINT, PALETTE[0]
FLOOR = 1e-5
"""Smallest error [rad] that the picture tells apart."""
ROOM = 1e2
"""How far above its curves an axis goes on, for the legend."""
WHERE = ("initial pose", "least of all cases")
MAX_FACTOR = 1e3
"""Gain margins beyond it are drawn as this."""

MarginRows = tuple[tuple[Margins, ...], tuple[Margins, ...]]


@styled
def draw_report(
    tuned: TuningResult, held: Mapping[str, ValidationResult], margins: MarginRows | None
) -> Any:
    """The figure: costs by case, the way of the search, responses, gains, unseen cases, margins."""
    arm, task = tuned.task.arm, tuned.task
    title = f"{arm.name}: gains of {type(task.law).__name__} over {task.cases} cases"
    drawn, axes = figure(title, 4, 2, 13.0)
    _costs(axes[0, 0], tuned)
    _way(axes[0, 1], tuned)
    batch = tuned.cases.run(tuned.law, outputs=("q",))
    for place, case, name in ((0, tuned.best_case, "best"), (1, tuned.worst_case, "worst")):
        errors = tuned.cases.target[case] - batch.q[case]
        time = np.broadcast_to(batch.time, batch.q.shape[:2])[case]
        curves(axes[1, place], time, 1e3 * errors, in_legend(arm.joint_names))
        axes[1, place].set_title(f"error, {name} case", fontweight="bold", pad=24)
        label(axes[1, place], "time [s]", "q_ref - q [mrad]")
    _gains(axes[2, 0], tuned)
    _unseen(axes[2, 1], held)
    for axis, drawing in zip(axes[3], (_phase, _factors), strict=True):
        if margins is None:
            axis.text(0.5, 0.5, "no margins: the loop is not linear", ha="center")
        else:
            drawing(axis, arm.joint_names, margins)
    return drawn


@styled
def save_figure(drawn: Any, file: Path) -> Path:
    """A figure as a file; raises ConfigError when it cannot be written."""
    with output_file(file):
        drawn.savefig(file)
    return file


@styled
def _costs(axis: Any, tuned: TuningResult) -> None:
    order, number = np.argsort(tuned.initial_costs), np.arange(len(tuned.initial_costs))
    axis.semilogy(number, tuned.initial_costs[order], "o", color=START, label="start", markersize=4)
    axis.semilogy(number, tuned.final_costs[order], "o", color=FOUND, label="found", markersize=4)
    legend(axis)
    axis.set_title("cost of each case", fontweight="bold", pad=24)
    label(axis, "case, in the order of the start's cost", "J [rad s]")


@styled
def _way(axis: Any, tuned: TuningResult) -> None:
    history = tuned.found.history
    tried, best = [g.evaluations for g in history], [g.best for g in history]
    axis.semilogy(tried, best, color=FOUND)
    simplex = [g.evaluations for g in history if g.stage == "refine"]
    if simplex:
        axis.axvline(simplex[0], color=FAINT, linestyle="--")
        axis.text(simplex[0], best[0], " simplex", color=INK, va="top", fontsize=9)
    axis.set_title("best so far", fontweight="bold", pad=24)
    label(axis, "gains tried", "J [rad s]")


@styled
def _gains(axis: Any, tuned: TuningResult) -> None:
    """Found over start, by joint; the numbers are in the parameter file."""
    joints, names = tuned.law.arm.joint_names, tuned.task.names
    start = tuned.task.law.gains
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
    label(axis, "", "found / start")


@styled
def _unseen(axis: Any, held: Mapping[str, ValidationResult]) -> None:
    colours = (FOUND, START, PALETTE[1], PALETTE[4])
    for (name, one), colour in zip(held.items(), colours, strict=False):
        late = np.sort(np.where(np.isnan(one.residual_error), np.inf, one.residual_error))
        shown = np.where(np.isfinite(late), np.maximum(late, FLOOR), np.nan)
        said = f"{name.replace(', ', ',' + chr(10), 1)}: {one.count} of {len(late)}"
        axis.semilogy(np.arange(1, len(late) + 1), 1e3 * shown, color=colour, label=said)
    axis.axhline(1e3 * MAX_RESIDUAL_ERROR, color=INK, linewidth=0.8, linestyle="--")
    axis.set_ylim(top=axis.get_ylim()[1] * ROOM)
    axis.legend(frameon=False, fontsize=7, loc="upper left")
    axis.set_title("unseen cases held", fontweight="bold", pad=24)
    label(axis, "case, sorted; lost ones are not drawn", "largest late error [mrad]")


@styled
def _phase(axis: Any, joints: tuple[str, ...], margins: MarginRows) -> None:
    for k, (rows, name) in enumerate(zip(margins, WHERE, strict=True)):
        values = [min(m.phase_margin, 180.0) for m in rows]
        axis.bar(np.arange(len(joints)) + 0.4 * k - 0.2, values, 0.4, color=PALETTE[k], label=name)
    tick_labels(axis, joints)
    legend(axis)
    axis.set_title("phase margin", fontweight="bold", pad=24)
    label(axis, "", "degrees")


@styled
def _factors(axis: Any, joints: tuple[str, ...], margins: MarginRows) -> None:
    for k, (rows, name) in enumerate(zip(margins, WHERE, strict=True)):
        low, high = _range(rows)
        place = np.arange(len(joints)) + 0.3 * k - 0.15
        axis.vlines(place, low, high, color=PALETTE[k], linewidth=8, label=name)
    axis.set_yscale("log")
    axis.axhline(1.0, color=INK, linewidth=0.8)
    tick_labels(axis, joints)
    legend(axis)
    axis.set_title("stable gain factors", fontweight="bold", pad=24)
    label(axis, "", "factor on one joint's loop")


def _range(rows: tuple[Margins, ...]) -> tuple[Vector, Vector]:
    low = np.array([max(m.gain_reduction, 1 / MAX_FACTOR) for m in rows])
    return low, np.array([min(m.gain_margin, MAX_FACTOR) for m in rows])
