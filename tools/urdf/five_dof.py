"""Table of the 5-DOF arm with DC motors by AffectiveSilicon, published for DynaMechs.

``python -m tools.urdf.five_dof > urdf/five_dof.urdf`` writes its URDF.
"""

from __future__ import annotations

import sys
from math import pi

from arm_dynamics.model.mdh import MdhLink, MdhRow
from arm_dynamics.model.mdh import urdf_text as chain_urdf_text
from arm_dynamics.model.solids import Solid, cylinder, sphere
from arm_dynamics.model.urdf_writer import ROS2_CONTROL_TOPICS, JointSpec, MotorSpec

NAME = "five_dof"
SUPPLY = 12.0
"""Supply voltage of the motors [V]."""
STOP = (50.0, 5.0)
"""End stops: stiffness [N·m/rad], damping [N·m·s/rad]."""
LISTED_DAMPING = 0.3
"""Joint damping [N·m·s/rad] in the original listing, without effect there."""
TOOL = (0.0, 0.1, 0.0)
"""Tool point in the frame of R5 [m]."""

MATERIALS = {
    "graphite": (0.16, 0.17, 0.19, 1.0),
    "steel": (0.72, 0.74, 0.77, 1.0),
    "orange": (0.93, 0.42, 0.10, 1.0),
    "white": (0.93, 0.93, 0.91, 1.0),
    "red": (0.85, 0.12, 0.10, 1.0),
}

COMMENT = """
  five_dof: 5-DOF arm with DC motors (AffectiveSilicon, published for DynaMechs).
  Written by `python -m tools.urdf.five_dof`: edit the table there, not this file.

  Frames are modified Denavit-Hartenberg (Craig): each joint's origin is
  Tx(a) Rx(alpha) Tz(d) and its axis is z. SI units, radians, z up.
  Joint Rn moves link Rn_link. Links are solid uniform cylinders; their inertias are about
  the center of mass. Base and tool have no mass: the base is fixed, the tool is a point.
  Limits: effort = kt supply_voltage / resistance (stall), velocity = supply_voltage / ke (no load).
  Joints have no damping: the original listing contains 0.3 N m s/rad, which has no effect on
  joints with a motor.
  Motor constants, referred to the joint: kt [N m/A], ke [V s/rad], resistance [ohm],
  supply_voltage [V].
  Motors also accept voltages (topic voltage_commands), which the topic plugin of ros2_control
  does not support.
  End stops: stop_stiffness [N m/rad], stop_damping [N m s/rad]; R1 is continuous and has none.
"""


def link_table(damping: float = 0.0) -> tuple[MdhLink, ...]:
    """Return the links of the arm with ``damping`` [N·m·s/rad] in every joint."""

    def link(
        name: str,
        row: MdhRow,
        solids: tuple[Solid, ...],
        k: float,
        *,
        limits: tuple[float, float] | None = None,
        initial: float = 0.0,
    ) -> MdhLink:
        lower, upper = limits or (None, None)
        joint = JointSpec(
            name,
            effort=k * SUPPLY,
            velocity=SUPPLY / k,
            solids=solids,
            kind="revolute" if limits else "continuous",
            lower=lower,
            upper=upper,
            initial=initial,
            damping=damping,
            motor=_motor(k),
            stop=STOP if limits else None,
        )
        return MdhLink(row, joint)

    return (
        link("R1", MdhRow(d=0.35), _shoulder(), 10),
        link(
            "R2", MdhRow(a=0.085, alpha=-pi / 2), _upper_arm(), 10, limits=(-1.2, 0.7), initial=-1.1
        ),
        link("R3", MdhRow(a=0.38), _forearm(), 10, limits=(-pi, 0.6), initial=0.3),
        link("R4", MdhRow(alpha=-pi / 2, d=0.425), _wrist(), 1, limits=(-pi, pi)),
        link("R5", MdhRow(alpha=pi / 2), _hand(), 1, limits=(-1.1, 1.1)),
    )


def urdf_text(damping: float = 0.0) -> str:
    """Return the URDF of the arm."""
    return chain_urdf_text(
        NAME,
        link_table(damping),
        base=pedestal(),
        tool=TOOL,
        tool_shapes=(sphere(0.012, 0.0).with_material("red"),),
        materials=MATERIALS,
        hardware=ROS2_CONTROL_TOPICS,
        comment=COMMENT.strip("\n"),
    )


def _motor(k: float) -> MotorSpec:
    constants = {"kt": k, "ke": k, "resistance": 1.0, "supply_voltage": SUPPLY}
    return MotorSpec("dc_motor", constants, commands=("effort",))


def pedestal() -> tuple[Solid, ...]:
    """Return the visuals of the base."""
    return (
        cylinder("z", 0.03, 0.15, 0.0, (0, 0, 0.015)).with_material("graphite"),
        cylinder("z", 0.17, 0.07, 0.0, (0, 0, 0.115)).with_material("steel"),
    )


def _shoulder() -> tuple[Solid, ...]:
    return (
        cylinder("z", 0.3, 0.085, 3.0).with_material("orange"),
        cylinder("y", 0.14, 0.05, 1.5, (0.085, 0, 0)).with_material("graphite"),
    )


def _upper_arm() -> tuple[Solid, ...]:
    return (
        cylinder("x", 0.38, 0.05, 1.0, (0.19, 0, 0)).with_material("orange"),
        cylinder("z", 0.1, 0.04, 1.0, (0.38, 0, 0)).with_material("graphite"),
    )


def _forearm() -> tuple[Solid, ...]:
    return (cylinder("y", 0.425, 0.04, 1.0, (0, 0.2125, 0)).with_material("white"),)


def _wrist() -> tuple[Solid, ...]:
    return (cylinder("y", 0.1, 0.02, 0.3).with_material("graphite"),)


def _hand() -> tuple[Solid, ...]:
    return (cylinder("y", 0.085, 0.01, 0.2, (0, 0.0425, 0)).with_material("steel"),)


if __name__ == "__main__":
    sys.stdout.write(urdf_text())
