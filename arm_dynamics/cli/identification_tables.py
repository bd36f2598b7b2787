"""Printed results of identification, gravity calibration and payload identification."""

from __future__ import annotations

from arm_dynamics.cli.terminal import print_table
from arm_dynamics.identification import nominal_parameters
from arm_dynamics.identification.gravity.gravity_calibration import GravityFit
from arm_dynamics.identification.payload.payload_fit import QUANTITIES, PayloadFit
from arm_dynamics.identification.results.fit_report import fit_tables
from arm_dynamics.identification.results.fit_summary import FitSummary


def print_summary(summary: FitSummary) -> None:
    """Print the tables of a fit, the parameters that it does not distinguish, and its notes."""
    joints, parameters = fit_tables(summary)
    print_table(*parameters)
    print_table(*joints)
    if summary.groups:
        print("Not distinguished by this motion; the description determines these values too:")
        for group in summary.groups:
            print(f"  {group}")
    for note in summary.notes:
        print(note)


def print_gravity_fit(fit: GravityFit, stiffness: float | None) -> None:
    """Print the gravity torques and friction of joints, and the parameters of the links."""
    values = (fit.effort_error_before, fit.effort_error, fit.coulomb, fit.offset)
    rows = []
    for i, joint in enumerate(fit.arm.joints):
        unit = "N" if joint.kind == "prismatic" else "N·m"
        rows.append((joint.name, *(f"{float(value[i]):.3g} {unit}" for value in values)))
    heads = ("joint", "error before", "error after", "Coulomb friction", "effort offset")
    print_table("Gravity torques within the position limits", heads, rows)
    prior, found = (fit.base.values(x) for x in (nominal_parameters(fit.arm), fit.parameters))
    rows = []
    for k, column in enumerate(fit.base.independent.tolist()):
        if column < 10 * fit.arm.nv:
            unit = "kg" if fit.base.names[column].endswith(".m") else "kg·m"
            cells = f"{prior[k]:.4g}", f"{found[k]:.4g}", f"{fit.base_deviation[k]:.2g}"
            rows.append((fit.base.describe(k), unit, *cells))
    heads = ("combination", "unit", "prior", "value", "standard deviation")
    print_table("Mass m and mass times center of mass mx, my, mz", heads, rows)
    print(f"not determined by gravity; the description determines them: {_listed(fit)}")
    print(f"condition number of the poses: {fit.condition:.1f}")
    if fit.saturated:
        listed = ", ".join(str(k + 1) for k in fit.saturated)
        print(f"poses with an effort at its limit, not used: {listed}")
    if stiffness is not None:
        worst = 1e3 * float(fit.sag_before(stiffness).max()), 1e3 * float(fit.sag(stiffness).max())
        print(f"largest sag: {worst[0]:.1f} mrad before, {worst[1]:.1f} mrad expected after")


def _listed(fit: GravityFit) -> str:
    """Return the undetermined parameters, "viscous of all joints; m, mx of J1, J2"."""
    joints: dict[str, list[str]] = {}
    for name in fit.undetermined:
        joint, _, term = name.rpartition(".")
        joints.setdefault(term, []).append(joint)
    terms: dict[str, list[str]] = {}
    for term, own in joints.items():
        where = "all joints" if len(own) == fit.arm.nv else ", ".join(own)
        terms.setdefault(where, []).append(term)
    return "; ".join(f"{', '.join(own)} of {where}" for where, own in terms.items())


UNITS = ("kg", "m", "m", "m") + 6 * ("kg·m²",)


def print_payload_fit(fit: PayloadFit) -> None:
    """Print the payload in the tool frame, and the errors on held-out motion."""
    rows = []
    for name, unit, value, spread in zip(QUANTITIES, UNITS, fit.values, fit.deviation, strict=True):
        shown = "not distinguished" if name in fit.undetermined else f"{spread:.2g}"
        rows.append((name, unit, f"{value:.4g}", shown))
    title = f"Payload in the tool frame '{fit.arm.tool_frame}'"
    print_table(title, ("quantity", "unit", "value", "standard deviation"), rows)
    errors_by_joint = []
    errors = zip(fit.before.rms, fit.after.rms, fit.after.relative_error, strict=True)
    for joint, (before, after, relative) in zip(fit.arm.joints, errors, strict=True):
        unit = "N" if joint.kind == "prismatic" else "N·m"
        errors_by_joint.append(
            (joint.name, unit, f"{before:.4g}", f"{after:.4g}", f"{100 * relative:.3g} %")
        )
    heads = ("joint", "unit", "RMS without payload", "RMS with payload", "error with payload")
    print_table("Prediction on held-out motion", heads, errors_by_joint)
    for note in fit.notes:
        print(note)
