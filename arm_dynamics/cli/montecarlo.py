"""``arm-dynamics montecarlo ARM``: what the tolerances of a data sheet do to a motion."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import yaml
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from arm_dynamics.batch.tuning import results_folder
from arm_dynamics.batch.tuning.montecarlo import (
    PERCENTILES,
    QUANTITIES,
    MonteCarlo,
    StepMotion,
    montecarlo,
    step_from,
)
from arm_dynamics.batch.tuning.parameter_file import replace_text
from arm_dynamics.batch.tuning.tolerance import (
    Tolerance,
    ToleranceMap,
    data_sheet_tolerances,
    read_tolerances,
)
from arm_dynamics.cli.arm_options import (
    KERNELS,
    add_arm,
    add_options,
    build_arm,
    controller_of,
    controller_of_kernels,
    loaded,
    path_argument,
    read_configuration,
)
from arm_dynamics.cli.terminal import ProgressLines
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.number_option import MAX_NUMBER, Number, check_steps, seconds, seed
from arm_dynamics.model.arm_model import ArmModel

RUNS, MOST_RUNS = 10_000, 1_000_000
OUT = Path("arm_dynamics_montecarlo")
WORST = 5
"""Runs that are listed for each quantity."""


def run(arguments: Sequence[str]) -> int:
    """Run, print percentiles, write files; 0 when no run was lost, else 1."""
    given = _parser().parse_args(arguments)
    check_steps("--runs times --duration / --dt", given.runs * given.duration / given.dt)
    nominal = build_arm(given)
    given.controller = controller_of_kernels(nominal, given)
    arm, law = loaded(nominal, given), controller_of(nominal, given, KERNELS)
    spread, motion = _spread(arm, given), _motion(arm, given)
    place, began = (
        results_folder.prepare_results_folder(given.output or OUT / Path(given.arm).stem),
        time.monotonic(),
    )
    columns = TextColumn("runs"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    console = Console(stderr=True)
    lines = ProgressLines(console)
    with Progress(*columns, console=console) as progress:
        line = progress.add_task("runs", total=given.runs)

        def observe(done: int, of: int) -> None:
            progress.update(line, completed=done)
            lines.update(f"{done} of {of} runs")

        try:
            found = montecarlo(arm, law, motion, spread, given.runs, given.seed, observe)
        except KeyboardInterrupt:
            print("interrupted: nothing written")
            return 130
    _say(found, time.monotonic() - began)
    files = _write(place, found)
    print(f"in {place.resolve()}: {', '.join(file.name for file in files)}")
    return 1 if (found.failed >= 0).any() else 0


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="arm-dynamics montecarlo", description=__doc__)
    add = made.add_argument
    add_arm(made)
    add_options(made, modeled=True, controllers=lambda: KERNELS, usual=KERNELS[0])
    add(
        "--runs",
        type=Number("--runs", 1, MOST_RUNS, whole=True),
        default=RUNS,
        metavar="N",
        help=f"({RUNS})",
    )
    add("--seed", type=seed("--seed"), default=0, metavar="N", help="of the tolerances (0)")
    add(
        "--tolerance-file",
        type=path_argument,
        metavar="FILE",
        help="YAML: names and fractions; default: everything",
    )
    add(
        "--tolerance",
        type=Number("--tolerance", 0, 1),
        metavar="FRACTION",
        help="of everything, either way (0.1)",
    )
    add("--distribution", metavar="NAME", help="normal (σ = fraction / 3, cut off) or uniform")
    add(
        "--step-size",
        type=Number("--step-size", 0, MAX_NUMBER, "rad or m"),
        default=0.2,
        metavar="RAD",
        help="of every joint's reference (0.2)",
    )
    add("--target", metavar="Q1,Q2", help="pose to go to instead of a step")
    add(
        "--settling-tolerance",
        type=Number("--settling-tolerance", 1e-12, MAX_NUMBER, "rad or m"),
        default=5e-3,
        metavar="RAD",
        help="error that is settled (0.005)",
    )
    add("--duration", type=seconds("--duration"), default=1.0, metavar="S", help="of a run (1)")
    add("--period", type=seconds("--period"), default=2e-3, metavar="S", help="of control (2e-3)")
    add("--interface", default="effort", metavar="NAME", help="effort (default) or voltage")
    add("--output", type=path_argument, metavar="FOLDER", help=f"default: {OUT}/ARM")
    return made


def _spread(arm: ArmModel, given: argparse.Namespace) -> ToleranceMap:
    if given.tolerance_file is None:
        share = 0.1 if given.tolerance is None else given.tolerance
        return data_sheet_tolerances(arm, Tolerance(share, given.distribution or "normal"))
    if given.tolerance is not None or given.distribution is not None:
        raise ConfigError(
            "--tolerance-file sets all tolerances: leave out --tolerance and --distribution"
        )
    return read_tolerances(given.tolerance_file, arm)


def _motion(arm: ArmModel, given: argparse.Namespace) -> StepMotion:
    if given.target is None:
        start, target = step_from(arm, given.step_size)
    else:
        start, target = (
            arm.configuration("initial"),
            read_configuration(arm, "--target", given.target),
        )
    return StepMotion(
        start, target, given.duration, given.dt, given.period, given.settling_tolerance,
        given.interface,
    )  # fmt: skip


def _say(found: MonteCarlo, seconds: float) -> None:
    steps = len(found) * found.motion.duration / found.motion.dt
    heads = (*(f"{percent:g} %" for percent in PERCENTILES), "largest")
    title = f"{len(found)} runs in {seconds:.1f} s, {steps / seconds / 1e6:.1f} M steps/s"
    table = Table("largest of all joints", *heads, title=title, title_justify="left")
    for name, unit in QUANTITIES.items():
        if name in found.values:
            numbers = (f"{value:.4g}" for value in found.percentiles(name))
            table.add_row(f"{name}, {unit}", *numbers)
    Console().print(table)
    lost = int((found.failed >= 0).sum())
    if lost:
        print(f"{lost} of {len(found)} runs left the finite numbers")
    never = int(np.isinf(found.max_over_joints("settling")).sum())
    if never:
        print(f"{never} of {len(found)} runs did not settle within {found.motion.duration:g} s")


def _write(place: Path, found: MonteCarlo) -> tuple[Path, ...]:
    from arm_dynamics.batch.tuning.montecarlo_report import montecarlo_report  # noqa: PLC0415
    from arm_dynamics.batch.tuning.report import save_figure  # noqa: PLC0415 - both need matplotlib

    worst = {
        name: [_listed(found, name, number) for number in found.worst_runs(name, WORST)]
        for name in found.values
    }
    return (
        replace_text(place / "worst.yaml", yaml.safe_dump(worst, sort_keys=False)),
        replace_text(place / "runs.csv", _table(found)),
        save_figure(montecarlo_report(found), place / "montecarlo.png"),
    )


def _listed(found: MonteCarlo, name: str, number: int) -> dict[str, object]:
    parameters = {n: values.tolist() for n, values in found.parameters(number).items()}
    value = float(found.max_over_joints(name)[number])
    return {"run": number, f"{name}_{_plain(QUANTITIES[name])}": value, "values": parameters}


def _plain(unit: str) -> str:
    return {"N·m": "Nm"}.get(unit, unit)


def _table(found: MonteCarlo) -> str:
    """One line a run: its number, the largest of all joints of each quantity, step of loss."""
    names = list(found.values)
    head = ",".join(["run", *(f"{n} [{QUANTITIES[n]}]" for n in names), "diverged at step"])
    rows = zip(
        *(found.max_over_joints(n).tolist() for n in names), found.failed.tolist(), strict=True
    )
    lines = (f"{k}," + ",".join(f"{x:.6g}" for x in row) for k, row in enumerate(rows))
    return "\n".join([head, *lines]) + "\n"
