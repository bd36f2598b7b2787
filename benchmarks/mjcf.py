"""Arm model as MJCF of MuJoCo: bodies, armature, viscous friction, linear motors, end stops."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

from arm_dynamics.model.arm_model import ArmModel


def mjcf(arm: ArmModel, dt: float, stops: bool) -> str:
    """Return the MJCF text; ctrl is the motor command: V, or N·m for ideal actuators.

    A DC motor without actuator state, brushes and current limit is affine in voltage and speed:
    τ = N Kt (V - Ke N v) / R, with V limited to the supply. Damping is explicit, as in the plant.
    ``stops`` enables MuJoCo's joint limits with default springs; otherwise all constraints are
    disabled. Dry friction is omitted.
    """
    root = ElementTree.Element("mujoco")
    ElementTree.SubElement(root, "compiler", angle="radian", autolimits="true")
    option = ElementTree.SubElement(
        root, "option", timestep=repr(dt), integrator="Euler", gravity=_text(arm.gravity)
    )
    ElementTree.SubElement(option, "flag", eulerdamp="disable", contact="disable")
    if not stops:
        option[0].set("constraint", "disable")
    bodies = [ElementTree.SubElement(root, "worldbody")]
    motors = ElementTree.SubElement(root, "actuator")
    for i in range(1, arm.model.njoints):
        bodies.append(_body(arm, i, bodies[arm.model.parents[i]], stops))
        _motor(arm, i - 1, motors)
    return ElementTree.tostring(root, encoding="unicode")


def _body(arm: ArmModel, i: int, parent: ElementTree.Element, stops: bool) -> ElementTree.Element:
    placement, inertia = arm.model.jointPlacements[i], arm.model.inertias[i]
    joint, motor = arm.joints[i - 1], arm.actuators[i - 1]
    body = ElementTree.SubElement(
        parent, "body", pos=_text(placement.translation), quat=_quaternion(placement.rotation)
    )
    ixx, ixy, iyy, ixz, iyz, izz = (inertia.inertia[j, k] for j in range(3) for k in range(j + 1))
    full = _text([ixx, iyy, izz, ixy, ixz, iyz])
    ElementTree.SubElement(
        body, "inertial", mass=repr(inertia.mass), pos=_text(inertia.lever), fullinertia=full
    )
    subspace = pin.computeJointJacobian(
        arm.model, arm.model.createData(), pin.neutral(arm.model), i
    )[:, i - 1]
    slides = joint.kind == "prismatic"
    bounded = stops and np.isfinite(joint.lower)
    limits = {"range": _text([joint.lower, joint.upper])} if bounded else {}
    ElementTree.SubElement(
        body, "joint", name=joint.name, type="slide" if slides else "hinge",
        axis=_text(subspace[:3] if slides else subspace[3:]), armature=repr(float(motor.armature)),
        damping=repr(joint.damping + motor.viscous_friction), **limits,
    )  # fmt: skip
    return body


def _motor(arm: ArmModel, i: int, motors: ElementTree.Element) -> None:
    c, values = (
        arm.actuators[i].constants,
        {"gain": 1.0, "slope": 0.0, "limit": arm.joints[i].effort},
    )
    if "kt" in c:
        gain = c["gear_ratio"] * c["kt"] / c["resistance"]
        values = {"gain": gain, "slope": gain * c["ke"] * c["gear_ratio"]}
        values["limit"] = c["supply_voltage"]
    limits = {}
    if np.isfinite(values["limit"]):
        limits = {"ctrlrange": _text([-values["limit"], values["limit"]])}
    ElementTree.SubElement(
        motors, "general", joint=arm.joints[i].name, gainprm=repr(values["gain"]),
        biastype="affine", biasprm=_text([0.0, 0.0, -values["slope"]]), **limits,
    )  # fmt: skip


def _quaternion(rotation: np.ndarray) -> str:
    x, y, z, w = pin.Quaternion(np.asarray(rotation)).coeffs()
    return _text([w, x, y, z])


def _text(values: object) -> str:
    return " ".join(repr(float(value)) for value in np.asarray(values))
