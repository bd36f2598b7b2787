"""The 3R arm in free fall (ME5250), as a table: 1 m links, masses 2, 1, 1 kg on their ends.

``python -m tools.urdf.three_link > urdf/three_link.urdf`` writes its URDF anew.
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
"""Length of every link [m]."""
MASSES = (2.0, 1.0, 1.0)
"""Published masses at the ends of the links [kg]."""
AXIS_MASS = 0.1
"""Mass on a joint's axis that belongs to the link behind the joint [kg]."""
EFFORT = (300.0, 150.0, 75.0)
"""Effort limits [N·m]: more than four times what gravity asks of the stretched arm."""
VELOCITY = 100.0
"""Velocity limit [rad/s]: several times the fastest free fall."""

COMMENT = """
  three_link: 3R arm in free fall (ME5250): links of 1 m, masses 2, 1, 1 kg at their ends.
  Written by `python -m tools.urdf.three_link`: edit the table there, not this file.

  Frames are modified Denavit-Hartenberg (Craig): each joint's origin is
  Tx(a) Rx(alpha) Tz(d) and its axis is z. SI units, radians, z up.
  The arm moves in the plane x, z of the base: J1 from +x towards +z, J2 and J3 relative to the
  link before; at zero it lies stretched along +x. No friction, no stops.
  The masses are published as points, which have no inertia of their own. Here every link has
  0.1 kg of the mass on its joint axis and the rest on its end: a hinge belongs to both of its
  links. The 0.1 kg on the axis of J1, which does not move, is added. This changes no motion: M(q),
  C(q, v) and g(q) are exactly the published ones. The tensors are the same about all axes; only
  their part about the joint axes shows in a motion. Bars and hubs weigh nothing.
  Actuators are ideal: the commanded effort up to the limit. Limits are generous, not published.
"""


def link_table(damping: float = 0.0) -> tuple[MdhLink, ...]:
    """Rows of the arm, with ``damping`` [N·m·s/rad] in every joint (published: 0, and 1)."""
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
    """URDF of the arm."""
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
    """SHARE on the joint's axis and ``end`` [kg] at the end of a link, as one body."""
    mass = AXIS_MASS + end
    centre, inertia = LENGTH * end / mass, LENGTH**2 * AXIS_MASS * end / mass
    return Solid(
        mass, as_readonly([centre, 0, 0]), as_readonly(inertia * np.eye(3)), as_readonly(np.eye(3))
    )


if __name__ == "__main__":
    sys.stdout.write(urdf_text())
