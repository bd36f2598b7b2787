"""Quantities that may differ between the rollouts of a batch, and the arm they make."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pinocchio as pin

from arm_dynamics.core import plugins
from arm_dynamics.core.arrays import Vector, check_float
from arm_dynamics.core.errors import UnknownName
from arm_dynamics.dynamics.bodies import Body, bodies
from arm_dynamics.model.arm_model import ArmModel, Joint

JOINT_FIELDS = ("damping", "friction", "stop_stiffness", "stop_damping")
CENTER = ("link.center_x", "link.center_y", "link.center_z")
MOMENTS = ("link.ixx", "link.ixy", "link.ixz", "link.iyy", "link.iyz", "link.izz")
FIXED_CONSTANTS = ("inductance", "thermal_resistance")
"""Motor constants that decide which actuator states exist: they cannot vary.

Backlash does too: it varies only between values above 0."""


def variable_names(arm: ArmModel) -> tuple[str, ...]:
    """Return the names of all quantities that may vary.

    "payload" [kg] has one value per rollout. The others have one per joint: "joint.damping" ...,
    "motor.kt" ..., "link.mass" [kg], "link.center_x" ... [m], the center of mass in the frame of
    the joint, "link.ixx" ... [kg·m²], the inertia about this center, and "link.inertia", a factor
    of this inertia.
    """
    kinds = {joint.actuator for joint in arm.joints}
    motor = {p.name for kind in kinds for p in plugins.load_class("actuators", kind).parameters}
    joint = (f"joint.{name}" for name in JOINT_FIELDS)
    names = ("payload", *joint, "link.mass", *CENTER, *MOMENTS, "link.inertia")
    return (*names, *(f"motor.{name}" for name in sorted(motor - set(FIXED_CONSTANTS))))


def values_per_rollout(arm: ArmModel, name: str) -> int:
    """Return the number of values per rollout of ``name``; raises UnknownName."""
    if name not in variable_names(arm):
        raise UnknownName("variation", name, variable_names(arm))
    return 1 if name == "payload" else arm.nv


def nominal_values(arm: ArmModel, name: str) -> Vector:
    """Return the values (nv,) or (1,) of the arm itself; 0 where a motor lacks the constant."""
    kind, _, field = name.partition(".")
    links = [arm.links.inertias[k + 1] for k in arm.tree_indices]
    if kind == "payload":
        values = [arm.payload.mass]
    elif kind == "joint":
        values = [getattr(joint, field) for joint in arm.joints]
    elif kind == "motor":
        values = [actuator.constants.get(field, 0.0) for actuator in arm.actuators]
    elif field == "inertia":
        values = [1.0] * arm.nv
    elif field == "mass":
        values = [link.mass for link in links]
    elif name in CENTER:
        values = [link.lever[CENTER.index(name)] for link in links]
    else:
        values = [link.inertia[_entry(name)] for link in links]
    return np.array(values, dtype=float)


def varied_joints(arm: ArmModel, varied: Mapping[str, Any]) -> tuple[Joint, ...]:
    """Return the joints with the values "joint.…" of ``varied``, numbers or symbols."""
    changes = {name.removeprefix("joint."): v for name, v in varied.items() if "joint." in name}
    return tuple(
        replace(joint, **{name: values[i] for name, values in changes.items()})
        for i, joint in enumerate(arm.joints)
    )


def varied_actuators(arm: ArmModel, varied: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the actuators with the constants "motor.…" of ``varied``, unchecked."""
    changes = {name.removeprefix("motor."): v for name, v in varied.items() if "motor." in name}
    actuators = []
    for i, nominal in enumerate(arm.actuators):
        actuator = copy.copy(nominal)
        own = {n: values[i] for n, values in changes.items() if n in nominal.constants}
        actuator.constants = {**nominal.constants, **own}
        actuators.append(actuator)
    return tuple(actuators)


def varied_bodies(arm: ArmModel, varied: Mapping[str, Any]) -> tuple[Body, ...]:
    """Return the bodies with payload, masses, inertias and rotors of ``varied``."""
    mass, actuators = varied.get("link.mass"), varied_actuators(arm, varied)
    table = []
    for i, body in enumerate(bodies(arm.with_payload(0.0))):
        center, inertia = _varied_shape(arm, i, varied)
        table.append(
            replace(
                body,
                mass=body.mass if mass is None else mass[i],
                center=body.center if center is None else body.turn.T @ center,
                inertia=body.inertia if inertia is None else body.turn.T @ inertia @ body.turn,
                armature=actuators[i].armature,
            )
        )
    payload = varied["payload"][0] if "payload" in varied else arm.payload.mass
    return _with_payload(arm, table, payload)


