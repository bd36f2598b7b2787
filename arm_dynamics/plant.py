"""The arm as physics: motors, friction, stops and rigid bodies, advanced in time."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from arm_dynamics import joint_physics as row
from arm_dynamics.arrays import Vector, frozen, scalar
from arm_dynamics.dynamics import mass_matrix
from arm_dynamics.errors import InvalidValue, UnknownName
from arm_dynamics.friction import dry_velocity
from arm_dynamics.integrators import integrator
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.state import Command, State

RUNAWAY = 1e6
"""Speed [rad/s] at which a motion on its way out of the finite numbers is called lost."""


class Plant:
    """M(q) v̇ + C(q, v) v + g(q) = tau_motor(command, v) - friction + stops.

    Not thread-safe: one plant a thread. Holds no state of the arm between calls: ``step``
    is a function of its arguments.
    """

    def __init__(self, arm: ArmModel, method: str = "semi_implicit_euler") -> None:
        self.arm = arm
        self.integrator = integrator(method)
        self._data = arm.model.createData()
        self._rows = row.pack(arm.joints, arm.actuators)
        self._q, self._v, self._tau = self._rows[row.Q], self._rows[row.V], self._rows[row.TAU]
        self._given = [i for i, a in enumerate(arm.actuators) if a.kernel == 0]
        self._command: Command | None = None
        self._interface = "effort"
        friction = [j.friction for j in arm.joints]
        self._dry = np.array(friction) + [a.dry_friction for a in arm.actuators]
        self._has_dry_friction = bool((self._dry > 0).any())
        self._compile()

    def step(self, state: State, command: Command, dt: float, steps: int = 1) -> State:
        """The state after ``steps`` time steps of dt [s] under one constant command.

        ``tau`` of the result is the actuators' effort at the start of the last step.
        Raises UnknownName for an interface that a joint does not take, CommandRefused for a
        wrong size or a non-finite entry, InvalidValue for a bad state, time step or number of
        steps, and when the motion leaves the finite numbers.
        """
        dt = scalar("dt [s]", dt, above=0)
        scalar("steps", steps, lower=1)
        self._accept_state(state)
        if command is not self._command or command.value.flags.writeable:
            self._accept_command(command)  # one look at a frozen command is enough
        q, v = state.q.copy(), state.v.copy()
        for _ in range(steps):
            self._instant(q, v, dt)
        self._require_finite(q, v, state, dt, steps)
        q.flags.writeable = v.flags.writeable = False
        return State(state.time + steps * dt, q, v, frozen(self._rows[row.EFFORT]), state.act)

    def acceleration(self, q: Vector, v: Vector) -> Vector:
        """v̇ (nv,) [rad/s²] under the accepted command, dry friction apart."""
        x = self._rows
        self._q[:], self._v[:] = q, v
        for i in self._given:
            x[row.EFFORT, i] = self.arm.actuators[i].effort(
                self._interface, float(x[row.COMMAND, i]), float(q[i]), float(v[i])
            )
        row.joint_efforts(x)
        a: Vector = pin.aba(self.arm.model, self._data, q, v, self._tau).copy()
        return a

    def require_stable(self, q: Vector, dt: float) -> None:
        """Refuse damping that a time step of dt [s] cannot follow at ``q``.

        Explicit damping is stable while b dt < 2 M_ii, with b viscous friction and back-EMF.
        Raises InvalidValue naming the joint, its damping and the most that is allowed.
        """
        electric = np.array([actuator.electric_damping for actuator in self.arm.actuators])
        damping = self._rows[row.VISCOUS] + electric
        allowed = 2 * np.diag(mass_matrix(self.arm, q)) / dt
        for i in np.flatnonzero(damping >= allowed):
            raise InvalidValue(
                f"joint '{self.arm.joint_names[i]}': damping {damping[i]:.4g} N·m·s/rad, friction"
                f" and back-EMF together; below {allowed[i]:.4g} is allowed with dt = {dt:g} s"
            )

    def _compile(self) -> None:
        """Let compilation happen here, before time runs."""
        q, v = np.zeros(self.arm.nv), np.zeros(self.arm.nv)
        self.integrator.advance(self.acceleration, q, v, 0.0)
        dry_velocity(v, np.eye(self.arm.nv), self._dry)

    def _instant(self, q: Vector, v: Vector, dt: float) -> None:
        """One time step, in place."""
        if not self._has_dry_friction:
            self.integrator.advance(self.acceleration, q, v, dt)
            return
        inverse = np.array(np.linalg.inv(mass_matrix(self.arm, q)), dtype=float)
        self.integrator.advance(self.acceleration, q, v, dt)
        if np.isfinite(v).all():
            rubbed = dry_velocity(v, inverse, dt * self._dry)
            q += dt * (rubbed - v)
            v[:] = rubbed

    def _accept_state(self, state: State) -> None:
        if state.q.shape != (self.arm.nv,) or state.v.shape != (self.arm.nv,):
            raise InvalidValue(
                f"state has {state.q.size} positions and {state.v.size} velocities,"
                f" arm '{self.arm.name}' has {self.arm.nv} joints"
            )
        if not (np.isfinite(state.q).all() and np.isfinite(state.v).all()):
            raise InvalidValue(f"state is not finite: q = {state.q}, v = {state.v}")

    def _accept_command(self, command: Command) -> None:
        Command.checked(command.interface, command.value, self.arm.nv)
        for actuator in self.arm.actuators:
            if command.interface not in actuator.interfaces:
                raise UnknownName(
                    f"interface of joint '{actuator.joint}'", command.interface, actuator.interfaces
                )
        self._command, self._interface = command, command.interface
        self._rows[row.COMMAND] = command.value
        self._rows[row.BY_VOLTAGE] = command.interface == "voltage"

    def _require_finite(self, q: Vector, v: Vector, state: State, dt: float, steps: int) -> None:
        if not (np.isfinite(q) & np.isfinite(v)).all():
            joint, time = self._first_to_leave(state, dt, steps)
            raise InvalidValue(
                f"joint '{joint}' left the finite numbers at t = {time:.6g} s"
                f" with dt = {dt:g} s ({self.integrator.name}): use a smaller dt"
            )

    def _first_to_leave(self, state: State, dt: float, steps: int) -> tuple[str, float]:
        """The motion once more, up to the first joint that no arm could follow."""
        q, v, time = state.q.copy(), state.v.copy(), state.time
        for _ in range(steps):
            self._instant(q, v, dt)
            time += dt
            if not np.abs(v).max() < RUNAWAY:
                break
        return self.arm.joint_names[int(np.argmax(np.abs(v)))], time
