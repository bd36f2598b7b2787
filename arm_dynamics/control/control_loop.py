"""The control loop: read, update, guard, write. Every node, test and example runs this one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from arm_dynamics.control.controller_switch import ActiveController, returned_by
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.effort_check import check_effort
from arm_dynamics.control.gain_fit import GainFit
from arm_dynamics.control.position_hold import PositionHold
from arm_dynamics.control.reference_generator import ReferenceGenerator
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Options, Trajectory
from arm_dynamics.control.trajectories.stop_trajectory import StopTrajectory, default_deceleration
from arm_dynamics.core.argument_checks import check_type
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.errors import (
    CommandRejected,
    ControllerFault,
    DriverFault,
    TrajectoryRejected,
)
from arm_dynamics.core.state import Command, Reference, State, TaskReference
from arm_dynamics.hardware.driver import Driver
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.whole_turns import whole_turns
from arm_dynamics.safety.command_watchdog import Guard
from arm_dynamics.safety.events import Events

MAX_STATE_GAP = 0.25
"""Gap between two states [s] after which the loop starts anew instead of catching up."""
PAUSE = 1.2 * MAX_STATE_GAP
"""Time [s] without states that makes every loop start anew, whoever keeps them back."""
JUMP_THRESHOLD = 0.1
"""Change of position [rad or m] beyond any motion after which the loop starts anew."""
MAX_VELOCITY = 100.0
"""Speed [rad/s or m/s] taken where a joint has no velocity limit."""
FAR_AHEAD = 3600.0
"""Start of a trajectory [s from now] beyond which its clock must be another one."""
TRAJECTORY_DISCARDED = (
    "one that came while no states did is forgotten: nobody may be waiting for it now"
)
REFERENCE_THRESHOLD = 0.05
"""Distance from the reference [rad or m] beyond which a new law does not bring the arm back."""


class ControlLoop:
    """Runs one controller on one driver; taking over holds the arm where it is.

    At the first state, after a gap or a jump back in time, when the arm was put elsewhere, and
    when its driver begins to obey, the law is reset and the reference holds the measured position;
    of position servos that stand behind their last goal by no more than SAG, that goal.

    A controller that raises, or returns no valid Command, gets the driver's controlled stop
    instead: events ``law_failed`` and ``command_rejected`` name its class and line. ``events``
    without a listener are logged as warnings of the logger "arm_dynamics".
    """

    def __init__(
        self, driver: Driver, controller: Controller, events: Events | None = None
    ) -> None:
        self.driver = check_type(Driver, "driver", driver)  # type: ignore[type-abstract]
        self._laws = ActiveController(controller)
        self.events = events or Events()
        self.guard = Guard(driver.arm, self.events, driver.extra_interfaces)
        self._speed = np.minimum(driver.arm.velocity_limit, MAX_VELOCITY)
        self.fit = GainFit(driver, self._laws, self.events)
        self.reference_generator = ReferenceGenerator()
        self.restart_count = 0
        """How often the loop began anew from the measured state, whatever it followed."""
        self._begun = driver.command_epoch
        self._hold = PositionHold()
        self.state: State | None = None
        self.reference: Reference | None = None
        self.command: Command | None = None
        self.latest: tuple[State, Reference, Command] | None = None
        """State, reference and command of one tick, whole, for other threads."""

    @property
    def arm(self) -> ArmModel:
        """The arm whose joints and limits hold here."""
        return self.driver.arm

    @property
    def controller(self) -> Controller:
        """The law in force."""
        return self._laws.controller

    @property
    def trajectory(self) -> Trajectory | None:
        """What is followed."""
        return self.reference_generator.trajectory

    def step(self) -> Command | None:
        """One tick; the written command, or None when nothing may be written."""
        try:
            state = self.driver.read()
        except DriverFault as error:
            self.events.report("driver_fault", str(error))
            self.driver.idle()
            return None
        if not self.guard.check_state(state):
            self.driver.idle()
            return None
        if self.reference_generator.trajectory is None or self._interrupted(state):
            try:
                self.restart(state)
            except ControllerFault as error:
                self.events.report("law_failed", str(error))
                self.driver.idle()
                return None
        elif self.state is not None and state.time == self.state.time:
            return self._repeat(state)
        return self._tick(state)

    def _tick(self, state: State) -> Command | None:
        dt = 0.0 if self.state is None else state.time - self.state.time
        if self._laws.is_switch_due(state.time):
            self._change_law(state)
        self.state = state
        self.reference = self.reference_generator.reference(
            state.time, self.reference, _measured(state)
        )
        try:
            asked = self._asked(state, self.reference, dt)
            self.command = self.guard.check_command(asked, self._source)
        except CommandRejected:
            self.command = None
            self.driver.idle()
            return None
        self.driver.write(self.command)
        self._hold.note(self.command)
        self.latest = (state, self.reference, self.command)
        return self.command

    def _asked(self, state: State, reference: Reference, dt: float) -> Command:
        """The law's command; raises CommandRefused, after counting it, where the law has none."""
        self.fit.require(state.q)
        try:
            command = self._laws.command(state, reference, dt)
        except ControllerFault as error:
            self.events.report("law_failed", str(error))
            raise CommandRejected(str(error)) from error
        if reference.effort is None or command.interface != "effort":
            return command
        return replace(command, value=as_readonly(command.value + reference.effort))

    def _source(self) -> str:
        """Class of the active controller, and where it returns its command."""
        return returned_by(self._laws.controller)

    def restart(self, state: State) -> None:
        """Start from ``state``: law reset, reference where the arm stands."""
        if self.reference_generator.pending:
            self.events.report("trajectory_refused", TRAJECTORY_DISCARDED)
        if self.driver.command_epoch != self._begun:
            self._hold.reset()
        self._laws.restart(state)
        self.reference_generator.start(
            self.controller.hold_trajectory(self._hold.standing(state, self.driver.held))
        )
        self.restart_count += 1
        self._begun = self.driver.command_epoch
        self.state = self.reference = None

    def switch_controller(self, controller: Controller) -> None:
        """Have another law take over at the next tick, without a step of the command.

        It goes on along the trajectory; an arm that is further than LED from its reference (a
        law that lets it be led by hand) is brought to rest where it is. Raises InvalidValue for
        a law with another command interface.
        """
        if self.driver.timing is not None:
            self.fit.check(controller)
        self._laws.request_switch(controller)

    def _change_law(self, state: State) -> None:
        try:
            self._laws.switch(state)
        except ControllerFault as error:
            self.events.report("law_failed", str(error))
            return
        if self.fit.fault:  # of the law before, of which nothing is to fade out then
            self.fit.fault = ""
            self._laws.restart(state)
        if (
            self.reference is not None
            and (np.abs(self.reference.q - state.q) > REFERENCE_THRESHOLD).any()
        ):
            self.stop_from_state(state)

    def stop_from_state(self, state: State, deceleration: Vector | None = None) -> None:
        """Leave the trajectory: come to rest from where the arm is; only between two ticks.

        deceleration (nv,) [rad/s²], by default what is usual for the arm's velocity limits.
        """
        present = _measured(self._hold.standing(state, self.driver.held))
        self.reference_generator.start(
            self.stop_trajectory(deceleration).starting_from(state.time, present)
        )
        self.restart_count += 1

    def request_stop(self, deceleration: Vector | None = None) -> None:
        """Leave the trajectory at the next tick: the reference comes to rest, as in ``stop_from_state``.

        The measured state does, where a motion of the tool is left.
        """
        self.reference_generator.queue(self.stop_trajectory(deceleration))

    def stop_trajectory(self, deceleration: Vector | None) -> StopTrajectory:
        """How this arm stops, for ``after``."""
        rate = default_deceleration(self.arm) if deceleration is None else deceleration
        return StopTrajectory.of(self.arm, rate)

    def follow(self, trajectory: Trajectory, *, effort_check: bool = False) -> None:
        """Enter a trajectory at the next tick from the reference then, without a jump.

        Positions of continuous joints are taken modulo one turn, nearest to the reference now.
        Raises TrajectoryRefused when a waypoint or the way to it exceeds a limit, when it ends
        in the past, and before the first state; the old trajectory then goes on. With
        ``effort_check`` also where the law's own model needs more than the arm's effort limits.
        """
        state, reference = self.present()
        interface = self.controller.interface
        if interface != "effort" and getattr(trajectory, "effort", None) is not None:
            raise TrajectoryRejected(
                f"effort: given for {type(self.controller).__name__}, which commands {interface};"
                " leave effort empty, or use a controller that commands effort"
            )
        if trajectory.end <= state.time:
            raise TrajectoryRejected(
                f"the last waypoint is due at {trajectory.end:.6g} s and it is {state.time:.6g} s:"
                f" a time later than now is expected"
            )
        if trajectory.start > state.time + FAR_AHEAD:
            raise TrajectoryRejected(
                f"the first waypoint is due at {trajectory.start:.6g} s and it is"
                f" {state.time:.6g} s: at most {FAR_AHEAD:g} s ahead is allowed (another clock?)"
            )
        following, measured = self.reference_generator, _measured(state)
        if isinstance(trajectory, JointTrajectory):
            trajectory = trajectory.near(self.arm, self._joints(state, reference).q, state.time)
        entered = following.spliced_at(state.time, trajectory, reference, measured)
        entered.check(self.arm)
        if effort_check:
            check_effort(self.controller.arm, entered, self.arm.effort_limit)
        following.queue(trajectory)

    def present(self) -> tuple[State, Reference]:
        """The latest state and its reference; raises TrajectoryRefused before the first state."""
        if self.state is None or self.reference is None:
            raise TrajectoryRejected("no state of the arm has come yet: nothing to start from")
        return self.state, self.reference

    def options(self, *, integrate: bool, end_in_motion: bool) -> Options:
        """What a trajectory that comes now may do; raises TrajectoryRefused as ``present``."""
        state, reference = self.present()
        begin = reference if self.reference_generator.from_desired else _measured(state)
        return Options(end_in_motion, begin if integrate else None, state.time)

    def hold(self, positions: Mapping[str, float]) -> None:
        """Step the reference of the named joints [rad] at once; the others keep theirs.

        Positions of continuous joints are taken modulo one turn, nearest to the reference now.
        Raises UnknownName or InvalidValue naming the joint; the old reference then goes on.
        """
        state, reference = self.state, self.reference
        if state is None or reference is None:
            raise TrajectoryRejected("no state of the arm has come yet: nothing to hold")
        at = self._joints(state, reference)

        def changed(pending: Trajectory | None) -> JointTrajectory:
            q = (at if pending is None else pending.at(pending.end)).q.copy()
            for name, value in positions.items():
                q[self.arm.index(name)] = value
            found = self.arm.check_position("reference", q)
            return JointTrajectory.hold(found + whole_turns(self.arm, found, at.q))

        self.reference_generator.update_pending(changed)

    def _joints(self, state: State, reference: Reference) -> Reference:
        """Where the joints are led; of a reference of the tool, where they are."""
        return _measured(state) if isinstance(reference, TaskReference) else reference

    def _interrupted(self, state: State) -> bool:
        if self.state is None:
            return False
        gap = state.time - self.state.time
        if self.driver.command_epoch != self._begun:
            why = "the arm takes commands anew"
        elif gap > MAX_STATE_GAP:
            why = f"no state came for {gap:.3f} s (limit {MAX_STATE_GAP} s)"
        elif gap < 0:
            self._hold.reset()
            why = f"states went back by {-gap:.3f} s in time"
        elif (np.abs(state.q - self.state.q) > JUMP_THRESHOLD + 2 * gap * self._speed).any():
            self._hold.reset()
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
            self.events.report("state_rejected", message)
            self.driver.idle()
            return None
        if self.command is None:
            self.driver.idle()
        else:
            self.driver.write(self.command)
        return self.command


def _measured(state: State) -> Reference:
    return Reference(state.q, state.v, np.zeros_like(state.v))
