"""Mesh and texture files of a description: they exist and may be opened."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from arm_dynamics.model.audit.fault import Fault, Severity, title
from arm_dynamics.model.audit.robot import Robot
from arm_dynamics.model.mesh_files import candidates, may_open
from arm_dynamics.model.xml_source import Node


def file_faults(robot: Robot, folder: Path | None) -> Iterator[Fault]:
    """Yield a fault for each missing file, and one warning for each package not found."""
    unknown: set[str] = set()
    owners = [child for child in robot.root.children if child.tag in {"link", "material"}]
    for owner, node in [(parent, below) for parent in owners for below in parent.walk()]:
        uri, element = node.get("filename"), f"{title(owner)} <{node.tag} filename>"
        if node.tag not in {"mesh", "texture"}:
            continue
        if not uri:
            if node.tag == "mesh":  # a material may have only a color
                yield Fault(node.line, element, "", "filename is missing", 'write filename="…"')
            continue
        places = candidates(uri, folder)
        if places is None:
            yield from _unknown_source(node, element, uri, unknown)
        elif not (near := [place for place in places if may_open(place, uri, folder)]):
            problem = "is outside the description's folders and ROS packages: it is not opened"
            remedy = f"put it below {folder or 'the folder of the description'}, or into a package"
            yield Fault(node.line, element, uri, problem, remedy, "warning")
        elif not any(os.path.isfile(place) for place in near):
            remedy = f"correct the path; looked for {near[0]}"
            severity: Severity = "error" if node.tag == "mesh" else "warning"
            yield Fault(node.line, element, uri, "does not exist", remedy, severity)


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
