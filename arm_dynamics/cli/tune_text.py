"""What a gain search found, said on a terminal."""

from __future__ import annotations

from math import isnan

from rich.console import Console
from rich.table import Table

from arm_dynamics.batch.tuning.gain_search import TuningResult, stability_margins
from arm_dynamics.batch.tuning.margins import Margins
from arm_dynamics.batch.tuning.results_folder import MarginRows
from arm_dynamics.core.errors import InvalidValue

UNSTABLE = "unstable"


def print_result(tuned: TuningResult) -> None:
    """Gains as a table, and how the search ended."""
    names = tuned.task.names
    table = Table("joint", *names, title=f"J = {tuned.cost:.5g} rad s", title_justify="left")
    for joint, row in tuned.gains.items():
        table.add_row(joint, *(f"{row[name]:g}" for name in names))
    Console().print(table)
    print(f"at the start {tuned.cost_before:.5g} rad s; the search ended: {tuned.found.ended}")
    if tuned.found.ended == "stopped":
        print("--resume goes on with it")


def print_margins(tuned: TuningResult) -> MarginRows | None:
    """Margins, told as a table; None, told too, where the loop has none."""
    try:
        here, worst = stability_margins(tuned)
    except InvalidValue as error:
        print(f"no margins: {error}")
        return None
    table = Table("joint", "gain factors", "phase, degrees", "delay, ms", "least of all cases")
    for joint, one, low in zip(tuned.controller.arm.joint_names, here, worst, strict=True):
        table.add_row(joint, *_row(one, low))
    Console().print(table)
    return here, worst


def _row(one: Margins, low: Margins) -> tuple[str, ...]:
    """Cells of a joint; "unstable" instead of numbers that there are not."""
    delay = f"{1e3 * one.delay_margin:.3g}"
    here = (_factors(one), f"{one.phase_margin:.0f}", delay) if _stable(one) else (UNSTABLE,) * 3
    return *here, f"{_factors(low)}, {low.phase_margin:.0f}°" if _stable(low) else UNSTABLE


def _stable(one: Margins) -> bool:
    return not isnan(one.gain_margin)


def _factors(one: Margins) -> str:
    return f"{one.gain_reduction:.2g} to {one.gain_margin:.3g}"
