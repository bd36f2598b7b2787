"""Compute the largest stable time step of every integrator for a control loop."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from arm_dynamics.batch.stability.stability_report import (
    LinearLoop,
    StabilityReport,
    analyze_stability,
    controlled_loop,
)
from arm_dynamics.cli.arm_options import (
    DT,
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
from arm_dynamics.core.errors import ConfigError, UnknownName
from arm_dynamics.core.number_option import Number, seconds
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.published.published_gains import (
    PUBLISHED_DT,
    PUBLISHED_DURATION,
    PUBLISHED_INTEGRATOR,
    published_loop,
    published_stability_limit,
)
from arm_dynamics.simulation.integrators import INTEGRATORS

THIN_MARGIN = 0.1
"""Margin below which a loop is reported to be at the stability limit."""
PUBLISHED = Path("published")
"""Value of --gains for the published controller of five_dof."""
AS_PUBLISHED = PUBLISHED_INTEGRATOR, PUBLISHED_DT, "initial"
"""Integrator, time step [s] and configuration of the published step."""


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
            _margin(report.margin),
            _limit(1 + report.gain_margin),
            _limit(1e3 * report.periods.largest),
            f"{mode.joint} {mode.frequency:.3g} Hz {mode.growth:+.3g}/s",
        )
    return table


def _limit(value: float) -> str:
    return f"{value:.4g}" if value < inf else "any tried"


def _margin(margin: float) -> str:
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
            f"{loop} is at the stability limit: {_margin(report.gain_margin)} more gain, or"
            f" {_margin(report.margin)} more dt, makes it unstable; the least stable joint is"
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


def unmodeled_effects(limit: float) -> str:
    """Return a sentence on the published step, which stops a joint for one call at a reversal.

    ``limit`` is the factor on all gains at which the published step diverges.
    """
    return (
        "The linear loop omits one effect of the published step, which stops a joint for one call"
        f" at each reversal: with it, the arm diverges within {PUBLISHED_DURATION:g} s from"
        f" {_margin(limit - 1)} more gain on."
    )


def run(arguments: Sequence[str]) -> int:
    """Print one row per integrator and a sentence; return 0 if the loop is stable, else 1."""
    args = command_parser().parse_args(arguments)
    if args.integrator not in (None, *INTEGRATORS):
        raise UnknownName("integrator", args.integrator, tuple(INTEGRATORS))
    integrators = [args.integrator] if args.integrator else list(INTEGRATORS)
    arm, published = build_arm(args), args.gains == PUBLISHED
    controller = None if published else controller_of(arm, args, linear_controllers())
    with waiting(f"computing the margins of {arm.name}"):
        if controller is None:
            loop = _published_loop(arm, args)
        else:
            dt = DT if args.dt is None else args.dt
            period = PERIOD if args.period is None else args.period
            initial = arm.configuration("initial")
            loop = controlled_loop(with_payload(arm, args), controller, initial, dt, period)
            loop = replace(loop, delay=args.delay)
        reports = {name: analyze_stability(loop, name) for name in integrators}
    Console().print(stability_table(args, tuple(reports.values())))
    chosen = args.integrator or (PUBLISHED_INTEGRATOR if published else "semi_implicit_euler")
    print(stability_sentence(reports[chosen]))
    if controller is not None:
        period = reports[chosen].period
        periods, oscillation = delay_margin(
            controller, with_payload(arm, args), period, arm.configuration("initial")
        )
        print(delay_text(periods, oscillation, period))
    if published and (chosen, loop.dt, args.configuration) == AS_PUBLISHED:
        print(unmodeled_effects(published_stability_limit()))
    return 0 if reports[chosen].stable else 1


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = SuggestingParser(prog="arm-dynamics stability", description=__doc__)
    add_arm(parser)
    file = f"parameter file with gains, or '{PUBLISHED}' (five_dof)"
    add_options(parser, controllers=linear_controllers, dt=None, gains=file)
    add = parser.add_argument
    add("--integrator", metavar="NAME", help=f"one of {', '.join(INTEGRATORS)} (default: all)")
    text = f"control period [s] (default: {PERIOD:g})"
    add("--period", type=seconds("--period"), metavar="S", help=text)
    number = Number("--delay", 0, 2, "periods")
    text = "delay from a state to its command [control periods] (default: 0)"
    add("--delay", type=number, default=0.0, metavar="PERIODS", help=text)
    return parser


def _published_loop(arm: ArmModel, args: argparse.Namespace) -> LinearLoop:
    """Return the loop of the published controller of five_dof, called every time step."""
    if arm.name != "five_dof":
        raise ConfigError(f"--gains published: arm = '{arm.name}'; expected 'five_dof'")
    if args.controller or args.payload or args.period is not None or args.delay:
        raise ConfigError(
            "--gains published: --controller, --payload, --period or --delay = set; expected none,"
            " because the published gains include a controller, its period and its delay"
        )
    dt = PUBLISHED_DT if args.dt is None else args.dt
    return published_loop(arm.configuration("initial"), dt)
