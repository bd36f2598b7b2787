"""One joint led slowly within bounds; the others are held where they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.controllers.base import Controller
from arm_dynamics.drivers.motor_arm import MotorArm
from arm_dynamics.drivers.status import Status
from arm_dynamics.errors import DriverFault
from arm_dynamics.state import Command, Reference, State

LEAD = 0.15
"""Farthest that the reference runs ahead of the joint [rad or m]: it waits for one that is held."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Speed [rad/s or m/s], and the positions [rad or m] that the joint is led between."""

    speed: float
    lower: float
    upper: float


class JogMotion:
    """x' = way · speed while lower <= x <= upper and |x - q| < LEAD, way one of -1, 0, 1.

    Each ``tick`` is one cycle of the driver. Whenever it does not obey, the law begins anew at
    the measured position.
    """

    def __init__(self, driver: MotorArm, law: Controller, joint: int, bounds: Bounds) -> None:
        self.driver, self.bounds, self.joint = driver, bounds, joint
        self._law = law
        self._reference: Vector | None = None
        self._time = 0.0

    @property
    def goal(self) -> float:
        """Where the joint is led to at present [rad or m]; NaN before the first tick."""
        return float("nan") if self._reference is None else float(self._reference[self.joint])

    def rehearse(self) -> None:
        """Have the law work out commands that are not sent: what it compiles takes its time now.

        Raises DriverFault where no joint is known.
        """
        state = self.driver.read()
        self._begin(state)
        self._command(state, 0.0, 0.0)
        self._command(state, 0.0, 1e-3)
        self._reference = None

    def tick(self, way: float) -> None:
        """Read, lead the joint on, write; a stopped arm is asked to stay where it is."""
        try:
            state = self.driver.read()
        except DriverFault:
            self._idle()
            return
        if not (self.driver.status.drives and np.isfinite([state.q, state.v]).all()):
            self._idle()
        elif self.driver.status is Status.ACTIVE:
            self._follow(state, way)
        else:
            self._reference = None
            self._follow(state, 0.0)

    def _idle(self) -> None:
        self._reference = None
        self.driver.idle()

    def _follow(self, state: State, way: float) -> None:
        if self._reference is None:
            self._begin(state)
        dt, self._time = max(0.0, state.time - self._time), state.time
        self.driver.write(self._command(state, way, dt))

    def _begin(self, state: State) -> None:
        self._law.reset(state)
        self._reference, self._time = np.array(state.q), state.time

    def _command(self, state: State, way: float, dt: float) -> Command:
        """The law's, for the reference a time dt later."""
        assert self._reference is not None
        before, v = self.goal, np.zeros_like(self._reference)
        self._reference[self.joint] = self._led(before, float(state.q[self.joint]), way, dt)
        v[self.joint] = (self.goal - before) / dt if dt > 0 else 0.0
        reference = Reference(self._reference, v, np.zeros_like(v))
        return self._law.update(state, reference, dt)

    def _led(self, x: float, q: float, way: float, dt: float) -> float:
        """The reference a time dt later; one that is outside its bounds may only come back."""
        bounds, step = self.bounds, way * self.bounds.speed * min(dt, 0.1)
        wanted = x + step
        if way > 0:
            return max(x, min(wanted, bounds.upper, q + LEAD))
        return min(x, max(wanted, bounds.lower, q - LEAD)) if way < 0 else x
