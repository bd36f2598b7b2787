"""Paths of the tool over s in [0, 1]: lines and arcs with rotation, and the limits along them.

The position follows p(s). The rotation R(s) = exp(s [φ]×) R0 has a constant axis and rate (slerp).
All quantities are in the base frame.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import atan2, pi, sqrt
from typing import Protocol

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from arm_dynamics.control.trajectories.profiles import Profile, trapezoidal
from arm_dynamics.core.arrays import Matrix, Vector, as_readonly, check_float, check_vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.dynamics.kinematics.pose_target import rotation_matrix

COLLINEAR_SINE = 1e-9
"""Sine of an angle below which three points are collinear."""
MIN_LENGTH = 1e-9
"""Length [m], angle [rad] or curvature bound below which a path has none."""
MIN_LIMIT = 1e-9
"""Minimum of each limit, in its unit: durations stay representable."""


class Curve(Protocol):
    """Position over s in [0, 1], with what bounds its speed."""

    def at(self, s: float) -> tuple[Vector, Vector, Vector]:
        """Return p [m], p' and p'', each (3,)."""
        ...

    @property
    def length(self) -> float:
        """Length [m]."""
        ...

    @property
    def curvature_bound(self) -> float:
        """Maximum |p''| [m]: the normal acceleration at ṡ = 1."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """p = start + s displacement, each (3,) [m]."""

    start: Vector
    displacement: Vector

    def at(self, s: float) -> tuple[Vector, Vector, Vector]:
        """Return p [m], p' and p'', each (3,)."""
        return self.start + s * self.displacement, self.displacement, np.zeros(3)

    @property
    def length(self) -> float:
        """Length [m]."""
        return float(np.linalg.norm(self.displacement))

    @property
    def curvature_bound(self) -> float:
        """0 for a straight line."""
        return 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Arc:
    """p = center + x cos(s angle) + y sin(s angle), with x ⟂ y (3,) of equal length [m]."""

    center: Vector
    x: Vector
    y: Vector
    angle: float

    def at(self, s: float) -> tuple[Vector, Vector, Vector]:
        """Return p [m], p' and p'', each (3,)."""
        c, d = np.cos(s * self.angle), np.sin(s * self.angle)
        r = c * self.x + d * self.y
        return self.center + r, self.angle * (c * self.y - d * self.x), -(self.angle**2) * r

    @property
    def length(self) -> float:
        """Length [m]."""
        return abs(self.angle) * float(np.linalg.norm(self.x))

    @property
    def curvature_bound(self) -> float:
        """angle² times the radius [m]."""
        return self.angle**2 * float(np.linalg.norm(self.x))


def arc_through(start: Vector, via: ArrayLike, end: ArrayLike) -> Arc:
    """Return the arc from ``start`` through ``via`` to ``end``, each (3,) [m].

    Raises
    ------
    InvalidValue
        If the points are collinear, or two of them are equal.

    """
    a, b = check_vector("via", via, 3) - start, check_vector("end", end, 3) - start
    normal = np.cross(a, b)
    square = float(normal @ normal)
    if square <= (COLLINEAR_SINE * np.linalg.norm(a) * np.linalg.norm(b)) ** 2:
        points = ", ".join(str(np.asarray(p).tolist()) for p in (start, via, end))
        raise InvalidValue(f"arc: points = {points}; expected three points that are not collinear")
    inward = (a @ a * np.cross(b, normal) + b @ b * np.cross(normal, a)) / (2 * square)
    center, x, n = start + inward, -inward, normal / sqrt(square)
    y, last = np.cross(n, x), b - inward
    angle = atan2(last @ y, last @ x) % (2 * pi)
    return Arc(as_readonly(center), as_readonly(x), as_readonly(y), angle)


