"""Command six servos of a Puma 560 by sliders of the viewer; their limits are editable.

Source: the simulation of the MCA2 tutorial, whose joints move from 0 to 2 pi independently of the
arm's position limits.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from itertools import count
from math import inf
from pathlib import Path

import numpy as np

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
"""Time [s] between two states of the page."""


def run(arguments: Sequence[str]) -> int:
    """Run the page until Ctrl-C or --duration, then write a figure of the session; return 0."""
    options = command_parser().parse_args(arguments)
    prepare_folder(options.output)  # raises before the page opens if the folder cannot be written
    servos, session = Servos(servo_arm()), Session()
    try:
        with open_page(servos, options.port) as page:
            print(f"sliders: {page.url} (Ctrl-C to stop)", flush=True)
            automatic = options.auto or options.duration < inf
            script = SliderScript(page.set_target) if automatic else None

            def show_and_store(state: State) -> None:
                if script is not None:
                    script(state.time)
                show_state(page, servos, state)
                session.add(state)

            play(servos, show_and_store, options.duration)
    except KeyboardInterrupt:
        print("stopped", flush=True)
    if session.states:
        print_results(
            write_figures(session_show(ARM, servos.arm, session), options.output), options.output
        )
    return 0


def show() -> DemoResult:
    """Draw the session of the script in simulated time."""
    servos, session, ticks = Servos(servo_arm()), Session(), count()
    script = SliderScript(servos.follow)

    def store(state: State) -> None:
        script(state.time)
        session.add(state)

    play(servos, store, TOUR_SECONDS, lambda: PERIOD * next(ticks), lambda _: None)
    return session_show(ARM, servos.arm, session)


def servo_arm() -> ArmModel:
    """Return the arm with a rate-limited servo in every joint and no end stops."""
    arm = load_arm(ARM).with_actuator("rate_limited")
    for name in arm.joint_names:
        arm = arm.with_joint(name, stop_stiffness=0.0, stop_damping=0.0)
    return arm


def open_page(servos: Servos, port: int) -> ArmPage:
    """Open a page whose sliders and parameter fields act on ``servos`` immediately."""
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

    def accept(joint: str, label: str, number: float) -> None:
        servos.change(joint, LABELS[label], number)
        now = servos.parameters[joint]
        page.set_range(joint, now["min_position"], now["max_position"])

    fields = {j: {k: p[n] for k, n in LABELS.items()} for j, p in servos.parameters.items()}
    page.add_parameters("Parameters", fields, accept)
    return page


def show_state(page: ArmPage, servos: Servos, state: State) -> None:
    """Show the state, its target as a ghost, and the names of the moving joints."""
    desired = servos.desired
    moving = [n for n, away in zip(page.joint_names, desired != state.q, strict=True) if away]
    status = {"time": f"{state.time:.1f} s", "moving": " ".join(moving) or "none"}
    effort = state.tau if np.isfinite(state.tau).all() else None  # not computed before a motion
    page.show(state.q, state.v, effort, status, desired, time=state.time)


def play(
    servos: Servos,
    show: Callable[[State], None],
    duration: float = inf,
    clock: Callable[[], float] = time.monotonic,
    wait: Callable[[float], None] = time.sleep,
) -> None:
    """Advance ``servos`` by the elapsed time of ``clock`` [s] and show each state.

    Parameters
    ----------
    servos : Servos
        The arm.
    show : callable
        Called with each state.
    duration : float
        Time [s] after which the function returns.
    clock, wait : callable
        Functions that return the time [s] and wait for a time [s].

    """
    before, passed = clock(), 0.0
    while passed < duration:
        show(servos.state)
        wait(PERIOD)
        now = clock()
        passed += max(0.0, now - before)
        servos.advance(now - before)
        before = now
    show(servos.state)


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    text = (__doc__ or "").partition("\n\n")[0]
    parser = argparse.ArgumentParser(prog="arm-dynamics demo puma560", description=text)
    add, output = parser.add_argument, registry.OUT / ARM
    text = "port of the page; 0 for any free one (default: 8080)"
    add("--port", type=port("--port"), default=8080, metavar="PORT", help=text)
    text = "duration [s], with --auto (default: until Ctrl-C)"
    add("--duration", type=seconds("--duration"), default=inf, metavar="S", help=text)
    add("--auto", action="store_true", help="move the sliders automatically")
    text = f"folder of the figures (default: {output})"
    add("--output", type=Path, metavar="FOLDER", default=output, help=text)
    return parser
