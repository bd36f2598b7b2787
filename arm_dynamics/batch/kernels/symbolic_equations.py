"""The equations of motion on symbols, as the integrators call them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import casadi as ca
import numpy as np

from arm_dynamics.batch import variation
from arm_dynamics.batch.kernels.symbolic_math import SX, Symbol, SymbolVector, symbols, traced
from arm_dynamics.batch.kernels.symbolic_rigid_body import Chain
from arm_dynamics.core.errors import ArmDynamicsError, InvalidValue
from arm_dynamics.dynamics.bodies import Body
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation import joint_physics as row
from arm_dynamics.simulation.actuators.actuator import NO_KERNEL, Actuator
from arm_dynamics.simulation.actuators.compiled_actuator import CompiledActuator


class SymbolicEquationsOfMotion:
    """``EquationsOfMotion`` on symbols: the same compiled functions, traced."""

    def __init__(
        self,
        arm: ArmModel,
        varied: Mapping[str, SymbolVector],
        interface: str,
        command: SymbolVector,
    ) -> None:
        """Pack the constants of joints and actuators.

        Parameters
        ----------
        arm : ArmModel
            Nominal arm.
        varied : Mapping[str, SymbolVector]
            Symbols by name of ``variation.variable_names``.
        interface : str
            Command interface.
        command : SymbolVector
            Command, shape (nv,).

        Raises
        ------
        InvalidValue
            If an actuator has no compiled functions, or one that cannot be traced.

        """
        for actuator in arm.actuators:
            compiled = actuator.kernel_id != NO_KERNEL or isinstance(actuator, CompiledActuator)
            if not compiled or actuator.prescribes_motion:
                raise InvalidValue(
                    f"kernel, joint '{actuator.joint}': actuator = {type(actuator).__name__};"
                    " expected one with compiled functions"
                )
        self.arm = arm
        self.joint_names, self.lower, self.upper = arm.joint_names, arm.lower, arm.upper
        self.groups = row.update_groups(arm)
        self.kept, self.slots = row.compiled_state_entries(arm)
        actuators = variation.varied_actuators(arm, varied)
        for actuator in actuators:
            for name in ("armature", "viscous_friction"):
                with _tracing(actuator, name):
                    getattr(actuator, name)
        self.table = variation.varied_bodies(arm, varied)
        joints = variation.varied_joints(arm, varied)
        self.rows = _as_symbols(row.pack_joint_table(joints, actuators, object))
        self._compiled = [i for i, a in enumerate(actuators) if isinstance(a, CompiledActuator)]
        self.rows[row.COMMAND] = command
        self.interfaces = [
            a.interfaces.index(a.resolve_interface(interface)) for a in arm.actuators
        ]
        self.rows[row.INTERFACE] = [Symbol(float(index)) for index in self.interfaces]

    def acceleration(self, q: SymbolVector, v: SymbolVector, act: SymbolVector) -> SymbolVector:
        """Return the acceleration without dry friction (nv,)."""
        self._load(q, v, act)
        self._drive()
        return self.solve(self.table, q, v)

    def implicit_acceleration(
        self, q: SymbolVector, v: SymbolVector, act: SymbolVector, dt: Symbol
    ) -> SymbolVector:
        """Return (M + dt D)⁻¹ M v̇ (nv,), D the damping by winding currents within dt."""
        self._load(q, v, act)
        self._drive()
        _, winding = self.step_damping(q, v, act, dt)
        table = [
            body if w.constant == 0.0 else replace(body, armature=body.armature + dt * w)
            for body, w in zip(self.table, winding, strict=True)
        ]
        return self.solve(table, q, v)

    def solve(self, table: Sequence[Body], q: SymbolVector, v: SymbolVector) -> SymbolVector:
        """Return the acceleration (nv,) of the bodies of ``table`` under the last efforts."""
        chain = Chain(table, self.arm.gravity, _sx(q))
        return vector(map(Symbol, chain.acceleration(_sx(v), _sx(self.rows[row.TAU]))))

    def step_damping(
        self, q: SymbolVector, v: SymbolVector, act: SymbolVector, dt: Symbol
    ) -> tuple[SymbolVector, SymbolVector]:
        """Return -∂tau/∂v (nv,) within a step: total, and by winding currents only."""
        self._load(q, v, act)
        self.rows[row.BRAKING] = Symbol(0.0)
        for i in self._compiled:
            self.rows[row.BRAKING, i] = self._evaluate(i, "damping", *self._arguments(i))
        traced(row.joint_step_damping)(self.rows, dt)
        return _as_symbols(self.rows[row.BRAKING]), _as_symbols(self.rows[row.WINDING])

    def act_dot_terms(
        self, q: SymbolVector, v: SymbolVector, act: SymbolVector
    ) -> tuple[SymbolVector, SymbolVector]:
        """Return λ and n of the actuator dynamics ż = n - λ z, shape (na,) each."""
        self._load(q, v, act)
        for i in self._compiled:
            count = len(self.arm.actuators[i].states)
            decay, source = (self.rows[r : r + count, i] for r in (row.DECAY, row.SOURCE))
            decay[:] = source[:] = Symbol(0.0)  # terms that the equations do not write
            self._evaluate(i, "act_dot_terms", *self._arguments(i), decay, source)
        traced(row.joint_act_dot_terms)(self.rows)
        slots, joints = self.slots
        return self.rows[row.DECAY + slots, joints], self.rows[row.SOURCE + slots, joints]

    def dry_friction_bounds_at(self, v: SymbolVector) -> tuple[SymbolVector, SymbolVector]:
        """Return the bounds of dry friction (nv,) in both directions, at ``v``, last efforts."""
        self.rows[row.V] = v
        self.rows[row.FORWARD] = self.rows[row.BACKWARD] = Symbol(0.0)
        for i in self._compiled:
            given = v[i], self.rows[row.EFFORT, i], self._arguments(i)[-1]
            for direction, bound in ((1.0, row.FORWARD), (-1.0, row.BACKWARD)):
                self.rows[bound, i] = self._evaluate(i, "dry_friction", direction, *given)
        traced(row.joint_dry_friction)(self.rows)
        return self.rows[row.FORWARD].copy(), self.rows[row.BACKWARD].copy()

    def apply_internal_friction(self, before: SymbolVector, act: SymbolVector, dt: Symbol) -> None:
        """Apply dry friction over dt to actuator states in place, ``before`` the step."""
        slots, joints = self.slots
        self.rows[row.ACT + slots, joints] = act[self.kept]
        self.rows[row.BEFORE + slots, joints] = before[self.kept]
        traced(row.apply_rotor_friction)(self.rows, dt)
        act[self.kept] = self.rows[row.ACT + slots, joints]

    def chain(self, q: SymbolVector) -> Chain:
        """Return the rigid bodies at q."""
        return Chain(self.table, self.arm.gravity, _sx(q))

    @property
    def effort(self) -> SymbolVector:
        """Efforts of the actuators (nv,) as last evaluated."""
        return self.rows[row.EFFORT].copy()

    def _drive(self) -> None:
        """Evaluate the efforts of actuators, friction and end stops."""
        for i in self._compiled:
            self.rows[row.EFFORT, i] = self._evaluate(i, "effort", *self._arguments(i))
        traced(row.joint_efforts)(self.rows)

    def _evaluate(self, i: int, name: str, *arguments: Any) -> Symbol | None:
        """Return a function of joint i's ``ActuatorEquations`` on symbols."""
        actuator = self.arm.actuators[i]
        assert isinstance(actuator, CompiledActuator)
        with _tracing(actuator, name):
            result = traced(getattr(actuator.equations, name))(*arguments)
            if name != "act_dot_terms":
                return Symbol(result)
            for written in arguments[-2:]:
                written[:] = _as_symbols(written)
        return None

    def _arguments(self, i: int) -> tuple[Any, ...]:
        """Return the arguments of ``ActuatorEquations`` for joint i."""
        x, actuator = self.rows, self.arm.actuators[i]
        act = slice(row.ACT, row.ACT + len(actuator.states))
        constants = slice(row.CONSTANTS, row.CONSTANTS + len(actuator.kernel_constants()))
        command, q, v = x[row.COMMAND, i], x[row.Q, i], x[row.V, i]
        return self.interfaces[i], command, q, v, x[act, i], x[constants, i]

    def _load(self, q: SymbolVector, v: SymbolVector, act: SymbolVector) -> None:
        self.rows[row.Q], self.rows[row.V] = q, v
        slots, joints = self.slots
        self.rows[row.ACT + slots, joints] = act[self.kept]


