"""Folders in which a description's meshes and textures may be opened: its folders and packages.

A third-party description must not choose which files of this machine are opened. Its folders are
the folder of the file, its parent if that folder is called "urdf" or "robots", and the ROS package
around it: the nearest folder above that has a package.xml. Other packages also have a package.xml.
They are next to one of these folders or installed: in ``<prefix>/share`` of AMENT_PREFIX_PATH or in
a folder of ROS_PACKAGE_PATH.

COLLADA files state their unit of length. RViz and Gazebo multiply by it; trimesh and coal ignore
it. All four ignore ``<up_axis>``: coordinates are in the axes of the link, as RViz draws them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from math import inf
from pathlib import Path
from urllib.parse import unquote
from xml.etree import ElementTree

URDF_FOLDERS = ("urdf", "robots")
"""Names of folders whose descriptions have their meshes in a folder next to them."""
MANIFEST = "package.xml"


def candidates(uri: str, folder: Path | None) -> list[Path] | None:
    """Return the possible paths of a mesh; None if its package or scheme is not known.

    ``package://name/path`` is searched in folders ``name`` at and above ``folder``, then in
    the installed packages; ``file://`` is absolute; any other path is relative to ``folder``.
    """
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return [Path(folder or "", uri)] if folder or uri.startswith("/") else None
    if scheme == "file":
        path = unquote(rest).replace("\0", "")
        return [Path(path)] if path.startswith("/") else None
    if scheme != "package":
        return None
    name, _, path = rest.partition("/")
    return [package / path for package in _packages(name, folder)] or None


def may_open(path: Path, uri: str, folder: Path | None) -> bool:
    """Return whether a candidate for ``uri`` is in the description's folders or in a package.

    Symbolic links may not point out of these folders. Those of installed packages may: a workspace
    is installed as links.
    """
    plain, real = Path(os.path.abspath(path)), Path(os.path.realpath(path))
    if any(plain.is_relative_to(place) for place in _installed()):
        return True
    allowed: list[Path] = []
    scheme, _, rest = uri.partition("://")
    if scheme == "package":
        packages = _packages(rest.partition("/")[0], folder)
        allowed += [place for place in packages if (place / MANIFEST).is_file()]
    if folder is not None:
        here = Path(os.path.abspath(folder))
        allowed += [here, here.parent] if here.name in URDF_FOLDERS else [here]
        above = (place for place in (here, *here.parents) if (place / MANIFEST).is_file())
        allowed += [next(above, here)]
    return any(real.is_relative_to(os.path.realpath(place)) for place in allowed)


def find_mesh(uri: str, folder: Path | None) -> Path | None:
    """Return the file of a mesh that may be opened, or None."""
    places = candidates(uri, folder) or []
    return next((p for p in places if may_open(p, uri, folder) and os.path.isfile(p)), None)


def find_package(name: str, folder: Path | None) -> Path | None:
    """Return the folder of a ROS package with a package.xml: near ``folder``, else installed."""
    return next((p for p in _packages(name, folder) if (p / MANIFEST).is_file()), None)


def mesh_unit(file: Path) -> float:
    """Return the unit of length [m] of a mesh file: that of COLLADA's ``<asset>``, else 1."""
    if file.suffix.lower() != ".dae":
        return 1.0
    try:
        for _, node in ElementTree.iterparse(file):
            tag = node.tag.rpartition("}")[2]
            if tag == "unit" and 0 < (unit := float(node.get("meter", "1"))) < inf:
                return unit
            if tag == "asset":
                break
    except (OSError, ValueError, ElementTree.ParseError):
        pass  # the reader of the mesh reports what it cannot read
    return 1.0


def scale_to_meters(scale: str | None, file: Path) -> str | None:
    """Return the ``scale`` of a mesh element, times the unit of its file; itself for meters."""
    unit = mesh_unit(file)
    if unit == 1.0:
        return scale
    return " ".join(repr(unit * float(factor)) for factor in (scale or "1 1 1").split())


def _packages(name: str, folder: Path | None) -> list[Path]:
    """Return the folders of the package ``name``, the nearest first."""
    if name in ("", ".", ".."):
        return []
    places: list[Path] = []
    if folder:
        here = Path(os.path.abspath(folder))
        for above in (here, *here.parents):
            places += [above] if above.name == name else []
            places.append(above / name)
    for place in _installed():
        places += [place] if place.name == name else []
        places.append(place / name)
    return [place for place in places if os.path.isdir(place)]


def _installed() -> Iterator[Path]:
    """Yield the folders in which ROS packages are installed."""
    for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
        if prefix:
            yield Path(os.path.abspath(prefix), "share/")
    for place in os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep):
        if place:
            yield Path(os.path.abspath(place))
