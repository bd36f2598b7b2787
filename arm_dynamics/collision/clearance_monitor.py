"""Clearance of the links of an arm along a motion, fast enough for every control cycle."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pinocchio as pin

from arm_dynamics.collision.scene import EMPTY_SCENE, Scene
from arm_dynamics.collision.self_collision import SelfCollision
from arm_dynamics.core.arrays import FloatArray, IntArray, Matrix, Vector
from arm_dynamics.core.compiled_math import MATRIX, VECTOR, compiled_for
from arm_dynamics.model.arm_model import ArmModel

CLEARANCE = 0.005
"""Smallest distance [m] of two links."""
TOLERANCE = 1e-4
"""Decrease of a distance below its clearance [m] that counts as an approach."""

NOISE = 1e-5
"""Change of a distance [m] by the noise of a measurement."""
MOVED = 1e-3
"""Decrease of a distance [m] after which the arm has been moved by other means, such as by hand."""

MAX_STOP_CHANGE = 0.1
"""Change of the configuration at rest [rad or m] in a cycle up to which only it is checked."""


@compiled_for(VECTOR, MATRIX, MATRIX, VECTOR)
def lower_bounds(distances: Vector, measured_at: Matrix, reaches: Matrix, q: Vector) -> Vector:
    """Return d_k - Σ_i reach_ki |q_i - q_ki| of all pairs (pairs,) [m]."""
    bounds: Vector = distances.copy()
    for k in range(bounds.size):
        for i in range(q.size):
            bounds[k] -= reaches[k, i] * abs(q[i] - measured_at[k, i])
    return bounds


class Contact(NamedTuple):
    """Two links, or a link and an object, that come nearer than their clearance."""

    first: str
    second: str
    distance: float
    """Distance [m] of their shapes, negative where they overlap."""
    clearance: float
    """Smallest distance [m] that is allowed."""
    with_object: bool = False
    """Whether the second one is an object of the scene."""

    def __str__(self) -> str:
        """Links, distance and clearance."""
        links, second = ("link", "object ") if self.with_object else ("links", "")
        return (
            f"distance of {links} '{self.first}' and {second}'{self.second}' would be"
            f" {1e3 * self.distance:.1f} mm; expected at least {1e3 * self.clearance:.1f} mm"
        )


class ClearanceMonitor:
    """Checks motions of an arm for contacts of its links and of links with fixed objects.

    Each pair of shapes keeps its last distance d_k and the configuration q_k of it. At q

    d(q) >= d_k - Σ_i reach_ki |q_i - q_ki|,

    so that a distance is computed only where this bound is too small for a motion. Meshes are
    covered by the convex hulls of their parts, which are checked where the hulls of the whole
    meshes are too near. Pairs that are nearer than their clearance at the start of a motion may
    separate.

    Parameters
    ----------
    arm : ArmModel
        Arm with collision geometry in its URDF; without it the visual geometry is used.
    clearance : float
        Smallest distance [m] of two links, and of a link and an object. Shapes that are nearer in
        the initial configuration keep half of their distance there; shapes in contact there are not
        checked.
    scene : Scene
        Objects around the arm.

    References
    ----------
    F. Schwarzer, M. Saha, J.-C. Latombe, Adaptive dynamic collision checking for single and
    multiple articulated robots in complex environments, IEEE T-RO 21 (2005), section III.

    """

    def __init__(
        self, arm: ArmModel, clearance: float = CLEARANCE, scene: Scene = EMPTY_SCENE
    ) -> None:
        initial = np.array(arm.configuration("initial"))
        pairs = SelfCollision(arm, clearance, initial, scene=scene, convex=True)
        self._ends = [(*pairs.ends(k), pairs.has_object(k)) for k in range(pairs.pairs)]
        self._parts = _Distances(arm, pairs.shapes, pairs.margins, pairs.reaches, initial)
        self._wholes, self._parts_of = self._parts, list[IntArray]()
        if pairs.wholes.ngeoms < pairs.shapes.ngeoms:
            shapes = [(pair.first, pair.second) for pair in pairs.shapes.collisionPairs]
            ends = pairs.whole_of[np.array(shapes, int)]
            wholes, whole = np.unique(ends.reshape(-1, 2), axis=0, return_inverse=True)
            self._parts_of = [np.flatnonzero(whole.ravel() == k) for k in range(len(wholes))]
            for first, second in wholes.tolist():
                pairs.wholes.addCollisionPair(pin.CollisionPair(first, second))
            margins = np.array([pairs.margins[parts].max() for parts in self._parts_of])
            reaches = np.array([pairs.reaches[parts].max(axis=0) for parts in self._parts_of])
            reaches = reaches.reshape(-1, arm.nv)
            self._wholes = _Distances(arm, pairs.wholes, margins, reaches, initial)
        self._last_stop = initial
        self._floors = np.full(self.pairs, -np.inf)
        """Largest value of each pair that was too near: small approaches must not add up."""

    @property
    def pairs(self) -> int:
        """Number of checked pairs of shapes."""
        return len(self.margins)

    @property
    def shapes(self) -> pin.GeometryModel:
        """Convex shapes and checked pairs."""
        return self._parts.shapes

    @property
    def margins(self) -> Vector:
        """Clearance of each pair (pairs,) [m]."""
        return self._parts.margins

    def stop_contact(
        self, q: Vector, stop: Vector, earlier: Vector | None = None
    ) -> Contact | None:
        """Return a contact where an arm at ``q`` would come to rest, or None.

        Called in every control cycle, with the configuration ``stop`` (nv,) [rad or m] where the
        arm would rest, and with the one ``earlier`` between, where it would rest if it braked
        now. They move little in a cycle, so that they cannot pass a link; after a jump the
        whole path from ``q`` is checked.
        """
        last, self._last_stop = self._last_stop, stop
        for rest in (stop,) if earlier is None else (earlier, stop):
            contact = self._contact_at(rest, q)
            if contact is not None:
                return contact
        if np.abs(stop - last).max() <= MAX_STOP_CHANGE:
            return None
        motion = stop - q
        found = self.first_contact(
            lambda s: q + s * motion, 0.0, 1.0, np.abs(motion), steps=(0.02, 1.0)
        )
        return None if found is None else found[1]

    def _contact_at(self, rest: Vector, q: Vector) -> Contact | None:
        """Return a contact at ``rest`` that is nearer than at ``q``, or None."""
        low = self._wholes.too_near(rest)
        if len(low) and self._parts_of:
            parts = np.concatenate([self._parts_of[k] for k in low.tolist()])
            low = self._parts.too_near(rest, parts)
        if not len(low):
            return None
        ends, floors = self._parts.values[low], self._floors[low]
        here = self._parts.measure(q, low)
        floors = np.where(here > floors - MOVED, np.maximum(floors, here), here)
        self._floors[low] = floors
        approaching = (ends < np.minimum(floors, 0.0) - TOLERANCE) & (ends < here - NOISE)
        if not approaching.any():
            return None
        k = int(np.argmax(approaching))
        return self._contact(int(low[k]), float(ends[k]))

    def first_contact(
        self,
        position: Callable[[float], Vector],
        begin: float,
        end: float,
        speed: Vector,
        steps: tuple[float, float] = (1e-3, 0.1),
    ) -> tuple[float, Contact] | None:
        """Return the time of the first contact and its links, or None.

        Parameters
        ----------
        position : callable
            Configuration (nv,) [rad or m] at a time [s].
        begin, end : float
            Times [s].
        speed : (nv,) array
            Largest speeds [rad/s or m/s] of the motion.
        steps : tuple of float
            Smallest and largest time [s] between two checks.

        """
        pairs, q, time = self._parts, position(begin), begin
        rates = pairs.reaches @ speed
        bounds = pairs.bounds(q)
        if (bounds >= rates * (end - begin)).all():
            return None
        near = np.flatnonzero(bounds <= 0)
        floor = np.zeros(self.pairs)
        floor[near] = np.minimum(pairs.measure(q, near), 0.0) - TOLERANCE
        while time < end:
            ahead = min(end - time, steps[1])
            slack = pairs.bounds(q) - floor
            due = np.flatnonzero(slack < rates * ahead)
            slack[due] = pairs.measure(q, due) - floor[due]
            if len(due):
                ahead = min(ahead, max(steps[0], float(np.min(slack[due] / rates[due]))))
            time = time + ahead if time + ahead < end - 1e-12 else end
            q = position(time)
            low = np.flatnonzero(pairs.bounds(q) < floor)
            touching = low[pairs.measure(q, low) < floor[low]]
            if len(touching):
                k = int(touching[0])
                return time, self._contact(k, float(pairs.values[k]))
        return None

    def _contact(self, k: int, slack: float) -> Contact:
        clearance, (first, second, with_object) = float(self.margins[k]), self._ends[k]
        return Contact(first, second, slack + clearance, clearance, with_object)


class _Distances:
    """Last distances of pairs of shapes less their clearances, and bounds elsewhere [m]."""

    def __init__(
        self, arm: ArmModel, shapes: pin.GeometryModel, margins: Vector, reaches: Matrix, q: Vector
    ) -> None:
        self._model, self._data = arm.model, arm.model.createData()
        self.shapes, self.margins, self.reaches = shapes, margins, reaches
        self._results = shapes.createData()
        self.values = np.zeros(len(margins))
        self._measured_at = np.zeros((len(margins), arm.nv))
        self.measure(q, np.arange(len(margins)))

    def bounds(self, q: Vector) -> Vector:
        """Return lower bounds (pairs,) at ``q``."""
        return lower_bounds(self.values, self._measured_at, self.reaches, q)

    def too_near(self, q: Vector, pairs: IntArray | None = None) -> IntArray:
        """Return those of ``pairs``, by default all, that are nearer than their clearance."""
        if pairs is None:
            low = np.flatnonzero(self.bounds(q) <= 0)
        else:
            rows = self.values[pairs], self._measured_at[pairs], self.reaches[pairs]
            low = pairs[lower_bounds(*rows, q) <= 0]
        return low[self.measure(q, low) < 0] if len(low) else low

    def measure(self, q: Vector, pairs: IntArray) -> FloatArray:
        """Return the values of ``pairs`` at ``q``."""
        if len(pairs):
            pin.updateGeometryPlacements(self._model, self._data, self.shapes, self._results, q)
            for k in pairs.tolist():
                result = pin.computeDistance(self.shapes, self._results, k)
                self.values[k] = result.min_distance - self.margins[k]
            self._measured_at[pairs] = q
        values: FloatArray = self.values[pairs]
        return values
