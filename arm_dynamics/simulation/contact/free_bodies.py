"""States of free bodies, and their motion without contact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from arm_dynamics.collision.scene import SceneObject
from arm_dynamics.core.arrays import FloatArray, Matrix, Vector, as_readonly
from arm_dynamics.core.compiled_math import compiled
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.small_matrices import cross, dot

ITERATIONS = 60
"""Iterations of the gyroscopic step, each of which reduces its error by a factor of dt |ω|."""
SMALL = 1e-3
"""Angle [rad] below which the series of a rotation is exact in floating point."""

Bodies = tuple[Vector, FloatArray, FloatArray, Vector]
"""Masses, inertias and their inverses in the axes of the bodies, gravity [m/s²]."""
Frames = tuple[Matrix, FloatArray, Matrix]
"""Positions (f, 3) [m], rotations (f, 3, 3) and velocities (f, 6) [m/s, rad/s] in base axes."""


@compiled
def after_gyroscopic_torque(inertia: Matrix, inverse: Matrix, start: Vector, dt: float) -> Vector:
    """Return ω⁺ (3,) [rad/s] of I (ω⁺ - ω) + dt ω_m × I ω_m = 0, ω_m = (ω + ω⁺)/2.

    The implicit midpoint rule of Euler's equations in body axes, by fixed-point iterations.
    """
    after: Vector = start.copy()
    middle, momentum, torque = np.empty(3), np.empty(3), np.empty(3)
    for _ in range(ITERATIONS):
        largest, size = 0.0, 0.0
        for k in range(3):
            middle[k] = 0.5 * (start[k] + after[k])
        for k in range(3):
            momentum[k] = dot(inertia[k], middle)
        cross(middle, momentum, torque)
        for k in range(3):
            new = start[k] - dt * dot(inverse[k], torque)
            largest, size = max(largest, abs(new - after[k])), max(size, abs(new))
            after[k] = new
        if largest <= 1e-16 * size:
            break
    return after


@compiled
def smooth_velocities(bodies: Bodies, frames: Frames, dt: float) -> Matrix:
    """Return the velocities (n, 6) of the last n frames after dt [s] without contact.

    v⁺ = v + dt g; the angular velocity in body axes by the implicit midpoint rule,
    I (ω⁺ - ω) + dt ω_m × I ω_m = 0, ω_m = (ω + ω⁺)/2, which keeps the kinetic energy
    ½ ωᵀ I ω and the size of the angular momentum I ω exactly.
    """
    (mass, inertia, inverse, gravity), (_, rotations, velocities) = bodies, frames
    first, own = len(rotations) - mass.size, np.empty(3)
    after: Matrix = velocities[first:].copy()
    for k in range(mass.size):
        R = rotations[first + k]
        for a in range(3):
            after[k, a] += dt * gravity[a]
            own[a] = dot(R[:, a], after[k, 3:])
        turned = after_gyroscopic_torque(inertia[k], inverse[k], own, dt)
        for a in range(3):
            after[k, 3 + a] = dot(R[a], turned)
    return after


@compiled
def add_inverse_masses(bodies: Bodies, frames: Frames, inverse_mass: Matrix) -> None:
    """Add the inverse masses of n bodies in base axes to the last 6 n rows of a matrix."""
    mass, _, inverse, _ = bodies
    first, size = len(frames[1]) - mass.size, len(inverse_mass) - 6 * mass.size
    for k in range(mass.size):
        R, at = frames[1][first + k], size + 6 * k
        for a in range(3):
            inverse_mass[at + a, at + a] = 1.0 / mass[k]
            for b in range(3):
                for i in range(3):
                    for j in range(3):
                        turned = R[a, i] * inverse[k, i, j] * R[b, j]
                        inverse_mass[at + 3 + a, at + 3 + b] += turned


@compiled
def move_bodies(frames: Frames, velocity: Vector, n: int, dt: float) -> None:
    """Move n bodies, the last frames, with the last 6 n velocities, constant over dt [s], in place.

    R⁺ = exp(dt [ω]) R = R + s [t] R + c [t] [t] R, t = dt ω, s = sin |t| / |t|,
    c = (1 - cos |t|) / |t|².
    """
    positions, rotations, velocities = frames
    t, R = np.empty(3), np.empty((3, 3))
    for f in range(-n, 0):
        for a in range(3):
            velocities[f, a], velocities[f, 3 + a] = velocity[6 * f + a], velocity[6 * f + 3 + a]
            positions[f, a] += dt * velocities[f, a]
            t[a] = dt * velocities[f, 3 + a]
            for j in range(3):
                R[a, j] = rotations[f, a, j]
        square = dot(t, t)
        s, c = 1.0 - square / 6.0, 0.5 - square / 24.0
        if square > SMALL * SMALL:
            angle = np.sqrt(square)
            s, c = np.sin(angle) / angle, 2.0 * (np.sin(0.5 * angle) / angle) ** 2
        for j in range(3):
            inner = dot(t, R[:, j])
            for a in range(3):
                b, d = (a + 1) % 3, (a + 2) % 3
                turn = s * (t[b] * R[d, j] - t[d] * R[b, j])
                rotations[f, a, j] += turn + c * (t[a] * inner - square * R[a, j])


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

    @property
    def arrays(self) -> Frames:
        """Positions, rotations and velocities."""
        return self.position, self.rotation, self.velocity

    @classmethod
    def of_step(cls, arrays: Frames) -> BodyStates:
        """Return the states after a step: its arrays, set read-only, without a check."""
        for array in arrays:
            array.setflags(False)  # type: ignore[call-arg]  # by name it takes twice as long
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
    inverse_inertia : (n, 3, 3) array
        Their inverses.
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
        self.inverse_inertia = np.linalg.inv(self.inertia)

    @property
    def table(self) -> tuple[Vector, FloatArray, FloatArray]:
        """Masses, inertias and their inverses."""
        return self.mass, self.inertia, self.inverse_inertia

    def energy(self, states: BodyStates, gravity: Vector) -> float:
        """Return the kinetic and potential energy [J] of all bodies."""
        linear, angular = states.velocity[:, :3], states.velocity[:, 3:]
        own = np.einsum("nji,nj->ni", states.rotation, angular)
        kinetic = 0.5 * self.mass @ (linear**2).sum(axis=1)
        kinetic += 0.5 * np.einsum("ni,nij,nj->", own, self.inertia, own)
        return float(kinetic - self.mass @ (states.position @ gravity))
