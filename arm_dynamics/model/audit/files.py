"""Mesh and texture files of a description: they exist and may be opened."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from arm_dynamics.model.audit.fault import Fault, title
from arm_dynamics.model.audit.robot import Robot
from arm_dynamics.model.mesh_files import candidates, find_mesh, may_open

RELATIVE = "write package://, or a path relative to the file with /"
UNRESOLVED = (
    (re.compile(r"\$[({]"), "it is a xacro expression", "expand the file with xacro first"),
    (re.compile(r"^(file:/*)?[A-Za-z]:[\\/]"), "it is a path of Windows", RELATIVE),
    (re.compile(r"\\"), "it has backslashes", RELATIVE),
)
"""Paths that other programs resolve, if any: pattern, kind and remedy."""


def file_faults(robot: Robot, folder: Path | None) -> Iterator[Fault]:
    """Yield a warning for each folder, package or kind of path with files that are not found.

    A missing file affects the display and self-collision, not the physics.
    """
    found: dict[tuple[str, str], list[Fault]] = {}
    owners = [child for child in robot.root.children if child.tag in {"link", "material"}]
    for owner, node in [(parent, below) for parent in owners for below in parent.walk()]:
        uri, element = node.get("filename"), f"{title(owner)} <{node.tag} filename>"
        if node.tag not in {"mesh", "texture"}:
            continue
        if uri:
            reason = _file_problem(uri, folder)
        elif node.tag == "mesh":  # a material may have only a color
            reason = f"line {node.line}", "filename is missing", 'write filename="…"'
        else:
            reason = None
        if reason is not None:
            place, problem, remedy = reason
            fault = Fault(node.line, element, uri or "", problem, remedy, "warning")
            found.setdefault((place, problem), []).append(fault)
    for first, *others in found.values():
        more = len({fault.value for fault in others} - {first.value})
        count = f" (and {more} other file{'s' * (more > 1)})" if more else ""
        yield replace(first, problem=first.problem + count)


def _file_problem(uri: str, folder: Path | None) -> tuple[str, str, str] | None:
    """Return the place of a file, the reason that it is not opened, and the remedy; else None."""
    scheme, separator, rest = uri.partition("://")
    places = candidates(uri, folder)
    if find_mesh(uri, folder) is not None:
        return None
    for pattern, kind, remedy in UNRESOLVED:
        if pattern.search(uri):
            return "", f"cannot be checked: {kind}", remedy
    if places is None and scheme == "package":
        name = rest.partition("/")[0]
        remedy = "source its workspace, or put its folder next to the description"
        problem = f"cannot be checked: package '{name}' is not above the file nor installed"
        return "", problem, remedy
    if places is None:
        problem = f"scheme '{scheme}' is not known" if separator else "the text has no folder"
        remedy = "use package://, file:// or a path relative to the file"
        return "", f"cannot be checked: {problem}", remedy
    near = [place for place in places if may_open(place, uri, folder)]
    if not near:
        problem = "is outside the description's folders and ROS packages: it is not opened"
        remedy = f"put it below {folder or 'the folder of the description'}, or into a package"
        return "", problem, remedy
    return str(near[0].parent), "does not exist", f"correct the path; looked for {near[0]}"
