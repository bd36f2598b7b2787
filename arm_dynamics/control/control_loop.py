"""The control loop: read, update, guard, write. Every node, test and example runs this one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.collision.scene import EMPTY_SCENE, Scene
from arm_dynamics.control.collision_avoidance import CollisionAvoidance
from arm_dynamics.control.controller_switch import ActiveController, returned_by
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.gain_scaling import GainScaling
from arm_dynamics.control.gripper import Gripper, GripperCommand, GripperGoal
from arm_dynamics.control.reference_generator import PositionHold, ReferenceGenerator
from arm_dynamics.control.trajectories.effort_check import check_effort
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.control.trajectories.trajectory import (
    StopTrajectory,
    Trajectory,
)
from arm_dynamics.control.trajectories.trajectory_parsing import Options
from arm_dynamics.core.argument_checks import check_type
from arm_dynamics.core.arrays import Vector, as_readonly, check_vector
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
from arm_dynamics.safety.braking import default_deceleration
from arm_dynamics.safety.command_watchdog import Guard, is_within
from arm_dynamics.safety.events import Events

MAX_STATE_GAP = 0.25
"""Time between two states [s] beyond which the loop restarts instead of catching up."""
PAUSE = 1.2 * MAX_STATE_GAP
"""Time without states [s] after which every loop restarts."""
JUMP_THRESHOLD = 0.1
"""Change of position [rad or m], in addition to the possible motion, at which the loop restarts."""
MAX_VELOCITY = 100.0
"""Velocity [rad/s or m/s] assumed for a joint without a velocity limit."""
FAR_AHEAD = 3600.0
"""Maximum time from now to the start of a trajectory [s]; later ones use another clock."""
TRAJECTORY_DISCARDED = "trajectory discarded: received while no joint states were available"
REFERENCE_THRESHOLD = 0.05
"""Distance from the reference [rad or m] beyond which a new controller stops at the measured
configuration instead of moving back."""


class ControlLoop:
    """Runs one controller on one driver.

    At a restart the controller is reset and the reference holds the measured configuration. The
    loop restarts at the first state, after a gap or a step back in time, after a jump of the
    position, and when the driver begins to accept commands. Position servos with a following error
    of at most SAG hold their last position command instead.

    If a controller raises, or does not return a valid Command, the driver's controlled stop runs.
    The events ``controller_failed`` and ``command_rejected`` name its class and line. ``events``
    without a listener are logged as warnings of the logger "arm_dynamics".

    Trajectories that lead to a collision are rejected. The arm is stopped, and the event
    ``control_restarted`` names both links, or the link and the object, where they would come nearer
    than the clearance.

    Parameters
    ----------
    driver : Driver
        Arm to control, simulated or physical.
    controller : Controller
        Active controller; its model may differ from the driver's arm.
    events : Events, optional
        Receives all events of the loop.
    self_collision : bool
        Whether collisions are checked, of links with each other and with objects.
    scene : Scene
        Objects around the arm.

    """

    def __init__(
        self,
        driver: Driver,
        controller: Controller,
        events: Events | None = None,
        *,
        self_collision: bool = True,
        scene: Scene = EMPTY_SCENE,
    ) -> None:
        self.driver = check_type(Driver, "driver", driver)  # type: ignore[type-abstract]
        self._active = ActiveController(controller)
        self.events = events or Events()
        self.guard = Guard(driver.arm, self.events, driver.extra_interfaces)
        self._max_velocity = np.minimum(driver.arm.velocity_limit, MAX_VELOCITY)
        self.gain_scaling = GainScaling(driver, self._active, self.events)
        self.reference_generator = ReferenceGenerator()
        self.gripper = Gripper(driver.arm)
        self.collision_avoidance: CollisionAvoidance | None = None
        if self_collision:
            self.use_scene(scene)
        controller.follow_references(self.reference_ahead)
        self._contact_stop = -1
        """Number of the trajectory that stops the arm before a contact."""
        self.restart_count = 0
        """Number of restarts from the measured state."""
        self._command_epoch = driver.command_epoch
        self._hold = PositionHold()
        self.state: State | None = None
        self.reference: Reference | None = None
        self.command: Command | None = None
        self.latest: tuple[State, Reference, Command] | None = None
        """State, reference and command of one control cycle, consistent for other threads."""

    def __repr__(self) -> str:
        """Controller, driver, arm, time of the last state and kind of trajectory, in a line."""
        names = (type(self.controller).__name__, type(self.driver).__name__)
        time = "no state" if self.state is None else f"t = {self.state.time:.6g} s"
        motion = "" if self.trajectory is None else f", {type(self.trajectory).__name__}"
        return f"<ControlLoop of {self.arm.name[:40]}: {' on '.join(names)}, {time}{motion}>"

    @property
    def arm(self) -> ArmModel:
        """The driver's arm, with its joints and limits."""
        return self.driver.arm

    @property
    def controller(self) -> Controller:
        """The active controller."""
        return self._active.controller

    @property
    def newest_controller(self) -> Controller:
        """The controller that waits for a switch; without one the active controller."""
        return self._active.newest

    @property
    def trajectory(self) -> Trajectory | None:
        """The active trajectory."""
        return self.reference_generator.trajectory

    def reference_ahead(self, time: float) -> Reference:
        """Return the reference at a later time [s], of the present generator."""
        return self.reference_generator.at(time)

    def step(self) -> Command | None:
        """Run one control cycle: read, update, guard, write.

        Returns
        -------
        Command or None
            The written command; None if the state or the command was rejected. The driver then
            runs ``idle`` instead of ``write``.

        """
        try:
            state = self.driver.read()
            if not self.guard.check_state(state):
                return self._idle()
            if self.trajectory is None or self._is_interrupted(state):
                self.restart(state)
            elif self.state is not None and state.time == self.state.time:
                return self._repeat(state)
            dt = 0.0 if self.state is None else state.time - self.state.time
            if self._active.is_switch_due(state.time):
                self._switch(state)
            self._stop_before_contact(state)
            self.state = state
            self.reference = self.reference_generator.reference(
                state.time, self.reference, _measured(state)
            )
            self._follow_gripper(state)
            self.gain_scaling.require(state.q)
            command = self._active.command(state, self.reference, dt)
            feedforward = self.reference.effort
            if feedforward is not None and command.interface == "effort":
                command = replace(command, value=as_readonly(command.value + feedforward))
            checked = self.guard.check_command(command, partial(returned_by, self.controller))
            self.command = self.gripper.command(checked, state)
        except DriverFault as error:
            self.events.report("driver_fault", str(error))
            return self._idle()
        except ControllerFault as error:
            self.events.report("controller_failed", str(error))
            self.command = None
            return self._idle()
        except CommandRejected:  # reported by the guard
            self.command = None
            return self._idle()
        self.driver.write(self.command)
        self._hold.note(self.command)
        self.latest = (state, self.reference, self.command)
        return self.command

    def _follow_gripper(self, state: State) -> None:
        """Replace the reference of the gripper joints while a goal moves or holds them."""
        generator = self.reference_generator
        if not self.gripper.joints:
            return
        assert self.reference is not None
        assert generator.trajectory is not None
        if not self.controller.tracks_reference:
            self.gripper.interrupt(f"{type(self.controller).__name__} does not track a reference")
        self.reference = self.gripper.reference(
            self.reference, state, generator.trajectory, generator.number, self.controller.interface
        )
        generator.kept = self.gripper.active_joints
        self._active.bound_effort(self.gripper.effort_bound)
        if self.gripper.stalled_joints.size:
            self.controller.clear_integral(self.gripper.stalled_joints)

    def _idle(self) -> Command | None:
        """Write no command in this cycle."""
        self.driver.idle()
        return None

    def _repeat(self, state: State) -> Command | None:
        """Write the last command again for the same state: a simulator waits in lockstep.

        A different state with the same time stamp is rejected: its dt would be 0.
        """
        assert self.state is not None
        if not (np.array_equal(state.q, self.state.q) and np.array_equal(state.v, self.state.v)):
            self.events.report(
                "state_rejected",
                f"control loop: time stamp = {state.time:.6g} s, unchanged while the arm moved;"
                " expected a later one",
            )
            return self._idle()
        if self.command is None:
            return self._idle()
        self.driver.write(self.command)
        return self.command

    def _is_interrupted(self, state: State) -> bool:
        """Return True, and report ``control_restarted``, if the loop must restart."""
        if self.state is None:
            return False
        gap = state.time - self.state.time
        if self.driver.command_epoch != self._command_epoch:
            if self.driver.inactive:
                self.events.report("control_restarted", self.driver.inactive)
                return True
            cause = "the driver begins to accept commands"
        elif gap > MAX_STATE_GAP:
            cause = f"no state for {gap:.3f} s (limit {MAX_STATE_GAP} s)"
        elif gap < 0:
            self._hold.reset()
            cause = f"time stamps stepped back by {-gap:.3f} s"
        elif not is_within(
            np.subtract(state.q, self.state.q, dtype=float),
            JUMP_THRESHOLD + 2 * gap * self._max_velocity,
        ):
            self._hold.reset()
            cause = f"position jump beyond the velocity limits within {gap:.3f} s"
        else:
            return False
        self.events.report("control_restarted", f"{cause}: holding the measured configuration")
        return True

    def _stop_before_contact(self, state: State) -> None:
        """Stop the arm, and report ``control_restarted``, if a link would touch."""
        generator, avoidance = self.reference_generator, self.collision_avoidance
        if (
            avoidance is None
            or generator.number == self._contact_stop
            or not self.controller.tracks_reference
        ):
            return
        contact = avoidance.braking.contact_ahead(state.q, state.v)
        if contact is not None:
            self.events.report("control_restarted", f"{contact}: stopping")
            self.stop_from_state(state, avoidance.braking.deceleration(state.q, state.v))
            self.gripper.stop(state, str(contact))
            self._contact_stop = generator.number

    def use_scene(self, scene: Scene) -> None:
        """Check collisions with these objects from the next cycle on.

        May be called in another thread. Trajectories that are active continue; the arm is stopped
        before a contact. Free objects are not checked: their motion changes nothing.
        """
        before = self.collision_avoidance
        if before is None or not scene.differs_in_poses_only(before.scene):
            self.collision_avoidance = CollisionAvoidance(self.arm, scene=scene)
            for controller in {self.controller, self.newest_controller}:
                controller.use_scene(scene)

    def restart(self, state: State) -> None:
        """Reset the controller and hold the configuration of ``state``.

        Raises
        ------
        ControllerFault
            If the controller's ``reset`` raises.

        """
        if self.reference_generator.pending:
            self.events.report("trajectory_rejected", TRAJECTORY_DISCARDED)
        if self.driver.command_epoch != self._command_epoch:
            self._hold.reset()
        self.gripper.interrupt(self.events.latest.get("control_restarted", "restart"))
        self._active.restart(state)
        start = self._hold.holding_state(state, self.driver.held)
        self.reference_generator.start(self.controller.hold_trajectory(start))
        self.restart_count += 1
        self._command_epoch = self.driver.command_epoch
        self.state = self.reference = None

    def switch_controller(self, controller: Controller) -> None:
        """Switch to another controller at the next cycle, bumpless.

        The trajectory continues. An arm farther than REFERENCE_THRESHOLD from its reference (after
        it was guided by hand, for example) is stopped at its measured configuration.

        Raises
        ------
        InvalidValue
            If the controller uses another command interface, or its gains are unstable with the
            driver's timing.

        """
        if self.driver.timing is not None:
            self.gain_scaling.check(controller)
        controller.follow_references(self.reference_ahead)
        if self.collision_avoidance is not None:
            controller.use_scene(self.collision_avoidance.scene)
        self._active.request_switch(controller)

    def _switch(self, state: State) -> None:
        try:
            self._active.switch(state)
        except ControllerFault as error:
            self.events.report("controller_failed", str(error))
            return
        if (
            self.gain_scaling.fault
        ):  # the previous controller's gains are unstable: do not blend it out
            self.gain_scaling.fault = ""
            self._active.restart(state)
        if (
            self.reference is not None
            and (np.abs(self.reference.q - state.q) > REFERENCE_THRESHOLD).any()
        ):
            self.stop_from_state(state)

    def stop_from_state(self, state: State, deceleration: Vector | None = None) -> None:
        """Replace the trajectory by a stop from the measured state; call between two cycles.

        Parameters
        ----------
        state : State
            Measured state at which the stop starts.
        deceleration : (nv,) array [rad/s² or m/s²], optional
            Default: ``default_deceleration`` of the arm.

        """
        start = _measured(self._hold.holding_state(state, self.driver.held))
        stop = self.stop_trajectory(deceleration).starting_from(state.time, start)
        self.reference_generator.start(stop)
        self.restart_count += 1

    def request_stop(self, deceleration: Vector | None = None) -> None:
        """Replace the trajectory by a stop from its reference at the next cycle.

        A Cartesian trajectory stops from the measured state.

        Parameters
        ----------
        deceleration : (nv,) array [rad/s² or m/s²], optional
            Default: ``default_deceleration`` of the arm.

        """
        self.reference_generator.queue(self.stop_trajectory(deceleration))

    def stop_trajectory(self, deceleration: Vector | None) -> StopTrajectory:
        """Return the arm's stop, to be used with ``starting_from``."""
        rate = default_deceleration(self.arm) if deceleration is None else deceleration
        return StopTrajectory.of(self.arm, rate)

    def follow(self, trajectory: Trajectory, *, effort_check: bool = False) -> None:
        """Start a trajectory at the next cycle from the reference at that time, without a jump.

        Positions of continuous joints are taken modulo one turn, nearest to the current reference.

        Parameters
        ----------
        trajectory : Trajectory
            Joint-space or Cartesian trajectory.
        effort_check : bool
            Also reject a trajectory whose effort, computed with the controller's model, exceeds
            the arm's effort limits.

        Raises
        ------
        TrajectoryRejected
            If a waypoint or the motion to it exceeds a limit, if the trajectory ends in the past,
            while the driver executes no commands, or before the first state. The active trajectory
            continues.

        """
        state, reference = self.require_active()
        interface = self.controller.interface
        if interface != "effort" and getattr(trajectory, "effort", None) is not None:
            raise TrajectoryRejected(
                f"trajectory: effort given for {type(self.controller).__name__}, which commands"
                f" {interface}; leave effort empty, or use a controller that commands effort"
            )
        if trajectory.end <= state.time:
            raise TrajectoryRejected(
                f"trajectory: time of the last waypoint = {trajectory.end:.6g} s; expected a time"
                f" later than now ({state.time:.6g} s)"
            )
        if trajectory.start > state.time + FAR_AHEAD:
            raise TrajectoryRejected(
                f"trajectory: time of the first waypoint = {trajectory.start:.6g} s; expected at"
                f" most {FAR_AHEAD:g} s ahead of now ({state.time:.6g} s); use the clock of the"
                " joint states, not another clock"
            )
        measured = _measured(state)
        if isinstance(trajectory, JointTrajectory):
            configuration = self._joint_reference(state, reference).q
            trajectory = trajectory.near(self.arm, configuration, state.time)
        spliced = self.reference_generator.spliced_at(state.time, trajectory, reference, measured)
        spliced.check(self.arm)
        if self.collision_avoidance is not None:
            self.collision_avoidance.check(spliced, state.time)
        if effort_check:
            check_effort(self.controller.arm, spliced, self.arm.effort_limit)
        self.reference_generator.queue(trajectory)

    def grip(self, command: GripperCommand) -> GripperGoal:
        """Move the gripper joints from the next cycle; the others continue their trajectory.

        Parameters
        ----------
        command : GripperCommand
            Positions, and optional speeds and efforts.

        Returns
        -------
        GripperGoal
            The goal, which has its ``result`` at the position or at a stall.

        Raises
        ------
        UnknownName, InvalidValue
            As ``Gripper.goal``.
        TrajectoryRejected
            For a collision before the position, a controller that commands neither positions nor
            efforts, while the driver executes no commands, and before the first state. The goal
            before continues.

        """
        goal = self.gripper.goal(command)
        reference, controller = self.require_active()[1], self.controller
        if controller.interface not in ("effort", "position") or not controller.tracks_reference:
            raise TrajectoryRejected(
                f"gripper: controller = {type(controller).__name__}, which commands"
                f" {controller.interface}; expected one of positions or efforts",
            )
        if self.collision_avoidance is not None:
            target = reference.q.copy()
            target[self.gripper.indices] = goal.target
            self.collision_avoidance.check_step(reference.q, target)
        self.gripper.begin(goal)
        return goal

    def present(self) -> tuple[State, Reference]:
        """Return the latest state and its reference.

        Raises
        ------
        TrajectoryRejected
            Before the first state.

        """
        if self.state is None or self.reference is None:
            raise TrajectoryRejected(
                "control loop: no state of the arm received; expected joint states"
            )
        return self.state, self.reference

    def require_active(self) -> tuple[State, Reference]:
        """Return what ``present`` returns.

        Raises
        ------
        TrajectoryRejected
            Before the first state, and while the driver executes no commands.

        """
        if self.driver.inactive:
            raise TrajectoryRejected(self.driver.inactive)
        return self.present()

    def options(
        self,
        *,
        integrate: bool,
        end_in_motion: bool,
        partial: bool = False,
        deceleration: Vector | None = None,
    ) -> Options:
        """Return the parsing options of a trajectory received now; raises as ``present``.

        With ``partial``, joints that it omits are stopped with ``deceleration`` (nv,) [rad/s² or
        m/s²], by default ``default_deceleration`` of the arm.
        """
        state, reference = self.present()
        desired = self.reference_generator.from_desired
        start, held = reference if desired else _measured(state), None
        if partial:
            stop = self.stop_trajectory(deceleration).starting_from(state.time, reference)
            held = stop.at(stop.end).q
        return Options(end_in_motion, start if integrate else None, held, state.time)

    def hold(self, positions: Mapping[str, float] | ArrayLike) -> None:
        """Step the reference of the named joints, or of all; the other references stay.

        Positions of continuous joints are taken modulo one turn, nearest to the current reference.

        Parameters
        ----------
        positions : Mapping[str, float] or (nv,) array
            Joint name to position [rad or m], or the positions of all joints.

        Raises
        ------
        UnknownName, InvalidValue
            Naming the joint; the previous reference stays.
        TrajectoryRejected
            Before the first state, and while the driver executes no commands.

        """
        state, reference = self.require_active()
        if not isinstance(positions, Mapping):
            target = check_vector("positions", positions, self.arm.nv)
            positions = dict(zip(self.arm.joint_names, target.tolist(), strict=True))
        start, named = self._joint_reference(state, reference), positions

        def changed(pending: Trajectory | None) -> JointTrajectory:
            q = (start if pending is None else pending.at(pending.end)).q.copy()
            for name, value in named.items():
                q[self.arm.index(name)] = value
            checked = self.arm.check_position("reference", q)
            goal = checked + whole_turns(self.arm, checked, start.q)
            if self.collision_avoidance is not None:
                self.collision_avoidance.check_step(start.q, goal)
            return JointTrajectory.hold(goal)

        self.reference_generator.update_pending(changed)

    @staticmethod
    def _joint_reference(state: State, reference: Reference) -> Reference:
        """Return the joint reference; the measured state while a Cartesian one is active."""
        return _measured(state) if isinstance(reference, TaskReference) else reference


def _measured(state: State) -> Reference:
    return Reference(state.q, state.v, np.zeros(state.v.size))
