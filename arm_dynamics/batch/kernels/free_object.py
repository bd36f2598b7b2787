"""The free object of a kernel: its state next to that of the arm, for floats and symbols.

A step without contact is v⁺ = v + dt g. With the impulses of contact the object moves by
x⁺ = x + dt v⁺ and R⁺ = cay(dt ω⁺) R, and keeps its angular momentum, R⁺ I R⁺ᵀ ω = R I Rᵀ ω⁺.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from arm_dynamics.collision.scene import Scene, SceneObject
from arm_dynamics.core.arrays import FloatArray, Vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import State

BODY_ROWS = {"body_position": 3, "body_rotation": 9, "body_velocity": 6}
"""Rows and sizes: center [m], rotation into base axes row by row, linear and angular velocity in
base axes [m/s, rad/s]."""


def free_object(scene: Scene) -> SceneObject | None:
    """Return the object of a scene with a mass, None without any.

    Raises
    ------
    InvalidValue
        For more than one.

    """
    free = [one for one in scene if not one.is_fixed]
    if len(free) > 1:
        raise InvalidValue(
            f"scene object '{free[1].name}': mass = {free[1].mass:g} kg; expected 0 in a kernel,"
            f" which has one free object ('{free[0].name}'); set mass 0, or use Simulation"
        )
    return free[0] if free else None


def body_state(one: SceneObject, state: State | None = None) -> Vector:
    """Return the rows (18,) of an object: those of a ``SceneState``, else at rest in its scene.

    Raises
    ------
    InvalidValue
        If the state has another number of free objects.

    """
    bodies = getattr(state, "bodies", None)
    if bodies is None:
        return np.concatenate([one.position, one.rotation.ravel(), np.zeros(6)])
    if len(bodies) != 1:
        raise InvalidValue(
            f"state: free objects = {len(bodies)}; expected 1 ('{one.name}'); simulate the scene of"
            " the kernel"
        )
    return np.concatenate([part.ravel() for part in bodies.arrays])


def body_rows(states: FloatArray) -> dict[str, FloatArray]:
    """Return states (..., 18) by the names of ``BODY_ROWS``."""
    return dict(zip(BODY_ROWS, np.split(states, (3, 12), axis=-1), strict=True))


def skew(x: Any) -> Any:
    """Return the matrix (3, 3) of the cross product with x (3,)."""
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def body_jacobian(position: Any) -> Any:
    """Return (6, 6): ẋ of the point of the object at the origin, and ω, by its velocity."""
    return np.block([[np.eye(3), skew(position)], [np.zeros((3, 3)), np.eye(3)]])


def body_response_root(one: SceneObject, rotation: Any) -> Any:
    """Return G (6, 6) of the response to impulses G Gᵀ = diag(1/m, R I⁻¹ Rᵀ)."""
    inertial, zero = one.inertial, np.zeros((3, 3))
    turning = rotation * (1.0 / np.sqrt(np.diag(inertial.inertia)))
    return np.block([[np.eye(3) / np.sqrt(inertial.mass), zero], [zero, turning]])


def moved_body(
    one: SceneObject, position: Any, rotation: Any, velocity: Any, dt: Any
) -> dict[str, Any]:
    """Return the rows of an object after dt [s], from its pose and the velocity (6,) of the step.

    cay(t) = 1 + 2 ([a] + [a]²) / (1 + a²) with a = t/2 rotates by 2 atan |a|.
    """
    half, inertia = 0.5 * dt * velocity[3:], np.diag(one.inertial.inertia)
    a = skew(half)
    after = rotation + (2.0 / (1.0 + half @ half)) * ((a + a @ a) @ rotation)
    momentum = rotation @ (inertia * (velocity[3:] @ rotation))
    angular = after @ ((momentum @ after) / inertia)
    return {
        "body_position": position + dt * velocity[:3], "body_rotation": after.ravel(),
        "body_velocity": np.concatenate([velocity[:3], angular]),
    }  # fmt: skip
