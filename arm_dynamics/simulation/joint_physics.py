"""Efforts of all motors, friction and end stops of an arm in one compiled call.

One array holds everything, one column per joint: passing one array to compiled code costs a tenth
of passing twelve. Only this module defines the order of the rows. The equations of a
``CompiledActuator`` are called by their address, because they are compiled after their caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.core.compiled_math import (
    NUMBER,
    VECTOR,
    Kind,
    compiled,
    compiled_for,
    is_finite,
)
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.small_matrices import factor_spd, invert_factored, solve_factored
from arm_dynamics.model.arm_model import ArmModel, Joint
from arm_dynamics.simulation.actuators.actuator import NO_KERNEL, Actuator
from arm_dynamics.simulation.actuators.compiled_actuator import (
    MAX_CONSTANTS,
    MAX_STATES,
    ActuatorEquations,
    CompiledActuator,
)
from arm_dynamics.simulation.actuators.dc_motor_equations import (
    ROTOR,
    dc_motor_act_dot_terms,
    dc_motor_dry_friction,
    dc_motor_effort,
    dc_motor_step_damping,
    winding_damping,
)
from arm_dynamics.simulation.actuators.dc_motor_equations import (
    rotor_after_friction as dc_motor_rotor,
)
from arm_dynamics.simulation.actuators.ideal import ideal_effort
from arm_dynamics.simulation.end_stops import end_stop_effort
from arm_dynamics.simulation.friction import velocity_after_dry_friction, viscous_effort
from arm_dynamics.simulation.integrators.exponential_step import exponential_state

try:
    import numba
    from llvmlite import ir
except ImportError:  # pragma: no cover - exercised in a separate process
    numba = None

SLOTS = MAX_STATES
TABLE = Kind("float64", 2, written=True, layout="C")
Q, V, COMMAND, INTERFACE, EFFORT, TAU, FORWARD, BACKWARD, BRAKING, WINDING = range(10)
"""INTERFACE: index of the command interface in the actuator's ``interfaces``. TAU: EFFORT with
friction and end stops. FORWARD, BACKWARD: largest dry friction. BRAKING, WINDING: -∂τ/∂v within a
step, in total and of winding currents only."""
LOWER, UPPER, STOP_STIFFNESS, STOP_DAMPING, VISCOUS, DRY, KERNEL = range(10, 17)
"""Constants of the joint."""
IMPLICIT, ACCELERATION = 17, 18
"""dt D, D the damping of the winding currents; v̇ without dry friction."""
GROUPS, DRY_FRICTION, ROTOR_FRICTION, BY_MASS = range(19, 23)
"""The same in every column: number of groups of states, whether the arm has either friction,
whether ``accelerate`` solves for the acceleration."""
ACT, DECAY, SOURCE, BEFORE, GROUP = range(23, 23 + 5 * SLOTS, SLOTS)
"""First of SLOTS rows each: actuator states z, λ and n of ż = n - λ z, states before the step,
``ActuatorState.group``; -1: no such state."""
CONSTANTS = GROUP + SLOTS
"""First of MAX_CONSTANTS rows: constants of the actuator."""
ROWS = RESPONSE = CONSTANTS + MAX_CONSTANTS
"""RESPONSE: first of nv rows: (M + dt D)⁻¹ with DRY_FRICTION, else its factors."""
STOP = [Q, V, LOWER, UPPER, STOP_STIFFNESS, STOP_DAMPING]
"""Rows of the arguments of ``end_stop_effort``, in its order."""
IDEAL, DC_MOTOR = 1, 2
"""KERNEL of the built-in actuators; above them the address of an actuator's own equations."""
ACTUATOR_EFFORT, ACT_DOT_TERMS, ACTUATOR_DAMPING, ACTUATOR_FRICTION = range(4)
"""What the function at that address evaluates."""


