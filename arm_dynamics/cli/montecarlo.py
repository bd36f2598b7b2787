"""Simulate a motion for random parameters of the arm within the tolerances of its data sheets."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import yaml
from rich.console import Console
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
    kernel_controller_name,
    path_argument,
    read_configuration,
    with_payload,
)
from arm_dynamics.cli.terminal import progress_bar
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.files import replace_text
from arm_dynamics.core.number_option import MAX_NUMBER, Number, check_steps, seconds, seed
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.model.arm_model import ArmModel

RUNS, MAX_RUNS = 10_000, 1_000_000
OUT = Path("arm_dynamics_montecarlo")
"""Folder of the results, with one folder per arm."""
WORST_COUNT = 5
"""Number of the worst runs that are listed for each quantity."""


def run(arguments: Sequence[str]) -> int:
    """Simulate, print percentiles and write files; return 0 if no run diverged, else 1."""
    args = command_parser().parse_args(arguments)
    check_steps("--runs times --duration / --dt", args.runs * args.duration / args.dt)
    nominal = build_arm(args)
    args.controller = kernel_controller_name(nominal, args)
    arm, controller = with_payload(nominal, args), controller_of(nominal, args, KERNELS)
    tolerances = _tolerances(arm, args)
    if args.target is None:
        start, target = step_from(arm, args.step_size)
    else:
        start = arm.configuration("initial")
        target = read_configuration(arm, "--target", args.target)
    motion = StepMotion(
        start, target, args.duration, args.dt, args.period, args.settling_tolerance, args.interface
    )
    folder = args.output or OUT / Path(args.arm).stem
    start_time = time.monotonic()
    try:
        with results_folder.prepared_results(folder), progress_bar("runs") as progress:
            result = montecarlo(arm, controller, motion, tolerances, args.runs, args.seed, progress)
    except KeyboardInterrupt:
        print("interrupted: nothing is written")
        return 130
    _print_percentiles(result, time.monotonic() - start_time)
    files = _write_files(folder, result)
    print(f"in {folder.resolve()}: {', '.join(file.name for file in files)}")
    return 1 if (result.failed >= 0).any() else 0


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = SuggestingParser(prog="arm-dynamics montecarlo", description=__doc__)
    add = parser.add_argument
    add_arm(parser)
    add_options(parser, modeled=True, controllers=lambda: KERNELS, usual=KERNELS[0])
    number = Number("--runs", 1, MAX_RUNS, whole=True)
    add("--runs", type=number, default=RUNS, metavar="N", help=f"runs (default: {RUNS})")
    text = "seed of the random parameters (default: 0)"
    add("--seed", type=seed("--seed"), default=0, metavar="N", help=text)
    text = "YAML file of parameters and their tolerances (default: all parameters)"
    add("--tolerance-file", type=path_argument, metavar="FILE", help=text)
    text = "tolerance of all parameters, as a fraction of ± the nominal value (default: 0.1)"
    add("--tolerance", type=Number("--tolerance", 0, 1), metavar="FRACTION", help=text)
    text = "normal (σ = tolerance / 3, truncated) or uniform (default: normal)"
    add("--distribution", metavar="NAME", help=text)
    number = Number("--step-size", 0, MAX_NUMBER, "rad or m")
    text = "step of every joint's reference [rad; m] (default: 0.2)"
    add("--step-size", type=number, default=0.2, metavar="STEP", help=text)
    text = "target configuration instead of a step [rad; m]"
    add("--target", metavar="NAME|Q1,Q2,...", help=text)
    number = Number("--settling-tolerance", 1e-12, MAX_NUMBER, "rad or m")
    text = "error below which a joint is settled [rad; m] (default: 0.005)"
    add("--settling-tolerance", type=number, default=5e-3, metavar="ERROR", help=text)
    text = "duration of a run [s] (default: 1)"
    add("--duration", type=seconds("--duration"), default=1.0, metavar="S", help=text)
    text = "control period [s] (default: 2e-3)"
    add("--period", type=seconds("--period"), default=2e-3, metavar="S", help=text)
    text = "command interface: effort or voltage (default: effort)"
    add("--interface", default="effort", metavar="NAME", help=text)
    text = f"folder of the results (default: {OUT}/ARM)"
    add("--output", type=path_argument, metavar="FOLDER", help=text)
    return parser


def _tolerances(arm: ArmModel, args: argparse.Namespace) -> ToleranceMap:
    """Return the tolerances of --tolerance-file, or one tolerance for all parameters."""
    if args.tolerance_file is None:
        fraction = 0.1 if args.tolerance is None else args.tolerance
        return data_sheet_tolerances(arm, Tolerance(fraction, args.distribution or "normal"))
    if args.tolerance is not None or args.distribution is not None:
        raise ConfigError(
            "--tolerance-file: --tolerance or --distribution = set; expected none, because the file"
            " sets all tolerances"
        )
    return read_tolerances(args.tolerance_file, arm)


def _print_percentiles(result: MonteCarlo, duration: float) -> None:
    """Print a table of percentiles, and the numbers of diverged and unsettled runs."""
    steps = len(result) * result.motion.duration / result.motion.dt
    heads = (*(f"{percent:g} %" for percent in PERCENTILES), "largest")
    title = f"{len(result)} runs in {duration:.1f} s, {steps / duration / 1e6:.1f} M steps/s"
    table = Table("largest of all joints", *heads, title=title, title_justify="left")
    for name, unit in QUANTITIES.items():
        if name in result.values:
            numbers = (f"{value:.4g}" for value in result.percentiles(name))
            table.add_row(f"{name}, {unit}", *numbers)
    Console().print(table)
    diverged = int((result.failed >= 0).sum())
    if diverged:
        print(f"{diverged} of {len(result)} runs diverged")
    unsettled = int(np.isinf(result.max_over_joints("settling")).sum())
    if unsettled:
        print(f"{unsettled} of {len(result)} runs not settled within {result.motion.duration:g} s")


def _write_files(folder: Path, result: MonteCarlo) -> tuple[Path, ...]:
    """Write the parameters of the worst runs, one line per run, and a figure."""
    from arm_dynamics.batch.tuning.report import (  # noqa: PLC0415 - needs matplotlib
        montecarlo_report,
        save_figure,
    )

    worst: dict[str, list[dict[str, object]]] = {}
    for name in result.values:
        key, largest = f"{name}_{QUANTITIES[name].replace('·', '')}", result.max_over_joints(name)
        worst[name] = [
            {
                "run": number,
                key: float(largest[number]),
                "values": {n: values.tolist() for n, values in result.parameters(number).items()},
            }
            for number in result.worst_runs(name, WORST_COUNT)
        ]
    names = list(result.values)
    head = ",".join(["run", *(f"{n} [{QUANTITIES[n]}]" for n in names), "diverged at step"])
    rows = zip(
        *(result.max_over_joints(n).tolist() for n in names), result.failed.tolist(), strict=True
    )
    lines = (f"{k}," + ",".join(f"{x:.6g}" for x in row) for k, row in enumerate(rows))
    return (
        replace_text(folder / "worst.yaml", yaml.safe_dump(worst, sort_keys=False)),
        replace_text(folder / "runs.csv", "\n".join([head, *lines]) + "\n"),
        save_figure(montecarlo_report(result), folder / "montecarlo.png"),
    )
