"""What may differ between the lanes of a batch: names, shapes, and the arm they make."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pinocchio as pin

from arm_dynamics.core import plugins
from arm_dynamics.core.arrays import check_float
from arm_dynamics.core.errors import UnknownName
from arm_dynamics.dynamics.bodies import Body, bodies
from arm_dynamics.model.arm_model import ArmModel, Joint

JOINT = ("damping", "friction", "stop_stiffness", "stop_damping")
LINK = ("mass", "inertia")
STRUCTURE = ("inductance", "thermal_resistance", "backlash")
"""Motor constants that decide which own states there are: the same in all lanes."""


def variable_names(arm: ArmModel) -> tuple[str, ...]:
    """Names of everything that may vary for ``arm``.

    "payload" [kg] is one number a lane; the others are one number a joint: "joint.damping" ...,
    "motor.kt" ..., "link.mass" [kg] and "link.inertia", a factor on the inertia about the centre.
    """
    motor = {
        p.name for j in arm.joints for p in plugins.load_class("actuators", j.actuator).parameters
    }
    names = ["payload", *(f"joint.{n}" for n in JOINT), *(f"link.{n}" for n in LINK)]
    return (*names, *(f"motor.{n}" for n in sorted(motor - set(STRUCTURE))))


def values_per_rollout(arm: ArmModel, name: str) -> int:
    """Numbers a lane of the variation ``name``; raises UnknownName."""
    if name not in variable_names(arm):
        raise UnknownName("variation", name, variable_names(arm))
    return 1 if name == "payload" else arm.nv


def varied_joints(arm: ArmModel, varied: Mapping[str, Any]) -> tuple[Joint, ...]:
    """The arm's joints with the numbers "joint.…" of ``varied`` in place."""
    changes = {name.removeprefix("joint."): v for name, v in varied.items() if "joint." in name}
    return tuple(
        replace(joint, **{name: values[i] for name, values in changes.items()})
        for i, joint in enumerate(arm.joints)
    )


def varied_actuators(arm: ArmModel, varied: Mapping[str, Any]) -> tuple[Any, ...]:
    """The arm's actuators with the constants "motor.…" of ``varied`` in place, unchecked."""
    changes = {name.removeprefix("motor."): v for name, v in varied.items() if "motor." in name}
    found = []
    for i, actuator in enumerate(arm.actuators):
        own = copy.copy(actuator)
        mine = {n: values[i] for n, values in changes.items() if n in actuator.constants}
        own.constants = {**actuator.constants, **mine}
        found.append(own)
    return tuple(found)


def varied_bodies(arm: ArmModel, varied: Mapping[str, Any]) -> tuple[Body, ...]:
    """The arm's bodies with payload, masses, inertias and rotors of ``varied`` in place."""
    mass, inertia = varied.get("link.mass"), varied.get("link.inertia")
    table = []
    for i, body in enumerate(bodies(arm.with_payload(0.0))):
        table.append(
            replace(
                body,
                mass=body.mass if mass is None else mass[i],
                inertia=body.inertia if inertia is None else inertia[i] * body.inertia,
                armature=varied_actuators(arm, varied)[i].armature,
            )
        )
    payload = varied["payload"][0] if "payload" in varied else arm.payload.mass
    return _loaded(arm, table, payload)


def _loaded(arm: ArmModel, table: list[Body], payload: Any) -> tuple[Body, ...]:
    """A point mass at the payload's place: masses add, the parallel-axis theorem."""
    frame = arm.links.frames[arm.links.getFrameId(arm.tool_frame, pin.BODY)]
    i = frame.parentJoint - 1
    if i < 0 or (isinstance(payload, float) and payload == 0.0):
        return tuple(table)
    body = table[i]
    point = body.turn.T @ frame.placement.act(np.array(arm.payload.centre))
    whole = body.mass + payload
    offset = point - body.centre
    spread = (offset @ offset) * np.eye(3) - np.outer(offset, offset)
    table[i] = replace(
        body,
        mass=whole,
        centre=body.centre + (payload / whole) * offset,
        inertia=body.inertia + (body.mass * payload / whole) * spread,
    )
    return tuple(table)


def rollout_arm(arm: ArmModel, varied: Mapping[str, Sequence[float]]) -> ArmModel:
    """The arm of one lane as an ArmModel; raises what its ``with_...`` methods raise."""
    carried = arm.payload
    if "payload" in varied:
        mass = check_float("payload mass [kg]", varied["payload"][0], lower=0)
        carried = replace(arm.payload, mass=mass)
    joints = tuple(_lane_joint(arm, i, varied) for i in range(arm.nv))
    return replace(arm, joints=joints, payload=carried, links=_links(arm, varied))


def _lane_joint(arm: ArmModel, i: int, varied: Mapping[str, Sequence[float]]) -> Joint:
    """Joint i with its numbers and its motor's constants of ``varied`` in place."""
    joint, known_constants = arm.joints[i], arm.actuators[i].constants
    own: dict[str, Any] = {}
    constants = dict(joint.constants)
    for name, values in varied.items():
        kind, _, field = name.partition(".")
        if kind == "joint":
            own[field] = check_float(f"joint '{joint.name}' {field}", values[i], lower=0)
        elif kind == "motor" and field in known_constants:
            constants[field] = float(values[i])
    return replace(joint, **own, constants=MappingProxyType(constants))


def _links(arm: ArmModel, varied: Mapping[str, Sequence[float]]) -> Any:
    """Pinocchio model with the masses and inertias of ``varied``; the arm's where none is."""
    if "link.mass" not in varied and "link.inertia" not in varied:
        return arm.links
    links = pin.Model(arm.links)
    for i in range(arm.nv):
        own = links.inertias[i + 1]
        mass = float(varied["link.mass"][i]) if "link.mass" in varied else own.mass
        factor = float(varied["link.inertia"][i]) if "link.inertia" in varied else 1.0
        links.inertias[i + 1] = pin.Inertia(mass, own.lever, factor * own.inertia)
    return links
