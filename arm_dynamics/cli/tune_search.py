"""``arm-dynamics tune ARM``: PID gains that hold many poses, payloads and wrong models."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from math import inf
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from arm_dynamics import plugins
from arm_dynamics.cli.path import path
from arm_dynamics.config import build_controller
from arm_dynamics.controllers.base import Controller
from arm_dynamics.errors import ConfigError, InvalidValue
from arm_dynamics.model.load import load_arm
from arm_dynamics.tuning import folder, tape
from arm_dynamics.tuning.conditions import Conditions
from arm_dynamics.tuning.gain_search import Task, Tuned, compared, margins_of, tune, unseen
from arm_dynamics.tuning.margins import Margins
from arm_dynamics.tuning.search import Budget, Generation
from arm_dynamics.tuning.tape import Tape

BUDGET = 3000
OUT = Path("arm_dynamics_tune")
"""Folder of the results, one folder an arm in it."""
LAW_NAMES = ("pid", "pid_gravity")
SAVE_EVERY = 2.0
"""Seconds between two states of the search that are written down."""


def run(arguments: Sequence[str]) -> int:
    """Search, validate, write; 0 when the found gains hold every unseen case, else 1."""
    given = parser().parse_args(arguments)
    task, budget = _task(given), Budget(given.budget, given.seconds)
    if given.validate < 1:
        raise InvalidValue(f"validate = {given.validate}: at least 1 case is expected")
    place = folder.prepare(given.out or OUT / Path(given.arm).stem)
    state = place / folder.STATE
    known = tape.load(state, task.settings) if given.resume else Tape()
    tuned = _searched(task, budget, known, state)
    try:
        return _finish(given, tuned, place)
    except KeyboardInterrupt:
        print(f"interrupted: {state} is kept, and --resume ends what is left")
        return 130


def _finish(given: argparse.Namespace, tuned: Tuned, place: Path) -> int:
    """Say and write what was found; 0 when the found gains hold every unseen case, else 1."""
    _say(tuned)
    with Console(stderr=True).status(f"{given.validate} unseen cases"):
        held = compared(tuned, unseen(tuned.task, given.validate))
    for name, one in held.items():
        print(f"{name}: {one.text}")
    margins = _margins(tuned)
    files = folder.write(place, given.arm, _name(tuned.law), tuned, held, margins)
    print(f"in {place.resolve()}: {', '.join(file.name for file in files)}, {folder.STATE}")
    return 0 if held["found gains"].held.all() else 1


def parser() -> argparse.ArgumentParser:
    """The options."""
    c, made = Conditions(), argparse.ArgumentParser(prog="arm-dynamics tune", description=__doc__)
    made.epilog = "--compatibility dynamechs: the published search of five_dof; has its own --help"
    add = made.add_argument
    add("arm", metavar="ARM", help="bundled arm, or path of a URDF")
    add("--controller", metavar="NAME", help="pid or pid_gravity; default: as the file says")
    add("--gains", type=path, metavar="FILE", help="to start from; default: the arm's own")
    add("--search", default="p,i,d", metavar="NAMES", help="gains that are sought (p,i,d)")
    add("--budget", type=int, default=BUDGET, metavar="N", help=f"gains to be tried ({BUDGET})")
    add("--seconds", type=float, default=inf, metavar="S", help="end the search after these")
    add("--seed", type=int, default=0, metavar="N", help="of cases and search (0)")
    add("--cases", type=int, default=32, metavar="N", help="training cases (32)")
    add("--validate", type=int, default=200, metavar="N", help="unseen cases (200)")
    add("--payload", type=float, default=c.payload, metavar="KG", help=f"up to ({c.payload:g})")
    add("--error", type=float, default=c.error, metavar="SHARE", help=f"of model ({c.error:g})")
    add("--step", type=float, default=c.step, metavar="RAD", help=f"of reference ({c.step:g})")
    add("--dt", default="1e-4,5e-4", metavar="S,S", help="time steps of the cases (1e-4,5e-4)")
    add("--period", type=float, default=c.period, metavar="S", help=f"of control ({c.period:g})")
    add("--duration", type=float, default=c.duration, metavar="S", help=f"({c.duration:g})")
    add("--interface", default=c.interface, metavar="NAME", help="effort (default) or voltage")
    late = argparse.BooleanOptionalAction
    add("--delay", action=late, default=c.delay, help="commands act one period late (yes)")
    add("--out", type=path, metavar="FOLDER", help=f"default: {OUT}/ARM")
    add("--resume", action="store_true", help="go on with the search in the folder")
    return made


def _task(given: argparse.Namespace) -> Task:
    arm = load_arm(given.arm)
    conditions = Conditions(
        given.payload, given.error, given.step, _numbers(given.dt), given.period, given.duration,
        interface=given.interface, delay=given.delay,
    )  # fmt: skip
    law = build_controller(arm, given.controller, given.gains)
    names = tuple(name for name in given.search.split(",") if name)
    if not names:
        raise ConfigError(f"--search '{given.search}': names of gains with commas between expected")
    if given.seed < 0:
        raise InvalidValue(f"seed = {given.seed}: at least 0 is expected")
    return Task(arm, law, names, conditions, cases=given.cases, seed=given.seed)


def _name(law: Controller) -> str:
    """The controller as parameter files name it."""
    every = {plugins.load("controllers", name): name for name in LAW_NAMES}
    return every[type(law)]


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(number) for number in text.split(","))
    except ValueError as error:
        raise ConfigError(f"--dt {text}: numbers with commas between them are expected") from error


def _searched(task: Task, budget: Budget, known: Tape, state: Path) -> Tuned:
    """Search with a live line, the state written as it goes and at the end."""
    known.save(state, task.settings)
    began, saved, fresh = time.monotonic(), time.monotonic(), 0
    columns = (
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as progress:
        line = progress.add_task("compiling", total=budget.evaluations)

        def observe(g: Generation) -> None:
            nonlocal saved, fresh
            fresh += 0 if g.replayed else 1
            rate = g.evaluations / max(time.monotonic() - began, 1e-9)
            said = f"{g.stage}: best {g.best:.5g} rad s, spread {g.spread:.3f}, {rate:.0f}/s"
            progress.update(line, completed=g.evaluations, description=said)
            if not g.replayed and time.monotonic() - saved > SAVE_EVERY:
                known.save(state, task.settings)
                saved = time.monotonic()

        try:
            return tune(task, budget, known, observe)
        finally:
            known.save(state, task.settings)


def _say(tuned: Tuned) -> None:
    names = tuned.task.names
    table = Table("joint", *names, title=f"J = {tuned.cost:.5g} rad s", title_justify="left")
    table.caption = f"at the start {tuned.cost_before:.5g} rad s; search ended: {tuned.found.ended}"
    for joint, row in tuned.gains.items():
        table.add_row(joint, *(f"{row[name]:g}" for name in names))
    Console().print(table)


def _margins(tuned: Tuned) -> tuple[tuple[Margins, ...], tuple[Margins, ...]] | None:
    """Margins, told as a table; None, told too, where the loop has none."""
    try:
        here, worst = margins_of(tuned)
    except InvalidValue as error:
        print(f"no margins: {error}")
        return None
    table = Table("joint", "gain factors", "phase, degrees", "delay, ms", "least of all cases")
    for joint, one, low in zip(tuned.law.arm.joint_names, here, worst, strict=True):
        table.add_row(
            joint,
            f"{one.gain_reduction:.2g} to {one.gain_margin:.3g}",
            f"{one.phase_margin:.0f}",
            f"{1e3 * one.delay_margin:.3g}",
            f"{low.gain_reduction:.2g} to {low.gain_margin:.3g}, {low.phase_margin:.0f}°",
        )
    Console().print(table)
    return here, worst
