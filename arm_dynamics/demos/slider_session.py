"""What happened on a live page: a script that moves it, its samples, and their figure.

An arm of rate-limited servos, moved by the time that passes; safe from any thread.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock

import numpy as np

from arm_dynamics.core.arrays import Vector, as_readonly, check_vector
from arm_dynamics.core.figure_style import INK, PALETTE, figure, heading, label, legend, styled
from arm_dynamics.core.state import Command, State
from arm_dynamics.demos.demo_result import DemoFigure, DemoResult, format_row
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.plant import Plant

TOUR = (
    (0.5, (1.5, 0.8, 0.0, 0.0, 0.0, 0.0)),
    (2.5, (1.5, 0.8, 0.6, 2.0, 0.0, 0.0)),
    (4.0, (0.5, 0.8, 0.6, 2.0, 1.0, 3.0)),
    (6.0, (0.5, 1.2, 0.2, 1.0, 1.0, 0.5)),
    (8.5, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)),
)
"""Times [s] and the angles [rad] that are commanded from then on."""
TOUR_SECONDS = 11.0


class SliderScript:
    """Commands the angles of ``TOUR``, each once when its time has come."""

    def __init__(self, command: Callable[[Sequence[float]], None]) -> None:
        self._command, self._left = command, list(TOUR)

    def __call__(self, time: float) -> None:
        """Command what is due at ``time`` [s]."""
        while self._left and self._left[0][0] <= time:
            self._command(self._left.pop(0)[1])


class Session:
    """Time [s], desired and simulated angles [rad] of the states shown; standstill costs nothing.

    Of states in a row in which nothing moves, the first and the last are kept.
    """

    def __init__(self) -> None:
        self._rows: list[tuple[float, bytes, State]] = []

    def add(self, state: State) -> None:
        """Keep one more state of an arm of rate-limited servos."""
        angles = state.q.tobytes() + state.act.tobytes()
        if [kept[1] for kept in self._rows[-2:]] == [angles, angles]:
            self._rows.pop()
        self._rows.append((state.time, angles, state))

    @property
    def states(self) -> tuple[State, ...]:
        """The states that are kept."""
        return tuple(state for _, _, state in self._rows)


@styled
def session_show(name: str, arm: ArmModel, session: Session) -> DemoResult:
    """Commanded and simulated angles of each joint over time; ``arm`` tells the speeds."""
    states = session.states
    time = np.array([state.time for state in states])
    q = np.array([state.q for state in states])
    desired = np.array([state.act[::2] for state in states])
    numbers = (
        ("time shown", f"{time[-1]:.2f} s"),
        ("ways of the joints", f"{format_row(np.abs(np.diff(q, axis=0)).sum(axis=0))} rad"),
        ("largest lags behind the command", f"{format_row(np.abs(desired - q).max(axis=0))} rad"),
    )
    picture = _angles(name, arm, time, desired, q)
    return DemoResult("Sliders and servos of limited speed", (picture,), numbers)


def _angles(name: str, arm: ArmModel, time: Vector, desired: Vector, q: Vector) -> DemoFigure:
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
        "Commanded angles, held within the joints' limits, and those of the servos, which follow"
        " at no more than the speed above each plot (the one at the end, where it was edited):"
        " a ramp is a servo at its limit, and one that is called back turns round at once."
    )
    return DemoFigure(f"{name}_session", caption, drawn)


class Servos:
    """Commanded angles and parameters in, states out. Starts at rest at zero."""

    def __init__(self, arm: ArmModel) -> None:
        self._lock = Lock()
        self._plant = Plant(arm)
        self._command = self._slid = np.zeros(arm.nv)
        self.state = State.of(self._command, act=arm.initial_act)

    @property
    def arm(self) -> ArmModel:
        """The arm with the parameters in force."""
        return self._plant.arm

    @property
    def parameters(self) -> dict[str, dict[str, float]]:
        """Joint → parameter → number [rad, rad, rad/s]."""
        return {actuator.joint: dict(actuator.constants) for actuator in self.arm.actuators}

    @property
    def desired(self) -> Vector:
        """Where the joints are on their way to (n,) [rad]: commands within their limits."""
        return self.state.act[::2]

    def follow(self, target: Sequence[float]) -> None:
        """Command the joints [rad] whose sliders moved; the others keep what they have."""
        slid = check_vector("sliders", target, self.arm.nv)
        with self._lock:
            moved, act = slid != self._slid, self.state.act
            self._command = np.where(moved, slid, self._command)
            sent = self.arm.resent_act(self._command, act)
            self.state = replace(
                self.state, act=as_readonly(np.where(np.repeat(moved, 2), sent, act))
            )
            self._slid = slid

    def change(self, joint: str, name: str, number: float) -> None:
        """Set one parameter of a joint: a velocity acts at once, limits on the next command.

        Raises InvalidValue naming what is out of its range; the old one then stays.
        """
        plant = Plant(self.arm.with_motor(joint, **{name: number}))
        low, high = (
            [a.constants[limit] for a in plant.arm.actuators]
            for limit in ("min_position", "max_position")
        )
        with self._lock:
            self._plant = plant
            self._slid = np.clip(self._slid, low, high)  # as the sliders do: no command

    def advance(self, elapsed: float) -> State:
        """The state after ``elapsed`` [s]; no time passes where that is not above 0."""
        with self._lock:
            if elapsed > 0:
                command = Command.checked("position", self._command, self.arm.nv)
                self.state = self._plant.step(self.state, command, elapsed)
            return self.state