def circle(start: Vector, center: ArrayLike, axis: ArrayLike, angle: float) -> Arc:
    """Return the arc from ``start`` about an axis by an angle.

    The center of the arc is the foot of ``start`` on the axis.

    Parameters
    ----------
    start : (3,) array
        Start position [m].
    center, axis : (3,) arrays
        Point [m] and direction of the axis.
    angle : float
        Angle [rad], right-handed about the axis.

    Raises
    ------
    InvalidValue
        For an axis of length 0, and for a start on the axis.

    """
    n, middle = check_vector("axis", axis, 3), check_vector("center", center, 3)
    if not n.any():
        raise InvalidValue("circle: axis = (0, 0, 0); expected a direction")
    n = n / np.linalg.norm(n)
    x = start - middle - n * (n @ (start - middle))
    if np.linalg.norm(x) <= MIN_LENGTH:
        raise InvalidValue(
            f"circle: start = {np.asarray(start).tolist()}; expected a point that is not on the"
            f" axis through {middle.tolist()}"
        )
    y, turn = np.cross(n, x), check_float("angle [rad]", angle)
    return Arc(as_readonly(start - x), as_readonly(x), as_readonly(y), turn)


class PosePath(Protocol):
    """Pose of the tool over s in [0, 1]."""

    def at(self, s: float) -> tuple[Vector, Matrix, Vector, Vector]:
        """Return position (3,) [m] and rotation (3, 3); p' and p'' (6,), linear parts first."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class ToolPath:
    """A position curve with the rotation R(s) = exp(s [turn]×) rotation."""

    curve: Curve
    rotation: Matrix
    turn: Vector

    @classmethod
    def to(cls, curve: Curve, before: Matrix, after: ArrayLike | None) -> ToolPath:
        """Return the shortest rotation from ``before`` to ``after`` (3, 3); None: no rotation."""
        if after is None:
            return cls(curve, before, as_readonly(np.zeros(3)))
        target = rotation_matrix("rotation", after)
        return cls(curve, before, as_readonly(pin.log3(target @ before.T)))

    def at(self, s: float) -> tuple[Vector, Matrix, Vector, Vector]:
        """Return position (3,) [m] and rotation (3, 3); p' and p'' (6,), linear parts first."""
        p, first, second = self.curve.at(s)
        rotation = pin.exp3(s * self.turn) @ self.rotation
        return p, rotation, np.append(first, self.turn), np.append(second, np.zeros(3))


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """Velocity and acceleration limits of the tool.

    Parameters
    ----------
    max_linear_velocity : float
        Limit of the velocity [m/s].
    max_linear_acceleration : float
        Limit of the tangential and of the normal acceleration, each [m/s²].
    max_angular_velocity : float
        Limit of the angular velocity [rad/s].
    max_angular_acceleration : float
        Limit of the angular acceleration [rad/s²].

    """

    max_linear_velocity: float = 0.25
    max_linear_acceleration: float = 1.0
    max_angular_velocity: float = 1.0
    max_angular_acceleration: float = 4.0

    def __post_init__(self) -> None:
        """Raise InvalidValue for a limit below MIN_LIMIT."""
        for name in self.__slots__:
            check_float(name, getattr(self, name), lower=MIN_LIMIT)

    def profile(self, path: ToolPath) -> Profile | None:
        """Return the fastest trapezoidal s(t) along ``path``; None for a path of length 0."""
        angle = float(np.linalg.norm(path.turn))
        return self.fastest(path.curve.length, angle, path.curve.curvature_bound)

    def fastest(self, length: float, angle: float, curvature_bound: float) -> Profile | None:
        """Return the fastest trapezoidal s(t); None for a path of length 0.

        Parameters
        ----------
        length, angle : float
            Maximum |p'| [m] and |ω| [rad] at ṡ = 1.
        curvature_bound : float
            Maximum |p''| [m].

        """
        if max(length, angle) <= MIN_LENGTH:
            return None
        across = sqrt(self.max_linear_acceleration / max(curvature_bound, MIN_LENGTH))
        distances = np.maximum([length, angle], MIN_LENGTH)
        velocities = np.array([self.max_linear_velocity, self.max_angular_velocity])
        accelerations = np.array([self.max_linear_acceleration, self.max_angular_acceleration])
        v = float((velocities / distances).min())
        return trapezoidal(min(v, across), float((accelerations / distances).min()))
