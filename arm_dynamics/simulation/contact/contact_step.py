"""Time step of free bodies and an arm in contact, in compiled code.

Frame 0 is the base; then follow the frames of the joints with the links that they move, and those
of the free bodies at their centers of mass. Frames are positions (f, 3) [m], rotations (f, 3, 3)
and velocities (f, 6) [m/s, rad/s] in base axes.
"""

from __future__ import annotations

import numpy as np

from arm_dynamics.core.arrays import BoolArray, FloatArray, IntArray, Matrix, Vector
from arm_dynamics.core.compiled_math import (
    COUNT,
    MATRIX,
    NUMBER,
    Kind,
    compiled,
    compiled_for,
    compiled_without_inlining,
)
from arm_dynamics.core.small_matrices import cross, dot
from arm_dynamics.simulation.contact.contact_points import (
    INDEX_TABLE,
    LIST,
    MANIFOLD,
    ROWS,
    SHAPES,
    TABLE,
    Shapes,
    shape_points,
)
from arm_dynamics.simulation.contact.contact_solver import solve_contact_problem
from arm_dynamics.simulation.contact.free_bodies import (
    Bodies,
    Frames,
    add_inverse_masses,
    move_bodies,
    smooth_velocities,
)
from arm_dynamics.simulation.contact.separation import least_speed

MARGIN = 1e-3
"""Gap [m] below which two shapes can touch within a step, in addition to their motion."""
HELD = 1e-6
"""Speed [rad/s or m/s] below which a joint whose friction is within its bounds is at rest."""
REST = 1e-9
"""Speed [m/s and rad/s] before and after a step below which bodies rest."""
IMMOBILE, TINY = 1e-12, 1e-30
"""Mobility, relative to the largest one, below which a contact cannot move along its normal; least
value [1/kg] of the largest one."""

CUBE = Kind("float64", 3, layout="C")
BODIES = (LIST, CUBE, CUBE, LIST)
LINKS = (Kind("int64", 1, layout="C"), Kind("bool", 1, layout="C"), CUBE, TABLE)
SCENE = (SHAPES, BODIES, LINKS)
Links = tuple[IntArray, BoolArray, FloatArray, Matrix]
"""Parents (-1: base), prismatic joints, rotations and offsets of ``articulated_bodies.Tree``."""
Scene = tuple[Shapes, Bodies, Links]
STATES = (MATRIX, Kind("float64", 3), MATRIX)
ARM = (LIST, LIST, MATRIX, LIST, LIST, TABLE)
Arm = tuple[Vector, Vector, Matrix, Vector, Vector, Matrix]
"""Velocity at the start and after a step without contact, dry friction and end stops, change of the
velocity per impulse (nv, nv), least and largest impulse of dry friction; lower and upper limit,
stiffness and damping of the end stops (4, nv)."""
SIGN, LOWER, UPPER, MINIMUM, COMPLIANCE = range(5)
"""Entries of a row of ``joint_rows``: its velocity is SIGN v_i, the bounds of its impulse [N·m·s],
its least velocity [rad/s] and its compliance [rad/s per N·m·s]."""
FOUND = (TABLE._replace(written=True), INDEX_TABLE._replace(written=True))
Found = tuple[Matrix, IntArray]
"""Rows (n, 7) of ``contact_points`` and the indices (n, 2) of their solids."""
CONTACT, NEAR, FAR = range(3)


