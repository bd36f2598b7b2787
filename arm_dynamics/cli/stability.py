"""Compute the largest stable time step of every integrator for a control loop."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from math import inf

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from arm_dynamics.batch.stability.stability_report import (
    StabilityReport,
    analyze_stability,
    controlled_loop,
)
from arm_dynamics.cli.arm_options import (
    add_arm,
    add_options,
    build_arm,
    controller_of,
    linear_controllers,
    with_payload,
)
from arm_dynamics.cli.terminal import waiting
from arm_dynamics.control.config import PERIOD
from arm_dynamics.control.stability_margins import delay_margin
from arm_dynamics.core.errors import UnknownName
from arm_dynamics.core.number_option import Number, seconds
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.simulation.integrators import INTEGRATORS

THIN_MARGIN = 0.1
"""Margin below which a loop is reported to be at the stability limit."""
INTEGRATOR = "semi_implicit_euler"
"""Integrator of the sentence without --integrator."""


def stability_table(args: argparse.Namespace, reports: Sequence[StabilityReport]) -> Table:
    """Return a table with one row per integrator.

    Columns: largest stable time step; its margin over the time step in use; largest stable factor
    on all gains; largest stable control period, with time steps of at most dt; least damped mode.
    """
    first = reports[0]
    title = (
        f"{args.arm}, gains: {args.gains or 'default'}, configuration: {args.configuration};"
        f" dt {1e3 * first.dt:g} ms, T {1e3 * first.period:g} ms"
    )
    table = Table(title=title, title_justify="left", box=SIMPLE, pad_edge=False)
    table.caption = "stable below: time step dt, factor on all gains, control period T"
    for heading in ("integrator", "dt, ms", "margin", "gains", "T, ms", "least damped mode"):
        table.add_column(heading, no_wrap=True)
    for report in reports:
        mode = report.mode
        table.add_row(
            report.method,
            _limit(1e3 * report.largest_dt),
            margin_text(report.margin),
            _limit(1 + report.gain_margin),
            _limit(1e3 * report.periods.largest),
            f"{mode.joint} {mode.frequency:.3g} Hz {mode.growth:+.3g}/s",
        )
    return table


def _limit(value: float) -> str:
    return f"{value:.4g}" if value < inf else "any tried"


def margin_text(margin: float) -> str:
    """Return a margin as a percentage; as a factor from 100 % on."""
    return f"{100 * margin:.2g} %" if margin < 1 else f"{_limit(margin + 1)}-fold"


def stability_sentence(report: StabilityReport) -> str:
    """Return sentences on the stability of one integrator with its time step."""
    loop, mode = f"{report.method} with dt = {report.dt:g} s", report.mode
    if not report.stable:
        oscillates = f"oscillates at {mode.frequency:.4g} Hz and " if mode.frequency else ""
        return (
            f"{loop} is unstable: joint {mode.joint} {oscillates}grows as e^({mode.growth:.3g} t)."
            f" Stable below dt = {_limit(report.largest_dt)} s."
        )
    if min(report.margin, report.gain_margin) < THIN_MARGIN:
        return (
            f"{loop} is at the stability limit: {margin_text(report.gain_margin)} more gain, or"
            f" {margin_text(report.margin)} more dt, makes it unstable; the least stable joint is"
            f" {mode.joint}, at {mode.frequency:.4g} Hz."
        )
    return (
        f"{loop} is stable, up to dt = {_limit(report.largest_dt)} s"
        f"{' (the control period)' if report.largest_dt == report.period else ''}, control periods"
        f" of {_limit(report.periods.largest)} s, or all gains times"
        f" {_limit(1 + report.gain_margin)}."
    )


def delay_text(periods: float, oscillation: str, period: float) -> str:
    """Return a sentence on the largest stable delay from a state to its command.

    Parameters
    ----------
    periods : float
        Delay margin [control periods] over sampled configurations; negative for a loop that
        is unstable without delay.
    oscillation : str
        Description of the oscillation beyond it; empty if none was found.
    period : float
        Control period [s].

    """
    if periods < 0:
        return f"Delay margin: none; {oscillation}."
    bound = "at least " if not oscillation else ""
    then = f"; beyond it, {oscillation}" if oscillation else ""
    return f"Delay margin: {bound}{periods:g} control periods, {periods * period:.3g} s{then}."


def run(arguments: Sequence[str]) -> int:
    """Print one row per integrator and a sentence; return 0 if the loop is stable, else 1."""
    args = command_parser().parse_args(arguments)
    integrators, arm = requested_integrators(args), build_arm(args)
    controller = controller_of(arm, args, linear_controllers())
    initial, loaded = arm.configuration("initial"), with_payload(arm, args)
    with waiting(f"computing the margins of {arm.name}"):
        loop = controlled_loop(loaded, controller, initial, args.dt, args.period)
        loop = replace(loop, delay=args.delay)
        reports = {name: analyze_stability(loop, name) for name in integrators}
    Console().print(stability_table(args, tuple(reports.values())))
    chosen = reports[args.integrator or INTEGRATOR]
    print(stability_sentence(chosen))
    periods, oscillation = delay_margin(controller, loaded, chosen.period, initial)
    print(delay_text(periods, oscillation, chosen.period))
    return 0 if chosen.stable else 1


def requested_integrators(args: argparse.Namespace) -> list[str]:
    """Return the integrator of --integrator; all without it.

    Raises
    ------
    UnknownName
        If no integrator has this name.

    """
    if args.integrator not in (None, *INTEGRATORS):
        raise UnknownName("integrator", args.integrator, tuple(INTEGRATORS))
    return [args.integrator] if args.integrator else list(INTEGRATORS)


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = SuggestingParser(prog="arm-dynamics stability", description=__doc__)
    add_arm(parser)
    add_options(parser, controllers=linear_controllers)
    add_integrator(parser)
    add = parser.add_argument
    text = f"control period [s] (default: {PERIOD:g})"
    add("--period", type=seconds("--period"), default=PERIOD, metavar="S", help=text)
    number = Number("--delay", 0, 2, "periods")
    text = "delay from a state to its command [control periods] (default: 0)"
    add("--delay", type=number, default=0.0, metavar="PERIODS", help=text)
    return parser


def add_integrator(parser: argparse.ArgumentParser) -> None:
    """Add the option --integrator to the parser of a command."""
    text = f"one of {', '.join(INTEGRATORS)} (default: all)"
    parser.add_argument("--integrator", metavar="NAME", help=text)
