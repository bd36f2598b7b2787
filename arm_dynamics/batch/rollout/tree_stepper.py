"""A compiled time step of any tree of joints: the plant's laws around ``tree.accelerations``.

Lanes advanced by the compiled step of any tree: no code has to be made for an arm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from arm_dynamics.batch.rollout import variation
from arm_dynamics.batch.rollout.batch_stepper import SequentialStepper
from arm_dynamics.batch.rollout.inputs import InitialStates
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.compiled_math import compiled
from arm_dynamics.dynamics.bodies import bodies
from arm_dynamics.dynamics.tree import Tree, accelerations, tree
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation import joint_physics as row
from arm_dynamics.simulation.actuator_states import compiled_state_entries, update_groups
from arm_dynamics.simulation.friction import velocity_after_dry_friction
from arm_dynamics.simulation.integrators import find_integrator
from arm_dynamics.simulation.integrators.euler_and_verlet import drift_kick, kick_drift
from arm_dynamics.simulation.integrators.exponential_step import phi_functions

INTEGRATORS = ("semi_implicit_euler", "explicit_euler")
"""Integrators that this step knows."""


@compiled
def step_tree(
    tree: Tree,
    rows: Vector,
    slots: Vector,
    groups: int,
    late: float,
    rubs: bool,
    rubs_inside: bool,
    q: Vector,
    v: Vector,
    z: Vector,
    dt: float,
    steps: int,
) -> int:
    """Advance q, v (nv,) and z (na,) by ``steps`` of dt [s], in place; the step lost at, or -1.

    rows (ROWS, nv) as ``joint_physics.pack`` makes them, with the command in; slots (3, na): of
    every own state the row in a block of four, its joint, and its group. late: the integrator's
    ``drift_fraction``, 0 explicit Euler, 1 semi-implicit Euler.
    """
    for step in range(steps):
        start, before, own_before, decay = q.copy(), v.copy(), z.copy(), np.zeros(z.size)
        load_state(rows, slots, q, v, z)
        inverse = (
            inverse_mass(implicit_damping_tree(tree, rows, late * dt), q)
            if rubs
            else np.empty((0, 0))
        )
        for group in range(groups):
            relax_group(rows, slots, group, q, v, z, dt, decay)
        load_state(rows, slots, q, v, z)
        row.joint_efforts(rows)
        soft = implicit_damping_tree(tree, rows, late * dt) if z.size else tree
        a = accelerations(soft, q, v, rows[row.TAU], tree.gravity)
        if late == 0.0:
            drift_kick(q, v, a, dt)
        else:
            kick_drift(q, v, a, dt)
        if rubs and np.isfinite(v).all():
            apply_dry_friction(rows, inverse, start, before, q, v, late, dt)
        if rubs_inside:
            apply_internal_friction(rows, slots, own_before, z, dt)
        if not (np.isfinite(q).all() and np.isfinite(v).all() and np.isfinite(z).all()):
            return step + 1
    return -1


@compiled
def implicit_damping_tree(tree: Tree, rows: Vector, dt: float) -> Tree:
    """M + dt D: the tree with what windings brake in a step of dt, implicitly; as it is for 0."""
    if dt == 0.0:
        return tree
    rows[row.BRAKING] = 0.0
    row.joint_step_damping(rows, dt)
    armature = tree.armature + dt * rows[row.WINDING]
    return Tree(
        tree.parents, tree.slides, tree.rotation, tree.offset, tree.inertia, armature, tree.gravity
    )


@compiled
def relax_group(
    rows: Vector,
    slots: Vector,
    group: int,
    q: Vector,
    v: Vector,
    z: Vector,
    dt: float,
    decay: Vector,
) -> None:
    """As ``relaxation.relax`` for one group of own states."""
    load_state(rows, slots, q, v, z)
    row.joint_act_dot_terms(rows)
    for k in range(z.size):
        decay[k] = rows[row.RATE + slots[0, k], slots[1, k]]
    share = phi_functions(decay * dt)[0]
    for k in range(z.size):
        if slots[2, k] == group:
            source = rows[row.SOURCE + slots[0, k], slots[1, k]]
            z[k] = np.exp(-decay[k] * dt) * z[k] + dt * share[k] * source


@compiled
def load_state(rows: Vector, slots: Vector, q: Vector, v: Vector, z: Vector) -> None:
    """State into the rows."""
    for i in range(q.size):
        rows[row.Q, i], rows[row.V, i] = q[i], v[i]
    for k in range(z.size):
        rows[row.ACT + slots[0, k], slots[1, k]] = z[k]


@compiled
def apply_dry_friction(
    rows: Vector,
    inverse: Vector,
    start: Vector,
    before: Vector,
    q: Vector,
    v: Vector,
    late: float,
    dt: float,
) -> None:
    """The impulse of dry friction, as ``Plant`` takes it; start, before: q, v before the step."""
    for i in range(q.size):
        rows[row.V, i] = before[i] if before[i] * v[i] > 0 else 0.0
        rows[row.FORWARD, i] = rows[row.BACKWARD, i] = 0.0
    row.joint_dry_friction(rows)
    rubbed = velocity_after_dry_friction(
        v, inverse, dt * rows[row.FORWARD], dt * rows[row.BACKWARD]
    )
    for i in range(q.size):
        moved = q[i] + late * dt * (rubbed[i] - v[i])
        q[i] = start[i] if before[i] == 0 and rubbed[i] == 0 else moved
        v[i] = rubbed[i]


@compiled
def apply_internal_friction(
    rows: Vector, slots: Vector, before: Vector, z: Vector, dt: float
) -> None:
    """Dry friction on own states, as ``EquationsOfMotion.rub_inside`` takes it."""
    for k in range(z.size):
        rows[row.ACT + slots[0, k], slots[1, k]] = z[k]
        rows[row.BEFORE + slots[0, k], slots[1, k]] = before[k]
    row.apply_rotor_friction(rows, dt)
    for k in range(z.size):
        z[k] = rows[row.ACT + slots[0, k], slots[1, k]]


@compiled
def inverse_mass(tree: Tree, q: Vector) -> Vector:
    """M(q)⁻¹ (nv, nv): accelerations of unit efforts, at rest and without weight."""
    n = q.size
    still, weightless, inverse = np.zeros(n), np.zeros(3), np.empty((n, n))
    for j in range(n):
        effort = np.zeros(n)
        effort[j] = 1.0
        inverse[:, j] = accelerations(tree, q, still, effort, weightless)
    return inverse


class TreeStepper(SequentialStepper):
    """One table of bodies and joints for all lanes, or one a lane where their arms differ."""

    def __init__(
        self,
        arm: ArmModel,
        integrator_name: str,
        interface: str,
        start: InitialStates,
        dt: Vector,
        varied: Mapping[str, Vector],
    ) -> None:
        super().__init__(start)
        self.dt, self.late = dt, find_integrator(integrator_name).drift_fraction
        self.slots, self.groups = _slots(arm)
        lanes = range(self.size if varied else 1)
        picked = [{name: values[lane] for name, values in varied.items()} for lane in lanes]
        self.arms = [_Tables(variation.rollout_arm(arm, one), interface) for one in picked]

    def step_one(self, lane: int, told: Vector, steps: int) -> int:
        """As ``SequentialStepper.step_one``."""
        own = self.arms[lane % len(self.arms)]
        own.rows[row.COMMAND] = told
        lost: int = step_tree(
            own.tree, own.rows, self.slots, self.groups, self.late, own.has_dry_friction, own.has_internal_friction,
            self.q[lane], self.v[lane], self.z[lane], float(self.dt[lane]), steps,
        )  # fmt: skip
        self.effort[lane] = own.rows[row.EFFORT]
        return lost


class _Tables:
    """What the compiled step needs of an arm."""

    def __init__(self, arm: ArmModel, interface: str) -> None:
        self.tree: Tree = tree(bodies(arm), arm.gravity)
        self.rows: Any = row.pack_joint_table(arm.joints, arm.actuators)
        self.rows[row.BY_VOLTAGE] = [
            a.resolve_interface(interface) == "voltage" for a in arm.actuators
        ]
        self.has_dry_friction = any(
            j.friction > 0 or a.has_dry_friction
            for j, a in zip(arm.joints, arm.actuators, strict=True)
        )
        self.has_internal_friction = any(a.has_internal_friction for a in arm.actuators)


def _slots(arm: ArmModel) -> tuple[Any, int]:
    """Row, joint and group (3, na) of every own state; number of groups."""
    kept, (slots, joints) = compiled_state_entries(arm)
    groups, table = update_groups(arm), np.zeros((3, arm.na), dtype=np.int64)
    table[0, kept], table[1, kept] = slots, joints
    for number, group in enumerate(groups):
        table[2, group] = number
    return table, len(groups)
