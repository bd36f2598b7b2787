"""URDF of an arm for other programs: locked joints fixed, and every mesh URI resolvable.

Programs that read it expect no states of fixed joints. ``load_arm`` finds meshes in the folders of
``mesh_files``; RViz and MoveIt read only ``package://`` of packages in ament's index, and
``file://``.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from xml.etree import ElementTree

import pinocchio as pin

from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.mesh_files import find_mesh
from arm_dynamics.model.urdf_writer import format_number, format_numbers, rpy

FIXED_JOINT_ELEMENTS = {"parent", "child"}
"""Elements of a joint that a fixed one also has, in addition to its origin."""


def with_fixed_joints(arm: ArmModel) -> str:
    """Return the URDF of ``arm`` with its locked joints fixed at their positions.

    Parameters
    ----------
    arm : ArmModel
        Arm whose locked joints become fixed.

    Returns
    -------
    str
        The arm's own text if it has no locked joints and no chains of mimic joints. Otherwise the
        same links at the same placements, without the locked joints in ``<ros2_control>``, and
        without comments. Mimic joints follow driven ones: robot_state_publisher follows no chains.

    """
    robot = ElementTree.fromstring(arm.urdf)
    if not (_follow_driven_joints(robot, arm) or arm.locked):
        return arm.urdf
    for joint in [node for node in robot.findall("joint") if node.get("name") in arm.locked]:
        parent, child = (  # the origin becomes the placement of the child link in its parent
            arm.links.frames[arm.links.getFrameId(node.get("link"), pin.BODY)].placement
            for node in (joint.find("parent"), joint.find("child"))
            if node is not None
        )
        placement = parent.actInv(child)
        xyz, angles = format_numbers(placement.translation), format_numbers(rpy(placement.rotation))
        for node in [node for node in joint if node.tag not in FIXED_JOINT_ELEMENTS]:
            joint.remove(node)
        joint.set("type", "fixed")
        joint.insert(0, ElementTree.Element("origin", {"xyz": xyz, "rpy": angles}))
    for block in robot.iter("ros2_control"):
        for joint in block.findall("joint"):
            if joint.get("name") in arm.locked:
                block.remove(joint)
    return ElementTree.tostring(robot, encoding="unicode")


def _follow_driven_joints(robot: ElementTree.Element, arm: ArmModel) -> bool:
    """Replace the mimic joints in ``<mimic joint>`` by their driven ones; return if one was."""
    mimics, changed = {mimic.name: mimic for mimic in arm.mimic_joints}, False
    for joint in robot.findall("joint"):
        node, mimic = joint.find("mimic"), mimics.get(joint.get("name", ""))
        if node is not None and mimic is not None and node.get("joint") != mimic.joint:
            node.set("joint", mimic.joint)
            node.set("multiplier", format_number(mimic.multiplier))
            node.set("offset", format_number(mimic.offset))
            changed = True
    return changed


FRAME_PREFIX = re.compile(r"([A-Za-z0-9_.-][A-Za-z0-9_./-]*)?")
"""Prefixes of frames that tf2 and the tools that show frames accept."""


def check_frame_prefix(prefix: str) -> str:
    """Return ``prefix``, the prefix of all frames as of robot_state_publisher.

    Raises InvalidValue for other characters than letters, digits and ``_ . - /``, and for a
    leading ``/``, which tf2 rejects.
    """
    if not FRAME_PREFIX.fullmatch(prefix):
        raise InvalidValue(
            f"frame_prefix = {prefix!r}; expected letters A-Z a-z, digits and _ . - / without a"
            " leading /, such as 'left/'"
        )
    return prefix


REGISTERED = "share/ament_index/resource_index/packages"
"""Folder below each prefix that has a file for every package of ament."""


def robot_description(arm: ArmModel) -> str:
    """Return the URDF of ``arm`` as robot_state_publisher and RViz read it.

    RViz resolves its mesh and texture URIs. Locked joints are fixed: no node publishes their
    states, so that their links would have no transform.
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
    """Return ``uri`` if ament resolves it, else a URI of the file that ``find_mesh`` opens.

    That is ``package://`` if a package installs the file, else ``file://``, which the allow list of
    Foxglove does not contain. A file that may not be opened, or does not exist, keeps its URI: no
    other file of this machine becomes readable by it.
    """
    if _ament_resolves(uri):
        return uri
    file = find_mesh(uri, folder)
    if file is None:
        return uri
    return _package_uri(file) or Path(os.path.abspath(file)).as_uri()


def _package_uri(file: Path) -> str:
    """Return the ``package://`` URI by which ament finds ``file`` or a link to it, else "".

    The package is that whose installed folder, or whose sources with a package.xml, have the file.
    """
    path = Path(os.path.abspath(file))
    prefixes = filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep))
    installed = [Path(prefix, REGISTERED).parents[2] for prefix in prefixes]
    for above in path.parents:
        if above.parent in installed or (above / "package.xml").is_file():
            uri = f"package://{above.name}/{path.relative_to(above).as_posix()}"
            found = find_mesh(uri, None) if _ament_resolves(uri) else None
            return uri if found is not None and found.samefile(path) else ""
    return ""


def _ament_resolves(uri: str) -> bool:
    """Return whether the first prefix of ament that has the package also has the file."""
    scheme, _, rest = uri.partition("://")
    name, _, path = rest.partition("/")
    if scheme != "package" or name in ("", ".", ".."):
        return False
    for prefix in filter(None, os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)):
        if Path(prefix, REGISTERED, name).is_file():
            return Path(prefix, "share/", name, path).is_file()
    return False