@compiled_without_inlining
def frames_of(links: Links, q: Vector, v: Vector, states: Frames) -> Frames:
    """Return the frames of links and bodies; those of the links are not placed if q is empty."""
    parents, slides, rotation, offset = links
    first, k = parents.size + 1, states[0].shape[0]
    positions, rotations = np.zeros((first + k, 3)), np.zeros((first + k, 3, 3))
    velocities = np.zeros((first + k, 6))
    for i in range(3):
        rotations[0, i, i] = 1.0
    for i in range(q.size):
        f, parent = i + 1, parents[i] + 1
        c, s, slid = np.cos(q[i]), np.sin(q[i]), 0.0
        if slides[i]:
            c, s, slid = 1.0, 0.0, q[i]
        R, p, turn = rotations[parent], positions[parent], rotations[f]
        lever, u = np.empty(3), velocities[parent]
        for a in range(3):
            x, y = dot(R[a], rotation[i, :, 0]), dot(R[a], rotation[i, :, 1])
            turn[a, 0], turn[a, 1] = c * x + s * y, c * y - s * x
            turn[a, 2] = dot(R[a], rotation[i, :, 2])
            lever[a] = dot(R[a], offset[i]) + slid * turn[a, 2]
        for a in range(3):
            b, d = (a + 1) % 3, (a + 2) % 3
            positions[f, a] = p[a] + lever[a]
            velocities[f, a] = u[a] + u[3 + b] * lever[d] - u[3 + d] * lever[b]
            velocities[f, 3 + a] = u[3 + a]
            velocities[f, a if slides[i] else 3 + a] += v[i] * turn[a, 2]
    for i in range(k):
        for a in range(3):
            positions[first + i, a] = states[0][i, a]
            velocities[first + i, a] = states[2][i, a]
            velocities[first + i, 3 + a] = states[2][i, 3 + a]
            for b in range(3):
                rotations[first + i, a, b] = states[1][i, a, b]
    return positions, rotations, velocities


@compiled
def place_solids(shapes: Shapes, frames: Frames) -> tuple[Matrix, FloatArray, Vector]:
    """Return positions (n, 3), rotations (n, 3, 3) and largest speeds (n,) [m/s] of the shapes."""
    solids, (origins, turns, velocities) = shapes[0], frames
    n = len(solids)
    positions, rotations, speeds = np.zeros((n, 3)), np.zeros((n, 3, 3)), np.zeros(n)
    for i in range(n):
        frame, offset, turn = solids[i]["frame"], solids[i]["position"], solids[i]["rotation"]
        for a in range(3):
            positions[i, a] = origins[frame, a]
            for b in range(3):
                positions[i, a] += turns[frame, a, b] * offset[b]
                for c in range(3):
                    rotations[i, a, c] += turns[frame, a, b] * turn[b, c]
        if frame > 0:
            v, w = velocities[frame, :3], velocities[frame, 3:]
            reach = np.sqrt(dot(offset, offset)) + solids[i]["radius"]
            speeds[i] = np.sqrt(dot(v, v)) + np.sqrt(dot(w, w)) * reach
    return positions, rotations, speeds


@compiled_without_inlining
def find_contacts(shapes: Shapes, pairs: IntArray, frames: Frames, dt: float) -> Found:
    """Return the contacts that can occur within dt [s].

    Spheres about the shapes exclude the pairs that cannot touch.
    """
    positions, rotations, speeds = place_solids(shapes, frames)
    near, margins, count = np.empty(len(pairs), np.int64), np.empty(len(pairs)), 0
    across = np.empty(3)
    for m in range(len(pairs)):
        i, j = pairs[m, 0], pairs[m, 1]
        radius, other = shapes[0][i]["radius"], shapes[0][j]["radius"]
        for k in range(3):
            across[k] = positions[j, k] - positions[i, k]
        gap = np.sqrt(dot(across, across)) - radius
        if np.isinf(radius):
            gap = dot(rotations[i, :, 2], across)
        margins[count], near[count] = MARGIN + 2.0 * dt * (speeds[i] + speeds[j]), m
        count += gap - other < margins[count]
    found, owners = np.empty((MANIFOLD * count, 7)), np.empty((MANIFOLD * count, 2), np.int64)
    rows, total = np.empty((ROWS, 7)), 0
    for m in range(count):
        i, j = pairs[near[m], 0], pairs[near[m], 1]
        number = shape_points(shapes, i, j, positions, rotations, margins[m], rows)
        for r in range(number):
            for k in range(7):
                found[total, k] = rows[r, k]
            owners[total, 0], owners[total, 1] = i, j
            total += 1
    return found[:total], owners[:total]


