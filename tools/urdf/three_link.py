"""Table of the 3R arm in free fall (ME5250): links of 1 m, masses 2, 1, 1 kg at their ends.

``python -m tools.urdf.three_link > urdf/three_link.urdf`` writes its URDF.
"""

from __future__ import annotations

import sys
from math import pi

import numpy as np

from arm_dynamics.core.arrays import as_readonly
from arm_dynamics.model.mdh import MdhLink, MdhRow
from arm_dynamics.model.solids import Solid, cylinder
from tools.urdf import ideal_arm

NAME = "three_link"
LENGTH = 1.0
"""Length of each link [m]."""
MASSES = (2.0, 1.0, 1.0)
"""Published masses at the ends of the links [kg]."""
AXIS_MASS = 0.1
"""Mass on a joint axis that belongs to the child link [kg]."""
EFFORT = (300.0, 150.0, 75.0)
"""Effort limits [N·m]: more than four times the gravity torque of the stretched arm."""
VELOCITY = 100.0
"""Velocity limit [rad/s]: several times the fastest free fall."""

COMMENT = """
  three_link: 3R arm in free fall (ME5250): links of 1 m, masses 2, 1, 1 kg at their ends.
  Written by `python -m tools.urdf.three_link`: edit the table there, not this file.

  Frames are modified Denavit-Hartenberg (Craig): each joint's origin is
  Tx(a) Rx(alpha) Tz(d) and its axis is z. SI units, radians, z up.
  The arm moves in the plane x, z of the base: J1 from +x toward +z, J2 and J3 relative to the
  parent link. At zero it is stretched along +x. No friction, no end stops.
  The masses are published as points without inertia. Here 0.1 kg of each mass is on the joint axis
  of the child link, and the rest at the end of the link. 0.1 kg are added on the fixed axis of J1.
  This changes no motion: M(q), C(q, v) and g(q) are exactly the published ones. The tensors are
  isotropic; only their component about the joint axis affects a motion. Bars and hubs have no mass.
  Actuators are ideal: the commanded effort up to the limit. Limits are generous, not published.
"""


def link_table(damping: float = 0.0) -> tuple[MdhLink, ...]:
    """Return the links with ``damping`` [N·m·s/rad] in every joint (published: 0 and 1)."""
    rows = (MdhRow(alpha=pi / 2), MdhRow(a=LENGTH), MdhRow(a=LENGTH))
    solids = (
        _link(0, 0.09, -0.07, "orange"),
        _link(1, 0.065, 0.0, "white"),
        _link(2, 0.065, 0.07, "orange"),
    )
    return tuple(
        ideal_arm.free_link(f"J{i + 1}", rows[i], solids[i], EFFORT[i], VELOCITY, damping=damping)
        for i in range(3)
    )


def urdf_text(damping: float = 0.0) -> str:
    """Return the URDF of the arm."""
    mount = ideal_arm.wall_mount(0.07)
    return ideal_arm.urdf_text(NAME, link_table(damping), mount, (LENGTH, 0.0, 0.0), COMMENT)


def _link(i: int, radius: float, level: float, material: str) -> tuple[Solid, ...]:
    end = MASSES[i] - (AXIS_MASS if i + 1 < len(MASSES) else 0.0)
    return (
        _weights(end),
        cylinder("z", 0.2, radius, 0.0, (LENGTH, 0, 0)).with_material("steel"),
        ideal_arm.bar(LENGTH, 0.03, level, material),
        ideal_arm.hub(0.05, 0.07, level),
    )


def _weights(end: float) -> Solid:
    """Return one body of AXIS_MASS on the joint axis and ``end`` [kg] at the end of the link."""
    mass = AXIS_MASS + end
    center, inertia = LENGTH * end / mass, LENGTH**2 * AXIS_MASS * end / mass
    return Solid(
        mass, as_readonly([center, 0, 0]), as_readonly(inertia * np.eye(3)), as_readonly(np.eye(3))
    )


if __name__ == "__main__":
    sys.stdout.write(urdf_text())
