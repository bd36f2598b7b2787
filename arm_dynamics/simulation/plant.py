"""The arm as physics: motors, friction, stops and rigid bodies, advanced in time."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.core.arrays import Vector, as_readonly, check_float, check_int, check_vector
from arm_dynamics.core.compiled_math import all_finite
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import MIXED, NO_STATES, Command, State, require_state
from arm_dynamics.dynamics.kinematics import jacobian
from arm_dynamics.dynamics.rigid_body import mass_matrix
from arm_dynamics.model.arm_argument import check_arm
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.equations_of_motion import (
    EquationsOfMotion,
    JointEfforts,
    MotorValues,
    check_command_interfaces,
)
from arm_dynamics.simulation.friction import velocity_after_dry_friction
from arm_dynamics.simulation.integrators import find_integrator

RUNAWAY = 1e6
"""Speed [rad/s] at which a motion on its way out of the finite numbers is called lost."""
NO_COMMAND = Command(MIXED, NO_STATES)
FLOAT = np.dtype(np.float64)


class Plant:
    """M(q) v̇ + C(q, v) v + g(q) = tau_motor(command, v, z) - friction + stops,  ż = n - λ z.

    Not thread-safe: one plant a thread. Holds no state of the arm between calls: ``step``
    is a function of its arguments.
    """

    def __init__(self, arm: ArmModel, integrator: str = "semi_implicit_euler") -> None:
        self.arm = check_arm(arm)
        self.integrator = find_integrator(integrator)
        self._motion = EquationsOfMotion(arm)
        self._rubs = self._motion.has_dry_friction and not self.integrator.resolves_dry_friction
        self._smooth = self._motion.plain and not self._rubs
        self._at_rest, self._own_sizes = arm.initial_act, (0, arm.na)
        self._command, self._shape = NO_COMMAND, (arm.nv,)
        self._after: State | None = None
        self._compile()

    def step(
        self,
        state: State,
        command: Command,
        dt: float,
        steps: int = 1,
        *,
        end: float | None = None,
    ) -> State:
        """The state after ``steps`` time steps of dt [s] under one constant command.

        ``end`` is the time [s] of the result, by default state.time + steps dt. Sums of rounded
        times drift: whoever takes many steps counts them with a ``StepClock``.

        ``tau`` of the result is the actuators' effort as the integrator last evaluated it: at the
        start of the last step for the Euler methods, within or at the end of it for the others.
        A state without the actuators' own states starts with these at rest.
        Raises UnknownName for an interface that a joint does not take, CommandRefused for a
        wrong size or a non-finite entry, InvalidValue for a bad state, time step or number of
        steps, and when the motion leaves the finite numbers.
        """
        if not (type(dt) is float and 0 < dt < inf and type(steps) is int and steps > 0):
            dt = check_float("dt [s]", dt, above=0)
            steps = check_int("steps", steps, lower=1)
        if state is not self._after:  # its own last result needs no look
            self._accept_state(state)
        if command is not self._command or command.value.flags.writeable:
            self._accept_command(command)  # one look at a frozen command is enough
        q, v, z = state.q.copy(), state.v.copy(), self._at_rest
        if self._smooth:
            well = self.integrator.run(self._motion, q, v, dt, steps)
        else:
            z = self._own_states(state).copy()
            well = self._instants(q, v, z, dt, steps)
            z.setflags(write=False)
        if not well:
            self._name_the_lost(state, dt, steps)
        tau = self._motion.effort
        for array in (q, v, tau):
            array.setflags(False)  # type: ignore[call-arg]  # by name it takes twice as long
        self._after = after = State(state.time + steps * dt if end is None else end, q, v, tau, z)
        return after

    def efforts(self, state: State, command: Command) -> JointEfforts:
        """What acts on the joints in this state under this command; no time passes.

        Raises as ``step`` does for a bad state or command.
        """
        self._accept_state(state)
        self._require_finite(state)
        self._accept_command(command)
        return self._motion.efforts(state.q, state.v, self._own_states(state))

    def motors(self, state: State, command: Command) -> MotorValues:
        """Voltages and temperatures of the motors in this state under this command.

        Raises as ``step`` does for a bad state or command.
        """
        self._accept_state(state)
        self._accept_command(command)
        return self._motion.motors(state.q, state.v, self._own_states(state))

    def struck(self, state: State, impulse: ArrayLike) -> State:
        """The state right after an impulse p (3,) [N·s] on the tool, along the base's axes.

        v⁺ = v + M(q)⁻¹ J(q)ᵀ p; joints with prescribed motion keep their speed.
        """
        generalized = jacobian(self.arm, state.q)[:3].T @ check_vector("impulse", impulse, 3)
        generalized[self._motion.prescribed] = 0.0
        change = self._motion.inverse_mass(state.q) @ generalized
        return replace(state, v=as_readonly(state.v + change))

    def require_stable(self, q: Vector, dt: float) -> None:
        """Refuse damping that a time step of dt [s] cannot follow at ``q``.

        Explicit damping is stable while b dt < 2 M_ii, with b viscous friction and back-EMF as far
        as the method does not take them implicitly; teeth of a gear with play swing on their own.
        Raises InvalidValue naming the joint, its damping or teeth, and the most that is allowed.
        """
        dt = check_float("dt [s]", dt, above=0)
        if self.integrator.implicit_damping == "everything":
            return
        parts = list(zip(self.arm.joints, self.arm.actuators, strict=True))
        damping = np.array([j.damping + a.step_damping(dt) for j, a in parts])
        if self.integrator.implicit_damping == "windings":
            damping -= [a.winding_damping(dt) for a in self.arm.actuators]
        allowed = 2 * np.diag(mass_matrix(self.arm, q)) / dt
        for i in np.flatnonzero(damping >= allowed):
            raise InvalidValue(
                f"joint '{self.arm.joint_names[i]}': damping {damping[i]:.4g} N·m·s/rad, friction"
                f" and back-EMF together; below {allowed[i]:.4g} is allowed with dt = {dt:g} s"
            )
        compliance = np.diag(self._motion.inverse_mass(q))
        for (_, actuator), softness in zip(parts, compliance.tolist(), strict=True):
            actuator.require_stable(softness, dt)

    def _compile(self) -> None:
        """Let what this arm needs, and no more, be compiled here, before time runs."""
        q, v, z = np.zeros(self.arm.nv), np.zeros(self.arm.nv), self._at_rest.copy()
        self._instants(q, v, z, 1e-9, 1)
        if self._smooth:
            self.integrator.run(self._motion, q, v, 1e-9, 2)
        self._motion.efforts(q, v, z)
        self._require_finite(State.of(q, v, act=z))

    @np.errstate(all="ignore")  # what leaves the finite numbers is refused, not warned of
    def _instants(self, q: Vector, v: Vector, z: Vector, dt: float, steps: int) -> bool:
        """``steps`` time steps, in place, as far as numbers stay finite; whether they do."""
        well = all_finite(q, v, z)
        while well and steps:
            self._instant(q, v, z, dt)
            well, steps = all_finite(q, v, z), steps - 1
        return well

    def _instant(self, q: Vector, v: Vector, z: Vector, dt: float) -> None:
        """One time step, in place."""
        motion = self._motion
        goals = motion.step_prescribed_motion(q, v, z, dt) if motion.prescribed else None
        before = z.copy() if motion.has_internal_friction else z
        if not self._rubs:
            self.integrator.advance(motion, q, v, z, dt)
        else:
            self._instant_with_dry_friction(q, v, z, dt)
        if motion.has_internal_friction:
            motion.apply_internal_friction(before, z, dt)
        if goals is not None:
            q[motion.prescribed] = goals

    def _instant_with_dry_friction(self, q: Vector, v: Vector, z: Vector, dt: float) -> None:
        """The integrator's smooth step, then the impulse of dry friction over dt."""
        response, start, before = self._response(q, v, z, dt), q.copy(), v.copy()
        self.integrator.advance(self._motion, q, v, z, dt)
        if np.isfinite(v).all():
            # A joint that was at rest, or turns round, must break away: speed 0 counts.
            forward, backward = self._motion.dry_friction_bounds_at(
                np.where(before * v > 0, before, 0.0)
            )
            rubbed = velocity_after_dry_friction(v, response, dt * forward, dt * backward)
            q += self.integrator.drift_fraction * dt * (rubbed - v)
            v[:] = rubbed
            stuck = (before == 0) & (rubbed == 0)
            q[stuck] = start[stuck]

    def _response(self, q: Vector, v: Vector, z: Vector, dt: float) -> Vector:
        """What a constant force does to the speeds in one step of the method, per impulse."""
        implicit, explicit = self.integrator.split_damping(*self._motion.step_damping(q, v, z, dt))
        return self._motion.force_response(
            q, implicit, explicit, self.integrator.force_response_terms, dt
        )

    def _own_states(self, state: State) -> Vector:
        return state.act if state.act.size else self._at_rest

    def _accept_state(self, state: State) -> None:
        if (
            type(state) is State
            and type(state.q) is type(state.v) is type(state.act) is np.ndarray
            and state.q.dtype is state.v.dtype is state.act.dtype is FLOAT
            and state.q.shape == state.v.shape == self._shape
            and state.act.size in self._own_sizes
        ):
            return
        require_state(state)
        if state.q.shape != self._shape or state.v.shape != self._shape:
            raise InvalidValue(
                f"state has {state.q.size} positions and {state.v.size} velocities,"
                f" arm '{self.arm.name}' has {self.arm.nv} joints"
            )
        if state.act.size not in self._own_sizes:
            raise InvalidValue(
                f"state has {state.act.size} own states of actuators, arm '{self.arm.name}' has"
                f" {self.arm.na}: {', '.join(self.arm.act_names) or 'none'}"
            )

    def _require_finite(self, state: State) -> None:
        if not all_finite(state.q, state.v, state.act):
            raise InvalidValue(
                f"state is not finite: q = {state.q}, v = {state.v}, act = {state.act}"
            )

    def _accept_command(self, command: Command) -> None:
        self._motion.set_command(check_command_interfaces(self.arm, command))
        self._command = command if isinstance(command.value, np.ndarray) else NO_COMMAND

    def _name_the_lost(self, state: State, dt: float, steps: int) -> None:
        self._require_finite(state)
        joint, time = self._first_to_leave(state, dt, steps)
        raise InvalidValue(
            f"joint '{joint}' left the finite numbers at t = {time:.6g} s"
            f" with dt = {dt:g} s ({self.integrator.name}): use a smaller dt"
        )

    @np.errstate(all="ignore")
    def _first_to_leave(self, state: State, dt: float, steps: int) -> tuple[str, float]:
        """The motion once more, up to the first joint that no arm could follow."""
        q, v, step = state.q.copy(), state.v.copy(), 0
        z = self._own_states(state).copy()
        while step < steps:
            self._instant(q, v, z, dt)
            step += 1
            if not np.abs(v).max() < RUNAWAY:
                break
        return self.arm.joint_names[int(np.argmax(np.abs(v)))], state.time + step * dt
