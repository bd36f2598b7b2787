"""``arm-dynamics tune ARM``: a law's gains that hold many poses, payloads and wrong models."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from math import inf
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from arm_dynamics.batch.tuning import evaluation_log, results_folder
from arm_dynamics.batch.tuning.case_distribution import CaseDistribution
from arm_dynamics.batch.tuning.evaluation_log import EvaluationLog
from arm_dynamics.batch.tuning.gain_optimizer import Budget, Generation, require_cma
from arm_dynamics.batch.tuning.gain_search import (
    TuningResult,
    TuningTask,
    compare_gains,
    tune,
    validation_cases,
)
from arm_dynamics.cli.arm_options import (
    KERNELS,
    add_arm,
    add_options,
    build_arm,
    controller_of_kernels,
    path_argument,
    require_accepted,
    tuned_controllers,
)
from arm_dynamics.cli.terminal import ProgressLines
from arm_dynamics.cli.tune_text import print_margins, print_result
from arm_dynamics.control.config import build_controller, controller_name
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.number_option import MAX_NUMBER, MAX_TIME, Number, check_steps, seconds, seed
from arm_dynamics.published.published_gains import published_results

BUDGET = 3000
OUT = Path("arm_dynamics_tune")
"""Folder of the results, one folder an arm in it."""
SEARCHED = ("p", "i", "d", "kp", "ki", "kd")
"""Gains that are searched by default, where the controller has them."""
SAVE_EVERY = 2.0
"""Seconds between two states of the search that are written down."""


def run(arguments: Sequence[str]) -> int:
    """Search, validate, write; 0 when the found gains hold every unseen case, else 1."""
    given = make_tune_parser().parse_args(arguments)
    task, budget = _task(given), Budget(given.max_evaluations, given.time_limit)
    place = given.output or OUT / Path(given.arm).stem
    state = place / results_folder.STATE
    known = evaluation_log.load_log(state, task.settings) if given.resume else EvaluationLog()
    results_folder.prepare_results_folder(place)
    require_cma()
    if not given.resume:
        results_folder.backup_state(state)
    tuned = _searched(task, budget, known, state)
    try:
        return _finish(given, tuned, place)
    except KeyboardInterrupt:
        print(f"interrupted: {state} is kept, and --resume ends what is left")
        return 130


def _finish(given: argparse.Namespace, tuned: TuningResult, place: Path) -> int:
    """Say and write what was found; 0 when the found gains hold every unseen case, else 1."""
    print_result(tuned)
    with Console(stderr=True).status(f"{given.validation_cases} unseen cases"):
        cases = validation_cases(tuned.task, given.validation_cases)
        held = compare_gains(tuned, cases) | published_results(cases)
    for name, one in held.items():
        print(f"{name}: {one.text}")
    law = controller_name(tuned.task.arm, given.controller, given.gains)
    margins = print_margins(tuned)
    files = results_folder.write_results(place, _arm_name(given.arm), law, tuned, held, margins)
    print(f"in {place.resolve()}: {', '.join(file.name for file in files)}, {results_folder.STATE}")
    return 0 if held["found gains"].passed.all() else 1


def make_tune_parser() -> argparse.ArgumentParser:
    """The options."""
    c, made = (
        CaseDistribution(),
        argparse.ArgumentParser(prog="arm-dynamics tune", description=__doc__),
    )
    made.epilog = "--compatibility dynamechs: the published search of five_dof; has its own --help"
    add = made.add_argument
    add_arm(made)
    only = ("lock", "configuration", "gains", "controller")
    add_options(
        made, only, controllers=tuned_controllers, gains="gains to start from", usual=KERNELS[0]
    )
    add("--gain-names", metavar="NAMES", help=f"gains to search (those of {', '.join(SEARCHED)})")
    add(
        "--max-evaluations",
        type=Number("--max-evaluations", 1, 1e9, whole=True),
        default=BUDGET,
        metavar="N",
        help=f"gains to be tried ({BUDGET})",
    )
    add(
        "--time-limit",
        type=Number("--time-limit", 0, MAX_TIME, "s"),
        default=inf,
        metavar="S",
        help="end the search after these",
    )
    add("--seed", type=seed("--seed"), default=0, metavar="N", help="of cases and search (0)")
    add(
        "--training-cases",
        type=Number("--training-cases", 1, 1e5, whole=True),
        default=32,
        metavar="N",
        help="training cases (32)",
    )
    add(
        "--validation-cases",
        type=Number("--validation-cases", 1, 1e6, whole=True),
        default=200,
        metavar="N",
        help="unseen cases (200)",
    )
    add(
        "--payload",
        type=Number("--payload", 0, MAX_NUMBER, "kg"),
        default=c.payload,
        metavar="KG",
        help=f"up to ({c.payload:g})",
    )
    add(
        "--model-error",
        type=Number("--model-error", 0, 0.99),
        default=c.model_error,
        metavar="FRACTION",
        help=f"of model ({c.model_error:g})",
    )
    add(
        "--step-size",
        type=Number("--step-size", 0, MAX_NUMBER, "rad or m"),
        default=c.step_size,
        metavar="RAD",
        help=f"of reference ({c.step_size:g})",
    )
    add("--dt", default="1e-4,5e-4", metavar="S,S", help="time steps of the cases (1e-4,5e-4)")
    add(
        "--period",
        type=seconds("--period"),
        default=c.period,
        metavar="S",
        help=f"of control ({c.period:g})",
    )
    add(
        "--duration",
        type=seconds("--duration"),
        default=c.duration,
        metavar="S",
        help=f"({c.duration:g})",
    )
    add("--interface", default=c.interface, metavar="NAME", help="effort (default) or voltage")
    late = argparse.BooleanOptionalAction
    add("--delay", action=late, default=c.delay, help="commands act one period late (yes)")
    add("--output", type=path_argument, metavar="FOLDER", help=f"default: {OUT}/ARM")
    add("--resume", action="store_true", help="go on with the search in the folder")
    return made


def _task(given: argparse.Namespace) -> TuningTask:
    arm = build_arm(given)
    given.controller = controller_of_kernels(arm, given)
    require_accepted(arm, given.controller, tuned_controllers())
    conditions = CaseDistribution(
        given.payload, given.model_error, given.step_size, _numbers(given.dt), given.period,
        given.duration, interface=given.interface, delay=given.delay,
    )  # fmt: skip
    law = build_controller(arm, given.controller, given.gains, period=None)
    if given.gain_names is None:
        names = tuple(p.name for p in law.parameters if p.name in SEARCHED)
    else:
        names = tuple(name for name in given.gain_names.split(",") if name)
    if not names:
        own = ", ".join(p.name for p in law.parameters) or "none"
        raise ConfigError(
            f"--gain-names {given.gain_names or ''}: no gain of {given.controller}; expected names"
            f" of its gains with commas between them: {own}"
        )
    cases, shortest = max(given.training_cases, given.validation_cases), min(conditions.dts)
    check_steps("cases times --duration / --dt", cases * given.duration / shortest)
    return TuningTask(arm, law, names, conditions, cases=given.training_cases, seed=given.seed)


def _arm_name(given: str) -> str:
    """A bundled arm's name, or where the URDF is for whoever stands elsewhere."""
    return str(Path(given).resolve()) if Path(given).is_file() else given


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(number) for number in text.split(","))
    except ValueError as error:
        raise ConfigError(f"--dt {text}: numbers with commas between them are expected") from error


