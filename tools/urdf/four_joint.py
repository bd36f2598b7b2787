"""Table of the arm with a yaw base and three planar joints, published with LQR gains.

``python -m tools.urdf.four_joint > urdf/four_joint.urdf`` writes its URDF.
"""

from __future__ import annotations

import sys
from math import pi

import numpy as np

from arm_dynamics.core.arrays import as_readonly
from arm_dynamics.model.mdh import MdhLink, MdhRow
from arm_dynamics.model.solids import Solid, cylinder, flat_bar, point_mass
from tools.urdf import ideal_arm

NAME = "four_joint"
LENGTHS = (0.4, 0.35, 0.2)
"""Lengths of the planar links [m]."""
RODS = (1.0, 0.8, 0.3)
"""Masses of the links, uniform rods [kg]."""
WIDTHS = (0.06, 0.05, 0.04)
"""Their widths along the joint axes [m]."""
POINTS = (0.5, 0.4, 0.2, 0.3)
"""Point masses [kg] at shoulder, elbow, wrist and tip."""
YAW_INERTIA = 0.05
"""Published inertia of the turning base about its axis [kg·m²]."""
BASE_INERTIA = YAW_INERTIA - sum(m * w * w / 12 for m, w in zip(RODS, WIDTHS, strict=True))
"""Its inertia less the constant that the rods' widths add [kg·m²]."""
INITIAL = (0.0, 0.3, 0.8, pi / 2 - 0.3 - 0.8)
"""The published pose "reach" [rad]: the last link is horizontal."""
EFFORT = (100.0, 100.0, 60.0, 30.0)
"""Effort limits [N·m]: more than six times the gravity torque of the stretched arm."""
VELOCITY = 12.0
"""Velocity limit [rad/s]: tracked at 500 Hz within 20 mrad (docs/tracking.md)."""

COMMENT = """
  four_joint: a yaw base and three planar joints (published with precomputed LQR gains).
  Written by `python -m tools.urdf.four_joint`: edit the table there, not this file.

  Frames are modified Denavit-Hartenberg (Craig): each joint's origin is
  Tx(a) Rx(alpha) Tz(d), then Rz(theta), and its axis is z. SI units, radians, z up.
  J1 turns the arm from +y toward +x; J2, J3, J4 add up to angles from the vertical. With r and h
  the reach and height of a point in the plane of the arm, its position is (r sin J1, r cos J1, h),
  relative to the shoulder, where J1 and J2 meet. At zero the arm is upright. No friction, no end
  stops.
  Links are uniform rods of 1, 0.8, 0.3 kg with point masses: 0.5 kg at the shoulder, 0.4 kg at
  the elbow, 0.2 kg at the wrist, 0.3 kg at the tip. Hubs and pedestal have no mass.
  The rods are published as thin, with no inertia about their own axes. Here they are flat bars,
  {widths} m wide along the joint axes. Their width adds a constant inertia
  about the axis of J1, by which that of the turning base is smaller: {base:.6g} instead of
  0.05 kg m^2. This changes no motion: M(q), C(q, v) and g(q) are the published ones to 1e-13.
  Actuators are ideal: the commanded effort up to the limit. Limits are generous, not published.
"""


def link_table(damping: float = 0.0) -> tuple[MdhLink, ...]:
    """Return the links of the arm with ``damping`` [N·m·s/rad] in every joint."""
    rows = (
        MdhRow(alpha=pi, theta=-pi / 2),
        MdhRow(alpha=pi / 2, theta=-pi / 2),
        MdhRow(a=LENGTHS[0]),
        MdhRow(a=LENGTHS[1]),
    )
    solids = (_turntable(), _link(0, 0.03, "orange"), _link(1, 0.024, "white"), _hand())
    return tuple(
        ideal_arm.free_link(
            f"J{i + 1}",
            rows[i],
            solids[i],
            EFFORT[i],
            VELOCITY,
            initial=INITIAL[i],
            damping=damping,
        )
        for i in range(4)
    )


def urdf_text(damping: float = 0.0) -> str:
    """Return the URDF of the arm."""
    widths = ", ".join(f"{width:g}" for width in WIDTHS)
    comment = COMMENT.format(widths=widths, base=BASE_INERTIA)
    return ideal_arm.urdf_text(
        NAME, link_table(damping), _pedestal(), (LENGTHS[2], 0.0, 0.0), comment
    )


def _pedestal() -> tuple[Solid, ...]:
    return (
        cylinder("z", 0.02, 0.14, 0.0, (0, 0, -0.29)).with_material("graphite"),
        cylinder("z", 0.2, 0.06, 0.0, (0, 0, -0.18)).with_material("steel"),
    )


def _turntable() -> tuple[Solid, ...]:
    """Return the isotropic inertia of the base and its visuals; z points down here."""
    tensor = as_readonly(BASE_INERTIA * np.eye(3))
    body = Solid(POINTS[0], as_readonly(np.zeros(3)), tensor, as_readonly(np.eye(3)))
    return (
        body,
        cylinder("z", 0.04, 0.1, 0.0, (0, 0, 0.06)).with_material("orange"),
        cylinder("z", 0.05, 0.045, 0.0, (0, 0, 0.025)).with_material("graphite"),
        cylinder("y", 0.12, 0.045, 0.0).with_material("graphite"),
    )


def _link(i: int, radius: float, material: str) -> tuple[Solid, ...]:
    length = LENGTHS[i]
    return (
        flat_bar(length, WIDTHS[i], RODS[i], (length / 2, 0, 0), radius).with_material(material),
        point_mass(POINTS[i + 1], (length, 0, 0)),
        ideal_arm.hub(radius + 0.012, 0.09),
    )


def _hand() -> tuple[Solid, ...]:
    return (*_link(2, 0.018, "orange"), _tip())


def _tip() -> Solid:
    """Seen only: the point mass of the tip is the link's."""
    return point_mass(0.0, (LENGTHS[2], 0, 0), drawn=0.028).with_material("steel")


if __name__ == "__main__":
    sys.stdout.write(urdf_text())
