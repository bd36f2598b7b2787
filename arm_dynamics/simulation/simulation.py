"""An arm in simulated time: plant, state and command watchdog."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.collision.scene import EMPTY_SCENE, Scene
from arm_dynamics.core.arrays import Vector, as_readonly, check_float, check_vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import Command, State, require_command
from arm_dynamics.core.timing import UNTIMED, LoopTiming, StepClock
from arm_dynamics.dynamics.kinematics.frames import in_axes, jacobian, pose
from arm_dynamics.dynamics.rigid_body import gravity
from arm_dynamics.model.arm_argument import require_same_joints
from arm_dynamics.model.arm_html import arm_html
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.safety.command_watchdog import CommandWatchdog
from arm_dynamics.safety.controlled_stop import ControlledStop
from arm_dynamics.simulation.equations_of_motion import JointEfforts, MotorValues
from arm_dynamics.simulation.plant import Plant

if TYPE_CHECKING:
    from arm_dynamics.simulation.contact.contact_dynamics import Contacts

MAX_STEPS = 1_000_000
"""Largest number of time steps in a control period: these take seconds to compute."""

SHORT_PERIOD = 2e-3
"""Control period [s] up to which the default gains of a stop are stable on bundled arms."""

PUSHED_TOOL_VELOCITY, PUSHED_JOINT_VELOCITY = 2.0, 10.0
"""Largest velocities [m/s] of the tool and [rad/s or m/s] of a joint after the default push."""
NO_EFFECT = 1e-9
"""Change of velocity by 1 N·s [rad/s or m/s] that is rounding."""
MAX_VELOCITY_CHANGE = 20.0
"""Largest change of a joint's speed [rad/s or m/s] by an impulse on the tool."""

PULL_TIME = 0.5
"""Simulated time [s] after which a wrench on a link ends unless it is applied again."""
MAX_PULL_ACCELERATION = 300.0
"""Largest acceleration of a joint [rad/s² or m/s²] by a wrench on a link."""