def _searched(task: TuningTask, budget: Budget, known: EvaluationLog, state: Path) -> TuningResult:
    """Search with a live line, the state written as it goes and at the end."""
    began, saved, known_already, fresh = time.monotonic(), -inf, 0, False
    console = Console(stderr=True)
    columns = (
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    )  # fmt: skip
    lines = ProgressLines(console)
    with Progress(*columns, console=console) as progress:
        line = progress.add_task("compiling", total=budget.evaluations)

        def observe(g: Generation) -> None:
            nonlocal began, saved, known_already, fresh
            fresh = fresh or not g.replayed
            if g.replayed or g.stage == "start":  # no measure of speed: known, or compiled first
                began, known_already = time.monotonic(), g.evaluations
            rate = (g.evaluations - known_already) / max(time.monotonic() - began, 1e-9)
            said = f"{g.stage}: best {g.best:.5g} rad s, spread {g.spread:.3f}, {rate:.0f}/s"
            progress.update(line, completed=g.evaluations, description=said)
            lines.update(f"{g.evaluations} of {budget.evaluations}, {said}")
            if not g.replayed and time.monotonic() - saved > SAVE_EVERY:
                known.save(state, task.settings)
                saved = time.monotonic()

        try:
            return tune(task, budget, known, observe)
        finally:
            if fresh:
                known.save(state, task.settings)
