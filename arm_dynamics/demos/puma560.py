"""Command six servos of a Puma 560 by sliders of the viewer; their limits are editable.

Source: the simulation of the MCA2 tutorial, whose joints move from 0 to 2 pi independently of the
arm's position limits.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count
from math import inf
from pathlib import Path
from threading import Lock

import numpy as np

from arm_dynamics.core.arrays import Vector, as_readonly, check_vector
from arm_dynamics.core.figure_style import INK, PALETTE, figure, heading, label, legend, styled
from arm_dynamics.core.files import prepare_folder
from arm_dynamics.core.number_option import port, seconds
from arm_dynamics.core.state import Command, State
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.demos import registry
from arm_dynamics.demos.demo_result import DemoFigure, DemoResult, format_row
from arm_dynamics.demos.writer import print_results, write_figures
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.load import load_arm
from arm_dynamics.simulation.plant import Plant
from arm_dynamics.viewer import ArmPage

ARM = "puma560"
LABELS = {
    "min [rad]": "min_position",
    "max [rad]": "max_position",
    "velocity [rad/s]": "max_velocity",
}
PERIOD = 1 / 60
"""Time [s] between two states of the page."""
TOUR = (
    (0.5, (1.5, 0.8, 0.0, 0.0, 0.0, 0.0)),
    (2.5, (1.5, 0.8, 0.6, 2.0, 0.0, 0.0)),
    (4.0, (0.5, 0.8, 0.6, 2.0, 1.0, 3.0)),
    (6.0, (0.5, 1.2, 0.2, 1.0, 1.0, 0.5)),
    (8.5, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)),
)
"""Times [s] and the angles [rad] that are commanded from each time on."""
TOUR_SECONDS = 11.0
"""Duration [s] of the script."""


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
            write_figures(session_result(ARM, servos.arm, session), options.output), options.output
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
    return session_result(ARM, servos.arm, session)


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
    parser = SuggestingParser(prog="arm-dynamics demo puma560", description=text)
    add, output = parser.add_argument, registry.OUT / ARM
    text = "port of the page; 0 for any free one (default: 8080)"
    add("--port", type=port("--port"), default=8080, metavar="PORT", help=text)
    text = "duration [s], with --auto (default: until Ctrl-C)"
    add("--duration", type=seconds("--duration"), default=inf, metavar="S", help=text)
    add("--auto", action="store_true", help="move the sliders automatically")
    text = f"folder of the figures (default: {output})"
    add("--output", type=Path, metavar="FOLDER", default=output, help=text)
    return parser


class SliderScript:
    """Commands the angles of ``TOUR``, each once at its time."""

    def __init__(self, command: Callable[[Sequence[float]], None]) -> None:
        self._command, self._left = command, list(TOUR)

    def __call__(self, time: float) -> None:
        """Command the angles that are due at ``time`` [s]."""
        while self._left and self._left[0][0] <= time:
            self._command(self._left.pop(0)[1])


class Session:
    """States shown on the page; of a standstill only the first and the last state are stored."""

    def __init__(self) -> None:
        self._rows: list[tuple[float, bytes, State]] = []

    def add(self, state: State) -> None:
        """Append a state of an arm with rate-limited servos."""
        angles = state.q.tobytes() + state.act.tobytes()
        if [row[1] for row in self._rows[-2:]] == [angles, angles]:
            self._rows.pop()
        self._rows.append((state.time, angles, state))

    @property
    def states(self) -> tuple[State, ...]:
        """The stored states."""
        return tuple(state for _, _, state in self._rows)


@styled
def session_result(name: str, arm: ArmModel, session: Session) -> DemoResult:
    """Draw commanded and simulated angles of each joint; ``arm`` contains the velocity limits."""
    states = session.states
    time = np.array([state.time for state in states])
    q = np.array([state.q for state in states])
    desired = np.array([state.act[::2] for state in states])
    numbers = (
        ("duration", f"{time[-1]:.2f} s"),
        ("distances of the joints", f"{format_row(np.abs(np.diff(q, axis=0)).sum(axis=0))} rad"),
        ("largest following errors", f"{format_row(np.abs(desired - q).max(axis=0))} rad"),
    )
    drawn, grid = figure(f"{name}: sliders and servos", 3, 2, 7.2, sharex=True, sharey=True)
    for i, axes in enumerate(grid.flat):
        axes.plot(time, desired[:, i], "--", color=INK, drawstyle="steps-post", label="commanded")
        axes.plot(time, q[:, i], color=PALETTE[0], label="simulated")
        speed = arm.actuators[i].constants["max_velocity"]
        heading(axes, f"{arm.joint_names[i]}: at most {speed:g} rad/s")
        label(axes, "time [s]" if i > 3 else "", "angle [rad]")
        legend(axes)
    drawn.align_ylabels()
    caption = (
        "Commanded angles within the joint limits, and simulated angles of the servos. The title of"
        " each plot is the velocity limit at the end of the session. A ramp is a servo at its"
        " limit; a servo reverses immediately when its command does."
    )
    picture = DemoFigure(f"{name}_session", caption, drawn)
    return DemoResult("Sliders and servos of limited speed", (picture,), numbers)


class Servos:
    """Arm of rate-limited servos, initially at rest at zero; safe for use by several threads."""

    def __init__(self, arm: ArmModel) -> None:
        self._lock = Lock()
        self._plant = Plant(arm)
        self._command = self._sliders = np.zeros(arm.nv)
        self.state = State.of(self._command, act=arm.initial_act)

    @property
    def arm(self) -> ArmModel:
        """The arm with the active parameters."""
        return self._plant.arm

    @property
    def parameters(self) -> dict[str, dict[str, float]]:
        """Parameters by joint: min_position, max_position [rad], max_velocity [rad/s]."""
        return {actuator.joint: dict(actuator.constants) for actuator in self.arm.actuators}

    @property
    def desired(self) -> Vector:
        """Targets of the servos (n,) [rad]: commands clamped to their limits."""
        return self.state.act[::2]

    def follow(self, target: Sequence[float]) -> None:
        """Command the joints [rad] whose sliders moved; the others keep their commands."""
        sliders = check_vector("sliders", target, self.arm.nv)
        with self._lock:
            moved, act = sliders != self._sliders, self.state.act
            self._command = np.where(moved, sliders, self._command)
            sent = self.arm.act_after_command(self._command, act)
            self.state = replace(
                self.state, act=as_readonly(np.where(np.repeat(moved, 2), sent, act))
            )
            self._sliders = sliders

    def change(self, joint: str, name: str, number: float) -> None:
        """Set one parameter of a joint.

        A velocity limit acts immediately, a position limit on the next command.

        Raises
        ------
        InvalidValue
            If the number is out of its range; the parameter then keeps its value.

        """
        plant = Plant(self.arm.with_motor(joint, **{name: number}))
        low, high = (
            [a.constants[limit] for a in plant.arm.actuators]
            for limit in ("min_position", "max_position")
        )
        with self._lock:
            self._plant = plant
            self._sliders = np.clip(self._sliders, low, high)  # like the page, without a command

    def advance(self, elapsed: float) -> State:
        """Return the state after ``elapsed`` [s]; the present state if that is not above 0."""
        with self._lock:
            if elapsed > 0:
                command = Command.checked("position", self._command, self.arm.nv)
                self.state = self._plant.step(self.state, command, elapsed)
            return self.state
