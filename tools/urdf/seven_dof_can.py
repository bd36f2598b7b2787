"""Table of a seven-joint arm with CAN motors, based on the OpenArm.

``python -m tools.urdf.seven_dof_can > urdf/seven_dof_can.urdf`` writes its URDF.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from math import pi

import numpy as np

from arm_dynamics.core.arrays import Vector, as_readonly
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

NAME = "seven_dof_can"
TOOL = 0.1145
"""Distance from joint 7 to the flange [m]."""
WIRES = {"driver": "mit_can", "interface": "socketcan", "channel": "can0", "bitrate": "1000000"}

COMMENT = """
  seven_dof_can: seven joints with Damiao motors on a CAN bus, based on OpenArm v1.0 (Enactic).
  Written by `python -m tools.urdf.seven_dof_can`: edit the table there, not this file.

  Sources
  [OA]  openarm_description, v1.0 arm without its hand: joint places and axes, joint limits and
        their efforts and velocities, masses and centers of mass to 0.1 mm.
  [DM]  Damiao data sheets at 24 V: DM-J8009-2EC, DM-J4340-2EC, DM-J4310-2EC: resistance, torque
        constant at the output, speed without load, gear ratio, rotor inertia.
  [FR]  openarm_teleop, follower arm: identified friction of each joint.

  At zero the arm is upright, and the joint frames differ only by translations. Each joint axis is z
  of its frame. Bodies are boxes with the published masses and centers of mass, not the published
  tensors. Hubs, pedestal and flange are visuals without mass.
  Motors: kt is the torque constant at the output divided by the gear ratio; ke reproduces the
  no-load speed. Friction is that of the joint [FR], without its offset and its slope at rest.
  Limits: effort and velocity [OA], except joints 5 to 7: their 20.94 rad/s are the no-load speed of
  the motor, where it has no torque. At 12 rad/s it has 43 % of its effort. End stops are not
  published; they follow from the inertia.
  Wiring: ids 1 to 7; motor and joint have the same direction and the same zero.
