"""Table of the SO-101: five joints and a gripper with STS3215 bus servos.

``python -m tools.urdf.so101 > urdf/so101.urdf`` writes its URDF; the argument 7.4 selects servos
for 7.4 V.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.errors import UnknownName
from arm_dynamics.model.solids import Solid, box, cylinder, sphere
from arm_dynamics.model.urdf_writer import (
    ROS2_CONTROL_TOPICS,
    ArmDescription,
    ChainSegment,
    JointSpec,
    MotorSpec,
    format_urdf,
)
from tools.urdf.five_dof import MATERIALS

NAME = "so101"
TOOL = (-0.0079, -0.0002, -0.0981)
"""Point on the fixed jaw's tip, at its inner side, in the link of wrist_roll [m]."""
WIRES = {"driver": "feetech", "port": "/dev/ttyACM0", "baud": "1000000"}

COMMENT = """
  so101: SO-101 follower arm (The Robot Studio, Hugging Face) with STS3215 servos for 12 V.
  Written by `python -m tools.urdf.so101`: edit the table there, not this file.

  Sources
  [CAD] SO-ARM100 repository, Simulation/SO101 (calibration "new"): joint frames to 0.1 mm, joint
        limits, masses, centers of mass and positions of the servos. Zero is the middle of each
        joint's range, except for the gripper, which is nearly closed at zero.
  [S12] ST-3215-C018 data sheet: 12 V, 30 kg cm and 2.7 A at stall, 45 rpm and 0.18 A without
        load (0.03 A of it for the electronics), 11 kg cm/A, 1:345, 55 g, 45.2 x 24.7 x 35 mm.
  [S7]  ST-3215-C001 data sheet: 7.4 V, 19.5 kg cm, 52 rpm and 0.15 A without load.
  [ODM] Open Duck Mini, identified STS3215: 0.028 kg m^2 of rotor, 0.052 N m of dry friction and
        0.6 N m s/rad of damping with its back-EMF, all at the shaft.

  Bodies: each link is a servo, a box of 55 g, and a printed part, a box of the remaining mass. The
  center of mass of both is that of [CAD]. The tensors are those of the boxes.
  Jaws: a finger and a tip each, with the volumes and the inner faces of [CAD]. At zero the faces
  are parallel at a distance of 23.5 mm, and of 15.8 mm at the tips.
  Motors: kt, ke, resistance and friction follow from [S12] by the equations of DataSheet. The gear
  efficiency of 46 % follows from stall current and no-load speed. It is contained in kt, so that an
  effort is that of the output shaft: kt is 11 kg cm/A and ke is 2.2 times as large. 70 % of the
  friction at no load is viscous; the rest is the dry friction of [ODM]. Back-EMF and friction
  together have a damping of 0.62 N m s/rad. Rotor [ODM].
  Limits: effort is the stall torque, velocity the no-load speed. End stops are not published.
  Wiring: motors and joints have the same direction. A motor homed to the middle of its joint's
  range (2048 steps, as by the calibration of LeRobot) reads 0 there; the gripper's middle is
  0.785 rad.
"""

MOTORS = {
    "12": {"kt": 0.003207, "ke": 0.006972, "resistance": 4.438, "supply_voltage": 12.0},
    "7.4": {"kt": 0.001744, "ke": 0.003792, "resistance": 2.303, "supply_voltage": 7.4},
}
"""Constants by rated voltage; the torque constant at the rotor includes the gear loss."""
FRICTION = {
    "12": {"viscous_friction": 2.071e-7, "coulomb_friction": 1.443e-4},
    "7.4": {"viscous_friction": 7.799e-8, "coulomb_friction": 6.279e-5},
}
"""Friction at the rotor by rated voltage."""
GEAR = 345.0
ROTOR = 2.35e-7
"""Inertia at the rotor [kg·m²]: 0.028 kg·m² at the shaft."""
STALL = {"12": 2.94, "7.4": 1.91}
"""Stall torque [N·m]."""
IDLE = {"12": 4.71, "7.4": 5.45}
"""No-load speed [rad/s]."""
SERVO = 0.055
"""Mass of a servo [kg]."""


@dataclass(frozen=True, slots=True)
class JointRow:
    """One joint: its frame in the parent link, its limits [rad] and its link.

    ``axes`` contains the directions of x, y, z of the frame: "-x y -z". ``mass`` [kg] and
    ``center`` [m] are those of the link. Its servo, if any, is a box ``servo`` [m] at ``servo_at``;
    ``jaw`` are the boxes of its jaw: size [m], mass [kg] and center [m]. The other printed part is
    a box ``part`` with the remaining mass. ``offset`` [rad] is the joint position at motor
    position 0.
    """

    name: str
    origin: tuple[float, float, float]
    axes: str
    limits: tuple[float, float]
    mass: float
    center: tuple[float, float, float]
    part: tuple[float, float, float]
    servo: tuple[float, float, float] | None = None
    servo_at: tuple[float, float, float] = (0.0, 0.0, 0.0)
    jaw: tuple[Solid, ...] = ()
    offset: float = 0.0