@contextmanager
def _tracing(actuator: Actuator, name: str) -> Iterator[None]:
    """Raise InvalidValue with joint, class and function for an error of a user's function."""
    try:
        yield
    except ArmDynamicsError:
        raise
    except Exception as error:  # of any type, also numba's
        cause = f"{type(error).__name__}: {error}".partition("\n")[0]
        raise InvalidValue(
            f"kernel, joint '{actuator.joint}': trace of {type(actuator).__name__}.{name} ="
            f" {cause}; expected arithmetic, where(), clip(), minimum(), maximum(), sign(), abs()"
            " and exp, log, sqrt, sin, cos, tan or tanh of math"
        ) from error


def input_symbols(sizes: Mapping[str, int]) -> dict[str, SymbolVector]:
    """Return a vector of symbols for each name."""
    return {name: symbols(name.replace(".", "_"), size) for name, size in sizes.items()}


def vector(values: Any) -> SymbolVector:
    """Return an object array of ``values``."""
    values = list(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def column(values: Any) -> SX:
    """Return a CasADi column of symbols, numbers, or of a CasADi expression itself."""
    if isinstance(values, ca.SX):
        return values
    return ca.vertcat(*[Symbol(value).sx for value in values]) if len(values) else ca.SX(0, 1)


def _as_symbols(rows: Any) -> SymbolVector:
    return np.vectorize(Symbol, otypes=[object])(rows)


def _sx(values: SymbolVector) -> list[SX]:
    return [value.sx for value in values]
