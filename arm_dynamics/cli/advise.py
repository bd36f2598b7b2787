"""``arm-dynamics advise ARM``: the largest stable time step of every integrator."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from arm_dynamics.cli.advise_text import advice_table, delay_text, left_out, verdict
from arm_dynamics.cli.arm_options import (
    DT,
    add_arm,
    add_options,
    build_arm,
    controller_of,
    linear_controllers,
    loaded,
)
from arm_dynamics.cli.waiting import waiting
from arm_dynamics.config import PERIOD
from arm_dynamics.controllers.base import Controller
from arm_dynamics.errors import ConfigError, UnknownName
from arm_dynamics.integrators import INTEGRATORS
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.number_option import Number, seconds
from arm_dynamics.stability import (
    Loop,
    advise,
    controlled_loop,
    published_edge,
    published_loop,
)
from arm_dynamics.stability.loops import PUBLISHED_DT, PUBLISHED_METHOD
from arm_dynamics.stability.timed_gains import delay_margin

PUBLISHED = Path("published")
AS_PUBLISHED = PUBLISHED_METHOD, PUBLISHED_DT, "initial"
"""Method, time step [s] and pose of the published step."""


def run(arguments: Sequence[str]) -> int:
    """Print one row a method and a sentence; 0 when the loop is stable, else 1.

    Columns: stable below this dt; by how much more than the dt in use; below this factor on all
    gains; below this control period, with time steps of at most dt; the mode that decays least.
    """
    given = _parser().parse_args(arguments)
    methods = [given.method] if given.method else list(INTEGRATORS)
    if given.method not in (None, *INTEGRATORS):
        raise UnknownName("integrator", given.method, tuple(INTEGRATORS))
    arm, published = build_arm(given), given.gains == PUBLISHED
    controller = None if published else controller_of(arm, given, linear_controllers())
    with waiting(f"computing the margins of {arm.name}"):
        loop = _published(arm, given) if controller is None else _controlled(arm, controller, given)
        advices = {method: advise(loop, method) for method in methods}
    Console().print(advice_table(given, tuple(advices.values())))
    chosen = given.method or (PUBLISHED_METHOD if published else "semi_implicit_euler")
    print(verdict(advices[chosen]))
    if controller is not None:
        period = advices[chosen].period
        periods, oscillation = delay_margin(
            controller, loaded(arm, given), period, arm.pose("initial")
        )
        print(delay_text(periods, oscillation, period))
    if published and (chosen, loop.dt, given.pose) == AS_PUBLISHED:
        print(left_out(published_edge()))
    return 0 if advices[chosen].stable else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="arm-dynamics advise", description=__doc__)
    add_arm(parser)
    file = f"parameter file with gains, or '{PUBLISHED}' (five_dof)"
    add_options(parser, controllers=linear_controllers, dt=None, gains=file)
    parser.add_argument("--method", metavar="NAME", help=f"one of {', '.join(INTEGRATORS)}")
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


def _controlled(arm: ArmModel, controller: Controller, given: argparse.Namespace) -> Loop:
    dt = DT if given.dt is None else given.dt
    period = PERIOD if given.period is None else given.period
    loop = controlled_loop(loaded(arm, given), controller, arm.pose("initial"), dt, period)
    return replace(loop, delay=given.delay)


def _published(arm: ArmModel, given: argparse.Namespace) -> Loop:
    if arm.name != "five_dof":
        raise ConfigError(f"--gains published: for arm 'five_dof' alone, not '{arm.name}'")
    if given.controller or given.payload or given.period is not None or given.delay:
        raise ConfigError(
            "--gains published brings its own law, called every time step, with its own delay:"
            " leave out --controller, --payload, --period and --delay"
        )
    dt = PUBLISHED_DT if given.dt is None else given.dt
    return published_loop(arm.pose("initial"), dt)
