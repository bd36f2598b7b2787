"""Puma 560 on a page: sliders command six servos of limited speed; their limits are editable.

``arm-dynamics demo puma560 [--port N] [--duration S] [--auto] [--output FOLDER]``. Source: the
MCA2 tutorial's simulation of a Puma 560, whose joints run from 0 to 2 pi whatever the limits of
the arm.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from itertools import count
from math import inf
from pathlib import Path

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.files import prepare_folder
from arm_dynamics.core.number_option import port, seconds
from arm_dynamics.core.state import State
from arm_dynamics.demos import registry
from arm_dynamics.demos.demo_result import DemoResult
from arm_dynamics.demos.slider_session import (
    TOUR_SECONDS,
    Servos,
    Session,
    SliderScript,
    session_show,
)
from arm_dynamics.demos.writer import print_results, write_figures
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.load import load_arm
from arm_dynamics.viewer import ArmPage

ARM = "puma560"
LABELS = {
    "min [rad]": "min_position",
    "max [rad]": "max_position",
    "velocity [rad/s]": "max_velocity",
}
PERIOD = 1 / 60
"""Time [s] that the page is left between two states."""


def run(arguments: Sequence[str]) -> int:
    """Show the page until Ctrl-C or the end of --duration, then a figure of it; 0 either way."""
    options = _parser().parse_args(arguments)
    prepare_folder(options.output)  # what cannot be written is known before anything is shown
    servos, session = Servos(servo_arm()), Session()
    try:
        with open_page(servos, options.port) as page:
            print(f"the sliders are at {page.url} (Ctrl-C ends)", flush=True)
            tour = SliderScript(page.set_target) if options.auto or options.duration < inf else None
            play(servos, lambda s: _each(page, servos, session, tour, s), options.duration)
    except KeyboardInterrupt:
        print("stopped", flush=True)
    if session.states:
        print_results(
            write_figures(session_show(ARM, servos.arm, session), options.output), options.output
        )
    return 0


def show() -> DemoResult:
    """The figure of a page that nobody but the tour moves, in the time of a clock of its own."""
    servos, session, ticks = Servos(servo_arm()), Session(), count()
    tour = SliderScript(servos.follow)

    def each(state: State) -> None:
        tour(state.time)
        session.add(state)

    play(servos, each, TOUR_SECONDS, lambda: PERIOD * next(ticks), lambda _: None)
    return session_show(ARM, servos.arm, session)


def _each(
    page: ArmPage, servos: Servos, session: Session, tour: SliderScript | None, state: State
) -> None:
    if tour is not None:
        tour(state.time)
    show_state(page, servos, state)
    session.add(state)


def servo_arm() -> ArmModel:
    """The arm with a rate-limited servo in every joint, and no stops in their way."""
    arm = load_arm(ARM).with_actuator("rate_limited")
    for name in arm.joint_names:
        arm = arm.with_joint(name, stop_stiffness=0.0, stop_damping=0.0)
    return arm


def open_page(servos: Servos, port: int) -> ArmPage:
    """The page of ``servos``: sliders and parameters act on them at once."""
    arm = servos.arm
    page = ArmPage(
        arm.urdf,
        arm.joint_names,
        limits=[(p["min_position"], p["max_position"]) for p in servos.parameters.values()],
        tool_frame=arm.tool_frame,
        folder=arm.source.parent if arm.source else None,
        title=arm.name,
        port=port,
        interactive=True,
        initial=servos.state.q,
    )

    page.on_target(servos.follow)
    _add_fields(page, servos)
    return page


def _add_fields(page: ArmPage, servos: Servos) -> None:
    def accept(joint: str, label: str, number: float) -> None:
        servos.change(joint, LABELS[label], number)
        now = servos.parameters[joint]
        page.set_range(joint, now["min_position"], now["max_position"])

    fields = {j: {k: p[n] for k, n in LABELS.items()} for j, p in servos.parameters.items()}
    page.add_parameters("Parameters", fields, accept)


def show_state(page: ArmPage, servos: Servos, state: State) -> None:
    """The state, its desired angles as a ghost, and which joints are on their way."""
    desired = servos.desired
    moving = [n for n, away in zip(page.joint_names, desired != state.q, strict=True) if away]
    status = {"time": f"{state.time:.1f} s", "on the way": " ".join(moving) or "none"}
    page.show(state.q, state.v, _known(state.tau), status, desired, time=state.time)


def play(
    servos: Servos,
    show: Callable[[State], None],
    duration: float = inf,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Move ``servos`` by the time that really passes on ``clock`` [s], and show each state."""
    before, passed = clock(), 0.0
    while passed < duration:
        show(servos.state)
        wait(PERIOD)
        now = clock()
        passed += max(0.0, now - before)
        servos.advance(now - before)
        before = now
    show(servos.state)


def _known(effort: Vector) -> Vector | None:
    """The efforts, or None before anything has moved."""
    return effort if np.isfinite(effort).all() else None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="arm-dynamics demo puma560", description=__doc__)
    parser.add_argument(
        "--port", type=port("--port"), default=8080, help="port of the page; 0: any"
    )
    parser.add_argument(
        "--duration", type=seconds("--duration"), default=inf, help="[s]; default: Ctrl-C"
    )
    parser.add_argument("--auto", action="store_true", help="move the sliders; --duration does too")
    default = registry.OUT / ARM
    parser.add_argument("--output", type=Path, metavar="FOLDER", default=default, help=f"{default}")
    return parser
