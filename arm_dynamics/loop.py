"""The control loop: read, update, guard, write. Every node, test and example runs this one."""

from __future__ import annotations

from arm_dynamics.controllers.base import Controller
from arm_dynamics.drivers.base import Driver
from arm_dynamics.errors import CommandRefused
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.safety.events import Events
from arm_dynamics.safety.guard import Guard
from arm_dynamics.state import Command, Reference, State
from arm_dynamics.trajectory import JointTrajectory, check_limits

STALE = 0.25
"""Gap between two states [s] after which the loop starts anew instead of catching up."""


class ControlLoop:
    """Runs one controller on one driver; taking over never moves the arm.

    At the first state, and after a gap or a jump back in time, the law is reset and the
    reference holds the measured position.
    """

    def __init__(
        self, driver: Driver, controller: Controller, events: Events | None = None
    ) -> None:
        self.driver = driver
        self.controller = controller
        self.events = events or Events()
        self.guard = Guard(driver.arm, self.events)
        self.trajectory: JointTrajectory | None = None
        self.state: State | None = None
        self.reference: Reference | None = None
        self.command: Command | None = None

    @property
    def arm(self) -> ArmModel:
        """The arm whose joints and limits hold here."""
        return self.driver.arm

    def step(self) -> Command | None:
        """One tick; the written command, or None when nothing may be written."""
        state = self.driver.read()
        if not self.guard.check_state(state):
            return None
        if self.trajectory is None or self._interrupted(state):
            self.take_over(state)
        elif self.state is not None and state.time == self.state.time:
            return self._repeat()
        return self._tick(state)

    def _tick(self, state: State) -> Command | None:
        assert self.trajectory is not None
        dt = state.time - self.state.time if self.state is not None else 0.0
        self.state = state
        self.reference = self.trajectory.at(state.time)
        try:
            wanted = self.controller.update(state, self.reference, dt)
            self.command = self.guard.check_command(wanted)
        except CommandRefused:
            self.command = None
            return None
        self.driver.write(self.command)
        return self.command

    def take_over(self, state: State) -> None:
        """Start from ``state``: law reset, reference at the measured position."""
        self.controller.reset(state)
        self.trajectory = JointTrajectory.hold(state.q, state.time)
        self.state = None

    def follow(self, trajectory: JointTrajectory) -> None:
        """Enter a trajectory from the present reference, without a jump.

        Raises TrajectoryRefused when a waypoint or the way to it exceeds a limit; the old
        trajectory then goes on.
        """
        if self.state is None or self.reference is None:
            raise CommandRefused("no state of the arm yet: cannot start a trajectory")
        entered = trajectory.after(self.state.time, self.reference)
        check_limits(self.arm, entered)
        self.trajectory = entered

    def _interrupted(self, state: State) -> bool:
        if self.state is None:
            return False
        gap = state.time - self.state.time
        if 0 <= gap <= STALE:
            return False
        self.events.report(
            "took_over", f"state jumped by {gap:.3f} s in time (limit {STALE} s): holding anew"
        )
        return True

    def _repeat(self) -> Command | None:
        """The same state again (a simulator waiting in lockstep): the same answer again."""
        if self.command is not None:
            self.driver.write(self.command)
        return self.command
