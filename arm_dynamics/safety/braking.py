"""Braking of an arm: its deceleration, and contacts where it would come to rest."""

from __future__ import annotations

import numpy as np

from arm_dynamics.collision.clearance_monitor import CLEARANCE, ClearanceMonitor, Contact
from arm_dynamics.collision.scene import EMPTY_SCENE, Scene
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.compiled_math import VECTOR, compiled_for
from arm_dynamics.dynamics.rigid_body import RigidBodyDynamics
from arm_dynamics.model.arm_model import ArmModel

STOP_TIME = 0.25
"""Time to stop from the velocity limit [s] if no deceleration is given."""
UNLIMITED_DECELERATION = 10.0
"""Deceleration of a joint without a velocity limit [rad/s² or m/s²]."""
HARD_STOP = 2.0
"""Deceleration of a stop before a contact over the default of the arm."""
MIN_BRAKING = 0.05
"""Smallest part of it that is assumed: gravity may need the effort."""


def default_deceleration(arm: ArmModel) -> Vector:
    """Return the deceleration (nv,) [rad/s² or m/s²] that stops from the limit in STOP_TIME."""
    limit = arm.velocity_limit
    return as_readonly(np.where(np.isfinite(limit), limit / STOP_TIME, UNLIMITED_DECELERATION))


@compiled_for(VECTOR, VECTOR, VECTOR, VECTOR)
def available_deceleration(most: Vector, effort: Vector, bias: Vector, limit: Vector) -> Vector:
    """Return s ``most`` (nv,), s <= 1 the largest with |bias| + s |effort - bias| <= limit.

    ``effort`` (nv,) [N·m] is that of the deceleration ``most``; s is at least MIN_BRAKING.
    """
    s = 1.0
    for i in range(most.size):
        stop = abs(effort[i] - bias[i])
        if stop > 0.0:
            s = min(s, (limit[i] - abs(bias[i])) / stop)
    rate: Vector = max(s, MIN_BRAKING) * most
    return rate


@compiled_for(VECTOR, VECTOR)
def braking_distance(v: Vector, rate: Vector) -> Vector:
    """Return |v| v / 2 a (nv,); 0 of a joint whose deceleration a, and velocity limit, is 0."""
    distance = np.zeros(v.size)
    for i in range(v.size):
        if rate[i] > 0.0:
            distance[i] = abs(v[i]) * v[i] / (2.0 * rate[i])
    return distance


class BrakingMonitor:
    """Finds contacts of links, with each other and with objects, where the arm would rest.

    q_rest = q + v (T + |v| / 2 s a),  with the reaction time T and HARD_STOP times the default
    deceleration a. The factor s <= 1 keeps the effort of the stop, M(q) (-s a sign v) + nle(q, v),
    within the limits.

    Parameters
    ----------
    arm : ArmModel
        Arm with nv joints.
    clearance : float
        Smallest distance [m] of two links, and of a link and an object.
    scene : Scene
        Objects around the arm.
    reaction_time : float
        Time [s] from a measurement to the braking of the joints.

    """

    def __init__(
        self,
        arm: ArmModel,
        clearance: float = CLEARANCE,
        scene: Scene = EMPTY_SCENE,
        *,
        reaction_time: float = 0.0,
    ) -> None:
        self.arm, self.scene, self._reaction_time = arm, scene, reaction_time
        self._distances = ClearanceMonitor(arm, clearance, scene)
        self._most, self._limit = HARD_STOP * default_deceleration(arm), arm.effort_limit
        self._dynamics = RigidBodyDynamics(arm)

    def deceleration(self, q: Vector, v: Vector) -> Vector:
        """Return the deceleration s a (nv,) [rad/s² or m/s²] of a stop from q, v (nv,)."""
        bias = self._dynamics.nle(q, v)
        effort = self._dynamics.rnea(q, v, -self._most * np.sign(v))
        return available_deceleration(self._most, effort, bias, self._limit)

    def distance(self, q: Vector, v: Vector) -> Vector:
        """Return the braking distance |v| v / 2 s a (nv,) [rad or m] from q, v (nv,)."""
        return braking_distance(v, self.deceleration(q, v))

    def contact_ahead(self, q: Vector, v: Vector) -> Contact | None:
        """Return a contact where the arm would rest if it braked now, or None.

        With a reaction time it is evaluated at T and at 0: the arm may pass its smallest distance
        between the two.
        """
        now = q + self.distance(q, v)
        if not self._reaction_time:
            return self._distances.stop_contact(q, now)
        return self._distances.stop_contact(q, now + self._reaction_time * v, now)