@compiled_for(SCENE, INDEX_TABLE, LIST, LIST, STATES, NUMBER, NUMBER, inline=False)
def contacts_of_links(
    scene: Scene,
    pairs: IntArray,
    q: Vector,
    v: Vector,
    states: Frames,
    dt: float,
    horizon: float,
) -> tuple[int, Matrix, IntArray]:
    """Return whether links have a CONTACT within dt, are NEAR one within the horizon [s], or FAR.

    All contacts within dt are returned too.
    """
    shapes, _, links = scene
    frames = frames_of(links, q, v, states)
    found, owners = np.empty((0, 7)), np.empty((0, 2), np.int64)
    for distance in (CONTACT, NEAR):
        time = dt if distance == CONTACT else horizon
        rows, solids = find_contacts(shapes, pairs, frames, time)
        if distance == CONTACT:
            found, owners = rows, solids
        for n in range(len(solids)):
            for side in range(2):
                if 0 < shapes[0][solids[n, side]]["frame"] <= q.size:
                    return distance, found, owners
    return FAR, found, owners


@compiled
def contact_axes(found: Matrix) -> FloatArray:
    """Return the normal and two tangents (n, 3, 3) of contacts (n, 7)."""
    axes = np.zeros((found.shape[0], 3, 3))
    for n in range(found.shape[0]):
        least = 0
        for k in range(3):
            axes[n, 0, k] = found[n, 3 + k]
            if abs(found[n, 3 + k]) < abs(found[n, 3 + least]):
                least = k
        i, j = (least + 1) % 3, (least + 2) % 3
        across = np.sqrt(axes[n, 0, i] ** 2 + axes[n, 0, j] ** 2)
        axes[n, 1, i], axes[n, 1, j] = axes[n, 0, j] / across, -axes[n, 0, i] / across
        cross(axes[n, 0], axes[n, 1], axes[n, 2])
    return axes


@compiled
def add_velocity(
    row: Vector, axis: Vector, point: Vector, sign: float, frame: int, links: Links, frames: Frames
) -> None:
    """Add the velocity along an axis of a point (3,) of a frame, times ``sign``, to a row (m,)."""
    parents, slides, _, _ = links
    origins, turns, _ = frames
    first = parents.size + 1
    f = frame
    while f > 0:
        for a in range(3):
            b, c = (a + 1) % 3, (a + 2) % 3
            # Moment of the axis about the origin of the frame, for a unit angular velocity.
            y, z = point[b] - origins[f, b], point[c] - origins[f, c]
            moment = sign * (y * axis[c] - z * axis[b])
            if f >= first:
                at = parents.size + 6 * (f - first) + a
                row[at] += sign * axis[a]
                row[at + 3] += moment
            else:
                row[f - 1] += (sign * axis[a] if slides[f - 1] else moment) * turns[f, a, 2]
        f = 0 if f >= first else parents[f - 1] + 1


@compiled
def joint_rows(q: Vector, arm: Arm, dt: float) -> tuple[IntArray, Matrix]:
    """Return the joints (m,) and the rows (m, 5) of their dry friction, then of their end stops.

    A stop at the distance φ, with the stiffness k and the damping b, is implicit in the velocity:
    0 <= λ ⟂ φ̇⁺ + k φ / (dt k + b) + λ / (dt² k + dt b) >= 0 beyond the limit; before it,
    φ > 0, with φ / dt in place of the second term.
    """
    start, smooth, _, least, most, stops = arm
    joints, rows, m = np.empty(3 * q.size, np.int64), np.empty((3 * q.size, 5)), 0
    for i in range(q.size):
        if most[i] > least[i]:
            joints[m] = i
            rows[m, SIGN], rows[m, LOWER], rows[m, UPPER] = 1.0, least[i], most[i]
            rows[m, MINIMUM] = rows[m, COMPLIANCE] = 0.0
            m += 1
    for i in range(q.size):
        stiffness, damping = stops[2, i], stops[3, i]
        reach = MARGIN + 2.0 * dt * (abs(start[i]) + abs(smooth[i]))
        for side in range(2):
            sign = 1.0 - 2.0 * side
            gap = sign * (q[i] - stops[side, i])
            if not (gap < reach and stiffness > 0.0):
                continue
            joints[m] = i
            rows[m, SIGN], rows[m, LOWER], rows[m, UPPER] = sign, 0.0, np.inf
            rows[m, MINIMUM] = (
                -gap / dt if gap > 0.0 else -stiffness * gap / (dt * stiffness + damping)
            )
            rows[m, COMPLIANCE] = 1.0 / (dt * (dt * stiffness + damping))
            m += 1
    return joints[:m], rows[:m]


