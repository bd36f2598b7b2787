"""Excitation trajectory: a periodic Fourier series with quintic ends, from rest to rest.

q_i(t) = c_i + Σ_k s_ik sin(k w (t - T_e)) + r_ik cos(k w (t - T_e)),  T_e <= t <= T - T_e

A quintic polynomial joins the start configuration to the series in the first T_e seconds, and
another one returns to it in the last T_e seconds. Position, velocity and acceleration are
continuous.

References
----------
J. Swevers, C. Ganseman, D. Tükel, J. De Schutter, H. Van Brussel, Optimal robot excitation and
identification, IEEE T-RA 13 (1997), section III.

"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from reprlib import repr as short
from typing import Any

import numpy as np

from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory, Waypoint
from arm_dynamics.control.trajectories.polynomials import boundary_polynomial
from arm_dynamics.core.arrays import (
    FloatArray,
    Matrix,
    Vector,
    as_readonly,
    check_float,
    check_int,
    check_vector,
)
from arm_dynamics.core.errors import ConfigError, InvalidValue
from arm_dynamics.core.files import output_file
from arm_dynamics.core.yaml_file import read_yaml
from arm_dynamics.model.arm_model import ArmModel

MAX_HARMONICS = 30
MAX_DURATION = 3600.0
"""Longest trajectory [s]."""
MAX_CYCLES = 12_000
"""Largest number of cycles of the highest harmonic: 480,000 waypoints."""
WAYPOINTS_PER_CYCLE = 40
"""Waypoints of ``trajectory`` per cycle of the highest harmonic: quintic splines between them
differ from the series by less than 1e-9 of its amplitude."""
HEADER = """\
# Excitation trajectory of '{arm}': rest, quintic end, Fourier series, quintic end, rest.
# Run it: arm-dynamics record FOLDER --arm ARM --excitation FILE (simulated)
#         arm-dynamics hardware run ARM --excitation FILE (physical arm)
# duration and end_time [s]; start, center, sine and cosine [rad; m of a prismatic joint]
"""
TABLES = ("start", "center", "sine", "cosine")


@dataclass(frozen=True, slots=True, eq=False)
class Excitation:
    """Excitation trajectory of an arm; read-only.

    Parameters
    ----------
    arm : str
        Name of the arm.
    joint_names : tuple of str
        Joints in the order of every vector.
    duration : float
        T [s], ends included.
    end_time : float
        T_e [s] of each quintic end.
    periods : int
        Number of periods of the series.
    start : (nv,) array
        Configuration at rest before and after the motion [rad or m].
    center : (nv,) array
        c [rad or m].
    sine, cosine : (nv, h) arrays
        s and r of the harmonics 1 ... h [rad or m].

    Raises
    ------
    InvalidValue
        For a size, time or number that is not valid.

    """

    arm: str
    joint_names: tuple[str, ...]
    duration: float
    end_time: float
    periods: int
    start: Vector
    center: Vector
    sine: Matrix
    cosine: Matrix

    def __post_init__(self) -> None:
        """Check all sizes and times."""
        nv = len(self.joint_names)
        for name, upper in (("duration", MAX_DURATION), ("end_time", np.inf)):
            value = getattr(self, name)
            value = check_float(f"excitation: {name} [s]", value, above=0.0, upper=upper)
            object.__setattr__(self, name, value)
        check_int("excitation: periods", self.periods, lower=1)
        if not 2 * self.end_time < self.duration:
            raise InvalidValue(
                f"excitation: end_time = {self.end_time:g} s; expected less than half of the"
                f" duration {self.duration:g} s"
            )
        for name in ("start", "center"):
            checked = check_vector(f"excitation: {name}", getattr(self, name), nv)
            object.__setattr__(self, name, checked)
        shape = (nv, np.shape(self.sine)[1] if np.ndim(self.sine) == 2 else 0)
        for name in ("sine", "cosine"):
            table = as_readonly(getattr(self, name))
            if table.shape != shape or not 1 <= shape[1] <= MAX_HARMONICS:
                raise InvalidValue(
                    f"excitation: shape of {name} = {table.shape}; expected ({nv}, h) with h from"
                    f" 1 to {MAX_HARMONICS} harmonics, the same for sine and cosine"
                )
            check_vector(f"excitation: {name}", table.ravel())
            object.__setattr__(self, name, table)
        if self.periods * self.harmonics > MAX_CYCLES:
            raise InvalidValue(
                f"excitation: periods = {self.periods}; expected at most"
                f" {MAX_CYCLES // self.harmonics} with {self.harmonics} harmonics"
            )

    @property
    def harmonics(self) -> int:
        """Number h of harmonics."""
        return int(self.sine.shape[1])

    @property
    def frequency(self) -> float:
        """Base frequency [Hz]: of the first harmonic."""
        return self.periods / (self.duration - 2 * self.end_time)

    @property
    def coefficients(self) -> Matrix:
        """Factors of ``MotionBasis`` (nv, 1 + 2 h): center - start, sine, cosine."""
        return np.hstack([(self.center - self.start)[:, None], self.sine, self.cosine])

    @property
    def basis(self) -> MotionBasis:
        """Functions of time of which the motion is a sum."""
        return MotionBasis(self.duration, self.end_time, self.periods, self.harmonics)

    def with_coefficients(self, coefficients: Matrix) -> Excitation:
        """Return the trajectory with other ``coefficients`` (nv, 1 + 2 h)."""
        h = self.harmonics
        return replace(
            self,
            center=self.start + coefficients[:, 0],
            sine=as_readonly(coefficients[:, 1 : 1 + h]),
            cosine=as_readonly(coefficients[:, 1 + h :]),
        )

    def sample(self, times: Vector) -> tuple[Matrix, Matrix, Matrix]:
        """Return q, v and a (n, nv) [rad, rad/s, rad/s²; m] at ``times`` (n,) [s]."""
        q, v, a = (rows @ self.coefficients.T for rows in self.basis.at(times))
        return self.start + q, v, a

    def trajectory(self, begin: float = 0.0) -> JointTrajectory:
        """Return the motion as waypoints with velocities and accelerations, from ``begin`` [s].

        The quintic ends are exact, and the series between them to 1e-9 of its amplitude.
        """
        count = WAYPOINTS_PER_CYCLE * self.harmonics * self.periods
        inside = np.linspace(self.end_time, self.duration - self.end_time, count + 1)
        times = np.array([0.0, *inside, self.duration])
        rows = zip(times.tolist(), *self.sample(times), strict=True)
        points = (Waypoint(begin + time, *map(as_readonly, row)) for time, *row in rows)
        return JointTrajectory(tuple(points))

    def require_joints(self, arm: ArmModel) -> Excitation:
        """Return this trajectory if its joints are those of ``arm``; else raise InvalidValue."""
        if self.joint_names != arm.joint_names:
            raise InvalidValue(
                f"excitation: joints = {', '.join(self.joint_names)}; expected"
                f" {', '.join(arm.joint_names)} of arm '{arm.name}'"
            )
        return self

    def to_yaml(self) -> str:
        """Return the text of a file that ``load`` reads; every number is exact."""
        lines = [HEADER.format(arm=self.arm.replace("\n", " ")).rstrip()]
        lines += [f"arm: {json.dumps(self.arm)}", f"duration: {self.duration!r}"]
        lines += [f"end_time: {self.end_time!r}", f"periods: {self.periods}"]
        for name in TABLES:
            lines.append(f"{name}:")
            for joint, row in zip(self.joint_names, getattr(self, name).tolist(), strict=True):
                lines.append(f"  {json.dumps(joint)}: {row!r}")
        return "\n".join(lines) + "\n"

    def save(self, file: str | Path) -> None:
        """Write ``to_yaml`` to a file; raises ConfigError if it cannot be written."""
        with output_file(file) as path:
            path.write_text(self.to_yaml(), encoding="utf-8")

    @classmethod
    def load(cls, file: str | Path) -> Excitation:
        """Return the trajectory of a file; raises ConfigError with the file and the cause."""
        given = read_yaml(file)
        expected = ("arm", "duration", "end_time", "periods", *TABLES)
        if not isinstance(given, Mapping) or set(given) != set(expected):
            raise ConfigError(
                f"{file}: entries = {', '.join(given) if isinstance(given, Mapping) else given!r};"
                f" expected {', '.join(expected)} (a file of arm-dynamics excite)"
            )
        joints = tuple(given["start"]) if isinstance(given["start"], Mapping) else ()
        tables = [_table(file, name, given[name], joints) for name in TABLES]
        try:
            return cls(
                str(given["arm"]), joints, given["duration"], given["end_time"],
                check_int("excitation: periods", given["periods"], lower=1), *tables,
            )  # fmt: skip
        except (InvalidValue, TypeError, ValueError) as error:
            raise ConfigError(f"{file}: {error}") from error


@dataclass(frozen=True, slots=True)
class MotionBasis:
    """Functions of time b_0 ... b_2h of which the motion of every joint is a sum.

    q_i(t) - start_i = Σ_k x_ik b_k(t)

    b_0 steps to 1 and back; then h sines and h cosines follow, each with its quintic ends.

    Parameters
    ----------
    duration, end_time : float
        T and T_e [s].
    periods, harmonics : int
        Periods of the series, and h.

    """

    duration: float
    end_time: float
    periods: int
    harmonics: int

    @property
    def size(self) -> int:
        """Number of functions 1 + 2 h."""
        return 1 + 2 * self.harmonics

    @property
    def angular_frequency(self) -> float:
        """Base frequency w [rad/s]."""
        return 2 * np.pi * self.periods / (self.duration - 2 * self.end_time)

    @property
    def ends(self) -> tuple[Matrix, Matrix]:
        """Coefficients (6, 1 + 2 h) of the first end in powers of t, of the last in t - T + T_e."""
        rest = np.zeros(self.size)
        p, v, a = (rows[0] for rows in self._series(np.zeros(1)))
        first = boundary_polynomial(self.end_time, (rest, p), (rest, v), (rest, a))
        last = boundary_polynomial(self.end_time, (p, rest), (v, rest), (a, rest))
        return first, last

    def at(self, times: Vector) -> tuple[Matrix, Matrix, Matrix]:
        """Return values, first and second derivatives (n, 1 + 2 h) at ``times`` (n,) [s]."""
        at = self._series(times - self.end_time)
        last_begin = self.duration - self.end_time
        moving = (times > 0) & (times < self.duration)
        for spline, mask, begin in zip(
            self.ends,
            (times < self.end_time, times > last_begin),
            (0.0, last_begin),
            strict=True,
        ):
            powers = (times[mask] - begin)[:, None] ** np.arange(6)
            for order, rows in enumerate(at):
                factors = [math.perm(power, order) for power in range(order, 6)]
                rows[mask] = powers[:, : 6 - order] @ (spline[order:] * np.c_[factors])
        for rows in at:
            rows[~moving] = 0.0
        return at

    def _series(self, times: Vector) -> tuple[Matrix, Matrix, Matrix]:
        """Return the series at ``times`` (n,) [s] after its start, without the ends."""
        k = np.arange(1, self.harmonics + 1) * self.angular_frequency
        sine, cosine = np.sin(np.outer(times, k)), np.cos(np.outer(times, k))
        one, zero = np.ones((len(times), 1)), np.zeros((len(times), 1))
        return (
            np.hstack([one, sine, cosine]),
            np.hstack([zero, k * cosine, -k * sine]),
            np.hstack([zero, -(k**2) * sine, -(k**2) * cosine]),
        )


def _table(file: str | Path, name: str, rows: Any, joints: tuple[str, ...]) -> FloatArray:
    """Return the numbers of a table with one entry per joint; raises ConfigError."""
    if not joints or not isinstance(rows, Mapping) or set(rows) != set(joints):
        raise ConfigError(
            f"{file}: {name} = {short(rows)}; expected a table with one entry per joint"
            f" {', '.join(joints)}".rstrip()
        )
    try:
        return as_readonly([rows[joint] for joint in joints])
    except (InvalidValue, ValueError) as error:
        raise ConfigError(
            f"{file}: {name}: {error}; expected numbers, the same count for each joint"
        ) from error
