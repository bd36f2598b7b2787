"""Ways of the tool, as curves of s in [0, 1]: straight lines, arcs, and the turn along them.

The position follows p(s); the rotation turns from R0 at an even pace about one axis (slerp):
R(s) = exp(s [φ]×) R0. All in the base's axes.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import atan2, pi, sqrt
from typing import Protocol

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from arm_dynamics.control.trajectories.profiles import Profile, trapezoidal
from arm_dynamics.core.arrays import Vector, as_readonly, check_float, check_vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.dynamics.kinematics.pose_target import rotation_matrix

STRAIGHT = 1e-9
"""Sine of an angle below which three points lie on one line."""
LONG = 1e9
"""One over the length [m], angle [rad] or bend below which a way has none."""
MIN_LIMIT = 1e-9
"""Least limit of a tool's motion, in its unit: times stay far from the largest numbers."""


class Curve(Protocol):
    """Where the position is; what bounds its pace."""

    def at(self, s: float) -> tuple[Vector, Vector, Vector]:
        """p [m], p' and p'' (3,)."""
        ...

    @property
    def length(self) -> float:
        """Length [m]."""
        ...

    @property
    def curvature_bound(self) -> float:
        """|p''| where s̈ = 0 and ṡ = 1: what a turn of the way adds to the acceleration."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """p = start + s way."""

    start: Vector
    way: Vector

    def at(self, s: float) -> tuple[Vector, Vector, Vector]:
        """p [m], p' and p'' (3,)."""
        return self.start + s * self.way, self.way, np.zeros(3)

    @property
    def length(self) -> float:
        """Length [m]."""
        return float(np.linalg.norm(self.way))

    @property
    def curvature_bound(self) -> float:
        """0: no turn."""
        return 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Arc:
    """p = centre + x cos(s angle) + y sin(s angle); x ⟂ y (3,) of one length, the radius."""

    centre: Vector
    x: Vector
    y: Vector
    angle: float

    def at(self, s: float) -> tuple[Vector, Vector, Vector]:
        """p [m], p' and p'' (3,)."""
        c, d = np.cos(s * self.angle), np.sin(s * self.angle)
        r = c * self.x + d * self.y
        return self.centre + r, self.angle * (c * self.y - d * self.x), -(self.angle**2) * r

    @property
    def length(self) -> float:
        """Length [m]."""
        return abs(self.angle) * float(np.linalg.norm(self.x))

    @property
    def curvature_bound(self) -> float:
        """angle² times the radius."""
        return self.angle**2 * float(np.linalg.norm(self.x))


def arc_through(start: Vector, via: ArrayLike, end: ArrayLike) -> Arc:
    """The arc from ``start`` over ``via`` to ``end``, each (3,) [m].

    Raises InvalidValue where they lie on one line, or two of them together.
    """
    a, b = check_vector("via", via, 3) - start, check_vector("end", end, 3) - start
    normal = np.cross(a, b)
    square = float(normal @ normal)
    if square <= (STRAIGHT * np.linalg.norm(a) * np.linalg.norm(b)) ** 2:
        points = ", ".join(str(np.asarray(p).tolist()) for p in (start, via, end))
        raise InvalidValue(f"arc through {points}: three points off one line are expected")
    inward = (a @ a * np.cross(b, normal) + b @ b * np.cross(normal, a)) / (2 * square)
    centre, x, n = start + inward, -inward, normal / sqrt(square)
    y, last = np.cross(n, x), b - inward
    return Arc(
        as_readonly(centre), as_readonly(x), as_readonly(y), atan2(last @ y, last @ x) % (2 * pi)
    )


def circle(start: Vector, centre: ArrayLike, axis: ArrayLike, angle: float) -> Arc:
    """Round the line through ``centre`` (3,) [m] along ``axis`` (3,), by ``angle`` [rad].

    The right hand's fingers show the way of a positive angle, its thumb the axis. The circle's
    own centre is the foot of ``start`` on that line. Raises InvalidValue for an axis of length 0
    and for a start on the line.
    """
    n, given = check_vector("axis", axis, 3), check_vector("centre", centre, 3)
    if not n.any():
        raise InvalidValue("axis = (0, 0, 0): a direction is expected")
    n = n / np.linalg.norm(n)
    x = start - given - n * (n @ (start - given))
    if np.linalg.norm(x) <= STRAIGHT:
        raise InvalidValue(f"circle about {given.tolist()}: its start lies on the axis")
    return Arc(
        as_readonly(start - x),
        as_readonly(x),
        as_readonly(np.cross(n, x)),
        check_float("angle [rad]", angle),
    )


class PosePath(Protocol):
    """Where a tool is, as a curve of s in [0, 1]."""

    def at(self, s: float) -> tuple[Vector, Vector, Vector, Vector]:
        """Position (3,) [m] and rotation (3, 3); p' and p'' (6,), linear parts first."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ToolPath:
    """A curve of the position with the turn R(s) = exp(s [turn]×) rotation along it."""

    curve: Curve
    rotation: Vector
    turn: Vector

    @classmethod
    def to(cls, curve: Curve, before: Vector, after: ArrayLike | None) -> ToolPath:
        """Turning from rotation ``before`` to ``after`` (3, 3) by the shortest way; none: kept."""
        if after is None:
            return cls(curve, before, as_readonly(np.zeros(3)))
        target = rotation_matrix("rotation", after)
        return cls(curve, before, as_readonly(pin.log3(target @ before.T)))

    def at(self, s: float) -> tuple[Vector, Vector, Vector, Vector]:
        """Position (3,) [m] and rotation (3, 3); p' and p'' (6,), linear parts first."""
        p, first, second = self.curve.at(s)
        rotation = pin.exp3(s * self.turn) @ self.rotation
        return p, rotation, np.append(first, self.turn), np.append(second, np.zeros(3))


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """Speed [m/s], acceleration [m/s²], and those of the turn [rad/s, rad/s²], of a tool.

    ``max_linear_acceleration`` bounds the parts along the way and across it, each.
    """

    max_linear_velocity: float = 0.25
    max_linear_acceleration: float = 1.0
    max_angular_velocity: float = 1.0
    max_angular_acceleration: float = 4.0

    def __post_init__(self) -> None:
        """Refuse what is no number of at least SLOWEST."""
        for name in self.__slots__:
            check_float(name, getattr(self, name), lower=MIN_LIMIT)

    def profile(self, path: ToolPath) -> Profile | None:
        """The fastest trapezoidal s(t) along ``path`` within these limits; None without a way."""
        angle = float(np.linalg.norm(path.turn))
        return self.fastest(path.curve.length, angle, path.curve.curvature_bound)

    def fastest(self, length: float, angle: float, bend: float) -> Profile | None:
        """The fastest trapezoidal s(t) where |p'| <= ``length``, |ω| <= ``angle`` at ṡ = 1.

        ``bend`` is |p''| across the way. None without a way.
        """
        if max(length, angle) <= STRAIGHT:
            return None
        across = sqrt(self.max_linear_acceleration / max(bend, 1 / LONG))
        ways = np.maximum([length, angle], 1 / LONG)
        v = float(np.min([self.max_linear_velocity, self.max_angular_velocity] / ways))
        a = float(np.min([self.max_linear_acceleration, self.max_angular_acceleration] / ways))
        return trapezoidal(min(v, across), a)
