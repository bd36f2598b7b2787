"""Where an arm of position servos is held: a servo stands behind its goal under its load."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.state import Command, State
from arm_dynamics.safety.controlled_stop import SAG


class PositionHold:
    """Remembers the last position command of a loop.

    Held from where its load has bent it, an arm would sink with every interruption.
    """

    def __init__(self) -> None:
        self._goal: Vector | None = None

    def note(self, command: Command) -> None:
        """A command (nv,) that was written."""
        self._goal = command.value if command.interface == "position" else None

    def reset(self) -> None:
        """The last goal says nothing of where the arm is now."""
        self._goal = None

    def standing(self, state: State, held: Vector | None) -> State:
        """``state`` with q = q_goal if |q_goal - q| <= SAG for every joint, else as it is.

        An arm that is further from its goal was moved, or is blocked. q_goal (nv,) [rad or m] is
        ``held``, the goals that the driver knows to be in force, else the last command.
        """
        goal = self._goal if held is None else held
        if goal is None or not (np.abs(goal - state.q) <= SAG).all():
            return state
        return replace(state, q=goal)
