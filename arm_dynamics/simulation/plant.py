"""The simulated arm: motors, friction, end stops and rigid bodies, advanced in time."""

from __future__ import annotations

from dataclasses import replace
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.collision.scene import EMPTY_SCENE, Scene
from arm_dynamics.core.arrays import Vector, as_readonly, check_float, check_int, check_vector
from arm_dynamics.core.compiled_math import all_finite, is_finite
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import Command, State, check_command, new_state, require_state
from arm_dynamics.dynamics.kinematics.frames import jacobian, pose
from arm_dynamics.dynamics.rigid_body import mass_matrix
from arm_dynamics.model.arm_argument import check_arm, require_masses
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.actuators.compiled_actuator import CompiledActuator
from arm_dynamics.simulation.equations_of_motion import (
    EquationsOfMotion,
    JointEfforts,
    MotorValues,
)
from arm_dynamics.simulation.integrators import find_integrator
from arm_dynamics.simulation.integrators.integrator import Integrator

DIVERGED_SPEED = 1e6
"""Speed [rad/s] above which a simulation counts as diverged."""
FLOAT = np.dtype(np.float64)


class Plant:
    """M(q) v̇ + C(q, v) v + g(q) = tau_motor(command, v, z) - friction + stops,  ż = n - λ z.

    Not thread-safe: use one plant per thread. It holds no state of the arm between calls: ``step``
    is a function of its arguments. A copy and a pickle contain the arm and the integrator.

    Parameters
    ----------
    arm : ArmModel
        The arm.
    integrator : str
        Name of the integrator, one of ``INTEGRATORS``.

    """

    def __init__(self, arm: ArmModel, integrator: str = "semi_implicit_euler") -> None:
        self.arm = check_arm(arm)
        require_masses(arm, "a simulation")
        self._motion = EquationsOfMotion(arm)
        self.integrator = find_integrator(integrator)
        self._at_rest, self._own_sizes = arm.initial_act, (0, arm.na)
        self._shape = (arm.nv,)
        self._command: object = object()  # differs from every argument
        self._after: State | None = None
        self._dt: float | None = None
        self._steps: int | None = None
        # Compile what this arm needs, and no more, before time runs.
        zero = np.zeros(arm.nv)
        after = Plant._state_after(self, State(0.0, zero, zero, zero), 1e-9, 2, None)
        self._motion.efforts(after.q, after.v, after.act)

    @property
    def integrator(self) -> Integrator:
        """Numerical method of a step."""
        return self._integrator

    @integrator.setter
    def integrator(self, integrator: Integrator) -> None:
        self._integrator, self._moved_after = integrator, integrator.motion_of(self._motion)

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the arguments: the compiled table belongs to one plant and process."""
        return type(self), (self.arm, self.integrator.name)

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
        if dt is not self._dt or steps is not self._steps:
            self._dt = dt = check_float("dt [s]", dt, above=0)
            self._steps = steps = check_int("steps", steps, lower=1)
        if state is not self._after:  # its last result is valid
            self._accept_state(state)
        if command is not self._command:
            self._set_command(command)
        self._after = after = self._state_after(state, dt, steps, end)
        return after

    def _state_after(self, state: State, dt: float, steps: int, end: float | None) -> State:
        """Return ``step`` of checked arguments under the command that is set."""
        act = state.act if state.act.size else self._at_rest
        try:
            moved = self._moved_after(state.q, state.v, act, dt, steps)
        except InvalidValue:  # the adaptive integrator raises independently of the cause
            self._require_actuator_numbers(state.q, state.v, act, dt)
            raise
        if moved is None:
            raise self._divergence(state, dt, steps)
        q, v, tau, act = moved
        return new_state(state.time + steps * dt if end is None else end, q, v, tau, act)

    def scene_at(self, state: State) -> Scene:
        """Return the objects that this plant has, at their poses in ``state``; here none."""
        del state
        return EMPTY_SCENE

    def continued(self, before: Plant, state: State) -> State:
        """Return a state of another plant of this arm as one of this plant, at the same time."""
        del before
        return State(state.time, state.q, state.v, state.tau, state.act)

    def efforts(self, state: State, command: Command) -> JointEfforts:
        """Return the efforts on the joints in this state under this command.

        Raises as ``step`` does for a bad state or command.
        """
        self._accept_state(state)
        self._require_finite(state)
        self._set_command(command)
        act = self._act(state)
        efforts = self._motion.efforts(state.q, state.v, act)
        if not is_finite(efforts.applied):
            self._motion.require_actuator_numbers(state.q, state.v, act)
        return efforts

    def motors(self, state: State, command: Command) -> MotorValues:
        """Return voltages and temperatures of the motors in this state under this command.

        Raises as ``step`` does for a bad state or command.
        """
        self._accept_state(state)
        self._set_command(command)
        return self._motion.motors(state.q, state.v, self._act(state))

    def apply_impulse(self, state: State, impulse: ArrayLike) -> State:
        """Return the state after an impulse p (3,) [N·s] on the tool, in base axes.

        v⁺ = v + M(q)⁻¹ J(q)ᵀ p; joints with prescribed motion keep their velocity.
        """
        generalized = jacobian(self.arm, state.q)[:3].T @ check_vector("impulse", impulse, 3)
        return self._after_impulse(state, generalized)

    def apply_wrench(self, state: State, link: str, wrench: ArrayLike, duration: float) -> State:
        """Return the state after the impulse of a constant wrench on a link.

        v⁺ = v + T M(q)⁻¹ J(q)ᵀ w, the explicit Euler step of an external wrench; joints with
        prescribed motion keep their velocity.

        Parameters
        ----------
        state : State
            The state before.
        link : str
            Name of the link.
        wrench : array_like
            Force and moment w (6,) [N, N·m] along the axes of the link, at its origin.
        duration : float
            Duration T [s].

        """
        force = check_vector("wrench", wrench, 6)
        _, rotation = pose(self.arm, state.q, link)
        in_base = np.concatenate([rotation @ force[:3], rotation @ force[3:]])
        generalized = duration * (jacobian(self.arm, state.q, link).T @ in_base)
        return self._after_impulse(state, generalized)

    def _after_impulse(self, state: State, generalized: Vector) -> State:
        """Return the state after an impulse on the joints (nv,) [N·m·s or N·s]."""
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

    def _act(self, state: State) -> Vector:
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
            values = [*state.q, *state.v, *state.act]
            name, value = next(
                pair
                for pair in zip(self._entry_names(), values, strict=False)
                if not isfinite(pair[1])
            )
            raise InvalidValue(f"state is not finite: {name} = {value}; expected a finite number")

    def _entry_names(self) -> list[str]:
        """Return the name of each entry of (q, v, act) in messages."""
        names = [f"{x} of joint '{joint}'" for x in "qv" for joint in self.arm.joint_names]
        for actuator in self.arm.actuators:
            where = f"of joint '{actuator.joint}' ({type(actuator).__name__})"
            names += [f"actuator state '{state.name}' {where}" for state in actuator.states]
        return names

    @np.errstate(all="ignore")
    def _require_actuator_numbers(self, q: Vector, v: Vector, act: Vector, dt: float) -> None:
        """Raise what the equations of an actuator raise in a step, or InvalidValue for a NaN."""
        self._motion.require_actuator_numbers(q, v, act)
        if any(isinstance(a, CompiledActuator) for a in self.arm.actuators):
            motion = self._motion.calling_methods()
            self.integrator.step(motion, q.copy(), v.copy(), act.copy(), dt)

    def _set_command(self, command: Command) -> None:
        checked = check_command(command, self.arm.nv)
        self._motion.set_command(checked)
        self._command = checked

    @np.errstate(all="ignore")
    def _divergence(self, state: State, dt: float, steps: int) -> InvalidValue:
        """Return the error of a motion from ``state``, repeated up to DIVERGED_SPEED.

        Raises what the equations of an actuator raise in this motion.
        """
        self._require_finite(state)
        q, v, act, step = state.q.copy(), state.v.copy(), self._act(state).copy(), 0
        while step < steps:
            before = q.copy(), v.copy(), act.copy()
            self.integrator.step(self._motion, q, v, act, dt)
            step += 1
            if not (np.abs(v).max() < DIVERGED_SPEED and is_finite(act)):
                self._require_actuator_numbers(*before, dt)
                break
        what = f"joint '{self.arm.joint_names[int(np.argmax(np.abs(v)))]}'"
        if is_finite(v) and not is_finite(act):
            what = self._entry_names()[2 * v.size + int(np.argmin(np.isfinite(act)))]
        return InvalidValue(
            f"simulation diverged: {what} is not finite at"
            f" t = {state.time + step * dt:.6g} s"
            f" ({self.integrator.name}, dt = {dt:g} s); reduce dt"
        )
