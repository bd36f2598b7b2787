"""``arm-dynamics list``: the bundled arms in a table."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from arm_dynamics.core import resources
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.load import load_arm

COLUMNS = ("arm", "joints", "actuators", "mass [kg]", "initial pose [rad, m]")
MAX_NAMES_WIDTH = 20
"""Letters of joint names that are listed in full."""


def run(arguments: Sequence[str]) -> int:
    """Print one row an arm."""
    argparse.ArgumentParser(prog="arm-dynamics list", description=__doc__).parse_args(arguments)
    table = Table(*map(escape, COLUMNS))  # rich would take [kg] for a style
    for name in resources.resource_names("urdf", ".urdf"):
        table.add_row(*arm_row(name, load_arm(name)))
    Console().print(table)
    return 0


def arm_row(name: str, arm: ArmModel) -> tuple[str, ...]:
    """One text a column; positions in rad, those of prismatic joints with their unit m."""
    pose = zip(arm.joints, arm.configuration("initial").tolist(), strict=True)
    return (
        name,
        f"{arm.nv}: {_listed(arm.joint_names)}",
        ", ".join(sorted({joint.actuator for joint in arm.joints})),
        f"{sum(inertia.mass for inertia in arm.links.inertias):.3g}",
        ", ".join(f"{value:.3g}{' m' if joint.unit == 'm' else ''}" for joint, value in pose),
    )


def _listed(names: Sequence[str]) -> str:
    """All names where they are short, else the first and the last."""
    whole = " ".join(names)
    return whole if len(whole) <= MAX_NAMES_WIDTH else f"{names[0]} … {names[-1]}"
