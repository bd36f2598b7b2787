"""Printed result of a gravity calibration."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from arm_dynamics.identification.gravity_calibration import GravityFit


def print_gravity_fit(fit: GravityFit, stiffness: float | None) -> None:
    """Print the errors of the gravity torques and the friction of each joint."""
    table = Table(title="Gravity torques within the position limits", title_justify="left")
    for head in ("joint", "error before", "error after", "Coulomb friction", "effort offset"):
        table.add_column(head, justify="left" if head == "joint" else "right")
    values = (fit.effort_error_before, fit.effort_error, fit.coulomb, fit.offset)
    for i, joint in enumerate(fit.arm.joints):
        unit = "N" if joint.kind == "prismatic" else "N·m"
        table.add_row(joint.name, *(f"{float(value[i]):.3g} {unit}" for value in values))
    Console().print(table)
    print(f"condition number of the poses: {fit.condition:.1f}")
    if fit.saturated:
        listed = ", ".join(str(k + 1) for k in fit.saturated)
        print(f"poses with an effort at its limit, not used: {listed}")
    if stiffness is not None:
        worst = 1e3 * float(fit.sag_before(stiffness).max()), 1e3 * float(fit.sag(stiffness).max())
        print(f"largest sag: {worst[0]:.1f} mrad before, {worst[1]:.1f} mrad expected after")
