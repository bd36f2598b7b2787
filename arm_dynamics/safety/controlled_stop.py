"""Stop motions of an arm without commands: controlled, damped, ramped, or held."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from arm_dynamics.core.arrays import BoolArray, Matrix, Vector
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.state import MIXED, Command, State
from arm_dynamics.core.timing import UNTIMED, LoopTiming
from arm_dynamics.dynamics.rigid_body import gravity, mass_matrix, rnea
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.safety.braking import braking_distance

STOP_TIME = 0.1
"""Time constant [s] at which the velocity decays."""
MIN_TIME = 0.01
"""Shortest time constant [s] of a joint near its limit, and shortest ramp."""
RAMP = 0.02
"""Time [s] over which the last command blends into the stop."""
BANDWIDTH = 20.0
"""Natural frequency [rad/s] that holds the stopping path against model error."""
MAX_BANDWIDTH = 100.0
"""Highest natural frequency [rad/s] that a control period of some milliseconds allows."""
REACTION = 0.8
"""Fraction of 1 / T that is the largest stable rate of a loop of period T, with a margin."""
LATE = 1.4
"""Factor on the delay: (1 + LATE d) T is the period of a loop as fast, but without delay."""
STIFFNESS_PER_EFFORT_LIMIT = 0.4
"""Stiffness per effort limit [1/rad]: a light wrist must hold an unmodeled payload."""
MAX_ERROR, MAX_ERROR_EFFORT = 0.1, 0.25
"""Distance [rad] from the path at which the path follows the arm; farther, up to the distance of
this fraction of the effort limit, where the stiffness is low."""
MAX_STIFFNESS_EFFORT = 0.5
"""Largest effort of the stiffness, as a fraction of the effort limit."""
MAX_JUMP_SPEED = 0.25
"""Speed [rad/s] to which the stiffness may accelerate a joint whose reading jumped unnoticed."""


class StopPath:
    """Path of joints that stop from v0: exponential, or with a constant deceleration a.

    v = v0 e^(-s/T), or v0 (1 - s/T) with T = |v0| / a until s = T, at time s after the start.
    """

    def __init__(self, deceleration: Vector | None = None) -> None:
        self._deceleration = deceleration

    def times(self, v0: Vector, decay: Vector) -> Vector:
        """Return T (nv,) [s]: that of the deceleration; without one, or with 0, ``decay``."""
        a = self._deceleration
        if a is None:
            return decay
        times: Vector = np.divide(np.abs(v0), a, out=decay.copy(), where=a > 0)
        return np.maximum(times, MIN_TIME, out=times)

    def at(self, s: Vector, v0: Vector, T: Vector) -> tuple[Vector, Vector, Vector]:
        """Return distance, velocity and acceleration (nv,) after s (nv,) [s]."""
        if self._deceleration is None:
            decay = np.exp(-s / T)
            return v0 * T * (1 - decay), v0 * decay, -v0 * decay / T
        s = np.minimum(s, T)
        return v0 * s * (1 - s / (2 * T)), v0 * (1 - s / T), np.where(s < T, -v0 / T, 0.0)


class ControlledStop:
    """A ramped stop with gravity held.

    Path:   v_d = v0 e^(-s/T),  q_d = q0 + v0 T (1 - e^(-s/T)),  s = time since the start, or a
    ramp with a constant deceleration (``StopPath``);
    effort: tau = RNEA(q, v, v_d') + K (q_d - q) + D (v_d - v),
    blended from the last command over RAMP. T is shortened per joint so that the path ends
    short of its limit. A joint with prescribed motion is held at q0.
    K = w² M_ii with w = BANDWIDTH, or STIFFNESS_PER_EFFORT_LIMIT times the effort limit if that is
    more; w is at most MAX_BANDWIDTH and ``max_loop_bandwidth``. D = 1.6 sqrt(K M_ii).
    Source: PD control with computed feedforward, Siciliano et al. (2009), 8.5.1.

    The stop does not pull a joint back. The path of a joint restarts at the measured position if
    that changes by more than its velocity explains, |Δq - v̄ Δt| > J + |Δv| Δt / 2, as after lost
    feedback; K J accelerates it to MAX_JUMP_SPEED at most. A path follows a joint that is pushed
    away, at the distance MAX_ERROR.
    """

    def __init__(
        self,
        arm: ArmModel,
        state: State,
        last_effort: Vector,
        bounds: tuple[Vector, Vector] | None = None,
        timing: LoopTiming = UNTIMED,
        *,
        deceleration: Vector | None = None,
    ) -> None:
        """Start the stop.

        Parameters
        ----------
        arm : ArmModel
            Arm with nv joints.
        state : State
            Measured state at the start.
        last_effort : Vector
            Last applied effort (nv,) [N·m]; NaN counts as 0.
        bounds : tuple of Vector, optional
            Lower and upper bounds (nv,) of the path; by default the position limits.
        timing : LoopTiming
            Period and delay of the loop: the stiffness stays below the stability limit.
        deceleration : Vector, optional
            Constant deceleration (nv,) [rad/s² or m/s²] of the path; by default it decays.

        """
        self._shape = StopPath(deceleration)
        self.arm = arm
        self._start = self._seen = state
        self._last = np.where(np.isfinite(last_effort), last_effort, 0.0)
        self._limits = bounds or (arm.lower, arm.upper)
        self._widens = bounds is not None
        M = mass_matrix(arm, state.q)
        m = np.diag(M)
        stiff = np.maximum(
            BANDWIDTH**2 * m,
            np.minimum(STIFFNESS_PER_EFFORT_LIMIT * arm.effort_limit, MAX_BANDWIDTH**2 * m),
        )
        self._K = np.minimum(stiff, max_loop_bandwidth(M, timing) ** 2 * m)
        self._D = 1.6 * np.sqrt(self._K * m)
        self._max_error = np.maximum(MAX_ERROR, MAX_ERROR_EFFORT * arm.effort_limit / self._K)
        self._max_jump = MAX_JUMP_SPEED * self._D / self._K
        self._prescribed = np.array([actuator.prescribes_motion for actuator in arm.actuators])
        forced = MIXED if self._prescribed.any() else "effort"
        self._interface = "position" if self._prescribed.all() else forced
        self._since, self._rest, self._v0, self._times = np.zeros((4, arm.nv))
        self.restart(state, np.ones(arm.nv, bool))

    def restart(self, state: State, joints: BoolArray) -> None:
        """Restart the path of ``joints`` (nv,) at the measured position and velocity."""
        self._restart(joints, state, state.v)

    def _restart(self, joints: BoolArray, state: State, v0: Vector) -> None:
        lower, upper = self._limits
        if self._widens:
            lower, upper = np.minimum(lower, state.q), np.maximum(upper, state.q)
        self._lower, self._upper = lower, upper
        rest = np.clip(state.q, lower, upper)
        # T = min(STOP_TIME, 0.8 distance to the limit ahead / |v|), at least 10 ms
        ahead = np.where(v0 > 0, upper - rest, rest - lower)
        decay = np.clip(0.8 * ahead / np.maximum(np.abs(v0), 1e-6), MIN_TIME, STOP_TIME)
        times = self._shape.times(v0, decay)
        self._since = np.where(joints, state.time, self._since)
        self._rest = np.where(joints, rest, self._rest)
        self._v0 = np.where(joints, v0, self._v0)
        self._times = np.where(joints, times, self._times)

    def _follow(self, state: State) -> None:
        """Restart the path of joints whose position jumped; follow those that are pushed away."""
        last, self._seen = self._seen, state
        dt = state.time - last.time
        explained = 0.5 * (state.v + last.v) * dt
        uncertain = self._max_jump + 0.5 * np.abs(state.v - last.v) * abs(dt)
        q_d, v_d = self.path(state.time)
        jumped = np.abs(state.q - last.q - explained) > uncertain
        if jumped.any():
            self._restart(jumped, state, v_d)
            q_d, _ = self.path(state.time)
        error = q_d - state.q
        followed = self._rest - error + np.clip(error, -self._max_error, self._max_error)
        self._rest = np.clip(followed, self._lower, self._upper)

    def command(self, state: State) -> Command:
        """Return efforts [N·m] within the limits, positions of prescribed joints (nv,)."""
        self._follow(state)
        q_d, v_d, a_d = self._path(state.time)
        limit = self.arm.effort_limit
        pull = MAX_STIFFNESS_EFFORT * limit
        hold = rnea(self.arm, state.q, state.v, a_d) + self._D * (v_d - state.v)
        hold = hold + np.clip(self._K * (q_d - state.q), -pull, pull)
        blend = min(1.0, max(0.0, (state.time - self._start.time) / RAMP))
        tau = (1 - blend) * self._last + blend * hold
        value = np.where(self._prescribed, self._start.q, np.clip(tau, -limit, limit))
        return Command.checked(self._interface, value, self.arm.nv, state.time)

    def path(self, time: float) -> tuple[Vector, Vector]:
        """Return the reference of the stop at ``time`` [s]: q_d and v_d, each (nv,)."""
        q_d, v_d, _ = self._path(time)
        return q_d, v_d

    def _path(self, time: float) -> tuple[Vector, Vector, Vector]:
        distance, v_d, a_d = self._shape.at(time - self._since, self._v0, self._times)
        return np.clip(self._rest + distance, self._lower, self._upper), v_d, a_d


def reaction_time(timing: LoopTiming) -> float:
    """Return (1 + LATE d) T [s], the period of a loop without delay and with equal margin."""
    return (1 + LATE * timing.delay) * timing.period


def max_loop_bandwidth(M: Matrix, timing: LoopTiming) -> float:
    """Return w = REACTION / (λ (1 + LATE d) T),  λ the largest eigenvalue of M⁻¹ diag(M).

    Gains K = w² M_ii, D = 1.6 w M_ii are stable in a loop of period T [s] whose commands come d
    periods after their measurement, with a gain margin of 1.5. The fastest mode of the coupled
    joints is x'' = -λ (w² x + 1.6 w x'), its effort constant over T. Jury's criterion requires
    1.6 w λ T < 2 for d = 0 and about 1 for d = 1.

    Parameters
    ----------
    M : Matrix
        Mass matrix (nv, nv) [kg·m²].
    timing : LoopTiming
        Period T [s] and delay d [periods].

    Returns
    -------
    float
        Bandwidth w [rad/s]; infinite for T = 0.

    """
    if timing.period <= 0:
        return float("inf")
    largest = np.linalg.eigvals(np.linalg.solve(M, np.diag(np.diag(M)))).real.max()
    return REACTION / (float(largest) * reaction_time(timing))


RAMP_ENDS = 0.5
"""Time [s] after which a ramped stop has ended: e^-5 of the speed remains."""

SAG = 0.1
"""Following error [rad] of a position servo under its load."""
MIN_LEAD = 0.01
"""Distance [rad or m] of a goal from a servo that keeps its load in a stop before a contact."""


class StopMotion(Protocol):
    """One stop, from the state at its start."""

    def command(self, state: State) -> Command:
        """Return the command to the motors at ``state``."""

    def path(self, time: float) -> tuple[Vector, Vector]:
        """Return the reference of the stop at ``time`` [s]: q and v, each (nv,)."""

    def restart(self, state: State, joints: BoolArray) -> None:
        """Continue from the measured state of ``joints`` (nv,), whose feedback is back."""


class DampedStop:
    """Effort τ = -D v,  D = ``stop_damping`` at the start: the arm sinks slowly under gravity."""

    def __init__(self, arm: ArmModel, state: State, timing: LoopTiming = UNTIMED) -> None:
        self.arm = arm
        self._start = state
        self._D = stop_damping(arm, state, timing)

    def command(self, state: State) -> Command:
        """Return efforts (nv,) [N·m]."""
        return Command("effort", -self._D * state.v, state.time)

    def path(self, time: float) -> tuple[Vector, Vector]:
        """Return the first configuration, at rest: a joint without feedback gets no effort."""
        return self._start.q, np.zeros(self.arm.nv)

    def restart(self, state: State, joints: BoolArray) -> None:
        """Do nothing: no position is held."""


class RampedStop:
    """``ControlledStop`` until RAMP_ENDS, then gravity held without stiffness: τ = g(q) - D v."""

    def __init__(self, arm: ArmModel, state: State, timing: LoopTiming = UNTIMED) -> None:
        self.arm = arm
        self._start = state
        self._stop = bounded_controlled_stop(arm, state, state.tau, timing)
        self._D = stop_damping(arm, state, timing)

    def command(self, state: State) -> Command:
        """Return efforts (nv,) [N·m]."""
        if state.time - self._start.time < RAMP_ENDS:
            return self._stop.command(state)
        return Command("effort", gravity(self.arm, state.q) - self._D * state.v, state.time)

    def path(self, time: float) -> tuple[Vector, Vector]:
        """Return the path of the ramp, at rest after its end."""
        return self._stop.path(time)

    def restart(self, state: State, joints: BoolArray) -> None:
        """Restart the path of the ramp."""
        self._stop.restart(state, joints)


class PositionHold:
    """Hold the last position command, at most SAG from the measured position.

    A servo under load has a small following error; a blocked one has a large one.
    """

    def __init__(self, arm: ArmModel, state: State, goal: Vector) -> None:
        self._start = state
        self._goal = np.minimum(np.maximum(goal, state.q - SAG), state.q + SAG)
        self._rest = np.zeros(arm.nv)

    def command(self, state: State) -> Command:
        """Return positions (nv,) [rad]."""
        return Command("position", self._goal, state.time)

    def path(self, time: float) -> tuple[Vector, Vector]:
        """Return the first configuration, at rest."""
        return self._start.q, self._rest

    def restart(self, state: State, joints: BoolArray) -> None:
        """Do nothing: servos hold the position themselves."""


class VelocityRampDown:
    """The last velocity command decays, or ends along a ramp of a ``deceleration``."""

    def __init__(
        self, arm: ArmModel, state: State, goal: Vector, deceleration: Vector | None = None
    ) -> None:
        self._start, self._goal, self._path = state, goal.copy(), StopPath(deceleration)
        self._times = self._path.times(goal, np.full(arm.nv, STOP_TIME))

    def command(self, state: State) -> Command:
        """Return velocities (nv,) [rad/s]."""
        return Command("velocity", self.path(state.time)[1], state.time)

    def path(self, time: float) -> tuple[Vector, Vector]:
        """Return q and v of ``StopPath``."""
        since = np.full(self._goal.size, max(0.0, time - self._start.time))
        distance, v, _ = self._path.at(since, self._goal, self._times)
        return self._start.q + distance, v

    def restart(self, state: State, joints: BoolArray) -> None:
        """Do nothing: no position is held."""


def make_stop(
    policy: str,
    interface: str,
    arm: ArmModel,
    state: State,
    last: Vector,
    timing: LoopTiming = UNTIMED,
    deceleration: Vector | None = None,
) -> StopMotion:
    """Return the stop of a policy, from the measured state and the last command.

    Parameters
    ----------
    policy : str
        "hold", "damp", "ramp" or "disable"; without effect on position and velocity interfaces.
    interface : str
        Command interface of the motors.
    arm : ArmModel
        Arm with nv joints.
    state : State
        Measured state at the start of the stop.
    last : Vector
        Last command (nv,) on ``interface``.
    timing : LoopTiming
        Period and delay of the loop: gains stay below the stability limit.
    deceleration : (nv,) array [rad/s² or m/s²], optional
        That of a stop before a contact, which is a controlled stop with every policy.

    Returns
    -------
    StopMotion
        The stop.

    """
    if interface == "position":
        if deceleration is not None:
            ahead = np.maximum(np.abs(braking_distance(state.v, deceleration)), MIN_LEAD)
            last = np.clip(last, state.q - ahead, state.q + ahead)
        return PositionHold(arm, state, last)
    if interface == "velocity":
        return VelocityRampDown(arm, state, last, deceleration)
    if deceleration is not None:
        return bounded_controlled_stop(arm, state, last, timing, deceleration)
    if policy == "damp":
        return DampedStop(arm, state, timing)
    if policy == "ramp":
        return RampedStop(arm, state, timing)
    return bounded_controlled_stop(arm, state, last, timing)


def stop_damping(arm: ArmModel, state: State, timing: LoopTiming) -> Vector:
    """Return D = M_ii min(1 / STOP_TIME, w) (nv,) [N·m·s/rad], w = ``max_loop_bandwidth``."""
    M = mass_matrix(arm, state.q)
    damping: Vector = np.diag(M) * min(1 / STOP_TIME, max_loop_bandwidth(M, timing))
    return damping


def bounded_controlled_stop(
    arm: ArmModel,
    state: State,
    last: Vector,
    timing: LoopTiming,
    deceleration: Vector | None = None,
) -> ControlledStop:
    """Return a stop that does not return joints from beyond their limits: a hand may be there."""
    bounds = np.minimum(arm.lower, state.q), np.maximum(arm.upper, state.q)
    return ControlledStop(arm, state, last, bounds, timing, deceleration=deceleration)


def require_policy(policy: str, interface: str) -> None:
    """Raise ConfigError for a stop policy that ``interface`` does not support."""
    allowed = ("hold", "disable")
    if interface in ("position", "velocity") and policy not in allowed:
        raise ConfigError(
            f"stop policy = '{policy}' on interface '{interface}', which has no efforts; expected"
            f" {' or '.join(allowed)}"
        )
