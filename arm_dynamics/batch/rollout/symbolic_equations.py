"""The arm's equations of motion on symbols, as the integrators ask for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from arm_dynamics.batch.rollout import variation
from arm_dynamics.batch.rollout.symbolic_math import Symbol, traced
from arm_dynamics.batch.rollout.symbolic_rigid_body import Chain
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.dynamics.bodies import Body
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation import joint_physics as row
from arm_dynamics.simulation.actuator_states import compiled_state_entries, update_groups

Symbols = Any
"""Object array of Symbol."""


class SymbolicEquationsOfMotion:
    """The same motion as ``EquationsOfMotion``: its laws, run on symbols.

    ``varied`` holds vectors of symbols by the names of ``variation.variable_names``. Raises InvalidValue
    for an arm with actuators that have no compiled law.
    """

    def __init__(
        self, arm: ArmModel, varied: Mapping[str, Symbols], interface: str, told: Symbols
    ) -> None:
        for actuator in arm.actuators:
            if actuator.kernel_id not in (1, 2) or actuator.prescribes_motion:
                raise InvalidValue(
                    f"joint '{actuator.joint}': actuator {type(actuator).__name__} has no compiled"
                    " law: such an arm has no kernel"
                )
        self.arm = arm
        self.joint_names, self.lower, self.upper = arm.joint_names, arm.lower, arm.upper
        self.groups = update_groups(arm)
        self.kept, self.slots = compiled_state_entries(arm)
        self.table = variation.varied_bodies(arm, varied)
        self.rows = _as_symbols(
            row.pack_joint_table(
                variation.varied_joints(arm, varied),
                variation.varied_actuators(arm, varied),
                object,
            )
        )
        self.rows[row.COMMAND] = told
        self.rows[row.BY_VOLTAGE] = [
            Symbol(float(a.resolve_interface(interface) == "voltage")) for a in arm.actuators
        ]

    def acceleration(self, q: Symbols, v: Symbols, z: Symbols) -> Symbols:
        """v̇ (nv,), dry friction apart."""
        self._load(q, v, z)
        traced(row.joint_efforts)(self.rows)
        return self.solve(self.table, q, v)

    def implicit_acceleration(self, q: Symbols, v: Symbols, z: Symbols, dt: Symbol) -> Symbols:
        """(M + dt D)⁻¹ M v̇, D what currents relaxed over dt brake."""
        self._load(q, v, z)
        traced(row.joint_efforts)(self.rows)
        _, winding = self.step_damping(q, v, z, dt)
        table = [
            body if w.constant == 0.0 else replace(body, armature=body.armature + dt * w)
            for body, w in zip(self.table, winding, strict=True)
        ]
        return self.solve(table, q, v)

    def solve(self, table: Sequence[Body], q: Symbols, v: Symbols) -> Symbols:
        """v̇ (nv,) of the bodies in ``table`` under the efforts as last evaluated."""
        found = Chain(table, self.arm.gravity, _sx(q)).acceleration(_sx(v), _sx(self.rows[row.TAU]))
        return _vector([Symbol(a) for a in found])

    def step_damping(
        self, q: Symbols, v: Symbols, z: Symbols, dt: Symbol
    ) -> tuple[Symbols, Symbols]:
        """-∂tau/∂v (nv,) within a step: of everything, and of winding currents alone."""
        self._load(q, v, z)
        self.rows[row.BRAKING] = Symbol(0.0)
        traced(row.joint_step_damping)(self.rows, dt)
        return _as_symbols(self.rows[row.BRAKING]), _as_symbols(self.rows[row.WINDING])

    def act_dot_terms(self, q: Symbols, v: Symbols, z: Symbols) -> tuple[Symbols, Symbols]:
        """λ and n of the actuators' own states, (na,) each."""
        self._load(q, v, z)
        traced(row.joint_act_dot_terms)(self.rows)
        slots, joints = self.slots
        return self.rows[row.RATE + slots, joints], self.rows[row.SOURCE + slots, joints]

    def dry_at(self, speed: Symbols) -> tuple[Symbols, Symbols]:
        """Largest dry friction (nv,) each way, at ``speed`` and the efforts as last evaluated."""
        self.rows[row.V] = speed
        self.rows[row.FORWARD] = self.rows[row.BACKWARD] = Symbol(0.0)
        traced(row.joint_dry_friction)(self.rows)
        return self.rows[row.FORWARD].copy(), self.rows[row.BACKWARD].copy()

    def rub_inside(self, before: Symbols, z: Symbols, dt: Symbol) -> None:
        """Dry friction over dt on actuators' own states, z ``before`` the step; in place."""
        slots, joints = self.slots
        self.rows[row.ACT + slots, joints] = z[self.kept]
        self.rows[row.BEFORE + slots, joints] = before[self.kept]
        traced(row.apply_rotor_friction)(self.rows, dt)
        z[self.kept] = self.rows[row.ACT + slots, joints]

    def chain(self, q: Symbols) -> Chain:
        """The rigid bodies at q."""
        return Chain(self.table, self.arm.gravity, _sx(q))

    @property
    def effort(self) -> Symbols:
        """The actuators' effort (nv,) as last evaluated."""
        return self.rows[row.EFFORT].copy()

    def _load(self, q: Symbols, v: Symbols, z: Symbols) -> None:
        self.rows[row.Q], self.rows[row.V] = q, v
        slots, joints = self.slots
        self.rows[row.ACT + slots, joints] = z[self.kept]


def _as_symbols(rows: Any) -> Symbols:
    return np.vectorize(Symbol, otypes=[object])(rows)


def _vector(values: list[Symbol]) -> Symbols:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _sx(values: Symbols) -> list[Any]:
    return [value.sx for value in values]
