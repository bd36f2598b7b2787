"""Impulse of one contact within a step, in a form without iterations, for floats and symbols.

0 <= λ_n ⟂ v_n⁺ - v* >= 0,  |λ_t| <= μ λ_n,  v_t⁺ = -γ λ_t,

the conditions of ``ContactPlant``, are solved for one contact with the velocities that the contacts
before it have left, v⁺ = v + A λ. A step visits each contact once, with a free object ``VISITS``
times. What a later contact changes again is corrected by the next visit.

References
----------
M. Anitescu, F. Potra, Nonlinear Dynamics 14 (1997), section 3; J. Moré, D. Sorensen, SIAM J. Sci.
Stat. Comput. 4 (1983), section 3 (the secular equation of ``friction_impulse``); T. Duff et al.,
J. Computer Graphics Techniques 6 (2017), 1 (``normal_and_tangents``).

"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from arm_dynamics.core.compiled_math import maximum, minimum, where
from arm_dynamics.simulation.contact.separation import (
    CORRECTION,
    CORRECTION_SPEED,
    OVERLAP,
)

CONTACT, GAP = 8, 6
"""Numbers of a contact, normal (3,), point (3,), gap and friction coefficient; that of the gap."""
VISITS = 4
"""Visits of all contacts in a step with a free object, whose contacts act against each other."""
FAR = 1e9
"""Gap [m] of a contact that does not act in this step."""
COMPLIANCE = 1e-6
"""Compliance of a contact relative to the trace of A, where links cannot move in a direction."""
TINY = 1e-30
"""Added to squared sizes that are divided by."""
NEGLIGIBLE = 1e-12
"""Impulse [N·s] added to bounds that are divided by."""
NEWTON_STEPS = 3
"""Steps of Newton's method on the secular equation: λ is within
1.4 % of the exact one, and within 1e-4 unless the entries of A differ by more than 100."""
SHAPES = ("ground", "sphere", "box")
"""Objects whose distance to a sphere has a closed form."""


def gap_and_normal(
    kind: str, size: Any, position: Any, rotation: Any, center: Any, radius: float
) -> tuple[Any, Any]:
    """Return the gap [m] between a sphere and an object, and the normal (3,) out of the object.

    Parameters
    ----------
    kind, size : str, sequence of float
        "ground" (), "sphere" (radius,) or "box" (x, y, z) [m].
    position, rotation : (3,), (3, 3) array
        Pose of the object.
    center, radius : (3,) array, float
        The sphere [m].

    """
    offset = center - position
    if kind == "ground":
        return offset @ rotation[:, 2] - radius, rotation[:, 2]
    if kind == "sphere":
        distance = _norm(offset)
        return distance - radius - size[0], (1.0 / distance) * offset
    local = offset @ rotation
    side = [where(x < 0.0, -1.0, 1.0) for x in local]
    beyond = [abs(x) - 0.5 * s for x, s in zip(local, size, strict=True)]
    outside = np.array([maximum(x, 0.0) for x in beyond])
    nearest = maximum(maximum(beyond[0], beyond[1]), beyond[2])
    first = where(beyond[0] >= nearest, 1.0, 0.0)
    second = where(beyond[1] >= nearest, 1.0 - first, 0.0)
    face = first, second, 1.0 - first - second
    distance, away = _norm(outside), nearest > 0.0
    inverse = 1.0 / distance
    normal = np.array([s * where(away, x * inverse, f)
                       for s, x, f in zip(side, outside, face, strict=True)])  # fmt: skip
    return where(away, distance, nearest) - radius, rotation @ normal


def normal_and_tangents(normal: Any) -> Any:
    """Return rows (3, 3): the normal and two tangents."""
    x, y, z = normal
    sign = where(z < 0.0, -1.0, 1.0)
    a = -1.0 / (sign + z)
    b = x * y * a
    return np.array([
        [x, y, z], [1.0 + sign * x * x * a, sign * b, -sign * x], [b, sign + y * y * a, -y],
    ])  # fmt: skip


def contact_change(
    contact: Any, jacobian: Any, root: Any, v: Any, change: Any, dt: Any
) -> tuple[Any, Any]:
    """Return the change u (n,) of the motion after one more contact, and its impulse (3,).

    v⁺ = v + G u,  W = G Gᵀ the response to impulses: of u the mass is 1.

    Parameters
    ----------
    contact : (8,) or (11,) array
        Normal (3,), point (3,) [m], gap [m] and friction coefficient; and the impulse (3,) of the
        visit before, which is replaced.
    jacobian : (6, n) array
        ẋ of the point of the body at the origin, and ω, by v; in base axes.
    root : (n, n) array
        G.
    v, change : (n,) array
        Velocity without contact, and u after the contacts before.
    dt : float
        Time step [s].

    """
    (gap, friction), before = contact[GAP:CONTACT], contact[CONTACT:]
    moved = jacobian[:3] + np.cross(jacobian[3:].T, contact[3:6]).T
    rows = normal_and_tangents(contact[:3]) @ moved
    through = rows @ root
    A = through @ through.T
    A = A + COMPLIANCE * (A[0, 0] + A[1, 1] + A[2, 2]) * np.eye(3)
    speed = rows @ v + through @ change
    if len(before):
        speed = speed - A @ before
    impulse = contact_impulse(A, speed, target_speed(gap, dt), friction)
    return change + through.T @ (impulse - before if len(before) else impulse), impulse


def target_speed(gap: Any, dt: Any) -> Any:
    """Return v* [m/s]: it closes a gap, or removes a part of an overlap."""
    correction = minimum(CORRECTION * maximum(-gap - OVERLAP, 0.0) / dt, CORRECTION_SPEED)
    return where(gap > 0.0, -gap / dt, correction)


def contact_impulse(A: Any, v: Any, target: Any, friction: Any) -> Any:
    """Return the impulse (3,) of a contact: normal, two tangents.

    The normal impulse without friction is corrected once by the friction that it admits, and at
    most doubled: then the impulse adds no energy if v* <= 0.

    Parameters
    ----------
    A : (3, 3) array
        Change of the velocity of the contact by its impulse [1/kg].
    v : (3,) array
        Velocity before.
    target : float
        v*.
    friction : float
        Coefficient μ.

    """
    mass = 1.0 / A[0, 0]
    frictionless = maximum((target - v[0]) * mass, 0.0)
    first = friction_impulse(A[1:, 1:], v[1:] + frictionless * A[1:, 0], friction * frictionless, 1)
    normal = (target - v[0] - A[0, 1:] @ first) * mass
    normal = minimum(maximum(normal, 0.0), 2.0 * frictionless)
    tangent = friction_impulse(A[1:, 1:], v[1:] + normal * A[1:, 0], friction * normal)
    return np.array([normal, *tangent])


def friction_impulse(A: Any, v: Any, bound: Any, steps: int = NEWTON_STEPS) -> Any:
    """Return λ (2,) of maximum dissipation: argmin ½ λᵀ A λ + λᵀ v with |λ| <= bound.

    λ = -(A + s)⁻¹ v with s = 0 if the contact sticks, and else |λ| = bound, that is, v⁺ = -s λ.
    1/|λ| is nearly linear in s; Newton's method starts below the solution and stays there, so that
    the result dissipates energy whatever the number of ``steps`` is.
    """
    a, b, c = A[0, 0], A[0, 1], A[1, 1]
    largest = 0.5 * (a + c) + _norm(np.array([0.5 * (a - c), b]))
    inverse = 1.0 / (bound + NEGLIGIBLE)
    shift = maximum(_norm(v) * inverse - largest, 0.0)
    for _ in range(steps):
        x, y, scale = _shifted(A, v, shift)
        square = x * x + y * y + TINY
        slope = (x * x * (c + shift) - 2.0 * x * y * b + y * y * (a + shift)) * scale
        excess = math.sqrt(square) * inverse - 1.0
        shift = shift + maximum(excess, 0.0) * square / (slope + TINY)
    x, y, _ = _shifted(A, v, shift)
    factor = minimum(bound / _norm(np.array([x, y])), 1.0)
    return np.array([factor * x, factor * y])


def _shifted(A: Any, v: Any, shift: Any) -> tuple[Any, Any, Any]:
    """Return -(A + s)⁻¹ v and the inverse of the determinant of A + s."""
    a, b, c = A[0, 0] + shift, A[0, 1], A[1, 1] + shift
    scale = 1.0 / (a * c - b * b)
    return scale * (b * v[1] - c * v[0]), scale * (b * v[0] - a * v[1]), scale


def _norm(x: Any) -> Any:
    return math.sqrt(x @ x + TINY)