def pack_joint_table(
    joints: Sequence[Joint], actuators: Sequence[Actuator], dtype: type[Any] = float
) -> Matrix:
    """Return an array (ROWS + nv, nv) with all constants of the joints and their actuators."""
    rows = np.zeros((ROWS + len(joints), len(joints)), dtype)
    for i, (joint, actuator) in enumerate(zip(joints, actuators, strict=True)):
        rows[LOWER, i], rows[UPPER, i] = joint.lower, joint.upper
        rows[STOP_STIFFNESS, i], rows[STOP_DAMPING, i] = joint.stop_stiffness, joint.stop_damping
        rows[VISCOUS, i] = joint.damping + actuator.viscous_friction
        rows[DRY, i] = joint.friction
        rows[KERNEL, i] = actuator.kernel_id
        rows[GROUP : GROUP + SLOTS, i] = -1
        for slot, state in zip(actuator.kernel_slots, actuator.states, strict=False):
            rows[GROUP + slot, i] = state.group
        packed = actuator.kernel_constants()
        rows[CONSTANTS : CONSTANTS + len(packed), i] = packed
    return rows


def actuator_state_slices(arm: ArmModel) -> list[slice]:
    """Return the slice of ``act`` with the actuator states of each joint."""
    ends = np.cumsum([len(actuator.states) for actuator in arm.actuators]).tolist()
    return [slice(start, end) for start, end in zip([0, *ends], ends, strict=False)]


def compiled_state_entries(arm: ArmModel) -> tuple[Vector, tuple[Vector, Vector]]:
    """Return the entries of ``act`` in compiled code, with the slot and the joint of each."""
    slices = actuator_state_slices(arm)
    entries = [
        (k, slot, i)
        for i, actuator in enumerate(arm.actuators)
        for k, slot in zip(
            range(slices[i].start, slices[i].stop), actuator.kernel_slots, strict=False
        )
    ]
    kept, slots, joints = np.array(entries, dtype=int).reshape(-1, 3).T
    return kept, (slots, joints)


def update_groups(arm: ArmModel) -> tuple[Vector, ...]:
    """Return the entries of ``act`` by group, in order; without those of prescribed joints."""
    every = [(s.group, a.prescribes_motion) for a in arm.actuators for s in a.states]
    numbers = sorted({group for group, prescribed in every if not prescribed})
    return tuple(np.array([k for k, e in enumerate(every) if e == (n, False)]) for n in numbers)


def link_equations(x: Matrix, actuators: Sequence[Actuator]) -> None:
    """Write the address of each ``CompiledActuator``'s equations into KERNEL of x (ROWS, nv)."""
    for i, actuator in enumerate(actuators):
        if isinstance(actuator, CompiledActuator):
            actuator.require_indices()
            try:
                states, constants = len(actuator.states), len(actuator.kernel_constants())
                x[KERNEL, i] = _address(actuator.equations, states, constants)
            except Exception as error:  # numba's, of many types
                raise InvalidValue(
                    f"actuator of joint '{actuator.joint}': equations of"
                    f" {type(actuator).__name__} cannot be compiled: {error}"
                ) from error


_KEPT: list[Any] = []
"""Compiled functions that are called by address: they stay as long as the process lives."""


@cache
def _address(equations: ActuatorEquations, states: int, constants: int) -> int:
    """Return the address of compiled code that evaluates ``equations`` for a column; 0 without.

    The code gets arrays of exactly so many states and constants. It cannot raise: where an equation
    raises, it writes NaN, and the motion counts as diverged.
    """
    if numba is None or numba.config.DISABLE_JIT:
        return NO_KERNEL
    effort, act_dot_terms, damping, dry_friction = equations
    last, end = ACT + states, CONSTANTS + constants

    def evaluate(operation: int, data: Any, columns: int, i: int) -> None:
        x = numba.carray(data, (ROWS, columns))
        interface, command, q, v = int(x[INTERFACE, i]), x[COMMAND, i], x[Q, i], x[V, i]
        act, c = x[ACT:last, i], x[CONSTANTS:end, i]
        try:
            if operation == ACTUATOR_EFFORT:
                x[EFFORT, i] = effort(interface, command, q, v, act, c)
            elif operation == ACT_DOT_TERMS:
                decay, source = x[DECAY : DECAY + states, i], x[SOURCE : SOURCE + states, i]
                for k in range(states):
                    decay[k] = source[k] = 0.0
                act_dot_terms(interface, command, q, v, act, c, decay, source)
            elif operation == ACTUATOR_DAMPING:
                x[BRAKING, i] = damping(interface, command, q, v, act, c)
            else:
                x[FORWARD, i] = dry_friction(1.0, v, x[EFFORT, i], c)
                x[BACKWARD, i] = dry_friction(-1.0, v, x[EFFORT, i], c)
        except Exception:
            x[V, i] = x[EFFORT, i] = x[BRAKING, i] = x[FORWARD, i] = x[BACKWARD, i] = np.nan
            for k in range(states):
                x[ACT + k, i] = x[DECAY + k, i] = x[SOURCE + k, i] = np.nan

    number, column = numba.types.int64, numba.types.CPointer(numba.types.float64)
    code = numba.cfunc(numba.types.void(number, column, number, number))(evaluate)
    _KEPT.append(code)
    return int(code.address)


