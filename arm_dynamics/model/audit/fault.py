"""A fault of a robot description: line, element, problem and remedy."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from arm_dynamics.core.errors import ArmDynamicsError, closest_name
from arm_dynamics.model.xml_source import Node

Severity = Literal["error", "warning"]
MAX_LISTED = 50
MAX_COMPARED = 200
"""Names among which the nearest is searched: each fault compares with all of them."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault; ``problem`` continues the sentence that ``value`` begins, if there is one."""

    line: int
    element: str
    value: str
    problem: str
    remedy: str
    severity: Severity = "error"

    def __str__(self) -> str:
        mark = "warning: " if self.severity == "warning" else ""
        try:  # a number has no quotes, any other text has
            float(self.value)
            subject = f"{_cut(self.value)} "
        except ValueError:
            subject = f"'{_cut(self.value)}' " if self.value else ""
        text = f"line {self.line}: {mark}{self.element}: {subject}{self.problem}; {self.remedy}"
        return " ".join(text.split())


class UrdfRejected(ArmDynamicsError):
    """A robot description with errors: the message reports all ``faults``."""

    def __init__(self, source_name: str, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__(format_report(source_name, self.faults))


def format_report(source_name: str, faults: Iterable[Fault]) -> str:
    """Return the faults, counted and sorted by line, one a line."""
    ordered = sorted(faults, key=lambda fault: fault.line)
    if not ordered:
        return f"{source_name}: no faults"
    errors = sum(fault.severity == "error" for fault in ordered)
    counts = f"{_count(errors, 'error')}, {_count(len(ordered) - errors, 'warning')}"
    return "\n".join([f"{source_name}: {counts}", *(f"  {fault}" for fault in ordered)])


def title(node: Node) -> str:
    """Return ``joint 'R2'``: an element and its name, as a report shows them."""
    name = node.get("name")
    return f"{node.tag} '{_cut(name)}'" if name else f"<{node.tag}> without a name"


def suggest(name: str, known: Collection[str], what: str) -> str:
    """Return the nearest known name as a remedy, else the known names; of very many, the first."""
    near = closest_name(name, sorted(known)) if len(known) <= MAX_COMPARED else ""
    return f"did you mean '{near}'?" if near else f"{what}: {listed(sorted(known))}"


def listed(names: Sequence[str]) -> str:
    """Return the names in a line, or "none"; of very many, the first."""
    shown = ", ".join(map(_cut, names[:MAX_LISTED])) or "none"
    return f"{shown} … ({len(names)} in all)" if len(names) > MAX_LISTED else shown


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _cut(text: str, length: int = 80) -> str:
    return text if len(text) <= length else f"{text[:length]}…"
