"""Table of an identified payload."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from arm_dynamics.identification import PayloadFit
from arm_dynamics.identification.payload_fit import QUANTITIES

UNITS = ("kg", "m", "m", "m") + 6 * ("kg·m²",)


def print_payload_fit(fit: PayloadFit) -> None:
    """Print the payload in the tool frame, and the errors on held-out motion."""
    console = Console()
    table = Table(title=f"Payload in the tool frame '{fit.arm.tool_frame}'", title_justify="left")
    for head in ("quantity", "unit", "value", "standard deviation"):
        table.add_column(head)
    for name, unit, value, spread in zip(QUANTITIES, UNITS, fit.values, fit.deviation, strict=True):
        shown = "not distinguished" if name in fit.undetermined else f"{spread:.2g}"
        table.add_row(name, unit, f"{value:.4g}", shown)
    console.print(table)
    table = Table(title="Prediction on held-out motion", title_justify="left")
    for head in ("joint", "unit", "RMS without payload", "RMS with payload", "error with payload"):
        table.add_column(head, no_wrap=head == "joint")
    errors = zip(fit.before.rms, fit.after.rms, fit.after.relative_error, strict=True)
    for joint, (before, after, relative) in zip(fit.arm.joints, errors, strict=True):
        unit = "N" if joint.kind == "prismatic" else "N·m"
        row = (joint.name, unit, f"{before:.4g}", f"{after:.4g}", f"{100 * relative:.3g} %")
        table.add_row(*row)
    console.print(table)
    for note in fit.notes:
        print(note)
