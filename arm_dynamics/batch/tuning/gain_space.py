"""Gains as a point x = ln(g / g₀): a step is a ratio, independent of the unit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log

import numpy as np

from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.errors import InvalidValue, UnknownName

MAX_RATIO = 30.0
"""Gains are searched from g₀ / MAX_RATIO to g₀ · MAX_RATIO."""
DIGITS = 4
"""Significant digits of the resulting gains."""


@dataclass(frozen=True, eq=False)
class GainSpace:
    """g = g₀ e^x for the gains ``names`` of each joint; x (names * nv,), name after name."""

    controller: Controller
    names: tuple[str, ...]
    center: Vector
    """g₀ (names, nv)."""

    @property
    def size(self) -> int:
        """Dimension of x."""
        return self.center.size

    @property
    def bound(self) -> float:
        """Bound of |x|."""
        return log(MAX_RATIO)

    def gains(self, x: Vector) -> dict[str, Vector]:
        """Return points (m, size) as "gains.p" ... to (m, nv), within the parameters' ranges."""
        m = len(x)
        gains = self.center * np.exp(x.reshape(m, *self.center.shape))
        ranges = {p.name: p for p in self.controller.parameters}
        return {
            f"gains.{name}": np.clip(gains[:, i], ranges[name].lower, ranges[name].upper)
            for i, name in enumerate(self.names)
        }

    def point(self, rows: Mapping[str, Vector]) -> Vector:
        """Return x (size,) of gains, name to (nv,)."""
        return np.log(np.array([rows[name] for name in self.names]) / self.center).ravel()

    def by_joint(self, x: Vector) -> dict[str, dict[str, float]]:
        """Return a point (size,) as gains by joint, to DIGITS significant digits."""
        rows = self.gains(x[None])
        return {
            joint: {name: float(f"{rows[f'gains.{name}'][0, j]:.{DIGITS}g}") for name in self.names}
            for j, joint in enumerate(self.controller.arm.joint_names)
        }


def gain_space(controller: Controller, names: tuple[str, ...]) -> GainSpace:
    """Return the space about the controller's gains, or about the default of a gain that is 0.

    Parameters
    ----------
    controller : Controller
        Controller that commands effort.
    names : tuple of str
        Optimized gains.

    Raises
    ------
    InvalidValue
        If the controller does not command effort, or a gain is 0, infinite or repeated.
    UnknownName
        If the controller does not have a gain.

    """
    if controller.interface != "effort":
        raise InvalidValue(
            f"controller {type(controller).__name__}: interface = '{controller.interface}';"
            " expected 'effort', as of pid and pid_gravity"
        )
    own = tuple(p.name for p in controller.parameters)
    for name in names:
        if name not in own:
            raise UnknownName("gain", name, own)
        if names.count(name) > 1:
            raise InvalidValue(f"gain {name}: occurrences = {names.count(name)}; expected 1")
    model, joints = controller.default_gains(), controller.arm.joint_names
    center = np.array([controller.gains[name] for name in names])
    suggested = np.array([[model.get(j, {}).get(name, 0.0) for j in joints] for name in names])
    center = np.where(center > 0, center, suggested)
    for name, row in zip(names, center, strict=True):
        if not (np.isfinite(row).all() and (row > 0).all()):
            raise InvalidValue(f"gain {name} = {row.tolist()}; expected finite values above 0")
    return GainSpace(controller, names, center)
