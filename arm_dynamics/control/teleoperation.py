"""Teleoperation: a follower arm follows the joint positions of a leader, in one control cycle."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.controllers.force_feedback import ForceFeedback
from arm_dynamics.control.target_follower import TargetFollower
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.errors import ConfigError, DriverFault, TrajectoryRejected
from arm_dynamics.core.state import Reference, State
from arm_dynamics.hardware.driver import Driver
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.whole_turns import whole_turns
from arm_dynamics.safety.events import Events

MAX_LEADER_AGE = 0.1
"""Time [s] without a complete state of the leader after which the follower approaches it again."""
JUMP = 0.2
"""Change of the leader's position [rad or m] between two cycles that is approached slowly."""
FADE_TIME = 0.5
"""Time [s] in which the force feedback rises from 0, and falls to 0."""


class Leader(Protocol):
    """Arm that a person guides."""

    @property
    def arm(self) -> ArmModel:
        """The arm with its joints."""
        ...

    def cycle(self) -> State | None:
        """Run a control cycle; return the measured state, None without a new one."""
        ...

    def feel(self, state: State | None, coupling: float) -> None:
        """Receive the follower's state in the order of the leader's joints; None if not known."""
        ...


class PassiveLeader:
    """Leader without torque.

    Parameters
    ----------
    driver : Driver
        The arm, configured and not active.

    """

    def __init__(self, driver: Driver) -> None:
        self.driver = driver

    @property
    def arm(self) -> ArmModel:
        """The arm with its joints."""
        return self.driver.arm

    def cycle(self) -> State | None:
        """Read the motors once."""
        try:
            return self.driver.read()
        except DriverFault:  # the cause is an event of the driver
            return None
        finally:
            self.driver.idle()

    def feel(self, state: State | None, coupling: float) -> None:
        """Ignore the follower: nothing can be felt without torque."""


class WeightlessLeader:
    """Leader whose motors support its weight and apply the force feedback.

    Parameters
    ----------
    loop : ControlLoop
        Control loop of the arm with the controller ``ForceFeedback``.
    cycles : int
        Cycles of the loop in a cycle of the teleoperation.

    """

    def __init__(self, loop: ControlLoop, cycles: int = 1) -> None:
        self.loop, self.cycles = loop, cycles
        self._set_coupling(0.0)

    @property
    def arm(self) -> ArmModel:
        """The arm with its joints."""
        return self.loop.arm

    def cycle(self) -> State | None:
        """Run the control loop."""
        before = self.loop.state
        for _ in range(self.cycles):
            self.loop.step()
        return None if self.loop.state is before else self.loop.state

    def feel(self, state: State | None, coupling: float) -> None:
        """Pull the arm toward the follower in the next cycles."""
        self._set_coupling(coupling)
        own = self.loop.state
        if state is None or own is None:
            return
        q = np.where(np.isfinite(state.q), state.q, own.q)
        v = np.where(np.isfinite(state.v), state.v, own.v)
        q = q + whole_turns(self.arm, q, own.q)
        rest = as_readonly(np.zeros_like(q))
        motion = FollowerMotion(own.time, Reference(as_readonly(q), as_readonly(v), rest))
        self.loop.reference_generator.start(motion)

    def _set_coupling(self, coupling: float) -> None:
        controller = self.loop.controller
        assert isinstance(controller, ForceFeedback)
        controller.coupling = coupling


class Coupling:
    """Factor on the force feedback, which rises to 1 and falls to 0 within FADE_TIME."""

    def __init__(self) -> None:
        self.value, self._before = 0.0, inf

    def update(self, now: float, *, engaged: bool) -> float:
        """Return the factor at ``now`` [s], toward 1 while the feedback is ``engaged``, else 0."""
        change = min(max(now - self._before, 0.0) / FADE_TIME, 1.0)
        self._before = now
        change = change if engaged else -change
        self.value = min(1.0, max(0.0, self.value + change))
        return self.value


@dataclass(frozen=True, slots=True, eq=False)
class FollowerMotion:
    """Last measured state of a follower as the reference of its leader."""

    start: float
    reference: Reference

    @property
    def end(self) -> float:
        """Time of the state [s]."""
        return self.start

    def at(self, time: float) -> Reference:
        """Return the state as a reference."""
        del time
        return self.reference

    def starting_from(self, now: float, current_reference: Reference) -> FollowerMotion:
        """Return the motion itself: the force feedback is limited by its controller."""
        del now, current_reference
        return self

    def check(self, arm: ArmModel) -> None:
        """Accept: the state was measured."""