def _varied_shape(arm: ArmModel, i: int, varied: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return center of mass (3,) and inertia (3, 3) of link i in its joint's frame.

    None: not varied.
    """
    link, center, inertia = arm.links.inertias[arm.tree_indices[i] + 1], None, None
    if not set(CENTER).isdisjoint(varied):
        center = np.array(
            [
                varied[name][i] if name in varied else x
                for name, x in zip(CENTER, link.lever, strict=True)
            ]
        )
    if not {"link.inertia", *MOMENTS}.isdisjoint(varied):
        inertia = np.array(link.inertia, dtype=object)
        for name in set(MOMENTS) & set(varied):
            row, column = _entry(name)
            inertia[row, column] = inertia[column, row] = varied[name][i]
        if "link.inertia" in varied:
            inertia = varied["link.inertia"][i] * inertia
    return center, inertia


def _entry(name: str) -> tuple[int, int]:
    """Return row and column of a moment of inertia, (0, 1) of "link.ixy"."""
    return "xyz".index(name[-2]), "xyz".index(name[-1])


def _with_payload(arm: ArmModel, table: list[Body], payload: Any) -> tuple[Body, ...]:
    """Add a point mass to the body of the tool, by the parallel-axis theorem."""
    frame = arm.links.frames[arm.links.getFrameId(arm.tool_frame, pin.BODY)]
    i = frame.parentJoint - 1
    if i < 0 or (isinstance(payload, float) and payload == 0.0):
        return tuple(table)
    body = table[i]
    point = body.turn.T @ frame.placement.act(np.array(arm.payload.center))
    total = body.mass + payload
    offset = point - body.center
    spread = (offset @ offset) * np.eye(3) - np.outer(offset, offset)
    table[i] = replace(
        body,
        mass=total,
        center=body.center + (payload / total) * offset,
        inertia=body.inertia + (body.mass * payload / total) * spread,
    )
    return tuple(table)


def rollout_arm(arm: ArmModel, varied: Mapping[str, Sequence[float] | Vector]) -> ArmModel:
    """Return the arm of one rollout; raises InvalidValue for invalid values."""
    payload = arm.payload
    if "payload" in varied:
        mass = check_float("payload mass [kg]", varied["payload"][0], lower=0)
        payload = replace(payload, mass=mass)
    joints = tuple(_rollout_joint(arm, i, varied) for i in range(arm.nv))
    return replace(arm, joints=joints, payload=payload, links=_rollout_links(arm, varied))


def _rollout_joint(arm: ArmModel, i: int, varied: Mapping[str, Sequence[float] | Vector]) -> Joint:
    """Return joint i with its values and its motor's constants of ``varied``."""
    joint, known = arm.joints[i], arm.actuators[i].constants
    fields: dict[str, Any] = {}
    constants = dict(joint.constants)
    for name, values in varied.items():
        kind, _, field = name.partition(".")
        if kind == "joint":
            fields[field] = check_float(f"joint '{joint.name}' {field}", values[i], lower=0)
        elif kind == "motor" and field in known:
            constants[field] = float(values[i])
    return replace(joint, **fields, constants=MappingProxyType(constants))


def _rollout_links(arm: ArmModel, varied: Mapping[str, Sequence[float] | Vector]) -> Any:
    """Return the Pinocchio model with the masses, centers and inertias of ``varied``."""
    if not any(name.startswith("link.") for name in varied):
        return arm.links
    links = pin.Model(arm.links)
    for i, k in enumerate(arm.tree_indices):
        nominal = links.inertias[k + 1]
        mass = float(varied["link.mass"][i]) if "link.mass" in varied else nominal.mass
        center, inertia = _varied_shape(arm, i, varied)
        links.inertias[k + 1] = pin.Inertia(
            mass,
            nominal.lever if center is None else center.astype(float),
            nominal.inertia if inertia is None else inertia.astype(float),
        )
    return links
