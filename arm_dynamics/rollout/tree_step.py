"""A compiled time step of any tree of joints: the plant's laws around ``tree.accelerations``."""

from __future__ import annotations

import numpy as np

from arm_dynamics import joint_physics as row
from arm_dynamics.arrays import Vector
from arm_dynamics.friction import dry_velocity
from arm_dynamics.integrators.explicit_euler import drift_kick
from arm_dynamics.integrators.relaxation import phi
from arm_dynamics.integrators.semi_implicit_euler import kick_drift
from arm_dynamics.scalar import compiled
from arm_dynamics.tree import Tree, accelerations

METHODS = ("semi_implicit_euler", "explicit_euler")
"""Integrators that this step knows."""


@compiled
def steps_of(
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
    ``late_force``, 0 explicit Euler, 1 semi-implicit Euler.
    """
    for step in range(steps):
        start, before, own_before, decay = q.copy(), v.copy(), z.copy(), np.zeros(z.size)
        load(rows, slots, q, v, z)
        inverse = inverse_mass(settling(tree, rows, late * dt), q) if rubs else np.empty((0, 0))
        for group in range(groups):
            relax_group(rows, slots, group, q, v, z, dt, decay)
        load(rows, slots, q, v, z)
        row.joint_efforts(rows)
        soft = settling(tree, rows, late * dt) if z.size else tree
        a = accelerations(soft, q, v, rows[row.TAU], tree.gravity)
        if late == 0.0:
            drift_kick(q, v, a, dt)
        else:
            kick_drift(q, v, a, dt)
        if rubs and np.isfinite(v).all():
            rub(rows, inverse, start, before, q, v, late, dt)
        if rubs_inside:
            rub_own(rows, slots, own_before, z, dt)
        if not (np.isfinite(q).all() and np.isfinite(v).all() and np.isfinite(z).all()):
            return step + 1
    return -1


@compiled
def settling(tree: Tree, rows: Vector, dt: float) -> Tree:
    """M + dt D: the tree with what windings brake in a step of dt, implicitly; as it is for 0."""
    if dt == 0.0:
        return tree
    rows[row.BRAKING] = 0.0
    row.joint_braking(rows, dt)
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
    load(rows, slots, q, v, z)
    row.joint_rates(rows)
    for k in range(z.size):
        decay[k] = rows[row.RATE + slots[0, k], slots[1, k]]
    share = phi(decay * dt)[0]
    for k in range(z.size):
        if slots[2, k] == group:
            source = rows[row.SOURCE + slots[0, k], slots[1, k]]
            z[k] = np.exp(-decay[k] * dt) * z[k] + dt * share[k] * source


@compiled
def load(rows: Vector, slots: Vector, q: Vector, v: Vector, z: Vector) -> None:
    """State into the rows."""
    for i in range(q.size):
        rows[row.Q, i], rows[row.V, i] = q[i], v[i]
    for k in range(z.size):
        rows[row.ACT + slots[0, k], slots[1, k]] = z[k]


@compiled
def rub(
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
    row.joint_dry(rows)
    rubbed = dry_velocity(v, inverse, dt * rows[row.FORWARD], dt * rows[row.BACKWARD])
    for i in range(q.size):
        moved = q[i] + late * dt * (rubbed[i] - v[i])
        q[i] = start[i] if before[i] == 0 and rubbed[i] == 0 else moved
        v[i] = rubbed[i]


@compiled
def rub_own(rows: Vector, slots: Vector, before: Vector, z: Vector, dt: float) -> None:
    """Dry friction on own states, as ``ArmMotion.rub_inside`` takes it."""
    for k in range(z.size):
        rows[row.ACT + slots[0, k], slots[1, k]] = z[k]
        rows[row.BEFORE + slots[0, k], slots[1, k]] = before[k]
    row.joint_rotors(rows, dt)
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
