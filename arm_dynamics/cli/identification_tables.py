"""Printed results of an identification."""

from __future__ import annotations

from arm_dynamics.cli.terminal import print_table
from arm_dynamics.identification.results.identification_result import Report


def print_report(report: Report) -> None:
    """Print the tables of a result, and its sentences."""
    for table in report.tables:
        print_table(*table)
    for line in report.lines:
        print(line)
