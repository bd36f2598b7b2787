"""An arm of rate-limited servos, moved by the time that passes; safe from any thread."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi
from threading import Lock

import numpy as np

from arm_dynamics.arrays import Vector, scalar, vector
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.plant import Plant
from arm_dynamics.state import Command, State

NAMES = ("minimum", "maximum", "angular_velocity")
COLUMNS = ("min [rad]", "max [rad]", "[rad/s]")
RANGES = ((0.0, 2 * pi), (0.0, 2 * pi), (0.0, 100.0))
"""What the page allows of each."""


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
    def parameters(self) -> dict[str, tuple[float, float, float]]:
        """Joint → minimum [rad], maximum [rad], angular velocity [rad/s]."""
        every = (actuator.constants for actuator in self.arm.actuators)
        rows = ((c["minimum"], c["maximum"], c["angular_velocity"]) for c in every)
        return dict(zip(self.arm.joint_names, rows, strict=True))

    @property
    def desired(self) -> Vector:
        """Where the joints are on their way to (n,) [rad]: commands within their limits."""
        return self.state.act[::2]

    def follow(self, target: Sequence[float]) -> None:
        """Command the joints [rad] whose sliders moved; the others keep what they have."""
        slid = vector("sliders", target, self.arm.nv)
        with self._lock:
            self._command = np.where(slid != self._slid, slid, self._command)
            self._slid = slid

    def change(self, joint: str, numbers: Sequence[float]) -> None:
        """Set a joint's parameters; the velocity acts at once, limits on the next command.

        Raises InvalidValue naming what is out of its range; the old ones then stay.
        """
        given = zip(NAMES, numbers, RANGES, strict=True)
        constants = {
            name: scalar(f"{joint}: {name}", number, lower=low, upper=high)
            for name, number, (low, high) in given
        }
        plant = Plant(self.arm.with_motor(joint, **constants))
        index = self.arm.index(joint)
        with self._lock:
            self._plant = plant
            self._slid = self._slid.copy()  # the slider itself follows the limits: no command
            low, high = constants["minimum"], constants["maximum"]
            self._slid[index] = min(max(self._slid[index], low), high)

    def advance(self, elapsed: float) -> State:
        """The state after ``elapsed`` [s]; no time passes where that is not above 0."""
        with self._lock:
            if elapsed > 0:
                command = Command.checked("position", self._command, self.arm.nv)
                self.state = self._plant.step(self.state, command, elapsed)
            return self.state
