"""The description as other programs read it: every mesh under a URI that they resolve.

``load_arm`` finds meshes in the folders of ``mesh_files``. RViz and MoveIt read ``package://`` of
packages that ament knows, and ``file://``, and nothing else.
"""

from __future__ import annotations

import os
from pathlib import Path
from xml.etree import ElementTree

from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.fixed_joints import with_fixed_joints
from arm_dynamics.model.mesh_files import find_mesh

REGISTERED = "share/ament_index/resource_index/packages"
"""Folder below each prefix that has a file for every package of ament."""


def robot_description(arm: ArmModel) -> str:
    """Return the URDF of ``arm`` as robot_state_publisher and RViz read it.

    Mesh and texture URIs are such as RViz resolves. Locked joints are fixed: nobody publishes
    states of them, so that their links would have no transform.
    """
    return with_resolvable_uris(with_fixed_joints(arm), arm.source.parent if arm.source else None)


def with_resolvable_uris(text: str, folder: Path | None) -> str:
    """Return the URDF ``text`` with the URI of every mesh and texture resolvable.

    Parameters
    ----------
    text : str
        URDF that the audit accepted.
    folder : Path or None
        Folder of the URDF's file.

    Returns
    -------
    str
        ``text`` itself if no URI changes; otherwise the same elements without comments.

    """
    robot, changed = ElementTree.fromstring(text), False
    for owner in robot:
        for node in owner.iter() if owner.tag in {"link", "material"} else ():
            if node.tag in {"mesh", "texture"} and (uri := node.get("filename")):
                node.set("filename", resolvable(uri, folder))
                changed |= node.get("filename") != uri
    return ElementTree.tostring(robot, encoding="unicode") if changed else text


def resolvable(uri: str, folder: Path | None) -> str:
    """Return ``uri`` if ament resolves it, else ``file://`` of the file that ``find_mesh`` opens.

    A file that may not be opened, or does not exist, keeps its URI: no other file of this machine
    becomes readable by it.
    """
    if _ament_resolves(uri):
        return uri
    found = find_mesh(uri, folder)
    return uri if found is None else Path(os.path.abspath(found)).as_uri()


def _ament_resolves(uri: str) -> bool:
    """Whether the first prefix of ament that has the package has the file."""
    scheme, _, rest = uri.partition("://")
    name, _, path = rest.partition("/")
    if scheme != "package" or name in ("", ".", ".."):
        return False
    for prefix in filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)):
        if Path(prefix, REGISTERED, name).is_file():
            return Path(prefix, "share", name, path).is_file()
    return False
