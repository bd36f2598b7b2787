"""Report of a fit on a page."""

from __future__ import annotations

from html import escape

from arm_dynamics.identification.page.work import Fit
from arm_dynamics.identification.results.fit_report import FitTable
from arm_dynamics.viewer.controls import BAD, GOOD
from arm_dynamics.viewer.table import DIM, GRID, RIGHT, STYLE

HEAD = f"text-align:right;padding-left:5px;vertical-align:bottom;{DIM}"
"""Style of a header, which may have several lines."""


def report_html(fit: Fit) -> str:
    """Return usability, warnings, tables and notes; long tables scroll."""
    warnings = "".join(
        f"<div style='color:{BAD}'>{escape(text)}</div>" for text in (*fit.warnings, *fit.remarks)
    )
    color, text = (BAD, "not usable") if fit.warnings else (GOOD, "usable")
    notes = "".join(
        f"<div style='{DIM}white-space:pre-wrap'>{escape(line)}</div>"
        for line in fit.report.lines
        if line not in fit.warnings
    )
    return (
        f"<div style=\"{STYLE};overflow-wrap:anywhere\"><b style='color:{color}'>{text}</b>"
        f"{warnings}{''.join(map(_table, fit.report.tables))}{notes}</div>"
    )


def _table(table: FitTable) -> str:
    heads = "".join(f"<th style='{HEAD}'>{escape(head)}</th>" for head in table.heads)
    rows = "".join(
        f"<tr>{''.join(f'<td style={chr(34)}{RIGHT}{chr(34)}>{escape(x)}</td>' for x in row)}</tr>"
        for row in table.rows
    )
    return (
        f"<div style='padding-top:.5em'>{escape(table.title)}</div>"
        "<div style='max-height:17em;overflow:auto'>"
        f"<table style='{GRID}'><tr>{heads}</tr>{rows}</table></div>"
    )
