"""``arm-dynamics stability ARM``: the largest stable time step of every integrator."""

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
    loaded,
)
from arm_dynamics.cli.terminal import waiting
from arm_dynamics.control.config import PERIOD
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.stability_margins import delay_margin
from arm_dynamics.core.errors import ConfigError, UnknownName
from arm_dynamics.core.number_option import Number, seconds
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.published.published_gains import (
    PUBLISHED_DT,
    PUBLISHED_DURATION,
    PUBLISHED_INTEGRATOR,
)
from arm_dynamics.published.published_stability import published_loop, published_stability_limit
from arm_dynamics.simulation.integrators import INTEGRATORS

EDGE = 0.1
"""Margin below which a loop is called at the edge."""


def advice_table(given: argparse.Namespace, advices: Sequence[StabilityReport]) -> Table:
    """One row a method."""
    first = advices[0]
    title = (
        f"{given.arm}, gains: {given.gains or 'its own'}, pose: {given.configuration};"
        f" dt {1e3 * first.dt:g} ms, T {1e3 * first.period:g} ms"
    )
    table = Table(title=title, title_justify="left", box=SIMPLE, pad_edge=False)
    table.caption = "stable below: time step dt, factor on all gains, control period T"
    for heading in ("integrator", "dt, ms", "margin", "gains", "T, ms", "least damped mode"):
        table.add_column(heading, no_wrap=True)
    for advice in advices:
        table.add_row(*_row(advice))
    return table


def _row(advice: StabilityReport) -> tuple[str, ...]:
    mode = advice.mode
    return (
        advice.method,
        _number(1e3 * advice.largest_dt),
        _share(advice.margin),
        _number(1 + advice.gain_margin),
        _number(1e3 * advice.periods.largest),
        f"{mode.joint} {mode.frequency:.3g} Hz {mode.growth:+.3g}/s",
    )


def _number(value: float) -> str:
    return f"{value:.4g}" if value < inf else "any tried"


def _share(margin: float) -> str:
    """A margin as a percentage, or as a factor where it is large."""
    return f"{100 * margin:.2g} %" if margin < 1 else f"{_number(margin + 1)}-fold"


def stability_sentence(advice: StabilityReport) -> str:
    """One plain sentence on one method."""
    if not advice.stable:
        return _blow_up(advice)
    who, mode = f"{advice.method} with dt = {advice.dt:g} s", advice.mode
    if min(advice.margin, advice.gain_margin) < EDGE:
        return (
            f"{who} sits at the edge of stability: {_share(advice.gain_margin)} more gain, or"
            f" {_share(advice.margin)} more dt, and it blows up; joint {mode.joint} is nearest to"
            f" it, at {mode.frequency:.4g} Hz."
        )
    return (
        f"{who} is stable, up to dt = {_number(advice.largest_dt)} s"
        f"{' (the control period)' if advice.largest_dt == advice.period else ''}, control periods"
        f" of {_number(advice.periods.largest)} s, or all gains times"
        f" {_number(1 + advice.gain_margin)}."
    )


def delay_text(periods: float, oscillation: str, period: float) -> str:
    """One plain sentence on the delay from a state to its command, over sampled configurations."""
    if periods < 0:
        return f"Delay margin: none; {oscillation}."
    most = "at least " if not oscillation else ""
    then = f"; beyond it, {oscillation}" if oscillation else ""
    return f"Delay margin: {most}{periods:g} control periods, {periods * period:.3g} s{then}."


def _blow_up(advice: StabilityReport) -> str:
    mode = advice.mode
    way = f"swings at {mode.frequency:.4g} Hz and " if mode.frequency else ""
    return (
        f"{advice.method} with dt = {advice.dt:g} s is unstable: joint {mode.joint} {way}grows as"
        f" e^({mode.growth:.3g} t). Stable below dt = {_number(advice.largest_dt)} s."
    )


def unmodeled_effects(edge: float) -> str:
    """One plain sentence on what the linear loop leaves out of the published step."""
    return (
        "That is the linear loop: the published step itself, which also stops a joint for one call"
        f" at each reversal, loses the arm within {PUBLISHED_DURATION:g} s from"
        f" {_share(edge - 1)} more gain on."
    )


PUBLISHED = Path("published")
AS_PUBLISHED = PUBLISHED_INTEGRATOR, PUBLISHED_DT, "initial"
"""Method, time step [s] and pose of the published step."""


def run(arguments: Sequence[str]) -> int:
    """Print one row a method and a sentence; 0 when the loop is stable, else 1.

    Columns: stable below this dt; by how much more than the dt in use; below this factor on all
    gains; below this control period, with time steps of at most dt; the mode that decays least.
    """
    given = _parser().parse_args(arguments)
    methods = [given.integrator] if given.integrator else list(INTEGRATORS)
    if given.integrator not in (None, *INTEGRATORS):
        raise UnknownName("integrator", given.integrator, tuple(INTEGRATORS))
    arm, published = build_arm(given), given.gains == PUBLISHED
    controller = None if published else controller_of(arm, given, linear_controllers())
    with waiting(f"computing the margins of {arm.name}"):
        loop = _published(arm, given) if controller is None else _controlled(arm, controller, given)
        advices = {method: analyze_stability(loop, method) for method in methods}
    Console().print(advice_table(given, tuple(advices.values())))
    chosen = given.integrator or (PUBLISHED_INTEGRATOR if published else "semi_implicit_euler")
    print(stability_sentence(advices[chosen]))
    if controller is not None:
        period = advices[chosen].period
        periods, oscillation = delay_margin(
            controller, loaded(arm, given), period, arm.configuration("initial")
        )
        print(delay_text(periods, oscillation, period))
    if published and (chosen, loop.dt, given.configuration) == AS_PUBLISHED:
        print(unmodeled_effects(published_stability_limit()))
    return 0 if advices[chosen].stable else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="arm-dynamics stability", description=__doc__)
    add_arm(parser)
    file = f"parameter file with gains, or '{PUBLISHED}' (five_dof)"
    add_options(parser, controllers=linear_controllers, dt=None, gains=file)
    parser.add_argument("--integrator", metavar="NAME", help=f"one of {', '.join(INTEGRATORS)}")
    parser.add_argument(
        "--period", type=seconds("--period"), metavar="S", help=f"of control ({PERIOD:g} s)"
    )
    parser.add_argument(
        "--delay",
        type=Number("--delay", 0, 2, "periods"),
        default=0.0,
        help="from a state to its command [periods] (0)",
    )
    return parser


def _controlled(arm: ArmModel, controller: Controller, given: argparse.Namespace) -> LinearLoop:
    dt = DT if given.dt is None else given.dt
    period = PERIOD if given.period is None else given.period
    loop = controlled_loop(loaded(arm, given), controller, arm.configuration("initial"), dt, period)
    return replace(loop, delay=given.delay)


def _published(arm: ArmModel, given: argparse.Namespace) -> LinearLoop:
    if arm.name != "five_dof":
        raise ConfigError(f"--gains published: for arm 'five_dof' alone, not '{arm.name}'")
    if given.controller or given.payload or given.period is not None or given.delay:
        raise ConfigError(
            "--gains published brings its own law, called every time step, with its own delay:"
            " leave out --controller, --payload, --period and --delay"
        )
    dt = PUBLISHED_DT if given.dt is None else given.dt
    return published_loop(arm.configuration("initial"), dt)
