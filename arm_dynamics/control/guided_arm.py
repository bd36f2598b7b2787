"""Simulated leader arm that a simulated hand moves on a slow sine."""

from __future__ import annotations

from math import cos, pi, sin

import numpy as np

from arm_dynamics.control.controllers.pid import Pid
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.state import Command, Reference
from arm_dynamics.dynamics.rigid_body import gravity
from arm_dynamics.hardware.simulation_driver import SimulationDriver
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.simulation import Simulation

AMPLITUDE, MOTION_PERIOD = 0.3, 8.0
"""Amplitude as a fraction of half the range of each joint, and period [s], of the motion."""
UNLIMITED_RANGE = 2.0
"""Range [rad or m] assumed for a joint without position limits."""


def sine_motion(
    arm: ArmModel, time: float, amplitude: float = AMPLITUDE, period: float = MOTION_PERIOD
) -> Reference:
    """Return q = m + A h sin(2π t / T) with the middle m and half the range h of each joint.

    Parameters
    ----------
    arm : ArmModel
        Arm; the middle of a joint without position limits is its initial position.
    time : float
        Time t [s].
    amplitude : float
        A, a fraction of half the range.
    period : float
        T [s].

    """
    middle, half = _ranges(arm)
    w = 2 * pi / period
    size, phase = amplitude * half, w * time
    q, v, a = middle + size * sin(phase), size * w * cos(phase), -size * w**2 * sin(phase)
    return Reference(as_readonly(q), as_readonly(v), as_readonly(a))


def _ranges(arm: ArmModel) -> tuple[Vector, Vector]:
    """Return middle and half the range (nv,) of each joint [rad or m]."""
    limited = np.isfinite(arm.upper - arm.lower)
    lower, upper = np.where(limited, arm.lower, 0.0), np.where(limited, arm.upper, 0.0)
    middle = np.where(limited, (lower + upper) / 2, arm.configuration("initial"))
    return middle, np.where(limited, (upper - lower) / 2, UNLIMITED_RANGE / 2)


class GuidedArm(SimulationDriver):
    """Simulated arm whose joints a hand pulls to ``sine_motion`` with tau_h = p e + d ė.

    Without a command, as without torque, the hand also supports the weight g(q).

    Parameters
    ----------
    arm : ArmModel
        Arm with actuators that accept efforts.
    period : float
        Control period [s].
    amplitude, motion_period : float
        Parameters of ``sine_motion``.

    """

    def __init__(
        self,
        arm: ArmModel,
        period: float = 2e-3,
        amplitude: float = AMPLITUDE,
        motion_period: float = MOTION_PERIOD,
    ) -> None:
        super().__init__(arm, Simulation(arm, q=sine_motion(arm, 0.0).q, period=period))
        self._motion = amplitude, motion_period
        self._hand = Pid(arm, {name: {"i": 0.0} for name in arm.joint_names})

    def write(self, command: Command) -> None:
        """Apply the command and the hand for one control period."""
        self._advance(command.value)

    def idle(self) -> None:
        """Apply the hand, which supports the weight, for one control period."""
        self._advance(gravity(self.arm, self.simulation.state.q))

    def _advance(self, effort: Vector) -> None:
        state = self.simulation.state
        hand = self._hand.update(state, sine_motion(self.arm, state.time, *self._motion), 0.0).value
        limit = self.arm.effort_limit
        total = as_readonly(np.clip(effort + hand, -limit, limit))
        self.simulation.submit(Command("effort", total, state.time))
        self.simulation.advance()
