"""From a URDF to an ArmModel: first the audit, then one coordinate for every joint."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path

import numpy as np
import pinocchio as pin

from arm_dynamics.core import plugins, resources
from arm_dynamics.core.argument_checks import check_names, check_type
from arm_dynamics.core.errors import ConfigError, InvalidValue, UnknownName
from arm_dynamics.model.arm_model import ArmModel, Joint
from arm_dynamics.model.audit import audit_urdf
from arm_dynamics.model.audit.fault import UrdfRejected
from arm_dynamics.model.audit.joints import initial_position
from arm_dynamics.model.audit.mimic_joints import MimicJoint, mimic_joint, mimic_joints
from arm_dynamics.model.audit.numbers import number_attribute
from arm_dynamics.model.audit.robot import ONE_COORDINATE, Robot
from arm_dynamics.model.description_file import read_urdf
from arm_dynamics.model.links import build_links
from arm_dynamics.model.mesh_files import candidates
from arm_dynamics.model.robot_packages import gripper_joints, packaged_names, packaged_urdf
from arm_dynamics.model.tool_frame import tool_frames
from arm_dynamics.model.xml_source import Node, parse_xml, with_valid_comments

STOP_RATE = 100.0
"""Natural frequency [rad/s] of an end stop without values in the URDF."""


def load_arm(
    arm: str | Path, lock: Sequence[str] = (), *, tool_frame: str | None = None
) -> ArmModel:
    """Load a bundled arm ("five_dof"), one of an installed package ("panda") or a file.

    Parameters
    ----------
    arm : str or Path
        Name of a bundled arm, of an arm of example-robot-data or robot_descriptions if that is
        installed, or path or URI (``package://``, ``file://``) of a URDF, xacro or MJCF file.
    lock : sequence of str
        Joints to fix at their initial position, or at zero. The mimic joints of a locked joint are
        locked where it has them. Grippers of arms of these packages are locked too.
    tool_frame : str, optional
        Link that is the tool frame; that of the URDF by default, else selected by
        ``model.tool_frame``.

    Returns
    -------
    ArmModel
        The arm; questionable values of the URDF give a RuntimeWarning.

    Raises
    ------
    UnknownName
        For an arm that does not exist, or a ``tool_frame`` that is not a link.
    ConfigError
        For a file that cannot be read.
    UrdfRejected
        With all faults of the file and of ``lock``.

    """
    path = find_urdf(arm)
    return parse_arm(read_urdf(path), path, with_gripper(arm, lock), tool_frame=tool_frame)


def with_gripper(arm: str | Path, lock: Sequence[str]) -> Sequence[str]:
    """Return ``lock`` and the gripper of an arm that is named in an installed package."""
    gripper = gripper_joints(arm) if isinstance(arm, str) and not Path(arm).is_file() else ()
    if not gripper:
        return lock
    return (*gripper, *(name for name in check_names("lock", lock) if name not in gripper))


def find_urdf(arm: str | Path) -> Path:
    """Return the file of a path, or of the name of an arm: bundled, or of an installed package.

    Raises UnknownName if it does not exist, ConfigError if it cannot be accessed and InvalidValue
    for another type.
    """
    if not isinstance(arm, str | Path):
        raise InvalidValue(f"arm = {arm!r}; expected the name of a bundled arm or a path")
    path = Path(arm)
    try:
        if path.is_file():
            return path
        if isinstance(arm, str) and "://" in arm:
            return _of_uri(arm)
        bundled = resources.resource_folder("urdf") / f"{arm}.urdf"
        if path.suffix != ".urdf" and bundled.is_file():
            return bundled
        packaged = packaged_urdf(str(arm))
        if packaged is not None:
            return packaged
    except OSError as error:
        raise ConfigError(f"{arm}: {error.strerror}; expected a readable file") from error
    known = (*resources.resource_names("urdf", ".urdf"), *packaged_names())
    raise UnknownName("arm or URDF file", str(arm), known)


def _of_uri(uri: str) -> Path:
    """Return the file of ``package://`` or ``file://``; packages are near or installed.

    Raises ConfigError if it does not exist.
    """
    found = candidates(uri, Path.cwd())
    if found is None:
        raise ConfigError(
            f"{uri}: package or scheme is unknown; expected file://, or package:// of a package"
            " above the current folder or installed; source its workspace"
        )
    for path in found:
        if path.is_file():
            return path
    raise ConfigError(f"{uri}: {found[0]} does not exist; expected a file")


def parse_arm(
    text: str,
    source: Path | None = None,
    lock: Sequence[str] = (),
    *,
    tool_frame: str | None = None,
) -> ArmModel:
    """Return the arm of a URDF text.

    Parameters
    ----------
    text : str
        Text of the URDF.
    source : Path, optional
        File to which mesh paths are relative.
    lock : sequence of str
        Joints to fix at their initial position, or at zero.
    tool_frame : str, optional
        Link that is the tool frame, as for ``load_arm``.

    Returns
    -------
    ArmModel
        The arm; questionable values of the URDF give a RuntimeWarning.

    Raises
    ------
    UrdfRejected
        With all faults of the text and of ``lock``.
    UnknownName
        For a ``tool_frame`` that is not a link.

    """
    check_type(str, "URDF", text)
    lock = check_names("lock", lock)
    faults = audit_urdf(text, source.parent if source else None, lock=lock)
    if any(fault.severity == "error" for fault in faults):
        raise UrdfRejected(str(source or "URDF"), faults)
    for fault in faults:
        warnings.warn(f"{source or 'URDF'}: {fault}", RuntimeWarning, stacklevel=3)
    text = with_valid_comments(text)  # other programs read the arm's text
    robot = Robot(parse_xml(text), frozenset(lock))
    motors = {
        joint.get("name"): joint
        for block in robot.root.find_all("ros2_control")
        for joint in block.find_all("joint")
    }
    all_joints = {
        name: _read_joint(joint, motors.get(name))
        for name, joint in robot.joints.items()
        if joint.get("type") in ONE_COORDINATE
    }
    locked = dict.fromkeys(lock, 0.0)
    locked |= {name: all_joints[name].initial for name in lock if name in all_joints}
    for name in robot.locked_names.intersection(robot.joints):
        if mimic := mimic_joint(robot, name):
            locked[name] = mimic.multiplier * all_joints[mimic.joint].initial + mimic.offset
    mimics = mimic_joints(robot)
    links = build_links(robot, all_joints, locked, mimics)
    names = list(links.names)[1:]
    followers = [(all_joints[name], mimics[name]) for name in names if name in mimics]
    joints = tuple(_driven(all_joints[name], followers) for name in names if name not in mimics)
    name = robot.root.get("name") or "arm"
    tool, follows = tool_frames(robot, tool_frame)[0], tuple(mimic for _, mimic in followers)
    arm = ArmModel(name, text, source, links, joints, tool, mimic_joints=follows)
    # End stops without values: k = M_ii w², b = 2 M_ii w, critically damped.
    inertia = pin.crba(
        arm.model, arm.model.createData(), np.array(arm.configuration("initial"))
    ).diagonal()
    joints = tuple(
        j
        if j.stop_stiffness >= 0
        else replace(j, stop_stiffness=m * STOP_RATE**2, stop_damping=2 * m * STOP_RATE)
        for j, m in zip(joints, inertia.tolist(), strict=True)
    )
    return replace(arm, joints=joints)


def _driven(joint: Joint, followers: Sequence[tuple[Joint, MimicJoint]]) -> Joint:
    """Return a joint with the limits and the friction of the mimic joints that follow it.

    With q = r q_d + c, and the same power, damping d becomes r² d and dry friction f becomes |r| f.
    """
    for own, mimic in followers:
        if mimic.joint == joint.name:
            ratio, (lower, upper) = abs(mimic.multiplier), mimic.driven_range(own.lower, own.upper)
            lower, upper = max(joint.lower, lower), min(joint.upper, upper)
            joint = replace(
                joint,
                kind="revolute" if joint.unit == "rad" and upper < inf else joint.kind,
                lower=lower,
                upper=upper,
                velocity=min(joint.velocity, own.velocity / ratio if own.velocity > 0 else inf),
                damping=joint.damping + ratio**2 * own.damping,
                friction=joint.friction + ratio * own.friction,
                initial=min(max(joint.initial, lower), upper),
            )
    return joint


def _read_joint(node: Node, motor: Node | None) -> Joint:
    """Return the joint of its element and of its ``<ros2_control>`` element, if it has one."""
    limit, friction = node.find("limit"), node.find("dynamics")
    kind = node.get("type") or ""
    bounded = kind != "continuous"
    lower = _number(limit, "lower", 0.0) if bounded else -inf
    upper = _number(limit, "upper", 0.0) if bounded else inf
    params = {p.get("name") or "": p.text for p in motor.find_all("param")} if motor else {}
    actuator = params.get("actuator", "ideal")
    accepted = {p.name for p in plugins.load_class("actuators", actuator).parameters}
    return Joint(
        name=node.get("name") or "",
        kind=kind,
        lower=lower,
        upper=upper,
        initial=initial_position(node, motor),
        velocity=_number(limit, "velocity", inf),
        effort=_number(limit, "effort", inf),
        damping=_number(friction, "damping", 0.0),
        friction=_number(friction, "friction", 0.0),
        actuator=actuator,
        constants={k: float(v) for k, v in params.items() if k in accepted},
        stop_stiffness=float(params.get("stop_stiffness", -1)),
        stop_damping=float(params.get("stop_damping", 0)),
    )


def _number(node: Node | None, attribute: str, default: float) -> float:
    """Return the number of an attribute, which the audit has read; ``default`` if absent."""
    value = number_attribute(node, attribute)
    return default if value is None else value
