"""Results folder of a gain search: parameter file, worst case, margins, figure, state."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager
from math import isfinite
from pathlib import Path

import yaml

from arm_dynamics.batch.tuning.cases import Cases
from arm_dynamics.batch.tuning.gain_search import TuningResult
from arm_dynamics.batch.tuning.margins import MarginRows, Margins
from arm_dynamics.batch.tuning.parameter_file import parameter_text
from arm_dynamics.batch.tuning.validation import ValidationResult
from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.files import replace_text, results_folder
from arm_dynamics.core.requirements import require_matplotlib

STATE, GAINS, WORST, MARGINS, REPORT = (
    "state.json", "gains.yaml", "worst_case.yaml", "margins.yaml", "report.png",
)  # fmt: skip
BACKUP = "state.before.json"
"""Backup of the state of the previous search."""


def prepared_results(folder: Path) -> AbstractContextManager[Path]:
    """Check what the results need before anything is computed; return a context of ``folder``.

    It creates the folder, and removes it after an exception if it is empty.

    Raises
    ------
    ConfigError
        If the folder cannot be written.
    ArmDynamicsError
        If matplotlib is missing, which the figure needs.

    """
    require_matplotlib("report")
    return results_folder(folder)


def backup_state(state: Path) -> None:
    """Back up the state of an earlier search; raises ConfigError if that fails."""
    try:
        if state.exists():
            os.replace(state, state.with_name(BACKUP))
    except OSError as error:
        raise ConfigError(
            f"{state}: {error.strerror}; expected a file that can be renamed"
        ) from error


def write_results(
    folder: Path,
    arm: str,
    controller: str,
    tuned: TuningResult,
    held: Mapping[str, ValidationResult],
    margins: MarginRows | None,
) -> tuple[Path, ...]:
    """Write all results to ``folder`` and return the files; raises ConfigError if that fails."""
    c, task = tuned.task.conditions, tuned.task
    notes = [
        f"Gains optimized over {task.cases} cases (seed {task.seed}),"
        f" {tuned.found.tried} evaluations: J = {tuned.cost:.4g} rad s,"
        f" initially {tuned.cost_before:.4g} rad s.",
        f"Payload up to {c.payload:g} kg, model error up to {c.model_error:.0%}, time steps of"
        f" {', '.join(f'{dt:g}' for dt in c.dts)} s, control period {c.period:g} s.",
        *([f"Separate tolerances: {', '.join(sorted(c.tolerances))}."] if c.tolerances else []),
        f"Command interface {c.interface}: gains of one interface do not suit another.",
        *(f"Validation, {name}: {one.text}." for name, one in held.items()),
    ]
    text = parameter_text(arm, controller, tuned.controller, tuned.gains, notes)
    worst = case_table(tuned.cases, tuned.worst_case, float(tuned.final_costs[tuned.worst_case]))
    files = [
        replace_text(folder / GAINS, text),
        replace_text(folder / WORST, yaml.safe_dump(worst, sort_keys=False)),
    ]
    if margins is not None:
        table = margin_table(tuned.controller.arm.joint_names, margins)
        files.append(replace_text(folder / MARGINS, yaml.safe_dump(table, sort_keys=False)))
    from arm_dynamics.batch.tuning.report import draw_report, save_figure  # noqa: PLC0415 - needs matplotlib

    return (*files, save_figure(draw_report(tuned, held, margins), folder / REPORT))


def case_table(cases: Cases, case: int, cost: float) -> dict[str, object]:
    """Return one case as plain numbers."""
    return {
        "case": case,
        "cost_rad_s": cost,
        "dt_s": float(cases.dt[case]),
        "joints": list(cases.arm.joint_names),
        "start": cases.start[case].tolist(),
        "target": cases.target[case].tolist(),
        "values": {name: rows[case].tolist() for name, rows in cases.vary.items()},
    }


def margin_table(joints: tuple[str, ...], margins: MarginRows) -> dict[str, object]:
    """Return the margins by joint; infinite ones and NaN as text."""
    return {
        title: {joint: _margin_values(m) for joint, m in zip(joints, rows, strict=True)}
        for title, rows in zip(
            ("initial_configuration", "minimum_over_cases"), margins, strict=True
        )
    }


def _margin_values(m: Margins) -> dict[str, object]:
    return {
        name: value if isfinite(value := float(getattr(m, field))) else str(value)
        for name, field in (
            ("gain_margin", "gain_margin"), ("gain_reduction", "gain_reduction"),
            ("phase_margin_deg", "phase_margin"), ("crossover_hz", "crossover"),
            ("delay_margin_s", "delay_margin"),
        )
    }  # fmt: skip
