"""``arm-dynamics tune five_dof --compatibility dynamechs``: the published gain search again."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from arm_dynamics.cli.arm_options import path_argument
from arm_dynamics.cli.terminal import ProgressLines
from arm_dynamics.core.errors import ConfigError, UnknownName
from arm_dynamics.core.files import output_file
from arm_dynamics.model.load import load_arm
from arm_dynamics.published.published_gains import PUBLISHED_I, PUBLISHED_P, published_file
from arm_dynamics.published.published_search import (
    OBJECTIVE_P,
    OBJECTIVE_PI,
    PublishedSearch,
    objectives_of,
    search,
)
from arm_dynamics.published.simplex_search import SimplexResult
from arm_dynamics.simulation.dynamechs import published_arm
from arm_dynamics.simulation.forward_model import COMPATIBILITY


def run(arguments: Sequence[str]) -> int:
    """Search, show the gains beside the published ones, write them if asked; 0."""
    given = _parser().parse_args(arguments)
    if given.compatibility not in COMPATIBILITY:
        raise UnknownName("compatibility", given.compatibility, COMPATIBILITY)
    arm = load_arm(given.arm)
    if arm.name != "five_dof":
        raise ConfigError(
            f"--compatibility {given.compatibility}: for arm 'five_dof' alone, not '{arm.name}'"
        )
    found = _searched()
    Console().print(_table(found))
    print(f"{found.p.evaluated + found.i.evaluated} gains evaluated in {found.seconds:.2f} s")
    if given.output:
        with output_file(given.output) as file:
            file.write_text(published_file(published_arm(), found.gains), encoding="utf-8")
        print(f"gains in {given.output}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="arm-dynamics tune", description=__doc__)
    parser.add_argument("arm", metavar="ARM", help="five_dof")
    parser.add_argument("--compatibility", metavar="NAME", required=True, help="dynamechs")
    parser.add_argument(
        "--output", type=path_argument, metavar="FILE", help="parameter file to be written"
    )
    return parser


def _searched() -> PublishedSearch:
    """The search with a live line."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    console = Console(stderr=True)
    lines = ProgressLines(console)
    with Progress(*columns, console=console, transient=True) as progress:
        line = progress.add_task("making the kernel")
        objectives = objectives_of(published_arm())
        began, evaluated = time.monotonic(), dict[str, int]()

        def observe(stage: str, best: SimplexResult) -> None:
            evaluated[stage] = best.evaluated
            count = sum(evaluated.values())
            rate = count / max(time.monotonic() - began, 1e-9)
            said = f"{stage}: best {best.cost:.7g} rad, {count} gains, {rate:.0f}/s"
            progress.update(line, description=said)
            lines.update(said)

        return search(objectives, observe)


def _table(found: PublishedSearch) -> Table:
    table = Table("", "found", "published", title="five_dof, published search")
    table.title_justify = "left"
    for joint, (p, i) in found.gains.items():
        table.add_row(f"P {joint}, V/rad", f"{p:.15g}", f"{PUBLISHED_P[joint]:.15g}")
        table.add_row(f"I {joint}, V/rad", f"{i:.15g}", f"{PUBLISHED_I[joint]:.15g}")
    table.add_row("objective of P, rad", f"{found.p.cost:.15g}", f"{OBJECTIVE_P:.15g}")
    table.add_row("objective of P, I, rad", f"{found.i.cost:.15g}", f"{OBJECTIVE_PI:.15g}")
    return table
