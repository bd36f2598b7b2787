"""The control loop: read, update, guard, write. Every node, test and example runs this one."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock

import numpy as np

from arm_dynamics.controllers.base import Controller
from arm_dynamics.drivers.base import Driver
from arm_dynamics.errors import CommandRefused, DriverFault, TrajectoryRefused
from arm_dynamics.expect import expect
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.safety.events import Events
from arm_dynamics.safety.guard import Guard
from arm_dynamics.state import Command, Reference, State
from arm_dynamics.trajectory import JointTrajectory, Trajectory

STALE = 0.25
"""Gap between two states [s] after which the loop starts anew instead of catching up."""
JUMP = 0.1
"""Change of position [rad or m] beyond any motion after which the loop starts anew."""
LARGEST_SPEED = 100.0
"""Speed [rad/s or m/s] taken where a joint has no velocity limit."""
FAR_AHEAD = 3600.0
"""Start of a trajectory [s from now] beyond which its clock must be another one."""


class ControlLoop:
    """Runs one controller on one driver; taking over holds the arm where it is.

    At the first state, after a gap or a jump back in time, and when the arm was put elsewhere,
    the law is reset and the reference holds the measured position.
    """

    def __init__(
        self, driver: Driver, controller: Controller, events: Events | None = None
    ) -> None:
        self.driver = expect(Driver, "driver", driver)  # type: ignore[type-abstract]
        law = expect(Controller, "controller", controller)  # type: ignore[type-abstract]
        self.controller: Controller = law
        self.events = events or Events()
        self.guard = Guard(driver.arm, self.events)
        self._speed = np.minimum(driver.arm.velocity_limit, LARGEST_SPEED)
        self._lock = Lock()  # a reference may come from another thread than the ticks
        self.trajectory: Trajectory | None = None
        self._next: Trajectory | None = None
        self.state: State | None = None
        self.reference: Reference | None = None
        self.command: Command | None = None
        self.latest: tuple[State, Reference, Command] | None = None
        """State, reference and command of one tick, whole, for other threads."""

    @property
    def arm(self) -> ArmModel:
        """The arm whose joints and limits hold here."""
        return self.driver.arm

    def step(self) -> Command | None:
        """One tick; the written command, or None when nothing may be written."""
        try:
            state = self.driver.read()
        except DriverFault as error:
            self.events.report("driver_fault", str(error))
            return None
        if not self.guard.check_state(state):
            return None
        if self.trajectory is None or self._interrupted(state):
            self.take_over(state)
        elif self.state is not None and state.time == self.state.time:
            return self._repeat(state)
        return self._tick(state)

    def _tick(self, state: State) -> Command | None:
        dt = 0.0 if self.state is None else state.time - self.state.time
        self.state, self.reference = state, self._reference(state.time)
        try:
            wanted = self.controller.update(state, self.reference, dt)
            self.command = self.guard.check_command(wanted)
        except CommandRefused:
            self.command = None
            self.driver.idle()
            return None
        self.driver.write(self.command)
        self.latest = (state, self.reference, self.command)
        return self.command

    def _reference(self, time: float) -> Reference:
        """The trajectory's reference; a new trajectory is entered here, between two ticks."""
        with self._lock:
            following, self._next = self._next, None
        if following is not None and self.reference is not None:
            self.trajectory = following.after(time, self.reference)
        assert self.trajectory is not None
        return self.trajectory.at(time)

    def take_over(self, state: State) -> None:
        """Start from ``state``: law reset, reference at the measured position."""
        self.controller.reset(state)
        self.trajectory, self._next = self.controller.rest(state), None
        self.state = self.reference = None

    def follow(self, trajectory: Trajectory) -> None:
        """Enter a trajectory at the next tick from the reference then, without a jump.

        Raises TrajectoryRefused when a waypoint or the way to it exceeds a limit, when it ends
        in the past, and before the first state; the old trajectory then goes on.
        """
        state, reference = self.state, self.reference
        if state is None or reference is None:
            raise TrajectoryRefused("no state of the arm has come yet: nothing to start from")
        if trajectory.end <= state.time:
            raise TrajectoryRefused(
                f"the last waypoint is due at {trajectory.end:.6g} s and it is {state.time:.6g} s:"
                f" a time later than now is expected"
            )
        if trajectory.start > state.time + FAR_AHEAD:
            raise TrajectoryRefused(
                f"the first waypoint is due at {trajectory.start:.6g} s and it is"
                f" {state.time:.6g} s: at most {FAR_AHEAD:g} s ahead is allowed (another clock?)"
            )
        trajectory.after(state.time, reference).check(self.arm)
        with self._lock:
            self._next = trajectory

    def hold(self, positions: Mapping[str, float]) -> None:
        """Step the reference of the named joints [rad] at once; the others keep theirs.

        Raises UnknownName or InvalidValue naming the joint; the old reference then goes on.
        """
        reference = self.reference
        if reference is None:
            raise TrajectoryRefused("no state of the arm has come yet: nothing to hold")
        with self._lock:
            pending = self._next
            q = (reference if pending is None else pending.at(pending.end)).q.copy()
            for name, value in positions.items():
                q[self.arm.index(name)] = value
            self._next = JointTrajectory.hold(self.arm.check_position("reference", q))

    def _interrupted(self, state: State) -> bool:
        if self.state is None:
            return False
        gap = state.time - self.state.time
        if not 0 <= gap <= STALE:
            why = f"state jumped by {gap:.3f} s in time (limit {STALE} s)"
        elif (np.abs(state.q - self.state.q) > JUMP + 2 * gap * self._speed).any():
            why = f"the arm is elsewhere after {gap:.3f} s than it can have moved to"
        else:
            return False
        self.events.report("took_over", f"{why}: holding anew")
        return True

    def _repeat(self, state: State) -> Command | None:
        """The same state again (a simulator waiting in lockstep): the same answer again.

        Another state under the same stamp has no time to control by: it is refused.
        """
        assert self.state is not None
        if not (np.array_equal(state.q, self.state.q) and np.array_equal(state.v, self.state.v)):
            message = f"the arm moved but its stamp stands at {state.time:.6g} s: no command"
            self.events.report("state_refused", message)
            self.driver.idle()
            return None
        if self.command is not None:
            self.driver.write(self.command)
        return self.command
