"""Standard Denavit-Hartenberg table of the Unimation Puma 560 with its motors.

``python -m tools.urdf.puma560 > urdf/puma560.urdf`` writes its URDF.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import pi, radians

import numpy as np

from arm_dynamics.core.arrays import as_readonly
from arm_dynamics.model.dh import DhLink, DhRow
from arm_dynamics.model.dh import urdf_text as chain_urdf_text
from arm_dynamics.model.solids import Solid
from arm_dynamics.model.urdf_writer import ROS2_CONTROL_TOPICS, JointSpec, MotorSpec
from tools.urdf.five_dof import MATERIALS
from tools.urdf.puma560_visuals import BASE, TOOL_SHAPES, VISUALS

NAME = "puma560"
TOOL = (0.0, 0.0, 0.05625)
"""Middle of the flange in the last frame of the table [m]."""
SUPPLY = 40.0
"""Supply voltage of the amplifiers [V]."""

COMMENT = """
  puma560: Unimation Puma 560 with its motors, rigid bodies as published.
  Written by `python -m tools.urdf.puma560`: edit the table there, not this file.

  The table is standard Denavit-Hartenberg; link frames here are those of its joints: each
  joint's origin is Tx(a) Rx(alpha) of the link before, then Tz(d), and its axis is z.
  SI units, radians, z up. At zero the upper arm lies along +x and the forearm stands up.

  Sources
  [AKB] Armstrong, Khatib, Burdick: The explicit dynamic model and inertial parameters of the
        PUMA 560 arm, ICRA 1986: masses, centers, inertias (measured), torque limits (table 7).
  [CA]  Corke, Armstrong-Helouvry: A search for consensus among model parameters reported for
        the PUMA 560 robot, ICRA 1994: lengths, rotor inertias, gears, friction, torque constants.
  [C]   Corke: Visual Control of Robots, 1996: flange (table 2.1), joint speeds at which the
        amplifiers saturate (table 2.21), armature circuits, supply.
  [RTB] Robotics Toolbox, model Puma560 (standard DH): these numbers as used here, d3 = 150.05 mm
        (other reports: 125.4 to 150.1 mm), shoulder 26.45 inches above the floor, joint limits
        (Wang and Chen, IEEE Trans. RA 7(4), 1991; joint 2 with that table's sign).

  Two published tensors are physically impossible. They are changed without an effect on any
  motion of the arm, so that M(q), C(q, v) and g(q) are exactly the published ones:
  J1: no mass, and 0.35 kg m^2 about its axis alone [AKB]: here 1 kg on the axis and a flat body.
  J3: 0.066, 0.0125, 0.086 kg m^2 break the triangle inequality: 0.00375 kg m^2 about every axis
      normal to joint 3 are moved from link 2 to link 3, which have the same rotation about it.

  The center of mass of link 4 is that of the toolbox: 19 mm beyond the wrist. In [AKB] it is 19 mm
  before the wrist, which reproduces the printed gravity coefficients (0.3 N m less at the elbow).

  Motors are brushed DC motors behind gears. Published ratios carry the sign of the motor's
  direction (joints 1 and 3: negative); here a positive joint velocity is a positive motor
  velocity, and the ratio its magnitude. Motor constants are at the motor's shaft; ke = kt.
  Coulomb friction is the mean of the two published directions.
  Limits: effort as measured [AKB], which is also the current limit; velocity [C].
  End stops are not published: they follow from the inertia at the initial pose, which is the
  toolbox's "nominal" pose: elbow up, tool pointing forward.
  The payload point is the middle of the flange. Shapes are drawn only and weigh nothing.
"""


@dataclass(frozen=True, slots=True)
class MotorSheet:
    """One motor, seen at its shaft: gear ratio, rotor inertia [kg·m²], friction, Kt, Ra.

    Friction is viscous [N·m·s/rad] and Coulomb [N·m] forward and backward; kt in N·m/A,
    resistance in Ω. ``torque`` [N·m] and ``speed`` [rad/s] are the largest at the joint.
    """

    gear: float
    inertia: float
    viscous: float
    coulomb: tuple[float, float]
    kt: float
    resistance: float
    torque: float
    speed: float


DRIVES = (
    MotorSheet(62.6111, 200e-6, 1.48e-3, (0.395, 0.435), 0.223, 2.1, 97.6, 1.92),
    MotorSheet(107.815, 200e-6, 0.817e-3, (0.126, 0.071), 0.226, 2.1, 186.4, 1.51),
    MotorSheet(53.7063, 200e-6, 1.38e-3, (0.132, 0.105), 0.240, 2.1, 89.4, 2.40),
    MotorSheet(76.0364, 33e-6, 71.2e-6, (11.2e-3, 16.9e-3), 0.069, 6.7, 24.2, 5.34),
    MotorSheet(71.923, 33e-6, 82.6e-6, (9.26e-3, 14.5e-3), 0.072, 6.7, 20.1, 5.09),
    MotorSheet(76.686, 33e-6, 36.7e-6, (3.96e-3, 10.5e-3), 0.066, 6.7, 21.3, 5.74),
)
ROWS = (
    DhRow(d=26.45 * 0.0254, alpha=pi / 2),
    DhRow(a=0.4318),
    DhRow(d=0.15005, a=0.0203, alpha=-pi / 2),
    DhRow(d=0.4318, alpha=pi / 2),
    DhRow(alpha=-pi / 2),
    DhRow(),
)
SHIFT = 0.00375
"""Inertia normal to joint 3 [kg·m²] that link 2 gives to link 3."""
BODIES = (
    (1.0, (0, 0, 0), (0.175, 0.35, 0.175)),
    (17.4, (-0.3638, 0.006, 0.2275), (0.13 - SHIFT, 0.524 - SHIFT, 0.539)),
    (4.8, (-0.0203, -0.0141, 0.07), (0.066 + SHIFT, 0.086, 0.0125 + SHIFT)),
    (0.82, (0, 0.019, 0), (1.8e-3, 1.3e-3, 1.8e-3)),
    (0.34, (0, 0, 0), (0.3e-3, 0.4e-3, 0.3e-3)),
    (0.09, (0, 0, 0.032), (0.15e-3, 0.15e-3, 0.04e-3)),
)
"""Mass [kg], center [m] and principal inertias about it [kg·m²], along the axes of frame i."""
LIMITS = ((-160, 160), (-45, 225), (-225, 45), (-110, 170), (-100, 100), (-266, 266))
"""Joint limits [degrees]."""
INITIAL = (0.0, pi / 4, -pi, 0.0, pi / 4, 0.0)


def link_table() -> tuple[DhLink, ...]:
    """Return the links with joints, motors and bodies."""
    return tuple(DhLink(ROWS[i], _joint(i)) for i in range(len(ROWS)))


def urdf_text() -> str:
    """Return the URDF of the arm."""
    return chain_urdf_text(
        NAME,
        link_table(),
        TOOL,
        base=BASE,
        tool_shapes=TOOL_SHAPES,
        materials=MATERIALS,
        hardware=ROS2_CONTROL_TOPICS,
        comment=COMMENT.strip("\n"),
    )


def _joint(i: int) -> JointSpec:
    drive, (low, high) = DRIVES[i], LIMITS[i]
    return JointSpec(
        f"J{i + 1}",
        effort=drive.torque,
        velocity=drive.speed,
        solids=(_body(i), *VISUALS[i]),
        lower=radians(low),
        upper=radians(high),
        initial=INITIAL[i],
        motor=_motor(drive),
    )


def _body(i: int) -> Solid:
    mass, center, moments = BODIES[i]
    return Solid(mass, as_readonly(center), as_readonly(np.diag(moments)), as_readonly(np.eye(3)))


def _motor(drive: MotorSheet) -> MotorSpec:
    constants = {
        "kt": drive.kt,
        "ke": drive.kt,
        "resistance": drive.resistance,
        "gear_ratio": drive.gear,
        "supply_voltage": SUPPLY,
        "current_limit": round(drive.torque / (drive.gear * drive.kt), 4),
        "rotor_inertia": drive.inertia,
        "viscous_friction": drive.viscous,
        "coulomb_friction": round(sum(drive.coulomb) / 2, 6),
    }
    return MotorSpec("dc_motor", constants, commands=("effort",))


if __name__ == "__main__":
    sys.stdout.write(urdf_text())
