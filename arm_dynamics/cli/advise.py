"""``arm-dynamics advise ARM``: the largest stable time step of every integrator."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace

from rich.console import Console

from arm_dynamics.arrays import Vector
from arm_dynamics.cli.advise_text import advice_table, delay_text, left_out, verdict
from arm_dynamics.cli.path import path
from arm_dynamics.config import build_controller
from arm_dynamics.controllers.base import Controller
from arm_dynamics.errors import ConfigError, UnknownName
from arm_dynamics.integrators import INTEGRATORS
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.load import load_arm
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

DT, PERIOD = 1e-4, 2e-3
"""Time step and control period [s] of ``Simulation``."""
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
    arm, published = load_arm(given.arm), given.gains == "published"
    controller = None if published else build_controller(arm, given.controller, given.gains)
    loop = _published(arm, given) if controller is None else _controlled(arm, controller, given)
    advices = {method: advise(loop, method) for method in methods}
    Console().print(advice_table(given, tuple(advices.values())))
    chosen = given.method or (PUBLISHED_METHOD if published else "semi_implicit_euler")
    print(verdict(advices[chosen]))
    if controller is not None:
        period = advices[chosen].period
        periods, oscillation = delay_margin(controller, arm, period, _pose(arm, given.pose))
        print(delay_text(periods, oscillation, period))
    if published and (chosen, loop.dt, given.pose) == AS_PUBLISHED:
        print(left_out(published_edge()))
    return 0 if advices[chosen].stable else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="arm-dynamics advise", description=__doc__)
    parser.add_argument("arm", metavar="ARM", help="bundled arm, or path of a URDF")
    parser.add_argument(
        "--gains",
        type=_gains,
        metavar="FILE|published",
        help="parameter file; default: the arm's own",
    )
    parser.add_argument("--controller", metavar="NAME", help="default: as the file says")
    parser.add_argument("--method", metavar="NAME", help=f"one of {', '.join(INTEGRATORS)}")
    parser.add_argument(
        "--dt", type=seconds("--dt"), metavar="S", help=f"time step in use ({DT:g} s)"
    )
    parser.add_argument(
        "--period", type=seconds("--period"), metavar="S", help=f"of control ({PERIOD:g} s)"
    )
    parser.add_argument("--pose", metavar="NAME", default="initial", help="name, or q1,q2,...")
    parser.add_argument(
        "--delay",
        type=Number("--delay", 0, 2, "periods"),
        default=0.0,
        help="from a state to its command [periods] (0)",
    )
    return parser


def _gains(text: str) -> str:
    """A parameter file's path, or "published"; argparse refuses an empty one."""
    return str(path(text))


def _controlled(arm: ArmModel, controller: Controller, given: argparse.Namespace) -> Loop:
    dt = DT if given.dt is None else given.dt
    period = PERIOD if given.period is None else given.period
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