@compiled
def call_address(address: int, operation: int, table: Matrix, column: int) -> None:
    """Call the function at an ``_address`` for a column of ``table``, C-contiguous."""
    _call(address, operation, table, column)


if numba is not None:

    @numba.extending.intrinsic  # type: ignore[untyped-decorator]
    def _call(_: Any, address: Any, operation: Any, table: Any, column: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            array = context.make_array(signature.args[2])(context, builder, values[2])
            columns = builder.extract_value(array.shape, 1)
            number, pointer = ir.IntType(64), array.data.type
            kind = ir.FunctionType(ir.VoidType(), (number, pointer, number, number))
            function = builder.inttoptr(values[0], kind.as_pointer())
            builder.call(function, (values[1], array.data, columns, values[3]))
            return context.get_dummy_value()

        number = numba.types.int64
        return numba.types.void(number, number, table, number), generate


@compiled
def joint_efforts(x: Matrix) -> None:
    """Fill EFFORT (actuator) and TAU (actuator + friction + stops) from Q, V, ACT and COMMAND.

    tau_i = actuator_i(command_i, v_i, z_i) - b_i v_i + stop_i(q_i, v_i)

    x (ROWS, nv), changed in place. The EFFORT of actuators without a kernel (0) must be filled in
    before.
    """
    for i in range(x.shape[1]):
        q, v, kernel, c = x[Q, i], x[V, i], x[KERNEL, i], x[CONSTANTS:, i]
        if kernel == IDEAL:
            x[EFFORT, i] = ideal_effort(x[COMMAND, i], c[0])
        elif kernel == DC_MOTOR:
            by_voltage, act = x[INTERFACE, i] > 0, x[ACT : ACT + SLOTS, i]
            x[EFFORT, i] = dc_motor_effort(by_voltage, x[COMMAND, i], v, act, c)
        elif kernel > DC_MOTOR:
            call_address(int(kernel), ACTUATOR_EFFORT, x, i)
        lower, upper, stiffness = x[LOWER, i], x[UPPER, i], x[STOP_STIFFNESS, i]
        stop = end_stop_effort(q, v, lower, upper, stiffness, x[STOP_DAMPING, i])
        x[TAU, i] = x[EFFORT, i] + viscous_effort(v, x[VISCOUS, i]) + stop


@compiled
def joint_act_dot_terms(x: Matrix) -> None:
    """Fill DECAY and SOURCE of the actuator states from V, ACT and COMMAND."""
    for i in range(x.shape[1]):
        if x[KERNEL, i] == DC_MOTOR:
            by_voltage, act = x[INTERFACE, i] > 0, x[ACT : ACT + SLOTS, i]
            decay, source = x[DECAY : DECAY + SLOTS, i], x[SOURCE : SOURCE + SLOTS, i]
            c = x[CONSTANTS:, i]
            dc_motor_act_dot_terms(by_voltage, x[COMMAND, i], x[V, i], act, c, decay, source)
        elif x[KERNEL, i] > DC_MOTOR:
            call_address(int(x[KERNEL, i]), ACT_DOT_TERMS, x, i)


@compiled
def joint_step_damping(x: Matrix, dt: float) -> None:
    """Fill BRAKING and WINDING for a step of dt [s] from Q, V, ACT and COMMAND.

    The BRAKING of actuators without a kernel must be filled in before.
    """
    for i in range(x.shape[1]):
        if x[KERNEL, i] > DC_MOTOR:
            call_address(int(x[KERNEL, i]), ACTUATOR_DAMPING, x, i)
        q, v, motor, winding = x[Q, i], x[V, i], x[BRAKING, i], 0.0
        if x[KERNEL, i] == DC_MOTOR:
            by_voltage, act, c = x[INTERFACE, i] > 0, x[ACT : ACT + SLOTS, i], x[CONSTANTS:, i]
            winding = winding_damping(by_voltage, x[COMMAND, i], v, act, c, dt)
            motor = dc_motor_step_damping(by_voltage, x[COMMAND, i], v, act, c, dt)
        lower, upper = x[LOWER, i], x[UPPER, i]
        stiffness, damping = x[STOP_STIFFNESS, i], x[STOP_DAMPING, i]
        stop = end_stop_effort(q, 0.0, lower, upper, stiffness, damping)
        stop -= end_stop_effort(q, 1.0, lower, upper, stiffness, damping)  # linear in v
        x[BRAKING, i], x[WINDING, i] = motor - viscous_effort(1.0, x[VISCOUS, i]) + stop, winding


@compiled
def joint_dry_friction(x: Matrix) -> None:
    """Fill FORWARD and BACKWARD, the largest dry friction, from V and EFFORT.

    Those of actuators without a kernel must be filled in before; the joint's is added.
    """
    for i in range(x.shape[1]):
        if x[KERNEL, i] == DC_MOTOR:
            v, effort, c = x[V, i], x[EFFORT, i], x[CONSTANTS:, i]
            x[FORWARD, i] = dc_motor_dry_friction(1.0, v, effort, c)
            x[BACKWARD, i] = dc_motor_dry_friction(-1.0, v, effort, c)
        elif x[KERNEL, i] > DC_MOTOR:
            call_address(int(x[KERNEL, i]), ACTUATOR_FRICTION, x, i)
        x[FORWARD, i] += x[DRY, i]
        x[BACKWARD, i] += x[DRY, i]


@compiled
def apply_rotor_friction(x: Matrix, dt: float) -> None:
    """Apply dry friction over dt [s] to ACT of rotors behind backlash.

    From ACT after the smooth step, BEFORE at its start and DECAY as last filled in.
    """
    for i in range(x.shape[1]):
        if x[KERNEL, i] == DC_MOTOR:
            before, decay = x[BEFORE + ROTOR, i], x[DECAY + ROTOR, i]
            dc_motor_rotor(before, decay, x[ACT : ACT + SLOTS, i], x[CONSTANTS:, i], dt)


@compiled_for(TABLE, NUMBER, on_demand=True, inline=False)
def drive(x: Matrix, dt: float) -> None:
    """Fill ACT with z⁺, EFFORT and TAU with the efforts at z⁺, and IMPLICIT.

    z⁺ = e^(-λ dt) z + dt φ₁(-λ dt) n, group after group of the actuator states.
    """
    groups = int(x[GROUPS, 0])
    for group in range(groups):
        if group == 0:
            for i in range(x.shape[1]):
                for slot in range(SLOTS):
                    x[BEFORE + slot, i] = x[ACT + slot, i]
        joint_act_dot_terms(x)
        for i in range(x.shape[1]):
            for slot in range(SLOTS):
                if x[GROUP + slot, i] == group:
                    act, decay, source = x[ACT + slot, i], x[DECAY + slot, i], x[SOURCE + slot, i]
                    x[ACT + slot, i] = exponential_state(act, decay, source, dt)
    joint_efforts(x)
    if groups > 0:
        for i in range(x.shape[1]):
            x[IMPLICIT, i] = 0.0
            if x[KERNEL, i] == DC_MOTOR:
                by_voltage, act, c = x[INTERFACE, i] > 0, x[ACT : ACT + SLOTS, i], x[CONSTANTS:, i]
                braking = winding_damping(by_voltage, x[COMMAND, i], x[V, i], act, c, dt)
                x[IMPLICIT, i] = dt * braking


@compiled_for(TABLE, VECTOR, TABLE, VECTOR, on_demand=True, inline=False)
def accelerate(x: Matrix, a: Vector, mass: Matrix, bias: Vector) -> None:
    """Fill ACCELERATION with ``a`` (nv,) of the articulated-body algorithm.

    With BY_MASS a is that of (M + dt D) a = TAU - h, dt D of IMPLICIT, which also fills RESPONSE.
    ``mass``: M(q) (nv, nv), its lower triangle; ``bias``: h = C(q, v) v + g(q) (nv,).
    """
    n, response = bias.size, x[RESPONSE:]
    if x[BY_MASS, 0] == 0:
        for i in range(n):
            x[ACCELERATION, i] = a[i]
        return
    for i in range(n):
        for j in range(i):
            response[i, j] = mass[i, j]
        response[i, i] = mass[i, i] + x[IMPLICIT, i]
        x[ACCELERATION, i] = x[TAU, i] - bias[i]
    factor_spd(response)
    solve_factored(response, x[ACCELERATION])
    if x[DRY_FRICTION, 0] > 0:
        invert_factored(response)


@compiled_for(TABLE, NUMBER, on_demand=True, inline=False)
def kick_drift(x: Matrix, dt: float) -> None:
    """Apply V += dt a and the impulse of dry friction, then Q += dt V and the rotors' friction.

    a is ACCELERATION [rad/s²].
    """
    n = x.shape[1]
    if x[DRY_FRICTION, 0] > 0:
        smooth = np.empty(n)
        for i in range(n):
            start, smooth[i] = x[V, i], x[V, i] + dt * x[ACCELERATION, i]
            # A joint at rest or at a reversal must break away: velocity 0 counts.
            x[V, i] = start if start * smooth[i] > 0.0 else 0.0
            x[FORWARD, i] = x[BACKWARD, i] = 0.0
        joint_dry_friction(x)
        forward, backward = dt * x[FORWARD], dt * x[BACKWARD]
        after = velocity_after_dry_friction(smooth, x[RESPONSE:], forward, backward)
        for i in range(n):
            x[V, i] = after[i]
    else:
        for i in range(n):
            x[V, i] += dt * x[ACCELERATION, i]
    for i in range(n):
        x[Q, i] += dt * x[V, i]
    if x[ROTOR_FRICTION, 0] > 0:
        apply_rotor_friction(x, dt)


@compiled_for(TABLE, VECTOR, VECTOR, NUMBER, on_demand=True, direct=True)
def start_steps(x: Matrix, q: Vector, v: Vector, dt: float) -> None:
    """Set Q = q and V = v, (nv,) each, then ``drive`` the first acceleration."""
    for i in range(q.size):  # slices would bring three seconds of compilation
        x[Q, i], x[V, i] = q[i], v[i]
    drive(x, dt)


@compiled_for(TABLE, VECTOR, TABLE, VECTOR, NUMBER, on_demand=True, direct=True)
def next_step(x: Matrix, a: Vector, mass: Matrix, bias: Vector, dt: float) -> None:
    """End a step with Pinocchio's results for its start, then ``drive`` the next one's."""
    accelerate(x, a, mass, bias)
    kick_drift(x, dt)
    drive(x, dt)


@compiled_for(TABLE, VECTOR, TABLE, VECTOR, NUMBER, TABLE, on_demand=True, direct=True)
def end_steps(x: Matrix, a: Vector, mass: Matrix, bias: Vector, dt: float, after: Matrix) -> bool:
    """End the last step; write Q, V and EFFORT into the rows of ``after`` (3, nv).

    Returns whether Q and V are finite.
    """
    accelerate(x, a, mass, bias)
    kick_drift(x, dt)
    for i in range(bias.size):
        after[0, i], after[1, i], after[2, i] = x[Q, i], x[V, i], x[EFFORT, i]
    return is_finite(after[0]) and is_finite(after[1])
