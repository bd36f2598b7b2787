"""Parallel gripper with a linear actuator, and the arms five_dof and puma560 with it.

``python -m tools.urdf.parallel_gripper five_dof > urdf/five_dof_gripper.urdf`` writes a URDF.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import pi

import numpy as np

from arm_dynamics.core.arrays import Matrix, as_readonly
from arm_dynamics.core.errors import UnknownName
from arm_dynamics.model import dh, mdh
from arm_dynamics.model.solids import Solid, box, sphere
from arm_dynamics.model.urdf_writer import (
    ROS2_CONTROL_TOPICS,
    ArmDescription,
    ChainSegment,
    JointSpec,
    MotorSpec,
    format_urdf,
)
from tools.urdf import five_dof, puma560
from tools.urdf.puma560_visuals import BASE

COMMENT = """
  {name}: {arm} with a parallel gripper of two jaws.
  Written by `python -m tools.urdf.parallel_gripper {arm}`: edit the tables, not this file.
  The arm, its motors and its sources are those of {arm}.urdf.

  Sources
  [L16] Actuonix L16-50-35-12: linear actuator with brushed DC motor, gear 1:35 and screw. 12 V,
        0.65 A at stall, 32 mm/s without load, 16 mm/s at 50 N, 24 mm/s at 24 N, at most 50 N,
        31 N to drive it back, stroke 50 mm, 56 g, 118 mm long.

  One jaw is fixed to the hand, the actuator moves the other one along the joint 'gripper'. Its
  position is the distance of the two parallel inner faces. That of the fixed jaw contains the axis
  of the last joint, and the tool point, 10 mm from its tip.
  Bodies: plates and jaws of aluminum, 2700 kg/m^3, boxes designed for this description.
  Motor: dry friction is the force to drive it back. Stall force, 100 N by the two loads of [L16],
  plus friction gives kt; speed without load gives ke. kt contains the losses of the gear, so that
  an effort is that of the rod. Screw lead (4 mm) and rotor inertia (0.6 g cm^2) are not published:
  those of motors of this size.
  Limits: effort is the largest force and the friction, velocity the speed without load.
"""

DENSITY = 2700.0
"""Density of aluminum [kg/m³]."""
STROKE, SPEED, FORCE = 0.05, 0.032, 50.0
"""Stroke [m], speed without load [m/s] and largest force [N]."""
VOLTAGE, STALL_CURRENT, STALL_FORCE, FRICTION = 12.0, 0.65, 100.0, 31.0
"""Supply [V], current [A] and force [N] at stall, force to drive back [N]."""
GEAR = 35 * 2 * pi / 0.004
"""Rotation of the motor per distance [rad/m]."""
ROTOR = 6e-8
"""Rotor inertia [kg·m²]."""
TOOL = 0.083
"""Distance of the tool point from the flange [m]."""


def motor() -> MotorSpec:
    """Return the motor: kt I_s = F_s + f, R = V / I_s, V = ke v₀ + R f / kt, at the rod."""
    resistance = VOLTAGE / STALL_CURRENT
    kt = (STALL_FORCE + FRICTION) / STALL_CURRENT
    ke = (VOLTAGE - resistance * FRICTION / kt) / SPEED
    values = {
        "kt": kt / GEAR,
        "ke": ke / GEAR,
        "resistance": resistance,
        "coulomb_friction": FRICTION / GEAR,
        "rotor_inertia": ROTOR,
        "supply_voltage": VOLTAGE,
        "gear_ratio": GEAR,
    }
    constants = {name: float(f"{value:.4g}") for name, value in values.items()}
    return MotorSpec("dc_motor", constants, commands=("effort",))


def with_gripper(segments: tuple[ChainSegment, ...], flange: Matrix) -> tuple[ChainSegment, ...]:
    """Return a chain with the gripper at ``flange`` (4, 4) in the last link, z away from it.

    The jaw moves along x of the flange.
    """
    turned, shift = flange[:3, :3], flange[:3, 3]
    hand = tuple(solid.transformed(turned, shift) for solid in _hand())
    last = segments[-1].joint
    held = replace(segments[-1], joint=replace(last, solids=(*last.solids, *hand)))
    rail = np.eye(4)  # z of the joint is x of the flange, x is y
    rail[:3, :3] = [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    jaw = _plate((0.03, 0.068, 0.01), (0, 0.059, 0.005))
    gripper = JointSpec(
        "gripper",
        effort=FORCE + FRICTION,
        velocity=SPEED,
        solids=(jaw,),
        kind="prismatic",
        lower=0.0,
        upper=STROKE,
        initial=0.04,
        motor=motor(),
    )
    return (*segments[:-1], held, ChainSegment(as_readonly(flange @ rail), gripper))


def _hand() -> tuple[Solid, ...]:
    """Return palm, actuator and fixed jaw in flange axes."""
    actuator = box((0.118, 0.018, 0.015), 0.056, (0.015, 0, 0.0155)).with_material("graphite")
    palm = _plate((0.13, 0.04, 0.008), (0.015, 0, 0.004))
    return palm, actuator, _plate((0.01, 0.03, 0.07), (-0.005, 0, 0.058))


def _plate(size: tuple[float, float, float], center: tuple[float, float, float]) -> Solid:
    mass = round(DENSITY * float(np.prod(size)), 4)
    return box(size, mass, center).with_material("steel")


def five_dof_text() -> str:
    """Return the URDF of five_dof with the gripper, whose jaw moves along the axis of R5."""
    flange = np.eye(4)
    flange[:3, :3] = [[0, 1, 0], [0, 0, 1], [1, 0, 0]]
    flange[:3, 3] = (0, 0.085, 0)
    return _text("five_dof", mdh.chain_segments(five_dof.link_table()), flange, five_dof.pedestal())


def puma560_text() -> str:
    """Return the URDF of puma560 with the gripper at its flange."""
    flange = np.eye(4)
    flange[:3, 3] = puma560.TOOL
    return _text("puma560", dh.chain_segments(puma560.link_table()), flange, BASE)


def _text(
    arm: str, segments: tuple[ChainSegment, ...], flange: Matrix, base: tuple[Solid, ...]
) -> str:
    name, (x, y, z) = f"{arm}_gripper", flange[:3, 3] + TOOL * flange[:3, 2]
    return format_urdf(
        ArmDescription(
            name,
            with_gripper(segments, flange),
            base=base,
            tool=(float(x), float(y), float(z)),
            tool_rotation=as_readonly(flange[:3, :3]),
            tool_link=segments[-1].joint.link,
            tool_shapes=(sphere(0.004, 0.0).with_material("red"),),
            materials=five_dof.MATERIALS,
            hardware=ROS2_CONTROL_TOPICS,
            comment=COMMENT.strip("\n").format(name=name, arm=arm),
        )
    )


TEXTS: Mapping[str, Callable[[], str]] = {"five_dof": five_dof_text, "puma560": puma560_text}


def urdf_text(arm: str) -> str:
    """Return the URDF of an arm with the gripper; raises UnknownName for other arms."""
    if arm not in TEXTS:
        raise UnknownName("arm with a parallel gripper", arm, tuple(TEXTS))
    return TEXTS[arm]()


if __name__ == "__main__":
    sys.stdout.write(urdf_text(*sys.argv[1:]))
