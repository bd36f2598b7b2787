"""Common parts of the arms without motors: joints with ideal actuators, and visuals."""

from __future__ import annotations

from arm_dynamics.model.mdh import MdhLink, MdhRow
from arm_dynamics.model.mdh import urdf_text as chain_urdf_text
from arm_dynamics.model.solids import Solid, box, cylinder, sphere
from arm_dynamics.model.urdf_writer import ROS2_CONTROL_TOPICS, JointSpec, MotorSpec
from tools.urdf.five_dof import MATERIALS


def free_link(
    name: str,
    row: MdhRow,
    solids: tuple[Solid, ...],
    effort: float,
    velocity: float,
    *,
    initial: float = 0.0,
    damping: float = 0.0,
) -> MdhLink:
    """Return a link on a continuous joint with an ideal actuator.

    ``effort`` [N·m] and ``velocity`` [rad/s] are limits; the unit of ``damping`` is N·m·s/rad.
    """
    joint = JointSpec(
        name,
        effort,
        velocity,
        solids,
        kind="continuous",
        initial=initial,
        damping=damping,
        motor=MotorSpec("ideal"),
    )
    return MdhLink(row, joint)


def urdf_text(
    name: str,
    links: tuple[MdhLink, ...],
    base: tuple[Solid, ...],
    tool: tuple[float, float, float],
    comment: str,
) -> str:
    """Return the URDF of an arm of such links, with a red tool point."""
    return chain_urdf_text(
        name,
        links,
        base=base,
        tool=tool,
        tool_shapes=(sphere(0.02, 0.0).with_material("red"),),
        materials=MATERIALS,
        hardware=ROS2_CONTROL_TOPICS,
        comment=comment.strip("\n"),
    )


def bar(length: float, radius: float, level: float, material: str) -> Solid:
    """Weightless bar to draw: from the joint along x, ``level`` [m] along the joint's axis.

    Bars of a planar arm at different levels pass each other.
    """
    return cylinder("x", length, radius, 0.0, (length / 2, 0, level)).with_material(material)


def hub(radius: float, height: float, level: float = 0.0) -> Solid:
    """Weightless hub to draw around the joint's axis."""
    return cylinder("z", height, radius, 0.0, (0, 0, level)).with_material("graphite")


def wall_mount(start: float) -> tuple[Solid, ...]:
    """Weightless shaft along y, from ``start`` [m], and its plate: a planar arm turns before it."""
    return (
        cylinder("y", 0.25, 0.04, 0.0, (0, start + 0.125, 0)).with_material("steel"),
        box((0.3, 0.03, 0.3), 0.0, (0, start + 0.265, 0)).with_material("graphite"),
    )
