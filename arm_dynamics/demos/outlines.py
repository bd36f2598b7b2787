"""Outlines of objects as lines in space."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.core.arrays import FloatArray


def box_outline(size: ArrayLike) -> FloatArray:
    """Return a line (n, 3) [m] along the edges of a box with its center at the origin."""
    x, y, z = np.asarray(size) / 2
    ring = [(x, y), (-x, y), (-x, -y), (x, -y), (x, y)]
    lower, upper = [(*p, -z) for p in ring], [(*p, z) for p in ring]
    sides = [(-x, y, z), (-x, y, -z), (-x, -y, -z), (-x, -y, z), (x, -y, z), (x, -y, -z)]
    return np.array([*lower, *upper, *sides])


def sphere_outline(radius: float) -> FloatArray:
    """Return a line (n, 3) [m] along three great circles of a sphere about the origin."""
    angle = np.linspace(0, 2 * np.pi, 33)
    x, y, zero = np.cos(angle), np.sin(angle), np.zeros(33)
    circles = np.array([[x, y, zero], [x, zero, y], [zero, x, y]])
    return radius * np.concatenate(circles.transpose(0, 2, 1))