class Simulation:
    """State of one arm, advanced by control periods.

    Within a period the command stays constant and the plant takes steps of dt. Steps are counted,
    so that the time of the state does not drift.

    Parameters
    ----------
    arm : ArmModel
        The simulated arm.
    q, v : ArrayLike, shape (nv,), optional
        Initial positions [rad or m] (default: the initial configuration) and velocities (0).
    dt : float
        Time step [s].
    period : float
        Control period [s], a whole multiple of dt.
    timeout : float
        Age [s] of a command after which the arm stops.
    integrator : str
        Name of the integrator.
    nominal : ArmModel, optional
        Model of the arm for the controlled stop (default: ``arm``).
    scene : Scene
        Objects that the arm touches; those with a mass move.

    """

    def __init__(
        self,
        arm: ArmModel,
        *,
        q: ArrayLike | None = None,
        v: ArrayLike | None = None,
        dt: float = 1e-4,
        period: float = 2e-3,
        timeout: float = 0.1,
        integrator: str = "semi_implicit_euler",
        nominal: ArmModel | None = None,
        scene: Scene = EMPTY_SCENE,
    ) -> None:
        """Start at rest, or with velocity ``v``, under no command."""
        self.steps = steps_per_period(period, dt, MAX_STEPS)
        self.initial_scene = scene
        self.plant = new_plant(arm, integrator, scene)
        self.dt = float(dt)
        model = arm if nominal is None else require_same_joints("nominal", nominal, arm)
        self.watchdog = CommandWatchdog(model.with_gravity(arm.gravity), timeout, stop=self._stop)
        self.state = self._at_rest(arm.configuration("initial") if q is None else q, v, 0.0)
        self._clock = StepClock()
        self._command: Command | None = None
        self._impulse: Vector | None = None
        self._pull: tuple[str, Vector, float] | None = None
        """Link, wrench (6,) on it, and time [s] at which it ends."""
        self.acceleration: Vector = as_readonly(np.zeros(arm.nv))
        """Mean joint accelerations (nv,) [rad/s² or m/s²] of the last period; 0 before any."""
        self.on_period: Callable[[State, Command, State], None] | None = None
        """Called after every period: the state before, the command that acted, the state after."""

    def __repr__(self) -> str:
        """Arm, time, time step, control period and integrator, in a line."""
        times = f"t = {self.state.time:.6g} s, dt = {self.dt:g} s, period = {self.period:g} s"
        return f"<Simulation of {self.arm.name[:40]}: {times}, {self.plant.integrator.name}>"

    def _repr_html_(self) -> str:
        """Drawing of the arm in its present configuration, for notebooks."""
        return arm_html(self.arm, self.state.q, repr(self).strip("<>"))

    @property
    def arm(self) -> ArmModel:
        """The simulated arm, with payload and live changes."""
        return self.plant.arm

    @property
    def period(self) -> float:
        """Control period [s]."""
        return self.steps * self.dt

    def submit(self, command: Command) -> bool:
        """Accept a new command; return False and report an event if it is rejected.

        Servos clamp it to their present limits, also where it equals their last command.
        Raises InvalidValue if it is not a Command.
        """
        if not self.watchdog.submit(require_command(command), self.state.time):
            return False
        if self.arm.na:
            act = self.arm.act_after_command(command.value, self.state.act)
            if act is not self.state.act:
                self.state = replace(self.state, act=act)
        return True

    def advance(self) -> State:
        """Advance by one control period under the command of the watchdog."""
        before, command = self.state, self.watchdog.command(self.state)
        if self._impulse is not None:
            before, self._impulse = self.plant.apply_impulse(before, self._impulse), None
        if self._pull is not None:
            link, wrench, end = self._pull
            if before.time < end:
                before = self.plant.apply_wrench(before, link, wrench, self.period)
            else:
                self._pull = None
        if self.watchdog.stopping and before.act.size:
            before = replace(before, act=self.arm.hold_act(before.q, before.act))
        end = self._clock.after(before.time, self.dt, self.steps)
        self.state = self.plant.step(before, command, self.dt, self.steps, end=end)
        if (contacts := self.contacts) is not None and not contacts.converged:
            text = f"residual {contacts.residual:.2g} m/s; reduce dt"
            self.watchdog.events.report("contact_not_converged", text)
        self._command = command
        self.acceleration = (self.state.v - before.v) / self.period
        self.acceleration.flags.writeable = False
        if self.on_period is not None:
            self.on_period(before, command, self.state)
        return self.state

    def efforts(self) -> JointEfforts | None:
        """Return the present efforts under the last period's command; None before any."""
        return None if self._command is None else self.plant.efforts(self.state, self._command)

    def motors(self) -> MotorValues | None:
        """Return the present voltages and temperatures of the motors; None before any period."""
        return None if self._command is None else self.plant.motors(self.state, self._command)

    def set_arm(self, arm: ArmModel) -> None:
        """Continue with a changed arm (payload, gravity, motor constants) in the same state.

        Actuator states continue by name; new ones start at rest. The model of the controlled stop
        takes the gravity, since a mounting is known, and no other change. Raises InvalidValue if
        it is not an arm or has other joints.
        """
        require_same_joints("arm", arm, self.arm)
        if arm.act_names != self.arm.act_names:
            held = dict(zip(self.arm.act_names, self.state.act.tolist(), strict=True))
            rest = zip(arm.act_names, arm.initial_act.tolist(), strict=True)
            self.state = replace(
                self.state, act=as_readonly([held.get(name, x) for name, x in rest])
            )
        self.plant = new_plant(arm, self.plant.integrator.name, self.initial_scene)
        self.watchdog.arm = self.watchdog.arm.with_gravity(arm.gravity)

    @property
    def scene(self) -> Scene:
        """The objects, those that move at their present places."""
        return self.plant.scene_at(self.state)

    @property
    def contacts(self) -> Contacts | None:
        """Contacts of the last step; None without a scene or before any step."""
        return getattr(self.state, "contacts", None)

    def tool_wrench(self) -> Vector:
        """Return the wrench (6,) [N, N·m] of the contacts at the tool, along its axes.

        w = Σ (Rᵀ F_k, Rᵀ ((p_k - p) × F_k)) over the contacts of the links behind the last joint
        of the tool frame, those of a gripper included.
        """
        arm, total = self.arm, np.zeros(6)
        contacts = self.contacts
        if contacts is None or not len(contacts):
            return as_readonly(total)
        position, rotation = pose(arm, self.state.q)
        links = set(arm.tool_links)
        ends = zip(contacts.first, contacts.second, contacts.point, contacts.force, strict=True)
        for first, second, point, force in ends:
            on_tool = force if second in links else -force if first in links else np.zeros(3)
            total += np.concatenate([on_tool, np.cross(point - position, on_tool)])
        return as_readonly(in_axes(rotation, total))

    def set_scene(self, scene: Scene) -> None:
        """Continue with other objects; a free one at its present place continues its motion.

        Raises InvalidValue for objects that overlap, and for an integrator without contact.
        """
        plant = new_plant(self.arm, self.plant.integrator.name, scene)
        self.state = plant.continued(self.plant, self.state)
        self.plant, self.initial_scene = plant, scene

    def push(self, impulse: ArrayLike) -> None:
        """Apply an impulse (3,) [N·s], base axes, to the tool at the start of the next period.

        Raises InvalidValue if it changes the velocity of a joint by more than MAX_VELOCITY_CHANGE,
        or of no joint.
        """
        p = check_vector("impulse", impulse, 3)
        change = np.abs(self.plant.apply_impulse(self.state, p).v - self.state.v)
        i = int(np.argmax(change))
        if not change[i] <= MAX_VELOCITY_CHANGE:
            raise InvalidValue(
                f"impulse: speed of joint '{self.arm.joint_names[i]}' would change by"
                f" {change[i]:.4g} rad/s or m/s; expected at most {MAX_VELOCITY_CHANGE:g}"
            )
        if not change[i] > 0:
            raise InvalidValue("impulse: no joint of this arm moves; expected another direction")
        self._impulse = p

    def pull(self, link: str, wrench: ArrayLike) -> None:
        """Apply a wrench (6,) [N, N·m] on a link, along its axes at its origin, from now on.

        It ends with the next call, after PULL_TIME, and at a reset; a zero wrench ends it. Raises
        UnknownName for a link that the arm does not have. A wrench that would accelerate a joint by
        more than MAX_PULL_ACCELERATION is reduced to that.
        """
        given = check_vector("wrench", wrench, 6)
        change = self.plant.apply_wrench(self.state, link, given, self.period).v - self.state.v
        largest = float(np.abs(change).max(initial=0.0))
        scale = min(1.0, MAX_PULL_ACCELERATION * self.period / largest) if largest > 0 else 0.0
        end = self.state.time + PULL_TIME
        self._pull = (link, as_readonly(scale * given), end) if scale > 0 else None

    def default_impulse(self) -> Vector:
        """Return an impulse (3,) [N·s] whose effect is visible at the tool.

        The tool moves at PUSHED_TOOL_VELOCITY, or slower so that no joint exceeds
        PUSHED_JOINT_VELOCITY. Of the base axes it is the one with the fastest tool for the speed of
        the joints in the present state; zero if no axis moves a joint.
        """
        tool = jacobian(self.arm, self.state.q)[:3]
        best, ratio = np.zeros(3), 0.0
        for axis in np.eye(3):
            change = self.plant.apply_impulse(self.state, axis).v - self.state.v
            joints, speed = float(np.abs(change).max()), float(axis @ tool @ change)
            if joints > NO_EFFECT and speed > ratio * joints:
                ratio = speed / joints
                best = axis * min(PUSHED_TOOL_VELOCITY / speed, PUSHED_JOINT_VELOCITY / joints)
        return as_readonly(best)

    def reset(self, q: ArrayLike | None = None, v: ArrayLike | None = None) -> State:
        """Place the arm at rest at ``q`` (default: its initial configuration).

        One period passes, so that no two states have the same time.
        """
        position = self.arm.configuration("initial") if q is None else q
        time = self._clock.after(self.state.time, self.dt, self.steps)
        self.state, self._impulse = self._at_rest(position, v, time), None
        self._pull = None
        self.acceleration = as_readonly(np.zeros(self.arm.nv))
        self.watchdog.restart()
        return self.state

    def set_time(self, time: float) -> None:
        """Continue from ``time`` [s] in the same state; the active command ends."""
        self.state = replace(self.state, time=check_float("time [s]", time))
        self.watchdog.restart()

    def _stop(self, state: State) -> ControlledStop:
        """Return a stop whose gains are stable at the control period."""
        timing = UNTIMED if self.period <= SHORT_PERIOD else LoopTiming(self.period)
        return ControlledStop(self.watchdog.arm, state, state.tau, timing=timing)

    def _at_rest(self, q: ArrayLike, v: ArrayLike | None, time: float) -> State:
        position = self.plant.arm.check_position("initial q", q)
        speed = check_vector("initial v", [0.0] * position.size if v is None else v, position.size)
        act = self.arm.hold_act(position, self.arm.initial_act)
        limit = self.arm.effort_limit
        effort = np.clip(gravity(self.arm, position), -limit, limit)
        return State.of(position, speed, effort, time, act)


def new_plant(arm: ArmModel, integrator: str, scene: Scene) -> Plant:
    """Return the plant of an arm, with contact if there are objects."""
    if not len(scene):
        return Plant(arm, integrator)
    from arm_dynamics.simulation.contact.contact_plant import ContactPlant  # noqa: PLC0415 - compiled

    return ContactPlant(arm, scene, integrator)


def steps_per_period(period: float, dt: float, most: float = 1e9) -> int:
    """Return period / dt; raises InvalidValue if it is not an integer or above ``most``."""
    dt = check_float("dt [s]", dt, above=0)
    period = check_float("period [s]", period, above=0)
    if period < dt:
        raise InvalidValue(
            f"dt = {dt:g} s; expected at most the control period of {period:g} s; reduce dt or"
            " increase the period"
        )
    if not period / dt <= most:
        raise InvalidValue(
            f"period = {period:g} s: {period / dt:.3g} steps of dt = {dt:g} s;"
            f" expected at most {most:g}"
        )
    steps = round(period / dt)
    if abs(steps * dt - period) > 1e-9 * period:
        raise InvalidValue(
            f"period = {period:g} s; expected a whole multiple of dt = {dt:g} s,"
            f" such as {steps * dt:g} s"
        )
    return steps
