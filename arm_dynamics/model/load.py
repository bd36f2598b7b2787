"""From a URDF to an ArmModel: audit first, then one coordinate for every joint."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

from arm_dynamics import plugins, resources
from arm_dynamics.errors import ConfigError, InvalidValue, UnknownName
from arm_dynamics.expect import expect, names
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.audit import UrdfRejected, audit
from arm_dynamics.model.joint import Joint
from arm_dynamics.model.tool_frame import tool_frame

MOVING = ("revolute", "continuous", "prismatic")
STOP_RATE = 100.0
"""Natural frequency [rad/s] of a stop that the URDF does not describe."""


def load_arm(arm: str | Path, lock: Sequence[str] = ()) -> ArmModel:
    """The arm of a bundled name ("five_dof") or of a URDF file.

    ``lock`` names joints to fix at their initial position, or at zero (grippers, mimic
    joints). Raises UnknownName for an arm that does not exist, ConfigError for a file that
    cannot be read, UrdfRejected with every fault of the file, and of ``lock``, at once; what is
    only doubtful is warned of.
    """
    path = find_urdf(arm)
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error}") from error
    return parse_arm(text, path, lock)


def find_urdf(arm: str | Path) -> Path:
    """The file of a bundled arm's name or of a path.

    Raises UnknownName for what does not exist, ConfigError for what cannot be looked at and
    InvalidValue for what is neither.
    """
    if not isinstance(arm, str | Path):
        raise InvalidValue(f"arm = {arm!r}: a bundled arm's name or a URDF's path is expected")
    path = Path(arm)
    try:
        if path.is_file():
            return path
        bundled = resources.folder("urdf") / f"{arm}.urdf"
        if path.suffix != ".urdf" and bundled.is_file():
            return bundled
    except OSError as error:
        raise ConfigError(f"{arm} cannot be read: {error.strerror}") from error
    raise UnknownName("arm or URDF file", str(arm), resources.names("urdf", ".urdf"))


def parse_arm(text: str, source: Path | None = None, lock: Sequence[str] = ()) -> ArmModel:
    """The arm of a URDF's text; ``source`` is where meshes are looked for."""
    expect(str, "URDF", text)
    lock = names("lock", lock)
    faults = audit(text, source.parent if source else None, lock=lock)
    if any(fault.severity == "error" for fault in faults):
        raise UrdfRejected(str(source or "URDF"), faults)
    for fault in faults:
        warnings.warn(f"{source or 'URDF'}: {fault}", RuntimeWarning, stacklevel=3)
    robot = ElementTree.fromstring(text)
    motors = {e.get("name"): e for e in robot.iterfind("ros2_control/joint")}
    all_joints = {
        e.get("name", ""): _joint(e, motors.get(e.get("name")))
        for e in robot.iterfind("joint")
        if e.get("type") in MOVING
    }
    links = _links(robot, {n: all_joints[n].initial if n in all_joints else None for n in lock})
    joints = tuple(all_joints[name] for name in list(links.names)[1:])
    plain = ArmModel(robot.get("name", "arm"), text, source, links, joints, tool_frame(robot))
    return _with_default_stops(plain)


def _links(robot: ElementTree.Element, locked: dict[str, float | None]) -> Any:
    """Pinocchio model in which every joint has one coordinate, limits apart.

    ``locked`` joints stand where given; at rest in their zero without a number.
    """
    copy = ElementTree.fromstring(ElementTree.tostring(robot))
    # Pinocchio cannot lock a joint that has a link's name.
    locked = {f"locked joint {name}": position for name, position in locked.items()}
    for joint in copy.iterfind("joint"):
        if f"locked joint {joint.get('name')}" in locked:
            joint.set("name", f"locked joint {joint.get('name')}")
        for mimic in joint.findall("mimic"):
            joint.remove(mimic)  # the audit allows it on locked joints alone
        if joint.get("type") == "continuous":
            # Pinocchio would store (cos, sin) and lose the turns that a motor counts.
            joint.set("type", "revolute")
            for limit in joint.findall("limit"):
                joint.remove(limit)
            wide = {"lower": "-1e9", "upper": "1e9", "effort": "1e9", "velocity": "1e9"}
            ElementTree.SubElement(joint, "limit", wide)
    model = pin.buildModelFromXML(ElementTree.tostring(copy, encoding="unicode"))
    if not locked:
        return model
    q = pin.neutral(model)
    for name, position in locked.items():
        if position is not None:
            q[model.joints[model.getJointId(name)].idx_q] = position
    held = [model.getJointId(name) for name in locked if model.existJointName(name)]
    return pin.buildReducedModel(model, held, q)


def _joint(element: ElementTree.Element, motor: ElementTree.Element | None) -> Joint:
    limit, friction = element.find("limit"), element.find("dynamics")
    kind = element.get("type", "")
    bounded = kind != "continuous"
    lower = _number(limit, "lower", 0.0) if bounded else -inf
    upper = _number(limit, "upper", 0.0) if bounded else inf
    return Joint(
        name=element.get("name", ""),
        kind=kind,
        lower=lower,
        upper=upper,
        initial=_initial(motor, min(max(0.0, lower), upper)),
        velocity=_number(limit, "velocity", inf),
        effort=_number(limit, "effort", inf),
        damping=_number(friction, "damping", 0.0),
        friction=_number(friction, "friction", 0.0),
        **_motor(motor),
    )


def _motor(motor: ElementTree.Element | None) -> dict[str, Any]:
    """The fields of Joint that the <ros2_control> block describes."""
    if motor is None:
        return {"stop_stiffness": -1.0}
    given = {e.get("name", ""): (e.text or "").strip() for e in motor.iterfind("param")}
    actuator = given.get("actuator", "ideal")
    accepted = {p.name for p in plugins.load("actuators", actuator).parameters}
    return {
        "actuator": actuator,
        "constants": MappingProxyType({k: float(v) for k, v in given.items() if k in accepted}),
        "stop_stiffness": float(given.get("stop_stiffness", -1)),
        "stop_damping": float(given.get("stop_damping", 0)),
    }


def _initial(motor: ElementTree.Element | None, default: float) -> float:
    if motor is None:
        return default
    return float(
        motor.findtext("state_interface[@name='position']/param[@name='initial_value']", default)
    )


def _number(element: ElementTree.Element | None, attribute: str, default: float) -> float:
    return default if element is None else float(element.get(attribute, default))


def _with_default_stops(arm: ArmModel) -> ArmModel:
    """k = M_ii w², b = 2 M_ii w, critically damped, where the URDF gives no stop."""
    inertia = pin.crba(arm.model, arm.model.createData(), np.array(arm.pose("initial"))).diagonal()
    joints = tuple(
        j
        if j.stop_stiffness >= 0
        else replace(j, stop_stiffness=m * STOP_RATE**2, stop_damping=2 * m * STOP_RATE)
        for j, m in zip(arm.joints, inertia.tolist(), strict=True)
    )
    return replace(arm, joints=joints)