ROWS = (
    JointRow(
        "shoulder_pan", (0.0388, 0, 0.0624), "-x y -z", (-1.91986, 1.91986),
        0.1, (-0.0308, 0, -0.0253), (0.06, 0.05, 0.025),
        (0.0247, 0.035, 0.0452), (-0.0304, 0.0004, -0.0417),
    ),
    JointRow(
        "shoulder_lift", (-0.0304, -0.0183, -0.0542), "z x y", (-1.74533, 1.74533),
        0.103, (-0.0898, -0.0084, 0.0184), (0.11, 0.03, 0.04),
        (0.0247, 0.0452, 0.035), (-0.1126, -0.0155, 0.0187),
    ),
    JointRow(
        "elbow_flex", (-0.1126, -0.028, 0), "y -x z", (-1.69, 1.69),
        0.104, (-0.0981, 0.0032, 0.0183), (0.12, 0.03, 0.04),
        (0.0452, 0.0247, 0.035), (-0.1224, 0.0052, 0.0187),
    ),
    JointRow(
        "wrist_flex", (-0.1349, 0.0052, 0), "-y x z", (-1.65806, 1.65806),
        0.079, (-0.0001, -0.0386, 0.0281), (0.035, 0.05, 0.04),
        (0.0247, 0.035, 0.0452), (0, -0.0424, 0.0306),
    ),
    JointRow(
        "wrist_roll", (0, -0.0611, 0.0181), "-x z y", (-2.79253, 2.79253),
        0.087, (0.0002, 0.0002, -0.0252), (0.05, 0.046, 0.028),
        (0.0452, 0.035, 0.0247), (0.0077, 0.0001, -0.0234), jaw=(
            box((0.0124, 0.017, 0.07), 0.0092, (-0.0178, -0.0002, -0.06)),
            box((0.008, 0.01, 0.0094), 0.0003, (-0.0119, -0.0002, -0.0997)),
        ),
    ),
    JointRow(
        "gripper", (0.0202, 0.0188, -0.0234), "x z -y", (-0.174533, 1.74533),
        0.012, (-0.0016, -0.03, 0.0193), (0.02, 0.03, 0.046), jaw=(
            box((0.013, 0.0524, 0.016), 0.0062, (-0.0018, -0.0462, 0.0189)),
            box((0.008, 0.0096, 0.01), 0.0004, (-0.0083, -0.0772, 0.0189)),
        ), offset=0.785398,
    ),
)  # fmt: skip


def urdf_text(volts: str = "12") -> str:
    """Return the URDF with servos for ``volts``; raise UnknownName for others."""
    if volts not in MOTORS:
        raise UnknownName("voltage of an STS3215", volts, tuple(MOTORS))
    arm = ArmDescription(
        NAME,
        tuple(ChainSegment(_placement(row), _joint(i, row, volts)) for i, row in enumerate(ROWS)),
        base=_base(),
        tool=TOOL,
        tool_rotation=_rotation("-x y -z"),
        tool_link="wrist_roll_link",
        tool_shapes=(sphere(0.005, 0.0).with_material("red"),),
        materials=MATERIALS,
        hardware=ROS2_CONTROL_TOPICS | WIRES,
        comment=COMMENT.strip("\n").replace("for 12 V", f"for {volts} V"),
    )
    return format_urdf(arm)


def _joint(i: int, row: JointRow, volts: str) -> JointSpec:
    constants = MOTORS[volts] | FRICTION[volts] | {"gear_ratio": GEAR, "rotor_inertia": ROTOR}
    wiring = {"id": str(i + 1), "motor": "sts3215", "sign": "1", "offset": f"{row.offset:g}"}
    return JointSpec(
        row.name,
        effort=STALL[volts],
        velocity=IDLE[volts],
        solids=_solids(row),
        lower=row.limits[0],
        upper=row.limits[1],
        motor=MotorSpec("dc_motor", constants, commands=("effort",)),
        wiring={**wiring, "mechanical_reduction": "1"},
    )


def _solids(row: JointRow) -> tuple[Solid, ...]:
    """Return servo, printed part and jaw, the part at (m c - Σ m_k c_k) / (m - Σ m_k)."""
    servo = () if row.servo is None else (box(row.servo, SERVO, row.servo_at),)
    others = (*servo, *row.jaw)
    rest = row.mass - sum(solid.mass for solid in others)
    moment = row.mass * np.array(row.center) - sum(solid.mass * solid.center for solid in others)
    return (
        *(solid.with_material("graphite") for solid in servo),
        box(row.part, rest, np.round(moment / rest, 4)).with_material("orange"),
        *(solid.with_material("orange") for solid in row.jaw),
    )


def _base() -> tuple[Solid, ...]:
    """Return the visuals of the foot and the first servo."""
    return (
        box((0.09, 0.1, 0.03), 0.0, (0, 0, 0.015)).with_material("orange"),
        box((0.0452, 0.0247, 0.035), 0.0, (0.0263, 0, 0.0437)).with_material("graphite"),
        cylinder("z", 0.008, 0.012, 0.0, (0.0388, 0, 0.0624)).with_material("steel"),
    )


def _placement(row: JointRow) -> Vector:
    placed = np.eye(4)
    placed[:3, :3], placed[:3, 3] = _rotation(row.axes), row.origin
    return as_readonly(placed)


def _rotation(axes: str) -> Vector:
    """Return the rotation matrix of axis directions; "-x y -z" is a rotation of π about y."""
    columns = np.zeros((3, 3))
    for i, axis in enumerate(axes.split()):
        columns["xyz".index(axis[-1]), i] = -1.0 if axis[0] == "-" else 1.0
    return as_readonly(columns)


if __name__ == "__main__":
    sys.stdout.write(urdf_text(*sys.argv[1:]))
