"""The 3R arm in free fall (ME5250), as a table: 1 m links, point masses 2, 1, 1 kg at their ends.

``python -m arm_dynamics.arms.three_link > urdf/three_link.urdf`` writes its URDF anew.
"""

from __future__ import annotations

import sys
from math import pi

from arm_dynamics.arms import ideal
from arm_dynamics.model.mdh import MdhLink, MdhRow
from arm_dynamics.model.solids import Solid, rod

NAME = "three_link"
LENGTH = 1.0
"""Length of every link [m]."""
EFFORT = (300.0, 150.0, 75.0)
"""Effort limits [N·m]: more than four times what gravity asks of the stretched arm."""
VELOCITY = 100.0
"""Velocity limit [rad/s]: several times the fastest free fall."""

COMMENT = """
  three_link: 3R arm in free fall (ME5250): links of 1 m, masses 2, 1, 1 kg at their ends.
  Written by `python -m arm_dynamics.arms.three_link`: edit the table there, not this file.

  Frames are modified Denavit-Hartenberg (Craig): each joint's origin is
  Tx(a) Rx(alpha) Tz(d) and its axis is z. SI units, radians, z up.
  The arm moves in the plane x, z of the base: J1 from +x towards +z, J2 and J3 relative to the
  link before; at zero it lies stretched along +x. No friction, no stops.
  A link's mass is a thin pin through its end, parallel to the joint axes: its inertia about these
  is that of a point mass, exactly, and its tensor is not zero. Bars and hubs weigh nothing.
  Actuators are ideal: the commanded effort up to the limit. Limits are generous, not published.
"""


def table(damping: float = 0.0) -> tuple[MdhLink, ...]:
    """Rows of the arm, with ``damping`` [N·m·s/rad] in every joint (published: 0, and 1)."""
    rows = (MdhRow(alpha=pi / 2), MdhRow(a=LENGTH), MdhRow(a=LENGTH))
    solids = (
        _link(2.0, 0.09, -0.07, "orange"),
        _link(1.0, 0.065, 0.0, "white"),
        _link(1.0, 0.065, 0.07, "orange"),
    )
    return tuple(
        ideal.free_link(f"J{i + 1}", rows[i], solids[i], EFFORT[i], VELOCITY, damping=damping)
        for i in range(3)
    )


def text(damping: float = 0.0) -> str:
    """URDF of the arm."""
    mount = ideal.wall_mount(0.07)
    return ideal.text(NAME, table(damping), mount, (LENGTH, 0.0, 0.0), COMMENT)


def _link(mass: float, radius: float, level: float, material: str) -> tuple[Solid, ...]:
    return (
        rod("z", 0.2, mass, (LENGTH, 0, 0), drawn=radius).painted("steel"),
        ideal.bar(LENGTH, 0.03, level, material),
        ideal.hub(0.05, 0.07, level),
    )


if __name__ == "__main__":
    sys.stdout.write(text())
