"""What happened on a live page: a script that moves it, its samples, and their figure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.demos.show import Picture, Show, row
from arm_dynamics.demos.style import INK, PALETTE, figure, heading, label, legend, styled
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.state import State

TOUR = (
    (0.5, (1.5, 0.8, 0.0, 0.0, 0.0, 0.0)),
    (2.5, (1.5, 0.8, 0.6, 2.0, 0.0, 0.0)),
    (4.0, (0.5, 0.8, 0.6, 2.0, 1.0, 3.0)),
    (6.0, (0.5, 1.2, 0.2, 1.0, 1.0, 0.5)),
    (8.5, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)),
)
"""Times [s] and the angles [rad] that are commanded from then on."""
TOUR_SECONDS = 11.0


class Tour:
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
def session_show(name: str, arm: ArmModel, session: Session) -> Show:
    """Commanded and simulated angles of each joint over time; ``arm`` tells the speeds."""
    states = session.states
    time = np.array([state.time for state in states])
    q = np.array([state.q for state in states])
    desired = np.array([state.act[::2] for state in states])
    numbers = (
        ("time shown", f"{time[-1]:.2f} s"),
        ("ways of the joints", f"{row(np.abs(np.diff(q, axis=0)).sum(axis=0))} rad"),
        ("largest lags behind the command", f"{row(np.abs(desired - q).max(axis=0))} rad"),
    )
    picture = _angles(name, arm, time, desired, q)
    return Show("Sliders and servos of limited speed", (picture,), numbers)


def _angles(name: str, arm: ArmModel, time: Vector, desired: Vector, q: Vector) -> Picture:
    drawn, grid = figure(f"{name}: sliders and servos", 3, 2, 7.2, sharex=True, sharey=True)
    for i, axes in enumerate(grid.flat):
        axes.plot(time, desired[:, i], "--", color=INK, drawstyle="steps-post", label="commanded")
        axes.plot(time, q[:, i], color=PALETTE[0], label="simulated")
        speed = arm.actuators[i].constants["angular_velocity"]
        heading(axes, f"{arm.joint_names[i]}: at most {speed:g} rad/s")
        label(axes, "time [s]" if i > 3 else "", "angle [rad]")
        legend(axes)
    drawn.align_ylabels()
    caption = (
        "Commanded angles, held within the joints' limits, and those of the servos, which follow"
        " at no more than the speed above each plot (the one at the end, where it was edited):"
        " a ramp is a servo at its limit, and one that is called back turns round at once."
    )
    return Picture(f"{name}_session", caption, drawn)
