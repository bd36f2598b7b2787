"""Reproduce the published gain search of five_dof, and analyze the published gains.

    python examples/reproductions/five_dof_gains.py search [--output FILE]
    python examples/reproductions/five_dof_gains.py stability [--integrator NAME] [--dt S]
    python examples/reproductions/five_dof_gains.py validate [OPTION of arm-dynamics tune ...]

``search`` repeats the search, with the published objective and simplex. ``stability`` computes the
limits of the published loop, ``validate`` its errors in the validation cases of the gain tuning.
``forward_model(..., compatibility="dynamechs")`` takes the published time step.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from published_gains import (
    PUBLISHED_DT,
    PUBLISHED_DURATION,
    PUBLISHED_I,
    PUBLISHED_INTEGRATOR,
    PUBLISHED_P,
    published_file,
    published_loop,
    published_results,
    published_stability_limit,
)
from published_search import (
    OBJECTIVE_P,
    OBJECTIVE_PI,
    PublishedSearch,
    objectives_of,
    search,
)
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from simplex_search import SimplexResult

from arm_dynamics.batch.stability.stability_report import analyze_stability
from arm_dynamics.batch.tuning.gain_search import validation_cases
from arm_dynamics.cli import tune
from arm_dynamics.cli.arm_options import add_options, build_arm, path_argument
from arm_dynamics.cli.stability import (
    add_integrator,
    margin_text,
    requested_integrators,
    stability_sentence,
    stability_table,
)
from arm_dynamics.cli.terminal import ProgressLines, waiting
from arm_dynamics.core.errors import ArmDynamicsError
from arm_dynamics.core.files import output_file
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.simulation.dynamechs import published_arm

PROGRAM = "five_dof_gains.py"
AS_PUBLISHED = PUBLISHED_INTEGRATOR, PUBLISHED_DT, "initial"
"""Integrator, time step [s] and configuration of the published step."""


def run_search(arguments: Sequence[str]) -> int:
    """Search the gains, print them next to the published ones, write them to --output."""
    text = "Search the published gains again, with the published objective and simplex search."
    parser = SuggestingParser(prog=f"{PROGRAM} search", description=text)
    text = "parameter file for the gains (default: none)"
    parser.add_argument("--output", type=path_argument, metavar="FILE", help=text)
    args = parser.parse_args(arguments)
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


def run_stability(arguments: Sequence[str]) -> int:
    """Print the limits of the published loop; return 0 if it is stable, else 1."""
    text = "Compute the largest stable time step of every integrator for the published loop."
    parser = SuggestingParser(prog=f"{PROGRAM} stability", description=text)
    add_options(parser, ("dt", "configuration"), dt=PUBLISHED_DT)
    add_integrator(parser)
    parser.set_defaults(arm="five_dof", gains="published", lock=[], tool_frame=None)
    args = parser.parse_args(arguments)
    integrators, arm = requested_integrators(args), build_arm(args)
    loop = published_loop(arm.configuration("initial"), args.dt)
    with waiting("computing the margins of the published loop"):
        reports = {name: analyze_stability(loop, name) for name in integrators}
    Console().print(stability_table(args, tuple(reports.values())))
    chosen = args.integrator or PUBLISHED_INTEGRATOR
    print(stability_sentence(reports[chosen]))
    if (chosen, loop.dt, args.configuration) == AS_PUBLISHED:
        print(unmodeled_effects(published_stability_limit()))
    return 0 if reports[chosen].stable else 1


def unmodeled_effects(limit: float) -> str:
    """Return a sentence on the published step, which stops a joint for one call at a reversal.

    ``limit`` is the factor on all gains at which the published step diverges.
    """
    return (
        "The linear loop omits one effect of the published step, which stops a joint for one call"
        f" at each reversal: with it, the arm diverges within {PUBLISHED_DURATION:g} s from"
        f" {margin_text(limit - 1)} more gain on."
    )


def run_validate(arguments: Sequence[str]) -> int:
    """Print the errors of the published gains in the validation cases of the gain tuning."""
    args = tune.command_parser().parse_args(["five_dof", *arguments])
    cases = validation_cases(tune.tuning_task(args), args.validation_cases)
    for name, result in published_results(cases).items():
        print(f"{name}: {result.text}")
    return 0


COMMANDS = {"search": run_search, "stability": run_stability, "validate": run_validate}


def main(arguments: Sequence[str]) -> int:
    """Run a command; return its exit code, 2 for invalid input."""
    parser = SuggestingParser(prog=PROGRAM, description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=COMMANDS)
    args = parser.parse_args(arguments[:1])
    try:
        return COMMANDS[args.command](arguments[1:])
    except ArmDynamicsError as error:
        print(f"{PROGRAM}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