@compiled
def product(A: Matrix, B: Matrix) -> Matrix:
    """Return Aᵀ B for a matrix A with many zeros."""
    C = np.zeros((A.shape[1], B.shape[1]))
    for k in range(A.shape[0]):
        for i in range(A.shape[1]):
            if A[k, i] != 0.0:
                for j in range(B.shape[1]):
                    C[i, j] += A[k, i] * B[k, j]
    return C


@compiled
def jacobian_columns(
    scene: Scene,
    frames: Frames,
    contacts: Found,
    axes: FloatArray,
    joints: tuple[IntArray, Matrix],
) -> Matrix:
    """Return Jᵀ (nv + 6 k, m + 3 n): the velocities of ``joint_rows``, then of n contacts."""
    ((solids, _), bodies, links), (found, owners) = scene, contacts
    m = joints[0].size
    columns = np.zeros((links[0].size + 6 * bodies[0].size, m + 3 * found.shape[0]))
    for i in range(m):
        columns[joints[0][i], i] = joints[1][i, SIGN]
    for n in range(found.shape[0]):
        for side in range(2):
            frame, sign = solids[owners[n, side]]["frame"], 2.0 * side - 1.0
            for i in range(3):
                row = columns[:, m + 3 * n + i]
                add_velocity(row, axes[n, i], found[n], sign, frame, links, frames)
    return columns


@compiled
def make_mobile(delassus: Matrix, velocity: Vector, first: int) -> None:
    """Exclude contacts that cannot move along their normal; let their tangents move a little."""
    largest = TINY
    for i in range(velocity.size):
        largest = max(largest, delassus[i, i])
    for i in range(first, velocity.size):
        if not delassus[i, i] > IMMOBILE * largest:
            delassus[i, i] = IMMOBILE * largest
            if (i - first) % 3 == 0:
                velocity[i] = 0.0


@compiled
def largest_speed(velocities: Matrix) -> float:
    """Return the largest |component| [m/s or rad/s] of velocities (n, 6)."""
    largest = 0.0
    for i in range(velocities.shape[0]):
        for a in range(6):
            largest = max(largest, abs(velocities[i, a]))
    return largest


@compiled
def motion_without_contact(
    bodies: Bodies, frames: Frames, arm: Arm, dt: float
) -> tuple[Matrix, Matrix]:
    """Return the velocities (n, 2) at the start and after dt without contact, and M⁻¹ (n, n)."""
    start, smooth, response, _, _, _ = arm
    nv, after = start.size, smooth_velocities(bodies, frames, dt)
    n = nv + 6 * len(after)
    motions, inverse_mass = np.empty((n, 2)), np.zeros((n, n))
    for i in range(nv):
        motions[i, 0], motions[i, 1] = start[i], smooth[i]
        for j in range(nv):
            inverse_mass[i, j] = response[i, j]
    for k in range(len(after)):
        for a in range(6):
            motions[nv + 6 * k + a, 0] = frames[2][nv + 1 + k, a]
            motions[nv + 6 * k + a, 1] = after[k, a]
    add_inverse_masses(bodies, frames, inverse_mass)
    return motions, inverse_mass


