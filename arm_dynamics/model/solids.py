"""Solids of uniform density, and the mass properties of a link made of several.

Lengths [m], masses [kg], inertias [kg·m²], all in the axes of the link they belong to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.core.arrays import Matrix, Vector, as_readonly, check_float, check_vector
from arm_dynamics.core.errors import InvalidValue, UnknownName

ORIGIN = (0.0, 0.0, 0.0)
SHAPES = {"cylinder": ("radius", "length"), "box": ("x", "y", "z"), "sphere": ("radius",)}
"""Shapes to draw, named as in URDF, and the names of their sizes [m]; a cylinder lies along z."""
FLATNESS = 1e-12
"""Relative margin in the triangle inequality of a flat body: above rounding, without effect."""

_Z_TO = {
    "x": as_readonly([[0, 0, 1], [0, 1, 0], [-1, 0, 0]]),
    "y": as_readonly([[1, 0, 0], [0, 0, 1], [0, -1, 0]]),
    "z": as_readonly(np.eye(3)),
}


@dataclass(frozen=True, slots=True)
class Shape:
    """Shape to draw or of an object: a key of SHAPES and its sizes [m]."""

    kind: str
    size: tuple[float, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Solid:
    """Mass [kg], center of mass (3,) [m], inertia (3, 3) [kg·m²] about it in link axes.

    ``rotation`` (3, 3) turns the axes of ``shape`` into the link's; ``shape=None`` is
    not drawn. ``material`` is the name of its color.
    """

    mass: float
    center: Vector
    inertia: Matrix
    rotation: Matrix
    shape: Shape | None = None
    material: str = ""

    def with_material(self, material: str) -> Solid:
        """Return the same solid in another color."""
        return replace(self, material=material)

    def transformed(self, rotation: ArrayLike, translation: ArrayLike) -> Solid:
        """Return the solid moved by x -> R x + p: center R c + p, inertia R I R^T."""
        R = np.asarray(rotation, dtype=np.float64)
        return replace(
            self,
            center=as_readonly(R @ self.center + np.asarray(translation)),
            inertia=as_readonly(R @ self.inertia @ R.T),
            rotation=as_readonly(R @ self.rotation),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Inertial:
    """Mass [kg], center of mass (3,) [m] and inertia (3, 3) [kg·m²] about it, in link axes."""

    mass: float
    center: Vector
    inertia: Matrix


def cylinder(
    axis: str, height: float, radius: float, mass: float, center: ArrayLike = ORIGIN
) -> Solid:
    """Return a solid cylinder along ``axis``: I_axial = m r²/2, I_transverse = m (3 r² + h²)/12.

    Source: Goldstein, Classical Mechanics (3rd ed.), ch. 5. Raises InvalidValue, and
    UnknownName for an axis other than x, y, z.
    """
    h = check_float("height", height, above=0)
    r = check_float("radius", radius, above=0)
    across = mass * (3 * r * r + h * h) / 12
    moments = (across, across, mass * r * r / 2)
    return _solid(mass, center, moments, Shape("cylinder", (r, h)), axis)


def rod(
    axis: str,
    length: float,
    mass: float,
    center: ArrayLike = ORIGIN,
    drawn: float = 0.01,
    radius: float = 0.0,
) -> Solid:
    """Return a rod along ``axis``: I_axial = m r²/2, I_transverse = m l²/12.

    The transverse inertia is that of the thin rod for any ``radius`` r, equal to that of a
    cylinder of length sqrt(l² - 3 r²). With r = 0 the axial inertia is zero. Drawn with radius
    ``drawn``. Raises InvalidValue, and UnknownName for an axis other than x, y, z.
    """
    length = check_float("length", length, above=0)
    radius = check_float("radius", radius, lower=0, upper=length / 3**0.5)
    across, axial = mass * length * length / 12, mass * radius * radius / 2
    return _solid(mass, center, (across, across, axial), Shape("cylinder", (drawn, length)), axis)


def flat_bar(
    length: float, width: float, mass: float, center: ArrayLike = ORIGIN, drawn: float = 0.01
) -> Solid:
    """Return a bar along x, ``width`` along z, flat in y.

    I_zz = m l²/12, I_xx = m w²/12, I_yy their sum.

    About z it is the thin rod, exactly; about the axis at an angle t from x in the plane x, y it
    has m l²/12 sin² t + m w²/12: the thin rod's and a constant. I_yy is smaller by 1e-12 of
    itself, so that rounding does not break the triangle inequality. Drawn as a cylinder of radius
    ``drawn``. Raises InvalidValue.
    """
    length, width = check_float("length", length, above=0), check_float("width", width, above=0)
    along, across = mass * width * width / 12, mass * length * length / 12
    # About the axes of the drawn cylinder, which lies along z: they become z, y and x.
    moments = (across, (along + across) * (1 - FLATNESS), along)
    return _solid(mass, center, moments, Shape("cylinder", (drawn, length)), "x")


def box(size: ArrayLike, mass: float, center: ArrayLike = ORIGIN) -> Solid:
    """Return a cuboid with edges ``size`` (3,) along x, y, z: I_xx = m (b² + c²)/12 and so on.

    Raises InvalidValue.
    """
    edges = check_vector("size", size, 3)
    x, y, z = (check_float("size", edge, above=0) for edge in edges)
    moments = (
        mass * (y * y + z * z) / 12,
        mass * (x * x + z * z) / 12,
        mass * (x * x + y * y) / 12,
    )
    return _solid(mass, center, moments, Shape("box", (x, y, z)))


def sphere(radius: float, mass: float, center: ArrayLike = ORIGIN) -> Solid:
    """Return a solid sphere: I = 2 m r²/5 about every axis. Raises InvalidValue."""
    r = check_float("radius", radius, above=0)
    return _solid(mass, center, (2 * mass * r * r / 5,) * 3, Shape("sphere", (r,)))


def point_mass(mass: float, center: ArrayLike = ORIGIN, drawn: float = 0.0) -> Solid:
    """Return a mass at a point: I = 0; drawn as a sphere if its radius ``drawn`` is above 0.

    Raises InvalidValue.
    """
    shape = Shape("sphere", (float(drawn),)) if drawn > 0 else None
    return _solid(mass, center, (0.0, 0.0, 0.0), shape)


def compose(solids: Sequence[Solid | Inertial]) -> Inertial:
    """Return the mass properties of rigidly joined solids, by the parallel-axis theorem.

    m = Σ m_i, c = Σ m_i c_i / m, I = Σ (I_i + m_i (|d_i|² 1 - d_i d_i^T)), d_i = c_i - c.
    Source: Goldstein, Classical Mechanics (3rd ed.), section 5.3 (Steiner).
    Raises InvalidValue if the total mass is 0.
    """
    mass = float(sum(solid.mass for solid in solids))
    if not mass > 0:
        raise InvalidValue(f"total mass of {len(solids)} solids = {mass} kg; expected above 0")
    center = sum((s.mass * s.center for s in solids), np.zeros(3)) / mass
    inertia = np.zeros((3, 3))
    for solid in solids:
        d = solid.center - center
        # (d * d).sum(), not d @ d: BLAS may fuse the sum, which changes a URDF's last digit.
        shift = solid.mass * ((d * d).sum() * np.eye(3) - np.outer(d, d))
        inertia = inertia + (solid.inertia + shift)
    return Inertial(mass, as_readonly(center), as_readonly(inertia))


def _solid(
    mass: float,
    center: ArrayLike,
    moments: tuple[float, float, float],
    shape: Shape | None,
    axis: str = "z",
) -> Solid:
    if axis not in _Z_TO:
        raise UnknownName("axis", axis, tuple(_Z_TO))
    R = _Z_TO[axis]
    # A massless solid is allowed: it is drawn and has no inertia.
    checked = check_float("mass", mass, lower=0)
    inertia = as_readonly(R @ np.diag(moments) @ R.T)
    return Solid(checked, check_vector("center", center, 3), inertia, R, shape)
