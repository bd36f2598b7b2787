"""Files: the meshes and textures that a description names are there, and may be opened."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from arm_dynamics.model.audit.fault import Fault, Severity, title
from arm_dynamics.model.audit.robot import Robot
from arm_dynamics.model.mesh_files import candidates, may_open
from arm_dynamics.model.xml_source import Node


def check(robot: Robot, folder: Path | None) -> Iterator[Fault]:
    """Yield a fault for each missing file, and one warning for each package not found."""
    unknown: set[str] = set()
    for owner in robot.root.children:
        if owner.tag in {"link", "material"}:
            for node in owner.walk():
                if node.tag in {"mesh", "texture"}:
                    yield from _file(owner, node, folder, unknown)


def _file(owner: Node, node: Node, folder: Path | None, unknown: set[str]) -> Iterator[Fault]:
    uri = node.get("filename")
    element = f"{title(owner)} <{node.tag} filename>"
    if not uri and node.tag == "texture":
        return  # a material may name its colour alone
    if not uri:
        yield Fault(node.line, element, "", "filename is missing", 'write filename="…"')
        return
    places = candidates(uri, folder)
    if places is None:
        yield from _unknown(node, element, uri, unknown)
    elif not (near := [place for place in places if may_open(place, uri, folder)]):
        problem = "is outside the description's folders and ROS packages: it is not opened"
        remedy = f"put it below {folder or 'the folder of the description'}, or into a package"
        yield Fault(node.line, element, uri, problem, remedy, "warning")
    elif not any(os.path.isfile(place) for place in near):
        remedy = f"correct the path; looked for {near[0]}"
        severity: Severity = "error" if node.tag == "mesh" else "warning"
        yield Fault(node.line, element, uri, "does not exist", remedy, severity)


def _unknown(node: Node, element: str, uri: str, unknown: set[str]) -> Iterator[Fault]:
    """One warning for each package or scheme; without a folder, relative paths are not checked."""
    scheme, separator, rest = uri.partition("://")
    source = rest.partition("/")[0] if scheme == "package" else scheme
    if not separator or source in unknown:
        return
    unknown.add(source)
    if scheme == "package":
        problem = f"cannot be checked: package '{source}' is not above the file nor installed"
        remedy = "source its workspace, or put its folder beside the description"
    else:
        problem = f"cannot be checked: scheme '{scheme}' is not known"
        remedy = "use package://, file:// or a relative path"
    yield Fault(node.line, element, uri, problem, remedy, "warning")
