"""A law's gains as a point: x = ln(g / g₀), so that a step is a ratio whatever the unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log

import numpy as np

from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import InvalidValue, UnknownName

RATIO = 30.0
"""Gains are sought from g₀ / RATIO to g₀ · RATIO."""
DIGITS = 4
"""Significant digits of gains that are handed out."""


@dataclass(frozen=True, eq=False)
class GainSpace:
    """g = g₀ e^x for the gains ``names`` of a law, joint by joint; x (names · nv,), name-major."""

    law: Controller
    names: tuple[str, ...]
    centre: Vector
    """g₀ (names, nv)."""

    @property
    def size(self) -> int:
        """Numbers of a point."""
        return self.centre.size

    @property
    def bound(self) -> float:
        """Largest |x|."""
        return log(RATIO)

    def gains(self, x: Vector) -> dict[str, Vector]:
        """Points (m, size) as "gains.p" ... → (m, nv), within the parameters' ranges."""
        m = len(x)
        found = self.centre * np.exp(x.reshape(m, *self.centre.shape))
        ranges = {p.name: p for p in self.law.parameters}
        return {
            f"gains.{name}": np.clip(found[:, i], ranges[name].lower, ranges[name].upper)
            for i, name in enumerate(self.names)
        }

    def point(self, rows: Mapping[str, Vector]) -> Vector:
        """x (size,) of gains, name → (nv,)."""
        return np.log(np.array([rows[name] for name in self.names]) / self.centre).ravel()

    def by_joint(self, x: Vector) -> dict[str, dict[str, float]]:
        """One point (size,) as gains of every joint, to DIGITS significant digits."""
        rows = self.gains(x[None])
        return {
            joint: {name: _rounded(rows[f"gains.{name}"][0, j]) for name in self.names}
            for j, joint in enumerate(self.law.arm.joint_names)
        }


def gain_space(law: Controller, names: tuple[str, ...]) -> GainSpace:
    """The space about the law's own gains; a gain of 0 is sought about what the model suggests.

    Raises InvalidValue for a law that does not command efforts and for a gain that is 0 or
    infinite, or named twice, UnknownName for one that the law does not have.
    """
    if law.interface != "effort":
        raise InvalidValue(
            f"controller {type(law).__name__} commands {law.interface}: gains are sought of laws"
            " that command effort, such as pid and pid_gravity"
        )
    own = tuple(p.name for p in law.parameters)
    for name in names:
        if name not in own:
            raise UnknownName("gain", name, own)
        if names.count(name) > 1:
            raise InvalidValue(f"gain {name} is named {names.count(name)} times: once is expected")
    model, joints = law.default_gains(), law.arm.joint_names
    centre = np.array([law.gains[name] for name in names])
    suggested = np.array([[model.get(j, {}).get(name, 0.0) for j in joints] for name in names])
    centre = np.where(centre > 0, centre, suggested)
    for name, row in zip(names, centre, strict=True):
        if not (np.isfinite(row).all() and (row > 0).all()):
            raise InvalidValue(
                f"gain {name}: {row.tolist()}: finite and above 0 is expected of what is sought"
            )
    return GainSpace(law, names, centre)


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
