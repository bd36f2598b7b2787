"""``arm-dynamics list``: the bundled arms in a table."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from arm_dynamics import resources
from arm_dynamics.model.load import load_arm


def run(arguments: Sequence[str]) -> int:
    """Print one row an arm."""
    argparse.ArgumentParser(prog="arm-dynamics list", description=__doc__).parse_args(arguments)
    table = Table("arm", "joints", "actuators", "mass [kg]", "initial pose [rad]")
    for name in resources.names("urdf", ".urdf"):
        arm = load_arm(name)
        table.add_row(
            name,
            ", ".join(arm.joint_names),
            ", ".join(sorted({joint.actuator for joint in arm.joints})),
            f"{sum(inertia.mass for inertia in arm.links.inertias):.3g}",
            ", ".join(f"{value:g}" for value in arm.pose("initial")),
        )
    Console().print(table)
    return 0
