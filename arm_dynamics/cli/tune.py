"""Search the published gains of five_dof again, with the published objective and simplex search."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from arm_dynamics.cli import tune_search
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

OPTION = "--compatibility"


def run(arguments: Sequence[str]) -> int:
    """Run the gain search; with --compatibility, the published search of five_dof."""
    if any(word.split("=")[0] == OPTION for word in arguments):
        return run_published(arguments)
    return tune_search.run(arguments)


def run_published(arguments: Sequence[str]) -> int:
    """Search the gains, print them next to the published ones, write them to --output."""
    parser = argparse.ArgumentParser(prog="arm-dynamics tune", description=__doc__)
    parser.add_argument("arm", metavar="ARM", help="five_dof")
    parser.add_argument(OPTION, metavar="NAME", required=True, help="dynamechs")
    text = "parameter file for the gains (default: none)"
    parser.add_argument("--output", type=path_argument, metavar="FILE", help=text)
    args = parser.parse_args(arguments)
    if args.compatibility not in COMPATIBILITY:
        raise UnknownName("compatibility", args.compatibility, COMPATIBILITY)
    arm = load_arm(args.arm)
    if arm.name != "five_dof":
        raise ConfigError(f"{OPTION} {args.compatibility}: arm = '{arm.name}'; expected 'five_dof'")
    result = _search_with_progress()
    table = Table("", "result", "published", title="five_dof, published search")
    table.title_justify = "left"
    for joint, (p, i) in result.gains.items():
        table.add_row(f"P {joint}, V/rad", f"{p:.15g}", f"{PUBLISHED_P[joint]:.15g}")
        table.add_row(f"I {joint}, V/rad", f"{i:.15g}", f"{PUBLISHED_I[joint]:.15g}")
    table.add_row("objective of P, rad", f"{result.p.cost:.15g}", f"{OBJECTIVE_P:.15g}")
    table.add_row("objective of P, I, rad", f"{result.i.cost:.15g}", f"{OBJECTIVE_PI:.15g}")
    Console().print(table)
    print(f"{result.p.evaluated + result.i.evaluated} gains evaluated in {result.seconds:.2f} s")
    if args.output:
        with output_file(args.output) as file:
            file.write_text(published_file(published_arm(), result.gains), encoding="utf-8")
        print(f"gains in {args.output}")
    return 0


def _search_with_progress() -> PublishedSearch:
    """Search the gains; show the best cost and the rate of evaluations on standard error."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    console = Console(stderr=True)
    lines = ProgressLines(console)
    with Progress(*columns, console=console, transient=True) as progress:
        line = progress.add_task("generating the kernel")
        objectives = objectives_of(published_arm())
        start, evaluated = time.monotonic(), dict[str, int]()

        def observe(stage: str, best: SimplexResult) -> None:
            evaluated[stage] = best.evaluated
            count = sum(evaluated.values())
            rate = count / max(time.monotonic() - start, 1e-9)
            text = f"{stage}: best {best.cost:.7g} rad, {count} gains, {rate:.0f}/s"
            progress.update(line, description=text)
            lines.update(text)

        return search(objectives, observe)
