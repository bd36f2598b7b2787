"""Equations of motion of an arm under one command, and their terms at one instant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Any, TypeVar

import numpy as np
import pinocchio as pin

from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.compiled_math import direct_call, is_finite
from arm_dynamics.core.errors import InvalidValue, UnknownName
from arm_dynamics.core.state import MIXED, Command
from arm_dynamics.dynamics.rigid_body import mass_matrix, nle
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation import joint_physics as row
from arm_dynamics.simulation.actuators.actuator import NO_KERNEL
from arm_dynamics.simulation.end_stops import end_stop_effort
from arm_dynamics.simulation.friction import force_response, viscous_effort
from arm_dynamics.simulation.integrators.integrator import Moved

F = TypeVar("F", bound=Callable[..., object])
CHUNK = 512
"""Number of compiled steps after which a diverged motion is detected."""


def _mass_and_bias(model: Any, data: Any, q: Vector, v: Vector) -> None:
    """Evaluate M(q) and h = C(q, v) v + g(q), in ``data``."""
    pin.crba(model, data, q)
    pin.nonLinearEffects(model, data, q, v)


def _without_warnings(function: F) -> F:
    """Suppress the floating-point warnings that Python code gives and compiled code does not."""
    is_compiled = hasattr(row.next_step, "py_func")
    return function if is_compiled else np.errstate(all="ignore")(function)


@dataclass(frozen=True, slots=True, eq=False)
class JointEfforts:
    """Generalized efforts, each (nv,) [N·m], read-only.

    M(q) v̇ + C(q, v) v + g(q) = applied + viscous + stop + dry,
    -dry_friction_forward <= dry <= dry_friction_backward.

    ``computed`` is the effort of the command before supply, current, temperature and gear limit
    it; ``applied`` is the effort of the actuators. ``dry_friction_forward`` and
    ``dry_friction_backward`` are the largest dry friction against forward and backward motion.
    """

    computed: Vector
    applied: Vector
    viscous: Vector
    stop: Vector
    dry_friction_forward: Vector
    dry_friction_backward: Vector


@dataclass(frozen=True, slots=True, eq=False)
class MotorValues:
    """Voltage [V] and temperature [°C] of each motor, (nv,) each; NaN where undefined."""

    voltage: Vector
    temperature: Vector


class EquationsOfMotion:
    """M(q) v̇ + C(q, v) v + g(q) = tau(command, v, z) + friction + stops,  ż = n - λ z.

    Holds one command and scratch memory, no state of the arm. Not thread-safe. A copy and a
    pickle contain the arm only: without the command and with separate memory.

    Parameters
    ----------
    arm : ArmModel
        The arm.
    calls_methods : bool
        Whether actuators of the user's compiled functions are evaluated by their methods, which
        pass on what these functions raise.

    """

    def __init__(self, arm: ArmModel, *, calls_methods: bool = False) -> None:
        self.arm = arm
        self.joint_names, self.lower, self.upper = arm.joint_names, arm.lower, arm.upper
        self.groups = row.update_groups(arm)
        self.prescribed = [i for i, a in enumerate(arm.actuators) if a.prescribes_motion]
        self._free = [i for i in range(arm.nv) if i not in self.prescribed]
        self.dry_friction_joints = np.zeros(arm.nv, dtype=bool)
        self.dry_friction_joints[self._free] = [
            arm.joints[i].friction > 0 or arm.actuators[i].has_dry_friction for i in self._free
        ]
        self.has_dry_friction = bool(self.dry_friction_joints.any())
        self.has_internal_friction = any(a.has_internal_friction for a in arm.actuators)
        self._decay = np.zeros(arm.na)
        self._data = arm.model.createData()
        self._has_states = arm.na > 0
        self._rows = x = row.pack_joint_table(arm.joints, arm.actuators)
        self._q, self._v, self._tau = x[row.Q], x[row.V], x[row.TAU]
        x[row.BY_MASS] = self.has_dry_friction or self._has_states or bool(arm.mimic_joints)
        moving = arm.model, self._data, self._q, self._v
        self._dynamics = (
            partial(_mass_and_bias, *moving)
            if x[row.BY_MASS, 0]
            else partial(pin.aba, *moving, self._tau)
        )
        self._results = self._data.ddq, self._data.M.T, self._data.nle  # views of its memory
        if not calls_methods:
            row.link_equations(x, arm.actuators)
        self._method_joints = np.flatnonzero(x[row.KERNEL] == NO_KERNEL).tolist()
        self._state_slices = row.actuator_state_slices(arm)
        self._kept, (slots, joints) = row.compiled_state_entries(arm)
        self._flat = x.reshape(-1)  # flat indices cost a tenth of pairs
        self._act_index, self._decay_index, self._source_index, self._before_index = (
            (first + slots) * arm.nv + joints
            for first in (row.ACT, row.DECAY, row.SOURCE, row.BEFORE)
        )
        self._interface, self._interfaces = MIXED, accepted_interfaces(arm, MIXED)
        x[row.GROUPS] = 1 + max((s.group for a in arm.actuators for s in a.states), default=-1)
        x[row.DRY_FRICTION], x[row.ROTOR_FRICTION] = (
            self.has_dry_friction,
            self.has_internal_friction,
        )
        self.compiled = not (self._method_joints or self.prescribed)
        self._moved_shape = (3, arm.nv)
        if self.compiled:
            self._stepped = (
                x, self._results, self._dynamics, direct_call(row.start_steps),
                direct_call(row.next_step), direct_call(row.end_steps),
            )  # fmt: skip

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the arm only: views and addresses of machine code are this object's."""
        return type(self), (self.arm,)

    def calling_methods(self) -> EquationsOfMotion:
        """Return a copy under the same command that calls the methods of compiled actuators."""
        twin = EquationsOfMotion(self.arm, calls_methods=True)
        for entry in (row.COMMAND, row.INTERFACE):
            twin._rows[entry] = self._rows[entry]
        twin._interface, twin._interfaces = self._interface, list(self._interfaces)
        return twin

    @property
    def effort(self) -> Vector:
        """Effort of the actuators (nv,) [N·m] as last evaluated."""
        effort: Vector = self._rows[row.EFFORT].copy()
        return effort

    def set_command(self, command: Command) -> None:
        """Set the command for all later evaluations; its values are not checked.

        Raises UnknownName for an interface that a joint does not accept.
        """
        if command.interface != self._interface:
            self._interfaces = accepted_interfaces(self.arm, command.interface)
            pairs = zip(self.arm.actuators, self._interfaces, strict=True)
            self._rows[row.INTERFACE] = [a.interfaces.index(name) for a, name in pairs]
            self._interface = command.interface
        self._rows[row.COMMAND] = command.value

    def acceleration(self, q: Vector, v: Vector, act: Vector) -> Vector:
        """Return v̇ (nv,) [rad/s²] without dry friction."""
        self._drive(q, v, act)
        return self._solve(q, v, np.zeros(q.size))

    def implicit_acceleration(self, q: Vector, v: Vector, act: Vector, dt: float) -> Vector:
        """Return (M + dt D)⁻¹ M v̇: the damping D of the winding currents acts at the new speed."""
        self._drive(q, v, act)
        _, winding = self.step_damping(q, v, act, dt)
        return self._solve(q, v, dt * winding)

    def step_damping(self, q: Vector, v: Vector, act: Vector, dt: float) -> tuple[Vector, Vector]:
        """Return -∂τ/∂v (nv,) [N·m·s/rad] within a step: in total, and of winding currents."""
        self._load(q, v, act)
        x = self._rows
        x[row.BRAKING] = 0.0
        for i in self._method_joints:
            x[row.BRAKING, i] = self.arm.actuators[i].damping_at(*self._actuator_arguments(i, act))
        row.joint_step_damping(x, dt)
        return x[row.BRAKING].copy(), x[row.WINDING].copy()

    @_without_warnings
    def semi_implicit_steps(
        self, q: Vector, v: Vector, act: Vector, dt: float, steps: int
    ) -> Moved | None:
        """Return the motion after ``steps`` steps of semi-implicit Euler; None unless finite.

        z⁺ = e^(-λ dt) z + dt φ₁(-λ dt) n,  v⁺ = v + dt (a(q, v, z⁺) + W λ / dt),  q⁺ = q + dt v⁺,

        (M + dt D) a = f and W = (M + dt D)⁻¹ with the damping D of the winding currents; λ is the
        impulse of dry friction, see ``friction.velocity_after_dry_friction``. The equations of
        ``SemiImplicitEuler.step``, with one compiled call a step. a is that of Pinocchio's
        articulated-body algorithm; with D, dry friction or mimic joints it is solved with M and h.
        """
        x, (a, mass, bias), dynamics, start_steps, next_step, end_steps = self._stepped
        after = np.empty(self._moved_shape)
        if self._has_states:
            self._flat[self._act_index] = act[self._kept]
        start_steps(x, q, v, dt)
        while steps > 1:
            for _ in repeat(None, min(steps - 1, CHUNK)):
                dynamics()
                next_step(x, a, mass, bias, dt)
            steps -= CHUNK
            if steps > 1 and not (is_finite(self._q) and is_finite(self._v)):
                return None
        dynamics()
        finite = end_steps(x, a, mass, bias, dt, after)
        if self._has_states:
            act = act.copy()
            act[self._kept] = self._flat[self._act_index]
            act.flags.writeable = False
            finite = finite and is_finite(act)
        after.setflags(False)  # type: ignore[call-arg]  # by name it takes twice as long
        return (after[0], after[1], after[2], act) if finite else None

    def _solve(self, q: Vector, v: Vector, implicit: Vector) -> Vector:
        """Return a (nv,) [rad/s²] of (M + diag(implicit)) a = TAU - h, a new array.

        ``implicit`` is 0 without actuator states, where a is that of ``pin.aba``.
        """
        if self.prescribed:
            return self._constrained(q, v, implicit)
        x = self._rows
        x[row.IMPLICIT] = implicit
        self._dynamics()
        row.accelerate(x, *self._results)
        a: Vector = x[row.ACCELERATION].copy()
        return a

    def act_dot_terms(self, q: Vector, v: Vector, act: Vector) -> tuple[Vector, Vector]:
        """Return λ and n of ż = n - λ z, (na,) each."""
        self._load(q, v, act)
        row.joint_act_dot_terms(self._rows)
        self._decay, source = np.zeros(act.size), np.zeros(act.size)
        decay = self._decay
        decay[self._kept] = self._flat[self._decay_index]
        source[self._kept] = self._flat[self._source_index]
        for i in self._method_joints:
            joint = self._state_slices[i]
            decay[joint], source[joint] = self.arm.actuators[i].act_dot_terms(
                *self._actuator_arguments(i, act)
            )
        return decay, source

    def dry_friction_bounds(self, q: Vector, v: Vector, act: Vector) -> tuple[Vector, Vector]:
        """Return the largest dry friction (nv,) [N·m] against forward and backward motion."""
        self._drive(q, v, act)  # the gear's loss depends on the effort
        return self.dry_friction_bounds_at(v)

    def dry_friction_bounds_at(self, speed: Vector) -> tuple[Vector, Vector]:
        """Return ``dry_friction_bounds`` at ``speed`` (nv,), with the efforts last evaluated."""
        x = self._rows
        x[row.V] = speed
        x[row.FORWARD] = x[row.BACKWARD] = 0.0
        for i in self._method_joints:
            bounds = self.arm.actuators[i].dry_friction_bounds(
                float(speed[i]), float(x[row.EFFORT, i])
            )
            x[row.FORWARD, i], x[row.BACKWARD, i] = bounds
        row.joint_dry_friction(x)
        x[row.FORWARD, self.prescribed] = x[row.BACKWARD, self.prescribed] = 0.0
        return x[row.FORWARD].copy(), x[row.BACKWARD].copy()

    def inverse_mass(self, q: Vector) -> Vector:
        """Return M(q)⁻¹ (nv, nv) of the joints without prescribed motion; 1 for the others."""
        nothing = np.zeros(self.arm.nv)
        return self.force_response(q, nothing, nothing, (1.0,), 0.0)

    def force_response(
        self, q: Vector, implicit: Vector, braking: Vector, terms: Sequence[float], dt: float
    ) -> Vector:
        """Return ``friction.force_response`` as ``inverse_mass``; 1 for prescribed joints."""
        mass, f = mass_matrix(self.arm, q), self._free
        if not self.prescribed:
            return force_response(mass, implicit, braking, terms, dt)
        response = np.eye(self.arm.nv)
        free = np.ix_(f, f)
        response[free] = force_response(mass[free], implicit[f], braking[f], terms, dt)
        return response

    def set_end_stops(self, lower: Vector, upper: Vector) -> None:
        """Set the positions (nv,) at which the end stops begin, instead of the joint limits."""
        self._rows[row.LOWER], self._rows[row.UPPER] = lower, upper

    def apply_internal_friction(self, before: Vector, act: Vector, dt: float) -> None:
        """Apply dry friction over dt [s] to ``act``, in place; ``before`` is its previous value."""
        if not self.has_internal_friction:
            return
        x = self._flat
        x[self._act_index], x[self._before_index] = act[self._kept], before[self._kept]
        row.apply_rotor_friction(self._rows, dt)
        act[self._kept] = x[self._act_index]
        for i in self._method_joints:
            joint, actuator = self._state_slices[i], self.arm.actuators[i]
            if actuator.has_internal_friction:
                act[joint] = actuator.apply_internal_friction(
                    before[joint], act[joint], self._decay[joint], dt
                )

    def efforts(self, q: Vector, v: Vector, act: Vector) -> JointEfforts:
        """Return the efforts on the joints in this state."""
        self.acceleration(q, v, act)
        x = self._rows
        applied = x[row.EFFORT].copy()
        viscous = [viscous_effort(*pair) for pair in zip(v, x[row.VISCOUS], strict=True)]
        computed = [
            applied[i]
            if a.prescribes_motion
            else a.computed_effort(*self._actuator_arguments(i, act))
            for i, a in enumerate(self.arm.actuators)
        ]
        stop = [end_stop_effort(*(float(n) for n in x[row.STOP, i])) for i in range(v.size)]
        every = (computed, applied, viscous, stop, *self.dry_friction_bounds_at(v))
        return JointEfforts(*(as_readonly(effort) for effort in every))

    def motors(self, q: Vector, v: Vector, act: Vector) -> MotorValues:
        """Voltages and temperatures of the motors in this state."""
        self._load(q, v, act)
        voltage, temperature = [], []
        for i, actuator in enumerate(self.arm.actuators):
            interface, command, _, speed, states = self._actuator_arguments(i, act)
            voltage.append(actuator.voltage(interface, command, speed, states))
            temperature.append(actuator.temperature(states))
        return MotorValues(as_readonly(voltage), as_readonly(temperature))

    def require_actuator_numbers(self, q: Vector, v: Vector, act: Vector) -> None:
        """Raise what the equations of an actuator raise at this state, or InvalidValue for a NaN.

        The message names joint, class and quantity. Built-in actuators are not checked.
        """
        self._load(q, v, act)
        for i, actuator in enumerate(self.arm.actuators):
            if actuator.kernel_id != NO_KERNEL or actuator.prescribes_motion:
                continue
            arguments = self._actuator_arguments(i, act)
            effort = actuator.effort(*arguments)
            quantities = {"effort": [effort], "damping": [actuator.damping_at(*arguments)]}
            decay, source = actuator.act_dot_terms(*arguments)
            for k, state in enumerate(actuator.states):
                quantities[f"λ or n of state '{state.name}'"] = [decay[k], source[k]]
            quantities["dry friction"] = list(actuator.dry_friction_bounds(float(v[i]), effort))
            for name, values in quantities.items():
                if np.isnan(values).any():
                    raise InvalidValue(
                        f"actuator of joint '{actuator.joint}': {name} of {type(actuator).__name__}"
                        f" = nan at q = {q[i]:.6g}, v = {v[i]:.6g}; expected a number; correct its"
                        " equations"
                    )

    def start_prescribed_motion(self, q: Vector, v: Vector, act: Vector, dt: float) -> Vector:
        """Start the joints with prescribed motion; return their positions at the end (np,).

        v_p = (q_p⁺ - q_p) / dt, and the others get the jump's impulse: M_ff Δv_f = -M_fp Δv_p.
        """
        p, f, before, goals = self.prescribed, self._free, v.copy(), []
        for i in p:
            command, joint = float(self._rows[row.COMMAND, i]), self._state_slices[i]
            goal, act[joint] = self.arm.actuators[i].prescribed_motion(
                command, float(q[i]), act[joint], dt
            )
            v[i] = (goal - q[i]) / dt
            goals.append(goal)
        jump = v[p] - before[p]
        if f and jump.any():
            mass = mass_matrix(self.arm, q)
            v[f] -= np.linalg.solve(mass[np.ix_(f, f)], mass[np.ix_(f, p)] @ jump)
        return np.array(goals)

    def _constrained(self, q: Vector, v: Vector, more: Vector) -> Vector:
        """v̇ with the prescribed joints at constant speed, and the effort that takes.

        ``more`` (nv,) [kg·m²] is added to the masses.
        """
        p, f, a = self.prescribed, self._free, np.zeros(v.size)
        mass, bias = mass_matrix(self.arm, q) + np.diag(more), nle(self.arm, q, v)
        if f:
            a[f] = np.linalg.solve(mass[np.ix_(f, f)], (self._tau - bias)[f])
        self._rows[row.EFFORT, p] = (mass @ a + bias - self._tau)[p]  # friction and stops in tau
        return a

    def _drive(self, q: Vector, v: Vector, act: Vector) -> None:
        """Evaluate the efforts of actuators, friction and end stops."""
        self._load(q, v, act)
        for i in self._method_joints:
            self._rows[row.EFFORT, i] = self.arm.actuators[i].effort(
                *self._actuator_arguments(i, act)
            )
        row.joint_efforts(self._rows)

    def _load(self, q: Vector, v: Vector, act: Vector) -> None:
        self._q[:], self._v[:] = q, v
        if self._kept.size:
            self._flat[self._act_index] = act[self._kept]

    def _actuator_arguments(self, i: int, act: Vector) -> tuple[str, float, float, float, Any]:
        x = self._rows
        command = float(x[row.COMMAND, i])
        return (
            self._interfaces[i],
            command,
            float(self._q[i]),
            float(self._v[i]),
            act[self._state_slices[i]],
        )


def accepted_interfaces(arm: ArmModel, interface: str) -> list[str]:
    """Return the interface of each joint for a command on ``interface``; raises UnknownName."""
    names = [actuator.resolve_interface(interface) for actuator in arm.actuators]
    for actuator, name in zip(arm.actuators, names, strict=True):
        if name not in actuator.interfaces:
            kind = f"interface of joint '{actuator.joint}'"
            raise UnknownName(kind, interface, actuator.interfaces)
    return names
