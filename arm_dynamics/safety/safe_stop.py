"""How an arm comes to rest when nobody commands it."""

from __future__ import annotations

import numpy as np

from arm_dynamics.arrays import Vector
from arm_dynamics.dynamics import mass_matrix, rnea
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.state import MIXED, Command, State
from arm_dynamics.timing import UNTIMED, LoopTiming

STOP_TIME = 0.1
"""Time constant [s] at which the velocity decays."""
RAMP = 0.02
"""Time [s] over which the last command gives way to the stop."""
BANDWIDTH = 20.0
"""Natural frequency [rad/s] that holds the stopping path against model error."""
FASTEST = 100.0
"""Highest natural frequency [rad/s] that a control period of some milliseconds allows."""
REACTION = 0.8
"""Fraction of 1 / T that is the largest stable rate of a loop of period T, with a margin."""
LATE = 1.4
"""Factor on the delay: (1 + LATE d) T is the period of a loop as fast, but without delay."""
GRIP = 0.4
"""Stiffness per effort limit [1/rad]: a light wrist must hold a load it knows nothing of."""


class SafeStop:
    """A ramped stop with gravity held.

    Path:   v_d = v0 e^(-s/T),  q_d = q0 + v0 T (1 - e^(-s/T)),  s = time since the start;
    effort: tau = RNEA(q, v, -v_d/T) + K (q_d - q) + D (v_d - v),
    blended from the last command over RAMP. T is shortened per joint so that the path ends
    short of its limit. A joint that goes where it is told is held at q0.
    K = w² M_ii, or GRIP of the effort limit where that is more and not
    faster than FASTEST, and no faster than ``largest_rate``; D = 1.6 sqrt(K M_ii).
    Source: PD control with computed feedforward, Siciliano et al. (2009), 8.5.1.
    """

    def __init__(
        self,
        arm: ArmModel,
        state: State,
        last_effort: Vector,
        bounds: tuple[Vector, Vector] | None = None,
        timing: LoopTiming = UNTIMED,
    ) -> None:
        """``bounds``: positions (nv,), (nv,) that the path stays between, by default the limits.

        ``timing`` of the loop: a slow or late one gets no more stiffness than is stable.
        """
        self.arm = arm
        self._start = state
        self._last = np.where(np.isfinite(last_effort), last_effort, 0.0)
        self._lower, self._upper = bounds or (arm.lower, arm.upper)
        self._rest = np.clip(state.q, self._lower, self._upper)
        self._times = self._stop_times(state)
        M = mass_matrix(arm, state.q)
        m = np.diag(M)
        stiff = np.maximum(BANDWIDTH**2 * m, np.minimum(GRIP * arm.effort_limit, FASTEST**2 * m))
        self._K = np.minimum(stiff, largest_rate(M, timing) ** 2 * m)
        self._D = 1.6 * np.sqrt(self._K * m)
        self._told = np.array([actuator.prescribes for actuator in arm.actuators])
        forced = MIXED if self._told.any() else "effort"
        self._interface = "position" if self._told.all() else forced

    def command(self, state: State) -> Command:
        """Command (nv,): efforts [N·m] within the limits, positions where these are taken."""
        q_d, v_d = self.path(state.time)
        hold = rnea(self.arm, state.q, state.v, -v_d / self._times)
        hold = hold + self._K * (q_d - state.q) + self._D * (v_d - state.v)
        share = min(1.0, max(0.0, (state.time - self._start.time) / RAMP))
        tau = (1 - share) * self._last + share * hold
        limit = self.arm.effort_limit
        value = np.where(self._told, self._start.q, np.clip(tau, -limit, limit))
        return Command.checked(self._interface, value, self.arm.nv, state.time)

    def path(self, time: float) -> tuple[Vector, Vector]:
        """Where the stop means the arm to be at ``time`` [s]: q_d and v_d, each (nv,)."""
        decay = np.exp(-(time - self._start.time) / self._times)
        way = self._start.v * self._times * (1 - decay)
        return np.clip(self._rest + way, self._lower, self._upper), self._start.v * decay

    def _stop_times(self, state: State) -> Vector:
        """T = min(STOP_TIME, 0.8 distance to the limit ahead / |v|), at least 10 ms."""
        ahead = np.where(state.v > 0, self._upper - self._rest, self._rest - self._lower)
        speed = np.maximum(np.abs(state.v), 1e-6)
        return np.clip(0.8 * ahead / speed, 0.01, STOP_TIME)


def reaction_time(timing: LoopTiming) -> float:
    """(1 + LATE d) T [s]: the period that a loop without delay may have, to be as slow."""
    return (1 + LATE * timing.delay) * timing.period


def largest_rate(M: Vector, timing: LoopTiming) -> float:
    """w = REACTION / (λ (1 + LATE d) T) [rad/s],  λ the largest eigenvalue of M⁻¹ diag(M).

    Gains K = w² M_ii, D = 1.6 w M_ii are stable in a loop of period T [s] whose commands come d
    periods after their measurement, with a gain margin of 1.5: of x'' = -λ (w² x + 1.6 w x'), its
    effort constant over T, the fastest of the coupled joints of the mass matrix M (nv, nv),
    Jury's criterion requires 1.6 w λ T < 2 for d = 0, some 1 for d = 1. Infinite for T = 0.
    """
    if timing.period <= 0:
        return float("inf")
    fastest = np.linalg.eigvals(np.linalg.solve(M, np.diag(np.diag(M)))).real.max()
    return REACTION / (float(fastest) * reaction_time(timing))
