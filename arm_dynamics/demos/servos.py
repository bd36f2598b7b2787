"""An arm of rate-limited servos, moved by the time that passes; safe from any thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from threading import Lock

import numpy as np

from arm_dynamics.arrays import Vector, frozen, vector
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.plant import Plant
from arm_dynamics.state import Command, State


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
        slid = vector("sliders", target, self.arm.nv)
        with self._lock:
            moved, act = slid != self._slid, self.state.act
            self._command = np.where(moved, slid, self._command)
            sent = self.arm.resent_act(self._command, act)
            self.state = replace(self.state, act=frozen(np.where(np.repeat(moved, 2), sent, act)))
            self._slid = slid

    def change(self, joint: str, name: str, number: float) -> None:
        """Set one parameter of a joint: a velocity acts at once, limits on the next command.

        Raises InvalidValue naming what is out of its range; the old one then stays.
        """
        plant = Plant(self.arm.with_motor(joint, **{name: number}))
        low, high = (
            [a.constants[limit] for a in plant.arm.actuators] for limit in ("minimum", "maximum")
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
