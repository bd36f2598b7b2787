"""Report of an identification: tables for a terminal, and one HTML file with all figures in it.

The input are plain values (``FitSummary``). The HTML file has no scripts and loads nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from math import isfinite
from pathlib import Path
from typing import NamedTuple

from arm_dynamics.core.files import output_file
from arm_dynamics.core.requirements import require_matplotlib
from arm_dynamics.identification.results.fit_summary import FitSummary, ParameterFit

MISSING = "-"
"""Cell of a value that is not known."""
UNDETERMINED = "not distinguished"
"""Cell of a deviation of a parameter that the motion does not determine."""

MAX_PERCENT = 1000.0
"""Deviation from which on it has the unit of the value."""


class FitTable(NamedTuple):
    """Cells of a table as text."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def fit_tables(summary: FitSummary) -> tuple[FitTable, FitTable]:
    """Return the tables of joints and of parameters."""
    heads: tuple[str, ...] = ("joint", "unit", "RMS before", "RMS after", "error before")
    heads, errors = (*heads, "error after"), ["error_before", "error_after"]
    if any(isfinite(joint.error_urdf) for joint in summary.joints):
        heads, errors = (*heads, "error of the URDF"), [*errors, "error_urdf"]
    joints = tuple(
        (
            joint.name,
            joint.unit,
            *(_number(x) for x in (joint.rms_before, joint.rms_after)),
            *(_percent(100 * getattr(joint, name)) for name in errors),
        )
        for joint in summary.joints
    )
    parameters = tuple(
        (
            one.name,
            one.unit,
            _number(one.prior),
            _number(one.value),
            _deviation(one) if one.is_determined else UNDETERMINED,
        )
        for one in summary.parameters
    )
    columns = ("parameter", "unit", "prior", "value", "standard deviation")
    return (
        FitTable("Prediction on held-out motion", heads, joints),
        FitTable("Parameters", columns, parameters),
    )


def fit_lines(summary: FitSummary) -> list[str]:
    """Return the sentences after the tables in a terminal."""
    groups = [f"  {group}" for group in summary.groups]
    heading = "Not identifiable from this trajectory; values near those of the nominal model:"
    return [*([heading] if groups else []), *groups, *summary.notes]


def fit_html(summary: FitSummary) -> str:
    """Return the report as one HTML page with tables and figures.

    Raises
    ------
    ArmDynamicsError
        If matplotlib is missing, which the figures need.

    """
    require_matplotlib("report")
    from arm_dynamics.identification.results.fit_figure import prediction_figure  # noqa: PLC0415 - needs matplotlib

    joints, parameters = fit_tables(summary)
    figures = [
        f"<figure>{prediction_figure(joint, summary.quantity)}<figcaption>{escape(joint.name)}:"
        f" measured and predicted {summary.quantity}, and residuals</figcaption></figure>"
        for joint in summary.joints
        if joint.time.size
    ]
    determined = [one.is_determined for one in summary.parameters]
    parts = [
        f"<h1>{escape(_heading(summary))}</h1>",
        *(f"<p>{escape(line)}</p>" for line in _sources(summary)),
        _table(joints),
        *([f"<h2>{summary.quantity.capitalize()}s</h2>", *figures] if figures else []),
        _table(parameters, determined),
    ]
    for title, entries in _lists(summary):
        items = "".join(f"<li>{escape(entry)}</li>" for entry in entries)
        parts.append(f"<h2>{escape(title)}</h2><ul>{items}</ul>")
    body = "\n".join(parts)
    return PAGE.format(title=escape(_heading(summary)), style=STYLE, body=body)


def write_fit_report(summary: FitSummary, file: Path) -> Path:
    """Write ``fit_html`` to a file; raises ConfigError if that fails."""
    text = fit_html(summary)
    with output_file(file) as path:
        path.write_text(text, encoding="utf-8")
    return file


def _heading(summary: FitSummary) -> str:
    return f"{summary.arm}: identification of {summary.date}"


def _sources(summary: FitSummary) -> Iterator[str]:
    yield f"Fitted: {', '.join(summary.sources) or 'no recording'}."
    yield f"Held out: {', '.join(summary.held_out) or 'no recording'}."
    yield f"Condition number of the weighted base regressor: {_number(summary.condition)}."


def _lists(summary: FitSummary) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield title and entries of the lists that have any."""
    if summary.groups:
        yield (
            "Parameters not identifiable from this trajectory; the prior contributes to them",
            summary.groups,
        )
    if summary.combinations:
        yield "Combinations that the efforts determine", summary.combinations
    if summary.notes:
        yield "Notes", summary.notes


def _table(table: FitTable, determined: Sequence[bool] = ()) -> str:
    """Return a table; rows of parameters that are not determined are dimmed."""
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in table.heads)
    rows = []
    for k, (first, *others) in enumerate(table.rows):
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in others)
        dim = ' class="dim"' if determined and not determined[k] else ""
        rows.append(f'<tr{dim}><th scope="row">{escape(first)}</th>{cells}</tr>')
    body = "\n".join(rows)
    return (
        f"<h2>{escape(table.title)}</h2>\n<table><thead><tr>{head}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody></table>"
    )


def _number(value: float) -> str:
    return f"{value:.4g}" if isfinite(value) else MISSING


def _deviation(one: ParameterFit) -> str:
    """Return the deviation in per cent, in the unit of a value that is small next to it."""
    if one.deviation < MAX_PERCENT:
        return _percent(one.deviation)
    return f"{max(abs(one.value), 1e-12) * one.deviation / 100:.3g} {one.unit}".removesuffix(" 1")


def _percent(value: float) -> str:
    return f"{value:.3g} %" if isfinite(value) else MISSING


STYLE = """
:root { color-scheme: light dark; --ink: #222222; --paper: #ffffff; --faint: #6f6f6f;
  --grid: #e4e4e4; --before: #d55e00; --after: #0072b2; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6e6; --paper: #17191c; --faint: #9a9a9a; --grid: #34373c;
    --before: #f0813a; --after: #56b4e9; }
}
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 "DejaVu Sans", system-ui, sans-serif; }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.2rem 0.9rem 0.2rem 0; text-align: right; border-bottom: 1px solid var(--grid); }
th:first-child, td:nth-child(2) { text-align: left; }
tbody th { font-weight: normal; }
.dim { color: var(--faint); }
figure { margin: 1rem 0; overflow-x: auto; } figcaption { color: var(--faint); }
figure svg { width: 100%; height: auto; color: var(--ink); fill: currentColor; }
figure svg text { font-family: inherit !important; }
"""
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""
