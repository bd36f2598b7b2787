"""What ``arm-dynamics advise`` says of its advice: a table and plain sentences."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from math import inf

from rich.box import SIMPLE
from rich.table import Table

from arm_dynamics.stability import Advice
from arm_dynamics.stability.loops import PUBLISHED_SECONDS

EDGE = 0.1
"""Margin below which a loop is called at the edge."""


def advice_table(given: argparse.Namespace, advices: Sequence[Advice]) -> Table:
    """One row a method."""
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
        table.add_row(*_row(advice))
    return table


def _row(advice: Advice) -> tuple[str, ...]:
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


def verdict(advice: Advice) -> str:
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


def _blow_up(advice: Advice) -> str:
    mode = advice.mode
    way = f"swings at {mode.frequency:.4g} Hz and " if mode.frequency else ""
    return (
        f"{advice.method} with dt = {advice.dt:g} s is unstable: joint {mode.joint} {way}grows as"
        f" e^({mode.growth:.3g} t). Stable below dt = {_number(advice.largest_dt)} s."
    )


def left_out(edge: float) -> str:
    """One plain sentence on what the linear loop leaves out of the published step."""
    return (
        "That is the linear loop: the published step itself, which also stops a joint for one call"
        f" at each reversal, loses the arm within {PUBLISHED_SECONDS:g} s from"
        f" {_share(edge - 1)} more gain on."
    )
