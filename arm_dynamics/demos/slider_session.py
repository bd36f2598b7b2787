"""Servos of the slider demonstration, a script of slider motions, and a figure of the session."""

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
"""Times [s] and the angles [rad] that are commanded from each time on."""
TOUR_SECONDS = 11.0
"""Duration [s] of the script."""


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
def session_show(name: str, arm: ArmModel, session: Session) -> DemoResult:
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
            sent = self.arm.resent_act(self._command, act)
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
