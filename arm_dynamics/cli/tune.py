"""Optimize the gains of a controller over many configurations, payloads and model errors."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from math import inf, isnan
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from arm_dynamics.batch.tuning import evaluation_log, results_folder
from arm_dynamics.batch.tuning.case_distribution import CaseDistribution
from arm_dynamics.batch.tuning.evaluation_log import EvaluationLog
from arm_dynamics.batch.tuning.gain_optimizer import Budget, Generation, require_cma
from arm_dynamics.batch.tuning.gain_search import (
    TuningResult,
    TuningTask,
    compare_gains,
    stability_margins,
    tune,
    validation_cases,
)
from arm_dynamics.batch.tuning.margins import MarginRows, Margins
from arm_dynamics.batch.tuning.tolerance import read_tolerances
from arm_dynamics.cli.arm_options import (
    KERNELS,
    add_arm,
    add_options,
    build_arm,
    kernel_controller_name,
    path_argument,
    require_accepted,
    tuned_controllers,
)
from arm_dynamics.cli.terminal import ProgressLines
from arm_dynamics.control.config import build_controller, controller_name
from arm_dynamics.core.errors import ConfigError, InvalidValue
from arm_dynamics.core.number_option import MAX_NUMBER, MAX_TIME, Number, check_steps, seconds, seed
from arm_dynamics.core.suggesting_parser import SuggestingParser

MAX_EVALUATIONS = 3000
OUT = Path("arm_dynamics_tune")
"""Folder of the results, with one folder per arm."""
SEARCHED = ("p", "i", "d", "kp", "ki", "kd")
"""Gains that are optimized by default, if the controller has them."""
SAVE_PERIOD = 2.0
"""Time [s] between two states of the search that are written to its file."""


def run(arguments: Sequence[str]) -> int:
    """Optimize, validate and write; return 0 if all validation cases pass, else 1."""
    args = command_parser().parse_args(arguments)
    task, budget = tuning_task(args), Budget(args.max_evaluations, args.time_limit)
    folder = args.output or OUT / Path(args.arm).stem
    state = folder / results_folder.STATE
    log = evaluation_log.load_log(state, task.settings) if args.resume else EvaluationLog()
    require_cma()
    with results_folder.prepared_results(folder):
        if not args.resume:
            results_folder.backup_state(state)
        tuned = _tune_with_progress(task, budget, log, state)
    try:
        print_result(tuned)
        with Console(stderr=True).status(f"{args.validation_cases} validation cases"):
            cases = validation_cases(task, args.validation_cases)
            results = compare_gains(tuned, cases)
        for name, result in results.items():
            print(f"{name}: {result.text}")
        margins = print_margins(tuned)
        arm = str(Path(args.arm).resolve()) if Path(args.arm).is_file() else args.arm
        controller = controller_name(task.arm, args.controller, args.gains)
        files = results_folder.write_results(folder, arm, controller, tuned, results, margins)
        names = [*(file.name for file in files), results_folder.STATE]
        print(f"in {folder.resolve()}: {', '.join(names)}")
        return 0 if results["tuned gains"].passed.all() else 1
    except KeyboardInterrupt:
        print(f"interrupted: {state} is kept; --resume completes the results")
        return 130


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = SuggestingParser(prog="arm-dynamics tune", description=__doc__)
    add = parser.add_argument
    add_arm(parser)
    only = ("lock", "configuration", "gains", "controller")
    start = "parameter file with initial gains"
    add_options(parser, only, controllers=tuned_controllers, gains=start, usual=KERNELS[0])
    text = f"gains to optimize, with commas between (default: those of {', '.join(SEARCHED)})"
    add("--gain-names", metavar="NAMES", help=text)
    number = Number("--max-evaluations", 1, 1e9, whole=True)
    text = f"largest number of gains to evaluate (default: {MAX_EVALUATIONS})"
    add("--max-evaluations", type=number, default=MAX_EVALUATIONS, metavar="N", help=text)
    number = Number("--time-limit", 0, MAX_TIME, "s")
    text = "longest time of the search [s] (default: none)"
    add("--time-limit", type=number, default=inf, metavar="S", help=text)
    add_cases(parser)
    text = f"folder of the results (default: {OUT}/ARM)"
    add("--output", type=path_argument, metavar="FOLDER", help=text)
    add("--resume", action="store_true", help="continue the search in the folder of --output")
    return parser


def add_cases(parser: argparse.ArgumentParser) -> None:
    """Add the options of the training and validation cases to the parser of the command."""
    add, usual = parser.add_argument, CaseDistribution()
    text = "seed of cases and search (default: 0)"
    add("--seed", type=seed("--seed"), default=0, metavar="N", help=text)
    number = Number("--training-cases", 1, 1e5, whole=True)
    text = "cases of the optimization (default: 32)"
    add("--training-cases", type=number, default=32, metavar="N", help=text)
    number = Number("--validation-cases", 1, 1e6, whole=True)
    text = "other cases, which check the result (default: 200)"
    add("--validation-cases", type=number, default=200, metavar="N", help=text)
    number = Number("--payload", 0, MAX_NUMBER, "kg")
    text = f"largest payload of a case [kg] (default: {usual.payload:g})"
    add("--payload", type=number, default=usual.payload, metavar="KG", help=text)
    number = Number("--model-error", 0, 0.99)
    text = f"largest relative error of the controller's model (default: {usual.model_error:g})"
    add("--model-error", type=number, default=usual.model_error, metavar="FRACTION", help=text)
    text = "YAML file of parameters and their tolerances; the others have --model-error"
    add("--tolerance-file", type=path_argument, metavar="FILE", help=text)
    number = Number("--step-size", 0, MAX_NUMBER, "rad or m")
    text = f"step of the reference [rad; m] (default: {usual.step_size:g})"
    add("--step-size", type=number, default=usual.step_size, metavar="STEP", help=text)
    text = "time steps of the cases [s] (default: 1e-4,5e-4)"
    add("--dt", default="1e-4,5e-4", metavar="S,S", help=text)
    text = f"control period [s] (default: {usual.period:g})"
    add("--period", type=seconds("--period"), default=usual.period, metavar="S", help=text)
    text = f"duration of a case [s] (default: {usual.duration:g})"
    add("--duration", type=seconds("--duration"), default=usual.duration, metavar="S", help=text)
    text = "command interface: effort or voltage (default: effort)"
    add("--interface", default=usual.interface, metavar="NAME", help=text)
    text = f"whether commands act one period late (default: {'yes' if usual.delay else 'no'})"
    add("--delay", action=argparse.BooleanOptionalAction, default=usual.delay, help=text)


def tuning_task(args: argparse.Namespace) -> TuningTask:
    """Return the arm, controller, gains and cases of the search."""
    arm = build_arm(args)
    args.controller = kernel_controller_name(arm, args)
    require_accepted(arm, args.controller, tuned_controllers())
    try:
        dts = tuple(float(number) for number in args.dt.split(","))
    except ValueError as error:
        raise ConfigError(f"--dt = {args.dt}; expected numbers with commas between them") from error
    distribution = CaseDistribution(
        args.payload, args.model_error, args.step_size, dts, args.period, args.duration,
        interface=args.interface, delay=args.delay,
        tolerances=read_tolerances(args.tolerance_file, arm) if args.tolerance_file else {},
    )  # fmt: skip
    controller = build_controller(arm, args.controller, args.gains, period=None)
    if args.gain_names is None:
        names = tuple(p.name for p in controller.parameters if p.name in SEARCHED)
    else:
        names = tuple(name for name in args.gain_names.split(",") if name)
    if not names:
        gains = ", ".join(p.name for p in controller.parameters) or "none"
        raise ConfigError(
            f"--gain-names = {args.gain_names or ''}; expected gains of {args.controller} with"
            f" commas between them: {gains}"
        )
    cases = max(args.training_cases, args.validation_cases)
    check_steps("cases times --duration / --dt", cases * args.duration / min(distribution.dts))
    return TuningTask(
        arm, controller, names, distribution, cases=args.training_cases, seed=args.seed
    )


def _tune_with_progress(
    task: TuningTask, budget: Budget, log: EvaluationLog, state: Path
) -> TuningResult:
    """Optimize with a progress bar; write the state of the search periodically and at the end."""
    start, saved, evaluated_before, unsaved = time.monotonic(), -inf, 0, False
    console = Console(stderr=True)
    columns = (
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    )  # fmt: skip
    lines = ProgressLines(console)
    with Progress(*columns, console=console) as progress:
        line = progress.add_task("compiling", total=budget.evaluations)

        def observe(g: Generation) -> None:
            nonlocal start, saved, evaluated_before, unsaved
            unsaved = unsaved or not g.replayed
            if g.replayed or g.stage == "start":  # the rate excludes logged results and compilation
                start, evaluated_before = time.monotonic(), g.evaluations
            rate = (g.evaluations - evaluated_before) / max(time.monotonic() - start, 1e-9)
            text = f"{g.stage}: best {g.best:.5g} rad s, spread {g.spread:.3f}, {rate:.0f}/s"
            progress.update(line, completed=g.evaluations, description=text)
            lines.update(f"{g.evaluations} of {budget.evaluations}, {text}")
            if not g.replayed and time.monotonic() - saved > SAVE_PERIOD:
                log.save(state, task.settings)
                saved = time.monotonic()

        try:
            return tune(task, budget, log, observe)
        finally:
            if unsaved:
                log.save(state, task.settings)


def print_result(tuned: TuningResult) -> None:
    """Print a table of the gains, the initial cost, and the reason for the end of the search."""
    names = tuned.task.names
    table = Table("joint", *names, title=f"J = {tuned.cost:.5g} rad s", title_justify="left")
    for joint, row in tuned.gains.items():
        table.add_row(joint, *(f"{row[name]:g}" for name in names))
    Console().print(table)
    print(f"initial J = {tuned.cost_before:.5g} rad s; end of the search: {tuned.found.ended}")
    if tuned.found.ended == "stopped":
        print("--resume continues the search")


def print_margins(tuned: TuningResult) -> MarginRows | None:
    """Print and return the stability margins of each joint; None if the loop has no margins."""
    try:
        initial, least = stability_margins(tuned)
    except InvalidValue as error:
        print(f"no margins: {error}")
        return None
    table = Table("joint", "gain factors", "phase, degrees", "delay, ms", "min. of all cases")
    for joint, one, low in zip(tuned.controller.arm.joint_names, initial, least, strict=True):
        cells = ("unstable",) * 3
        if not isnan(one.gain_margin):
            delay = f"{1e3 * one.delay_margin:.3g}"
            cells = _gain_range(one), f"{one.phase_margin:.0f}", delay
        stable = not isnan(low.gain_margin)
        worst = f"{_gain_range(low)}, {low.phase_margin:.0f}°" if stable else "unstable"
        table.add_row(joint, *cells, worst)
    Console().print(table)
    return initial, least


def _gain_range(margins: Margins) -> str:
    return f"{margins.gain_reduction:.2g} to {margins.gain_margin:.3g}"
