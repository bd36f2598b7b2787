"""States of free bodies, and their motion without contact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from arm_dynamics.collision.scene import SceneObject
from arm_dynamics.core.arrays import FloatArray, Matrix, Vector, as_readonly
from arm_dynamics.core.compiled_math import MATRIX, NUMBER, VECTOR, compiled_for
from arm_dynamics.core.errors import InvalidValue

ITERATIONS = 60
"""Iterations of the gyroscopic step, each of which reduces its error by a factor of dt |ω|."""


@compiled_for(MATRIX, MATRIX, VECTOR, NUMBER)
def after_gyroscopic_torque(inertia: Matrix, inverse: Matrix, start: Vector, dt: float) -> Vector:
    """Return ω⁺ (3,) [rad/s] of I (ω⁺ - ω) + dt ω_m × I ω_m = 0, ω_m = (ω + ω⁺)/2.

    The implicit midpoint rule of Euler's equations in body axes, by fixed-point iterations.
    """
    after: Vector = start.copy()
    momentum, torque = np.empty(3), np.empty(3)
    for _ in range(ITERATIONS):
        largest, size = 0.0, 0.0
        m0, m1, m2 = (
            0.5 * (start[0] + after[0]),
            0.5 * (start[1] + after[1]),
            0.5 * (start[2] + after[2]),
        )
        for k in range(3):
            momentum[k] = inertia[k, 0] * m0 + inertia[k, 1] * m1 + inertia[k, 2] * m2
        torque[0] = m1 * momentum[2] - m2 * momentum[1]
        torque[1] = m2 * momentum[0] - m0 * momentum[2]
        torque[2] = m0 * momentum[1] - m1 * momentum[0]
        for k in range(3):
            change = inverse[k, 0] * torque[0] + inverse[k, 1] * torque[1]
            new = start[k] - dt * (change + inverse[k, 2] * torque[2])
            largest, size = max(largest, abs(new - after[k])), max(size, abs(new))
            after[k] = new
        if largest <= 1e-16 * size:
            break
    return after


@dataclass(frozen=True, slots=True, eq=False)
class BodyStates:
    """States of n free bodies in base axes, read-only.

    Attributes
    ----------
    position : (n, 3) array
        Centers of mass [m].
    rotation : (n, 3, 3) array
        Rotations of the axes of the bodies into base axes.
    velocity : (n, 6) array
        Velocities of the centers of mass [m/s] and angular velocities [rad/s].

    """

    position: Matrix
    rotation: FloatArray
    velocity: Matrix

    @classmethod
    def at_rest(cls, objects: Sequence[SceneObject]) -> BodyStates:
        """Return the states of free objects at their places in the scene."""
        n = len(objects)
        centers = [x.position + x.rotation @ x.inertial.center for x in objects]
        return cls.of(
            np.reshape(centers, (n, 3)),
            np.reshape([x.rotation for x in objects], (n, 3, 3)),
            np.zeros((n, 6)),
        )

    @classmethod
    def of(cls, position: Matrix, rotation: FloatArray, velocity: Matrix) -> BodyStates:
        """Return read-only states; raises InvalidValue for values of other sizes or not finite."""
        arrays = as_readonly(position), as_readonly(rotation), as_readonly(velocity)
        n = len(arrays[0])
        for name, array, shape in zip(
            ("position", "rotation", "velocity"), arrays, ((n, 3), (n, 3, 3), (n, 6)), strict=True
        ):
            if array.shape != shape:
                raise InvalidValue(f"{name} of bodies: shape = {array.shape}; expected {shape}")
            if not np.isfinite(array).all():
                raise InvalidValue(f"{name} of bodies = {array[~np.isfinite(array)][0]}; expected"
                                   " a number")  # fmt: skip
        return cls(*arrays)

    def __len__(self) -> int:
        """Return the number of bodies."""
        return len(self.position)


class FreeBodies:
    """Mass properties of n free bodies.

    Attributes
    ----------
    objects : tuple of SceneObject
        The bodies.
    mass : (n,) array
        Masses [kg].
    inertia : (n, 3, 3) array
        Inertias [kg·m²] about the centers of mass, in the axes of the bodies.
    center : (n, 3) array
        Centers of mass [m] in the frames of the objects.

    """

    def __init__(self, objects: Sequence[SceneObject]) -> None:
        self.objects, n = tuple(objects), len(objects)
        inertials = [x.inertial for x in objects]
        self.mass = np.array([x.mass for x in inertials])
        self.inertia = np.reshape([x.inertia for x in inertials], (n, 3, 3))
        self.center = np.reshape([x.center for x in inertials], (n, 3))
        for one, inertia in zip(objects, self.inertia, strict=True):
            least = float(np.linalg.eigvalsh(inertia).min())
            if not least > 0:
                raise InvalidValue(
                    f"scene object '{one.name}': smallest inertia = {least:.3g} kg·m²; expected"
                    " above 0"
                )
        self._inverse = np.array([np.linalg.inv(x) for x in self.inertia]).reshape(n, 3, 3)

    def smooth_velocity(self, states: BodyStates, gravity: Vector, dt: float) -> Matrix:
        """Return the velocities (n, 6) after dt [s] without contact.

        v⁺ = v + dt g; the angular velocity in body axes by the implicit midpoint rule,
        I (ω⁺ - ω) + dt ω_m × I ω_m = 0, ω_m = (ω + ω⁺)/2, which keeps the kinetic energy
        ½ ωᵀ I ω and the size of the angular momentum I ω exactly.
        """
        after = np.array(states.velocity)
        after[:, :3] += dt * gravity
        for k, inertia in enumerate(self.inertia):
            turn = states.rotation[k]
            turned = after_gyroscopic_torque(inertia, self._inverse[k], turn.T @ after[k, 3:], dt)
            after[k, 3:] = turn @ turned
        return after

    def inverse_mass(self, states: BodyStates) -> Matrix:
        """Return the inverse mass (6 n, 6 n) of all bodies in base axes."""
        n = len(self.mass)
        inverse = np.zeros((6 * n, 6 * n))
        for k in range(n):
            at = 6 * k
            inverse[at : at + 3, at : at + 3] = np.eye(3) / self.mass[k]
            turn = states.rotation[k]
            inverse[at + 3 : at + 6, at + 3 : at + 6] = turn @ self._inverse[k] @ turn.T
        return inverse

    def moved(self, states: BodyStates, velocity: Matrix, dt: float) -> BodyStates:
        """Return the states after a motion with constant velocities (n, 6) over dt [s]."""
        rotation = np.array(
            [pin.exp3(dt * w) @ R for w, R in zip(velocity[:, 3:], states.rotation, strict=True)]
        ).reshape(-1, 3, 3)
        return BodyStates(states.position + dt * velocity[:, :3], rotation, velocity)

    def energy(self, states: BodyStates, gravity: Vector) -> float:
        """Return the kinetic and potential energy [J] of all bodies."""
        linear, angular = states.velocity[:, :3], states.velocity[:, 3:]
        own = np.einsum("nji,nj->ni", states.rotation, angular)
        kinetic = 0.5 * self.mass @ (linear**2).sum(axis=1)
        kinetic += 0.5 * np.einsum("ni,nij,nj->", own, self.inertia, own)
        return float(kinetic - self.mass @ (states.position @ gravity))
