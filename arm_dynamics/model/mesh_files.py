"""Where a description's meshes and textures may be: in its own folders and in ROS packages.

A description from somewhere else must not choose which files of this machine are opened. Its own
folders are the folder of the file, its parent where that folder is called "urdf" or "robots", and
the ROS package around it: the nearest folder above that has a package.xml. Other packages have a
package.xml too, and lie beside one of these folders or are installed: in ``<prefix>/share`` of
AMENT_PREFIX_PATH or in a folder of ROS_PACKAGE_PATH.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

BESIDE = ("urdf", "robots")
"""Folders of descriptions that have their meshes in a folder beside them."""
MANIFEST = "package.xml"


def candidates(uri: str, folder: Path | None) -> list[Path] | None:
    """Where a mesh's file may be; None when its package or scheme is not known here.

    ``package://name/path`` is looked for in folders ``name`` at and above ``folder``, then in
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
    """Whether ``path``, a candidate for ``uri``, is in the description's folders or in a package.

    Symbolic links may not lead out of these folders. Those of installed packages may: a workspace
    is installed as links.
    """
    plain, real = Path(os.path.abspath(path)), Path(os.path.realpath(path))
    if any(plain.is_relative_to(place) for place in _installed()):
        return True
    return any(real.is_relative_to(os.path.realpath(place)) for place in _own(uri, folder))


def find_mesh(uri: str, folder: Path | None) -> Path | None:
    """Return the file of a mesh that may be opened, or None."""
    places = candidates(uri, folder) or []
    return next((p for p in places if may_open(p, uri, folder) and os.path.isfile(p)), None)


def _packages(name: str, folder: Path | None) -> list[Path]:
    """Folders of the package ``name``, the nearest first."""
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


def _own(uri: str, folder: Path | None) -> Iterator[Path]:
    """The folders of a description in ``folder``, and the package that ``uri`` names."""
    scheme, _, rest = uri.partition("://")
    if scheme == "package":
        packages = _packages(rest.partition("/")[0], folder)
        yield from (place for place in packages if (place / MANIFEST).is_file())
    if folder is None:
        return
    here = Path(os.path.abspath(folder))
    yield here
    if here.name in BESIDE:
        yield here.parent
    for above in (here, *here.parents):
        if (above / MANIFEST).is_file():
            yield above
            return


def _installed() -> Iterator[Path]:
    for prefix in os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep):
        if prefix:
            yield Path(os.path.abspath(prefix), "share")
    for place in os.environ.get("ROS_PACKAGE_PATH", "").split(os.pathsep):
        if place:
            yield Path(os.path.abspath(place))
