"""Table of the planar RR arm of MCEN90028: two uniform rods in two published sizes.

``python -m tools.urdf.two_link > urdf/two_link.urdf`` writes the URDF of ``UNIT``,
``python -m tools.urdf.two_link pb > urdf/two_link_pb.urdf`` that of ``PB``.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import pi

from arm_dynamics.core.errors import UnknownName
from arm_dynamics.model.mdh import MdhLink, MdhRow
from arm_dynamics.model.solids import Solid, rod
from tools.urdf import ideal_arm

DAMPING = 0.1
"""Viscous friction of each joint [N·m·s/rad]."""
EFFORT = (200.0, 100.0)
"""Effort limits [N·m]: more than ten times the gravity torque of the stretched arm."""
RADIUS = 0.02
"""Radius of the rods [m]: gives inertia about their axes, which affects no motion of the arm."""
VELOCITY = 100.0
"""Velocity limit [rad/s]: several times the maximum velocity in free fall."""


@dataclass(frozen=True, slots=True)
class Variant:
    """Name of the arm, lengths [m] and masses [kg] of its rods: lc = l/2, Izz = m l²/12."""

    name: str
    lengths: tuple[float, float]
    masses: tuple[float, float]


UNIT = Variant("two_link", (1.0, 1.0), (1.0, 1.0))
PB = Variant("two_link_pb", (1.0, 0.6), (1.0, 0.6))
VARIANTS = {"unit": UNIT, "pb": PB}

COMMENT = """
  {name}: planar RR arm (MCEN90028): uniform rods of {lengths} m and {masses} kg.
  Written by `python -m tools.urdf.two_link{argument}`: edit the table there, not this file.

  Frames are modified Denavit-Hartenberg (Craig): each joint's origin is
  Tx(a) Rx(alpha) Tz(d) and its axis is z. SI units, radians, z up.
  The arm moves in the plane x, z of the base: J1 from +x toward +z, J2 relative to the first
  link. At zero it is stretched along +x. Viscous joint friction 0.1 N m s/rad, no end stops.
  The links are round rods of radius {radius:g} m. Their inertia about the joint axis through the
  center of mass is m l^2 / 12, as of thin rods. Hubs have no mass.
  Actuators are ideal: the commanded effort up to the limit. Limits are generous, not published.
"""


def link_table(variant: Variant = UNIT, damping: float = DAMPING) -> tuple[MdhLink, ...]:
    """Rows of the arm, with ``damping`` [N·m·s/rad] in every joint."""
    rows = (MdhRow(alpha=pi / 2), MdhRow(a=variant.lengths[0]))
    solids = (
        _link(variant.lengths[0], variant.masses[0], 0.035, "orange"),
        _link(variant.lengths[1], variant.masses[1], 0.025, "white"),
    )
    return tuple(
        ideal_arm.free_link(f"J{i + 1}", rows[i], solids[i], EFFORT[i], VELOCITY, damping=damping)
        for i in range(2)
    )


def urdf_text(variant: Variant = UNIT, damping: float = DAMPING) -> str:
    """Return the URDF of the arm."""
    comment = COMMENT.format(
        name=variant.name,
        lengths=" and ".join(f"{length:g}" for length in variant.lengths),
        masses=" and ".join(f"{mass:g}" for mass in variant.masses),
        argument=" pb" if variant == PB else "",
        radius=RADIUS,
    )
    tool = (variant.lengths[1], 0.0, 0.0)
    return ideal_arm.urdf_text(
        variant.name, link_table(variant, damping), ideal_arm.wall_mount(0.06), tool, comment
    )


def find_variant(name: str) -> Variant:
    """Return the variant ``unit`` or ``pb``; raise UnknownName for others."""
    if name not in VARIANTS:
        raise UnknownName("variant of two_link", name, tuple(VARIANTS))
    return VARIANTS[name]


def _link(length: float, mass: float, radius: float, material: str) -> tuple[Solid, ...]:
    return (
        rod("x", length, mass, (length / 2, 0, 0), radius, RADIUS).with_material(material),
        ideal_arm.hub(0.055, 0.12),
    )


if __name__ == "__main__":
    sys.stdout.write(urdf_text(find_variant(*(sys.argv[1:] or ["unit"]))))
