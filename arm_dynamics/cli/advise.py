"""``arm-dynamics advise ARM``: the largest stable time step of every integrator."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from math import inf

from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

from arm_dynamics.arrays import Vector
from arm_dynamics.config import build_controller
from arm_dynamics.errors import ConfigError, UnknownName
from arm_dynamics.integrators import INTEGRATORS
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.load import load_arm
from arm_dynamics.stability import (
    Advice,
    Loop,
    advise,
    controlled_loop,
    published_edge,
    published_loop,
)
from arm_dynamics.stability.loops import PUBLISHED_DT, PUBLISHED_METHOD, PUBLISHED_SECONDS

DT, PERIOD = 1e-4, 2e-3
"""Time step and control period [s] of ``Simulation``."""
AS_PUBLISHED = PUBLISHED_METHOD, PUBLISHED_DT, "initial"
"""Method, time step [s] and pose of the published step."""
EDGE = 0.1
"""Margin below which a loop is called at the edge."""


def run(arguments: Sequence[str]) -> int:
    """Print one row a method and a sentence; 0 when the loop is stable, else 1.

    Columns: stable below this dt; by how much more than the dt in use; below this factor on all
    gains; below this control period, with time steps of at most dt; the mode that decays least.
    """
    given = _parser().parse_args(arguments)
    methods = [given.method] if given.method else list(INTEGRATORS)
    if given.method not in (None, *INTEGRATORS):
        raise UnknownName("integrator", given.method, tuple(INTEGRATORS))
    arm, published = load_arm(given.arm), given.gains == "published"
    loop = _published(arm, given) if published else _controlled(arm, given)
    advices = {method: advise(loop, method) for method in methods}
    Console().print(_table(given, tuple(advices.values())))
    chosen = given.method or (PUBLISHED_METHOD if published else "semi_implicit_euler")
    print(verdict(advices[chosen]))
    if published and (chosen, loop.dt, given.pose) == AS_PUBLISHED:
        print(left_out(published_edge()))
    return 0 if advices[chosen].stable else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="arm-dynamics advise", description=__doc__)
    parser.add_argument("arm", metavar="ARM", help="bundled arm, or path of a URDF")
    parser.add_argument(
        "--gains", metavar="FILE|published", help="parameter file; default: the arm's own"
    )
    parser.add_argument("--controller", metavar="NAME", help="default: as the file says")
    parser.add_argument("--method", metavar="NAME", help=f"one of {', '.join(INTEGRATORS)}")
    parser.add_argument("--dt", type=float, metavar="S", help=f"time step in use ({DT:g} s)")
    parser.add_argument("--period", type=float, metavar="S", help=f"of control ({PERIOD:g} s)")
    parser.add_argument("--pose", metavar="NAME", default="initial", help="name, or q1,q2,...")
    parser.add_argument("--delay", type=int, choices=(0, 1), default=0, help="late periods (0)")
    return parser


def _controlled(arm: ArmModel, given: argparse.Namespace) -> Loop:
    dt = DT if given.dt is None else given.dt
    period = PERIOD if given.period is None else given.period
    controller = build_controller(arm, given.controller, given.gains)
    loop = controlled_loop(arm, controller, _pose(arm, given.pose), dt, period)
    return replace(loop, delay=given.delay)


def _pose(arm: ArmModel, text: str) -> Vector:
    """A named pose, or numbers with commas between them."""
    if "," not in text:
        return arm.pose(text)
    try:
        return arm.check_position("--pose", [float(number) for number in text.split(",")])
    except ValueError as error:
        raise ConfigError(f"--pose {text}: {error}") from error


def _published(arm: ArmModel, given: argparse.Namespace) -> Loop:
    if arm.name != "five_dof":
        raise ConfigError(f"--gains published: for arm 'five_dof' alone, not '{arm.name}'")
    if given.controller or given.period is not None or given.delay:
        raise ConfigError(
            "--gains published brings its own law, called every time step, with its own delay:"
            " leave out --controller, --period and --delay"
        )
    dt = PUBLISHED_DT if given.dt is None else given.dt
    return published_loop(_pose(arm, given.pose), dt)


def _table(given: argparse.Namespace, advices: Sequence[Advice]) -> Table:
    first = advices[0]
    title = (
        f"{given.arm}, gains: {given.gains or 'its own'}, pose: {given.pose};"
        f" dt {1e3 * first.dt:g} ms, T {1e3 * first.period:g} ms"
    )
    table = Table(title=title, title_justify="left", box=SIMPLE, pad_edge=False)
    table.caption = "stable below: time step dt, factor on all gains, control period T"
    for heading in ("method", "dt, ms", "margin", "gains", "T, ms", "least damped mode"):
        table.add_column(heading, no_wrap=True)
    for advice in advices:
        mode = advice.mode
        table.add_row(
            advice.method,
            _number(1e3 * advice.largest_dt),
            _share(advice.margin),
            _number(1 + advice.gain_margin),
            _number(1e3 * advice.periods.largest),
            f"{mode.joint} {mode.frequency:.3g} Hz {mode.growth:+.3g}/s",
        )
    return table


def _number(value: float) -> str:
    return f"{value:.4g}" if value < inf else "any tried"


def _share(margin: float) -> str:
    """A margin as a percentage, or as a factor where it is large."""
    return f"{100 * margin:.2g} %" if margin < 1 else f"{_number(margin + 1)}-fold"


def verdict(advice: Advice) -> str:
    """One plain sentence on one method."""
    who, mode = f"{advice.method} with dt = {advice.dt:g} s", advice.mode
    if not advice.stable:
        way = f"swings at {mode.frequency:.4g} Hz and " if mode.frequency else ""
        return (
            f"{who} is unstable: joint {mode.joint} {way}grows as e^({mode.growth:.3g} t)."
            f" Stable below dt = {_number(advice.largest_dt)} s."
        )
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


def left_out(edge: float) -> str:
    """One plain sentence on what the linear loop leaves out of the published step."""
    return (
        "That is the linear loop: the published step itself, which also stops a joint for one call"
        f" at each reversal, loses the arm within {PUBLISHED_SECONDS:g} s from"
        f" {_share(edge - 1)} more gain on."
    )
