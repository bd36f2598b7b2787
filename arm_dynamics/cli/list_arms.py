"""List the bundled arms with their joints, actuators, mass and initial configuration."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from arm_dynamics.core import resources
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.load import load_arm
from arm_dynamics.model.robot_packages import packaged_names

COLUMNS = ("arm", "joints", "actuators", "mass [kg]", "initial q [rad, m]")
MAX_NAMES_WIDTH = 14
"""Largest number of characters of joint names that are listed in full."""


def run(arguments: Sequence[str]) -> int:
    """Print one row per arm."""
    SuggestingParser(prog="arm-dynamics list", description=__doc__).parse_args(arguments)
    table = Table(*map(escape, COLUMNS))  # rich would read [kg] as a style
    for name in resources.resource_names("urdf", ".urdf"):
        table.add_row(*arm_row(name, load_arm(name)))
    Console().print(table)
    packaged = packaged_names()
    if packaged:
        print(f"of the installed example-robot-data: {', '.join(packaged)}")
    return 0


def arm_row(name: str, arm: ArmModel) -> tuple[str, ...]:
    """Return the cells of an arm; positions in rad, those of prismatic joints with their unit m."""
    initial = zip(arm.joints, arm.configuration("initial").tolist(), strict=True)
    joints = " ".join(arm.joint_names)
    if len(joints) > MAX_NAMES_WIDTH:
        joints = f"{arm.joint_names[0]} …"
    return (
        name,
        f"{arm.nv}: {joints}",
        ", ".join(sorted({joint.actuator for joint in arm.joints})),
        f"{sum(inertia.mass for inertia in arm.links.inertias):.3g}",
        ", ".join(f"{q:.2g}{' m' if joint.unit == 'm' else ''}" for joint, q in initial),
    )
