"""How an arm stops: hold its place, damp, come to a rest without stiffness, or let go."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.dynamics import gravity, mass_matrix
from arm_dynamics.errors import ConfigError
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.safety.safe_stop import STOP_TIME, SafeStop, largest_rate
from arm_dynamics.state import Command, State
from arm_dynamics.timing import UNTIMED, LoopTiming

RAMP_ENDS = 0.5
"""Time [s] after which a ramped stop has ended: e^-5 of the speed is left."""

SAG = 0.1
"""Way [rad] that a position servo may stand behind its goal under its load."""


class Stop(Protocol):
    """One stop, from the state that it began at."""

    def command(self, state: State) -> Command:
        """What the motors get at this state."""

    def path(self, time: float) -> tuple[Vector, Vector]:
        """Where the stop means the arm to be at ``time`` [s]: q and v, each (nv,)."""


class Damp:
    """τ = -D v,  D = ``damping`` at the start: the arm sinks slowly under its weight."""

    def __init__(self, arm: ArmModel, state: State, timing: LoopTiming = UNTIMED) -> None:
        self.arm = arm
        self._start = state
        self._D = damping(arm, state, timing)

    def command(self, state: State) -> Command:
        """Efforts (nv,) [N·m]."""
        return Command("effort", -self._D * state.v, state.time)

    def path(self, time: float) -> tuple[Vector, Vector]:
        """Where it began, at rest: a joint that is not seen gets no effort."""
        return self._start.q, np.zeros(self.arm.nv)


class Ramp:
    """``SafeStop`` until RAMP_ENDS, then gravity held without stiffness: τ = g(q) - D v."""

    def __init__(self, arm: ArmModel, state: State, timing: LoopTiming = UNTIMED) -> None:
        self.arm = arm
        self._start = state
        self._stop = safe_stop(arm, state, state.tau, timing)
        self._D = damping(arm, state, timing)

    def command(self, state: State) -> Command:
        """Efforts (nv,) [N·m]."""
        if state.time - self._start.time < RAMP_ENDS:
            return self._stop.command(state)
        return Command("effort", gravity(self.arm, state.q) - self._D * state.v, state.time)

    def path(self, time: float) -> tuple[Vector, Vector]:
        """The path of the ramp, at rest after its end."""
        return self._stop.path(time)


class HoldPosition:
    """Goals stay where they were sent last, no further than SAG from where the arm is.

    A servo that carries a weight stands a little behind its goal; one that is blocked, far.
    """

    def __init__(self, arm: ArmModel, state: State, goal: Vector) -> None:
        self._start = state
        self._goal = np.minimum(np.maximum(goal, state.q - SAG), state.q + SAG)
        self._rest = np.zeros(arm.nv)

    def command(self, state: State) -> Command:
        """Positions (nv,) [rad]."""
        return Command("position", self._goal, state.time)

    def path(self, time: float) -> tuple[Vector, Vector]:
        """Where it began, at rest."""
        return self._start.q, self._rest


class HoldStill:
    """v = v0 e^(-s / STOP_TIME): the last velocity goals decay."""

    def __init__(self, arm: ArmModel, state: State, goal: Vector) -> None:
        self._start, self._goal = state, goal.copy()

    def command(self, state: State) -> Command:
        """Velocities (nv,) [rad/s]."""
        return Command("velocity", self.path(state.time)[1], state.time)

    def path(self, time: float) -> tuple[Vector, Vector]:
        """q = q0 + v0 T (1 - e^(-s / T)) and v."""
        decay = float(np.exp(-max(0.0, time - self._start.time) / STOP_TIME))
        return self._start.q + self._goal * STOP_TIME * (1 - decay), self._goal * decay


def begin_stop(
    policy: str,
    interface: str,
    arm: ArmModel,
    state: State,
    last: Vector,
    timing: LoopTiming = UNTIMED,
) -> Stop:
    """The stop of ``policy`` on ``interface``, from ``state`` after the ``last`` command (nv,).

    ``timing`` is that of the loop: gains are no higher than is stable.
    """
    if interface == "position":
        return HoldPosition(arm, state, last)
    if interface == "velocity":
        return HoldStill(arm, state, last)
    if policy == "damp":
        return Damp(arm, state, timing)
    return Ramp(arm, state, timing) if policy == "ramp" else safe_stop(arm, state, last, timing)


def damping(arm: ArmModel, state: State, timing: LoopTiming) -> Vector:
    """D = M_ii min(1 / STOP_TIME, w) (nv,) [N·m·s/rad], w the ``largest_rate`` of the loop."""
    M = mass_matrix(arm, state.q)
    found: Vector = np.diag(M) * min(1 / STOP_TIME, largest_rate(M, timing))
    return found


def safe_stop(arm: ArmModel, state: State, last: Vector, timing: LoopTiming) -> SafeStop:
    """One that leads no joint back that begins beyond its limit: a hand may be in between."""
    bounds = np.minimum(arm.lower, state.q), np.maximum(arm.upper, state.q)
    return SafeStop(arm, state, last, bounds, timing)


def require_policy(policy: str, interface: str) -> None:
    """Raises ConfigError for a stop that motors on ``interface`` cannot make."""
    allowed = ("hold", "disable")
    if interface in ("position", "velocity") and policy not in allowed:
        raise ConfigError(
            f"stop policy '{policy}' sets efforts, which motors on interface '{interface}' do not"
            f" take; allowed: {', '.join(allowed)}"
        )
