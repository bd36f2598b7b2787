"""The simulated arm: motors, friction, end stops and rigid bodies, advanced in time."""

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
"""Speed [rad/s] above which a simulation counts as diverged."""
NO_COMMAND = Command(MIXED, NO_STATES)
FLOAT = np.dtype(np.float64)


class Plant:
    """M(q) v̇ + C(q, v) v + g(q) = tau_motor(command, v, z) - friction + stops,  ż = n - λ z.

    Not thread-safe: use one plant per thread. It holds no state of the arm between calls: ``step``
    is a function of its arguments.

    Parameters
    ----------
    arm : ArmModel
        The arm.
    integrator : str
        Name of the integrator, one of ``INTEGRATORS``.

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
        """Return the state after ``steps`` time steps under one constant command.

        Parameters
        ----------
        state : State
            State at the start; without act the actuator states at rest.
        command : Command
            Constant command (nv,).
        dt : float
            Time step [s].
        steps : int
            Number of time steps.
        end : float, optional
            Time [s] of the result (default: state.time + steps dt). Sums of rounded times drift:
            count many steps with a ``StepClock``.

        Returns
        -------
        State
            Its ``tau`` is the effort of the actuators as the integrator last evaluated it: at the
            start of the last step for the Euler methods, within or at the end of it for the
            others.

        Raises
        ------
        UnknownName
            For an interface that a joint does not accept.
        CommandRejected
            For a command of a wrong size or with a non-finite entry.
        InvalidValue
            For an invalid state, time step or number of steps, and if the simulation diverges.

        """
        if not (type(dt) is float and 0 < dt < inf and type(steps) is int and steps > 0):
            dt = check_float("dt [s]", dt, above=0)
            steps = check_int("steps", steps, lower=1)
        if state is not self._after:  # its last result is valid
            self._accept_state(state)
        if command is not self._command or command.value.flags.writeable:
            self._accept_command(command)  # a read-only command is checked once
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
        """Return the efforts on the joints in this state under this command.

        Raises as ``step`` does for a bad state or command.
        """
        self._accept_state(state)
        self._require_finite(state)
        self._accept_command(command)
        return self._motion.efforts(state.q, state.v, self._own_states(state))

    def motors(self, state: State, command: Command) -> MotorValues:
        """Return voltages and temperatures of the motors in this state under this command.

        Raises as ``step`` does for a bad state or command.
        """
        self._accept_state(state)
        self._accept_command(command)
        return self._motion.motors(state.q, state.v, self._own_states(state))

    def struck(self, state: State, impulse: ArrayLike) -> State:
        """Return the state after an impulse p (3,) [N·s] on the tool, in base axes.

        v⁺ = v + M(q)⁻¹ J(q)ᵀ p; joints with prescribed motion keep their velocity.
        """
        generalized = jacobian(self.arm, state.q)[:3].T @ check_vector("impulse", impulse, 3)
        generalized[self._motion.prescribed] = 0.0
        change = self._motion.inverse_mass(state.q) @ generalized
        return replace(state, v=as_readonly(state.v + change))

    def require_stable(self, q: Vector, dt: float) -> None:
        """Raise InvalidValue if a time step of dt [s] is unstable at ``q`` (nv,).

        Explicit damping is stable while b dt < 2 M_ii, with b viscous friction and back-EMF that
        the integrator does not treat implicitly. The tooth contact of a gear with backlash has
        its own limit. The message names the joint, its damping or gear, and the limit.
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
                f"joint '{self.arm.joint_names[i]}': damping = {damping[i]:.4g} N·m·s/rad"
                f" (friction and back-EMF); expected below {allowed[i]:.4g} with dt = {dt:g} s"
            )
        inverse_mass = np.diag(self._motion.inverse_mass(q))
        for (_, actuator), compliance in zip(parts, inverse_mass.tolist(), strict=True):
            actuator.require_stable(compliance, dt)

    def _compile(self) -> None:
        """Compile what this arm needs, and no more, before time runs."""
        q, v, z = np.zeros(self.arm.nv), np.zeros(self.arm.nv), self._at_rest.copy()
        self._instants(q, v, z, 1e-9, 1)
        if self._smooth:
            self.integrator.run(self._motion, q, v, 1e-9, 2)
        self._motion.efforts(q, v, z)
        self._require_finite(State.of(q, v, act=z))

    @np.errstate(all="ignore")  # divergence raises InvalidValue
    def _instants(self, q: Vector, v: Vector, z: Vector, dt: float, steps: int) -> bool:
        """Take ``steps`` time steps in place while all is finite; return whether it is."""
        well = all_finite(q, v, z)
        while well and steps:
            self._instant(q, v, z, dt)
            well, steps = all_finite(q, v, z), steps - 1
        return well

    def _instant(self, q: Vector, v: Vector, z: Vector, dt: float) -> None:
        """Take one time step, in place."""
        motion = self._motion
        targets = motion.step_prescribed_motion(q, v, z, dt) if motion.prescribed else None
        before = z.copy() if motion.has_internal_friction else z
        if not self._rubs:
            self.integrator.advance(motion, q, v, z, dt)
        else:
            self._instant_with_dry_friction(q, v, z, dt)
        if motion.has_internal_friction:
            motion.apply_internal_friction(before, z, dt)
        if targets is not None:
            q[motion.prescribed] = targets

    def _instant_with_dry_friction(self, q: Vector, v: Vector, z: Vector, dt: float) -> None:
        """Take the integrator's smooth step, then apply the impulse of dry friction over dt."""
        response, start, before = self._response(q, v, z, dt), q.copy(), v.copy()
        self.integrator.advance(self._motion, q, v, z, dt)
        if np.isfinite(v).all():
            # A joint at rest or at a reversal must break away: velocity 0 counts.
            forward, backward = self._motion.dry_friction_bounds_at(
                np.where(before * v > 0, before, 0.0)
            )
            after = velocity_after_dry_friction(v, response, dt * forward, dt * backward)
            q += self.integrator.drift_fraction * dt * (after - v)
            v[:] = after
            stuck = (before == 0) & (after == 0)
            q[stuck] = start[stuck]

    def _response(self, q: Vector, v: Vector, z: Vector, dt: float) -> Vector:
        """Return the change of velocity in one step per impulse of a constant force."""
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
                f"state has {state.act.size} actuator states, arm '{self.arm.name}' has"
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
            f"simulation diverged: joint '{joint}' is not finite at t = {time:.6g} s"
            f" ({self.integrator.name}, dt = {dt:g} s); reduce dt"
        )

    @np.errstate(all="ignore")
    def _first_to_leave(self, state: State, dt: float, steps: int) -> tuple[str, float]:
        """Repeat the motion up to RUNAWAY; return the joint and the time [s]."""
        q, v, step = state.q.copy(), state.v.copy(), 0
        z = self._own_states(state).copy()
        while step < steps:
            self._instant(q, v, z, dt)
            step += 1
            if not np.abs(v).max() < RUNAWAY:
                break
        return self.arm.joint_names[int(np.argmax(np.abs(v)))], state.time + step * dt