@compiled_without_inlining
def contact_step(
    scene: Scene, frames: Frames, q: Vector, arm: Arm, contacts: Found, dt: float
) -> tuple[Vector, Matrix, float]:
    """Advance the frames of the bodies; return v⁺ (nv,), forces (n, 3) [N] and residual [m/s]."""
    ((solids, _), bodies, _), (found, owners) = scene, contacts
    joints, rows = joint_rows(q, arm, dt)
    m, count, axes = joints.size, len(found), contact_axes(found)
    columns = jacobian_columns(scene, frames, contacts, axes, (joints, rows))
    motions, inverse_mass = motion_without_contact(bodies, frames, arm, dt)
    through, velocities = product(inverse_mass, columns), product(columns, motions)
    velocity, friction = velocities[:, 1].copy(), np.empty(count)
    delassus = product(columns, through)
    for i in range(m):
        velocity[i] -= rows[i, MINIMUM]
        delassus[i, i] += rows[i, COMPLIANCE]
    for n in range(count):
        at, first, second = m + 3 * n, solids[owners[n, 0]], solids[owners[n, 1]]
        friction[n] = np.sqrt(first["friction"] * second["friction"])
        restitution = max(first["restitution"], second["restitution"])
        compliance = first["compliance"] + second["compliance"]
        velocity[at] -= least_speed(found[n, 6], velocities[at, 0], restitution, compliance, dt)
        delassus[at, at] += compliance / dt**2
    lower, upper = rows[:, LOWER].copy(), rows[:, UPPER].copy()
    make_mobile(delassus, velocity, m)
    impulse, after = np.zeros(velocity.size), motions[:, 1].copy()
    residual = solve_contact_problem(delassus, velocity, lower, upper, friction, impulse)
    for c in range(after.size):
        for i in range(impulse.size):
            after[c] += through[c, i] * impulse[i]
    for i in range(m):
        held = lower[i] < impulse[i] < upper[i] < np.inf  # by dry friction
        if held and abs(after[joints[i]]) < HELD:
            after[joints[i]] = 0.0
    force = np.zeros((count, 3))
    for n in range(count):
        for a in range(3):
            for i in range(3):
                force[n, a] += axes[n, i, a] * impulse[m + 3 * n + i] / dt
    move_bodies(frames, after, bodies[0].size, dt)
    return after[: arm[0].size], force, residual


@compiled_for(SCENE, INDEX_TABLE, LIST, STATES, ARM, FOUND, NUMBER, COUNT, inline=False)
def contact_steps(
    scene: Scene,
    pairs: IntArray,
    q: Vector,
    states: Frames,
    arm: Arm,
    contacts: Found,
    dt: float,
    steps: int,
) -> tuple[Frames, Vector, Found, Matrix, float]:
    """Take steps of semi-implicit Euler; those of bodies alone end when the bodies rest.

    Parameters
    ----------
    scene : tuple
        Shapes, bodies and links.
    pairs : (m, 2) array
        Indices of the shapes that can touch.
    q : (nv,) array
        Positions of the joints; empty for bodies alone.
    states : tuple
        Positions [m], rotations and velocities of the bodies.
    arm : tuple
        The arm in this step; zeros for bodies alone.
    contacts : tuple
        Result of ``contacts_of_links``; ignored for bodies alone.
    dt : float
        Time step [s].
    steps : int
        Number of steps; 1 with an arm.

    Returns
    -------
    states, velocity, contacts, force, residual
        States of the bodies, velocity (nv,) of the arm, contacts and forces (n, 3) [N] of the last
        step, largest residual [m/s] of all steps.

    """
    shapes, _, links = scene
    frames, found, owners = frames_of(links, q, arm[0], states), contacts[0], contacts[1]
    after, force, residual = np.zeros(0), np.zeros((0, 3)), 0.0
    bodies = links[0].size + 1
    for _ in range(steps):
        speed = largest_speed(frames[2][bodies:])
        if q.size == 0:
            found, owners = find_contacts(shapes, pairs, frames, dt)
        after, force, error = contact_step(scene, frames, q, arm, (found, owners), dt)
        residual = max(residual, error)
        if q.size == 0 and max(speed, largest_speed(frames[2][bodies:])) < REST:
            break
    moved = frames[0][bodies:].copy(), frames[1][bodies:].copy(), frames[2][bodies:].copy()
    return moved, after, (found, owners), force, residual
