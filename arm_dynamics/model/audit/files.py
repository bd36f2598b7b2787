"""Mesh and texture files of a description: they exist and may be opened."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from arm_dynamics.model.audit.fault import Fault, title
from arm_dynamics.model.audit.robot import Robot
from arm_dynamics.model.mesh_files import candidates, find_mesh, may_open
from arm_dynamics.model.xml_source import Node

_DRIVE = re.compile(r"(file:/*)?[A-Za-z]:[\\/]")
"""Start of an absolute path of Windows."""


def file_faults(robot: Robot, folder: Path | None) -> Iterator[Fault]:
    """Yield a warning for each missing file, and one for each package not found.

    A missing file affects the display and self-collision, not the physics.
    """
    unknown: set[str] = set()
    owners = [child for child in robot.root.children if child.tag in {"link", "material"}]
    for owner, node in [(parent, below) for parent in owners for below in parent.walk()]:
        uri, element = node.get("filename"), f"{title(owner)} <{node.tag} filename>"
        if node.tag not in {"mesh", "texture"}:
            continue
        if not uri:
            if node.tag == "mesh":  # a material may have only a color
                problem, remedy = "filename is missing", 'write filename="…"'
                yield Fault(node.line, element, "", problem, remedy, "warning")
            continue
        if find_mesh(uri, folder) is not None:
            continue
        if (reason := _foreign_path(uri)) is not None:
            yield Fault(node.line, element, uri, *reason, "warning")
            continue
        places = candidates(uri, folder)
        if places is None:
            yield from _unknown_source(node, element, uri, unknown)
        elif not (near := [place for place in places if may_open(place, uri, folder)]):
            problem = "is outside the description's folders and ROS packages: it is not opened"
            remedy = f"put it below {folder or 'the folder of the description'}, or into a package"
            yield Fault(node.line, element, uri, problem, remedy, "warning")
        else:
            remedy = f"correct the path; looked for {near[0]}"
            yield Fault(node.line, element, uri, "does not exist", remedy, "warning")


def _foreign_path(uri: str) -> tuple[str, str] | None:
    """Return problem and remedy of a path that only xacro or Windows resolves, else None."""
    relative = "write package://, or a path relative to the file with /"
    if "$(" in uri or "${" in uri:
        return "cannot be checked: it is a xacro expression", "expand the file with xacro first"
    if _DRIVE.match(uri):
        return "cannot be checked: it is a path of Windows", relative
    if "\\" in uri:
        return "cannot be checked: it has backslashes", relative
    return None


def _unknown_source(node: Node, element: str, uri: str, unknown: set[str]) -> Iterator[Fault]:
    """Yield one warning for each package or scheme that is not known.

    Without a folder, relative paths are not checked.
    """
    scheme, separator, rest = uri.partition("://")
    source = rest.partition("/")[0] if scheme == "package" else scheme
    if not separator or source in unknown:
        return
    unknown.add(source)
    if scheme == "package":
        problem = f"cannot be checked: package '{source}' is not above the file nor installed"
        remedy = "source its workspace, or put its folder next to the description"
    else:
        problem = f"cannot be checked: scheme '{scheme}' is not known"
        remedy = "use package://, file:// or a relative path"
    yield Fault(node.line, element, uri, problem, remedy, "warning")