class Teleoperation:
    """Leader and follower; each ``step`` is a control cycle of both.

    The follower approaches the leader with ``approach_speed``: at the start, after the leader was
    silent for MAX_LEADER_AGE or jumped, and after each restart of the follower's control loop. Then
    it follows within the limits of its joints, and holds while the leader is silent. The force
    feedback of a leader with torque acts once the follower has approached it.

    Parameters
    ----------
    leader : Leader
        Leader; each joint of the follower is one of its joints.
    follower : ControlLoop
        Control loop of the follower.
    approach_speed : float or (nv,) array
        Velocity [rad/s or m/s] of the approach.
    cycles : int
        Cycles of the follower's loop in each step.
    events : Events, optional
        Receives ``leader_silent`` and ``leader_jumped``; default: those of the follower.

    Raises
    ------
    ConfigError
        If the leader lacks a joint of the follower.
    InvalidValue
        For a speed that is not positive.

    """

    def __init__(
        self,
        leader: Leader,
        follower: ControlLoop,
        *,
        approach_speed: ArrayLike = 0.5,
        cycles: int = 1,
        events: Events | None = None,
    ) -> None:
        missing = [n for n in follower.arm.joint_names if n not in leader.arm.joint_names]
        if missing:
            raise ConfigError(
                f"teleoperation: joints of the leader '{leader.arm.name}' ="
                f" {', '.join(leader.arm.joint_names)}; expected also {', '.join(missing)}, as the"
                f" follower '{follower.arm.name}'; lock joints that are not driven"
            )
        self.leader, self.follower, self.cycles = leader, follower, cycles
        self.events = events or follower.events
        self._joints = [leader.arm.joint_names.index(n) for n in follower.arm.joint_names]
        self._targets = TargetFollower(follower, approach_speed)
        self._received, self._before = -inf, -inf
        self._epoch = follower.driver.command_epoch
        self._target: Vector | None = None
        self.coupling = Coupling()
        self.leader_state: State | None = None
        """State of the leader in the last cycle; None if it was not complete."""

    @property
    def is_approaching(self) -> bool:
        """Whether the follower has not reached the leader since the last restart."""
        return not bool(self._targets.approached.all())

    @property
    def is_leader_silent(self) -> bool:
        """Whether the leader's state is older than MAX_LEADER_AGE."""
        return self._before > self._received + MAX_LEADER_AGE

    @property
    def deviation(self) -> Vector:
        """Follower minus leader (nv,) [rad or m]; NaN while a position is not known."""
        state = self.follower.state
        if state is None or self.leader_state is None:
            return as_readonly(np.full(self.follower.arm.nv, np.nan))
        q, arm = self.leader_state.q[self._joints], self.follower.arm
        return as_readonly(state.q - q - whole_turns(arm, q, state.q))

    def step(self, now: float) -> None:
        """Run a control cycle of both arms at the time ``now`` [s]."""
        self._before = now
        state = self.leader.cycle()
        complete = state is not None and bool(np.isfinite(state.q[self._joints]).all())
        self.leader_state = state if complete else None
        if self.leader_state is not None:
            self._follow(self.leader_state.q[self._joints], now)
        elif self.is_leader_silent and self._target is not None:
            self._target = None
            self._targets.restart()
            self.events.report(
                "leader_silent",
                f"state of the leader = incomplete for {now - self._received:.2f} s: the follower"
                " holds",
            )
        before = self.follower.state
        for _ in range(self.cycles):
            self.follower.step()
        self._epoch = self.follower.driver.command_epoch
        measured = None if self.follower.state is before else self.follower.state
        self._return_feedback(measured, now)

    def _follow(self, target: Vector, now: float) -> None:
        """Pass a position of the leader (nv,) [rad or m] to the follower."""
        self._received = now
        if self._target is not None and (distance := np.abs(target - self._target)).max() > JUMP:
            name = self.follower.arm.joint_names[int(np.argmax(distance))]
            self._targets.restart()
            self.events.report(
                "leader_jumped",
                f"joint '{name}' of the leader jumped by {distance.max():.3g}: approached slowly",
            )
        self._target = target
        if self.follower.driver.command_epoch == self._epoch:  # else it restarts in this cycle
            with suppress(TrajectoryRejected):  # it executes no commands: an event of the driver
                self._targets.follow(target, now)

    def _return_feedback(self, measured: State | None, now: float) -> None:
        """Pass the follower's state to the leader."""
        follows = self._target is not None and not self.is_approaching
        engaged = measured is not None and follows and not self.follower.driver.inactive
        coupling = self.coupling.update(now, engaged=engaged)
        if measured is None:
            self.leader.feel(None, coupling)
            return
        q, v = np.full((2, self.leader.arm.nv), np.nan)
        q[self._joints], v[self._joints] = measured.q, measured.v
        self.leader.feel(State(measured.time, q, v, v), coupling)
