"""Arm that emulated motors move: a plant driven by the efforts of motor shafts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.state import Command, State
from arm_dynamics.hardware.emulation.emulated_motors import EmulatedMotors
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.plant import Plant


class EmulatedArm:
    """Arm with q_m = s N (q - b) and τ = s N τ_m on each shaft, independent of the drivers.

    With ``hands``, the arm is held until all motors apply torque for the first time. ``hold_at``
    can hold it until any motor does. ``moved`` is each joint's maximum distance [rad] from its
    start, ``fastest`` its maximum speed [rad/s], ``strongest`` the maximum motor effort [N·m].
    """

    def __init__(
        self,
        arm: ArmModel,
        motors: EmulatedMotors,
        q: Sequence[float] | Vector,
        *,
        sign: Sequence[float] | None = None,
        offset: Sequence[float] | None = None,
        ratio: Sequence[float] | None = None,
        step: float = 5e-4,
        hands: bool = True,
    ) -> None:
        ones = np.ones(arm.nv)
        self.plant = Plant(arm)
        self.motors, self.step, self.hands = motors, step, hands
        self._until: Callable[[Iterable[bool]], bool] = all
        self._gain = (ones if sign is None else np.array(sign)) * (ones if ratio is None else ratio)
        self._offset = np.zeros(arm.nv) if offset is None else np.array(offset)
        self.state = State.of(q)
        self.time = 0.0
        self.forget()
        self._place()

    def hold_at(
        self, q: Sequence[float] | Vector, until: Callable[[Iterable[bool]], bool] = all
    ) -> None:
        """Move the arm to ``q`` and hold it until all (any) motors apply torque."""
        self.state, self.hands, self._until = State.of(q, time=self.state.time), True, until
        self._place()

    def forget(self) -> None:
        """Measure ``moved``, ``fastest`` and ``strongest`` from now on."""
        self.start = self.state.q.copy()
        self.moved = np.zeros(self.start.size)
        self.fastest = np.zeros(self.start.size)
        self.strongest = np.zeros(self.start.size)

    def advance(self, now: float) -> None:
        """Simulate up to the time ``now`` [s]."""
        while self.time + self.step <= now:
            self.time += self.step
            self.motors.step(self.time)
            self._let_pass()

    def _let_pass(self) -> None:
        shafts = self.motors.shafts
        tau = self._gain * [shaft.effort for shaft in shafts]
        self.strongest = np.maximum(self.strongest, np.abs(tau))
        if self.hands:
            self.hands = not self._until(self.motors.torque_is_on(shaft.id) for shaft in shafts)
            return
        limit = self.plant.arm.effort_limit
        command = Command.checked("effort", np.clip(tau, -limit, limit), tau.size)
        self.state = self.plant.step(self.state, command, self.step)
        self.moved = np.maximum(self.moved, np.abs(self.state.q - self.start))
        self.fastest = np.maximum(self.fastest, np.abs(self.state.v))
        self._place()

    def _place(self) -> None:
        q, v = self._gain * (self.state.q - self._offset), self._gain * self.state.v
        for shaft, angle, speed in zip(self.motors.shafts, q.tolist(), v.tolist(), strict=True):
            shaft.q, shaft.v = angle, speed