"""


@dataclass(frozen=True, slots=True)
class MotorSheet:
    """Motor model: Ω, N·m/A at the output, no-load speed rad/s, gear ratio, rotor kg·m².

    ``effort`` [N·m] and ``velocity`` [rad/s] are the joint's limits with it.
    """

    name: str
    resistance: float
    torque_constant: float
    idle: float
    gear: float
    rotor: float
    effort: float
    velocity: float


SUPPLY = 24.0
"""Voltage of the motors [V]."""
DM8009 = MotorSheet("DM8009", 0.145, 1.261575, 168 * pi / 30, 9.0, 1.95e-4, 40.0, 16.754666)
DM4340 = MotorSheet("DM4340", 0.88, 4.074, 52.5 * pi / 30, 40.0, 2.0e-5, 27.0, 5.445426)
DM4310 = MotorSheet("DM4310", 0.85, 0.945, 200 * pi / 30, 10.0, 1.8e-5, 7.0, 12.0)


@dataclass(frozen=True, slots=True)
class JointRow:
    """One joint: its place [m] from the joint before, in the axes of the base with all at zero.

    ``axis`` is what it turns about there: "z", "-x" ... ``friction`` is dry [N·m] and viscous
    [N·m·s/rad]. Its link weighs ``mass`` [kg], a box with edges ``size`` [m] about ``center``.
    """

    place: tuple[float, float, float]
    axis: str
    drive: MotorSheet
    limits: tuple[float, float]
    friction: tuple[float, float]
    mass: float
    center: tuple[float, float, float]
    size: tuple[float, float, float]
    initial: float = 0.0


ROWS = (
    JointRow((0, 0, 0.0625), "z", DM8009, (-1.396263, 3.490659), (0.306, 0.063),
        1.1417, (0.0011, 0, 0.054), (0.09, 0.09, 0.11)),
    JointRow((-0.0301, 0, 0.06), "-x", DM8009, (-1.745329, 1.745329), (0.306, 0.063),
        0.2775, (0.0084, 0, 0.0326), (0.09, 0.07, 0.1), 0.5),
    JointRow((0.0301, 0, 0.06625), "z", DM4340, (-1.570796, 1.570796), (0.4, 0.604),
        1.0739, (-0.0021, 0.0006, 0.0885), (0.07, 0.07, 0.18), 0.3),
    JointRow((0, 0.0315, 0.15375), "y", DM4340, (0.0, 2.443461), (0.166, 0.813),
        0.5599, (-0.0029, -0.0303, 0.0634), (0.065, 0.06, 0.12), 1.4),
    JointRow((0, -0.0315, 0.0955), "z", DM4310, (-1.570796, 1.570796), (0.05, 0.029),
        0.5507, (-0.003, 0.0009, 0.0431), (0.065, 0.065, 0.11)),
    JointRow((0.0375, 0, 0.1205), "x", DM4310, (-0.785398, 0.785398), (0.093, 0.072),
        0.3852, (-0.0371, 0.0003, -0.0001), (0.06, 0.06, 0.06), 0.2),
    JointRow((-0.0375, 0, 0), "y", DM4310, (-1.570796, 1.570796), (0.172, 0.084),
        0.386, (0.0001, 0.0127, 0.0695), (0.06, 0.07, 0.09)),
)  # fmt: skip


def urdf_text() -> str:
    """Return the URDF of the arm."""
    turns = [np.eye(3), *(_turn(row.axis) for row in ROWS)]
    arm = ArmDescription(
        NAME,
        tuple(
            ChainSegment(_placement(i, turns), _joint(i, turns[i + 1])) for i in range(len(ROWS))
        ),
        base=_pedestal(),
        tool=tuple((turns[-1].T @ [0, 0, TOOL]).tolist()),
        tool_rotation=as_readonly(turns[-1].T),
        tool_shapes=(sphere(0.01, 0.0).with_material("red"),),
        materials=MATERIALS,
        hardware=ROS2_CONTROL_TOPICS | WIRES,
        comment=COMMENT.strip("\n"),
    )
    return format_urdf(arm)


def _joint(i: int, turn: Vector) -> JointSpec:
    row = ROWS[i]
    drive, (dry, viscous) = row.drive, row.friction
    return JointSpec(
        f"J{i + 1}",
        effort=drive.effort,
        velocity=drive.velocity,
        solids=_solids(row, turn, "orange" if i % 2 else "white"),
        lower=row.limits[0],
        upper=row.limits[1],
        initial=row.initial,
        damping=viscous,
        friction=dry,
        motor=_motor(drive),
        wiring={
            "id": str(i + 1),
            "motor": drive.name,
            "sign": "1",
            "offset": "0",
            "mechanical_reduction": "1",
        },
    )


def _motor(drive: MotorSheet) -> MotorSpec:
    constants = {
        "kt": round(drive.torque_constant / drive.gear, 6),
        "ke": round(SUPPLY / (drive.idle * drive.gear), 6),
        "resistance": drive.resistance,
        "gear_ratio": drive.gear,
        "rotor_inertia": drive.rotor,
        "supply_voltage": SUPPLY,
    }
    return MotorSpec("dc_motor", constants, commands=("effort",))


def _solids(row: JointRow, turn: Vector, material: str) -> tuple[Solid, ...]:
    body = (
        box(row.size, row.mass, row.center).transformed(turn.T, (0, 0, 0)).with_material(material)
    )
    return body, cylinder("z", 0.07, 0.03, 0.0).with_material("graphite")


def _placement(i: int, turns: list[Vector]) -> Vector:
    """Frame of joint i in that of the joint before: R_(i-1)^T R_i, R_(i-1)^T place."""
    placed = np.eye(4)
    placed[:3, :3] = turns[i].T @ turns[i + 1]
    placed[:3, 3] = turns[i].T @ ROWS[i].place
    return as_readonly(placed)


def _turn(axis: str) -> Vector:
    """Columns x, y, z of a frame whose z points along ``axis``, the others along its followers."""
    columns = np.roll(np.eye(3), -1 - "xyz".index(axis[-1]), axis=1)
    return as_readonly(columns * (1, -1, -1) if axis[0] == "-" else columns)


def _pedestal() -> tuple[Solid, ...]:
    return (
        box((0.16, 0.16, 0.02), 0.0, (0, 0, 0.01)).with_material("graphite"),
        cylinder("z", 0.0425, 0.05, 0.0, (0, 0, 0.04125)).with_material("steel"),
    )


if __name__ == "__main__":
    sys.stdout.write(urdf_text())
