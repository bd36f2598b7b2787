"""Errors of a controller model in masses, lengths, inertias and friction."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pinocchio as pin

from arm_dynamics.core.arrays import Vector, check_float, check_int
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.model.arm_argument import requires_arm
from arm_dynamics.model.arm_model import ArmModel

MOTOR_FRICTION = ("viscous_friction", "coulomb_friction", "stiction")
"""Constants of an actuator that are friction."""
IN_URDF = "write the motor's effort limit in the URDF"


@requires_arm
def with_model_error(
    arm: ArmModel,
    *,
    mass: float = 0.0,
    length: float = 0.0,
    inertia: float = 0.0,
    friction: float = 0.0,
    seed: int | None = None,
) -> ArmModel:
    """Return the arm with model errors, x → x (1 + s error / 100).

    s = 1 without a seed; with a seed s is uniform in [-1, 1], independent for every link and joint
    and the same for the same seed. Motors, limits and end stops do not change.

    Parameters
    ----------
    arm : ArmModel
        The nominal arm.
    mass : float
        Error of the masses of the links and the payload [%].
    length : float
        Error of the lengths of the base and the links [%]; joints, centers of mass and tool move
        with them.
    inertia : float
        Error of the inertias about the centers of mass [%].
    friction : float
        Error of damping and dry friction of the joints and their actuators [%].
    seed : int, optional
        Seed of the random factors s.

    Returns
    -------
    ArmModel
        The perturbed arm.

    Raises
    ------
    InvalidValue
        For an error of -100 % or less, with a seed also for 100 % or more; for a seed that is not
        an integer; and if ``arm`` can hold the configuration "initial" and the result cannot.

    """
    random = None if seed is None else np.random.default_rng(check_int("seed", seed))
    factors: list[Vector] = []
    for name, error, count in (
        ("mass", mass, arm.tree.njoints + 1),
        ("length", length, arm.tree.njoints),
        ("inertia", inertia, arm.tree.njoints),
        ("friction", friction, arm.nv),
    ):
        percent = check_float(f"{name} error [%]", error, above=-100)
        if random is None:
            factors.append(np.full(count, 1 + percent / 100))
        else:
            check_float(f"{name} error [%] with a seed", percent, upper=99.9)
            factors.append(1 + percent / 100 * random.uniform(-1, 1, count))
    masses, lengths, inertias, frictions = factors
    joints = tuple(
        replace(
            joint,
            damping=joint.damping * factor,
            friction=joint.friction * factor,
            constants={
                name: value * factor if name in MOTOR_FRICTION else value
                for name, value in joint.constants.items()
            },
        )
        for joint, factor in zip(arm.joints, frictions.tolist(), strict=True)
    )
    payload = replace(arm.payload, mass=arm.payload.mass * float(masses[-1]))
    links = _scaled_links(arm.links, masses, lengths, inertias)
    perturbed = replace(arm, links=links, joints=joints, payload=payload)
    text = overload_text(perturbed, "reduce the model error")
    if text and _overloaded_joint(arm) is None:
        raise InvalidValue(text)
    return perturbed


def require_holdable(model: ArmModel) -> ArmModel:
    """Return ``model`` if |g(q)| is within the effort limits in the configuration "initial".

    With any other model a controller saturates even there. Raises InvalidValue with the joint, its
    gravity torque and its limit.
    """
    text = overload_text(model)
    if text:
        raise InvalidValue(text)
    return model


def overload_text(model: ArmModel, remedy: str = "") -> str:
    """Return which joint cannot hold the configuration "initial"; "" if all can.

    The default ``remedy`` is a smaller payload if the arm holds itself, else the limit in the URDF.
    """
    overloaded = _overloaded_joint(model)
    if overloaded is None:
        return ""
    joint, torque = model.joints[overloaded[0]], overloaded[1]
    mass = model.payload.mass
    if not remedy and mass and _overloaded_joint(model.with_payload(0.0)) is None:
        remedy = "reduce the payload or the model error"
    payload = f" with a payload of {mass:g} kg" if mass else ""
    unit = "N·m" if joint.unit == "rad" else "N"
    return (
        f"model of arm '{model.name}'{payload}: joint '{joint.name}': gravity torque ="
        f" {torque:.4g} {unit} in the initial configuration; expected at most {joint.effort:.4g}"
        f" {unit}, its effort limit; {remedy or IN_URDF}"
    )


def _overloaded_joint(arm: ArmModel) -> tuple[int, float] | None:
    """Return the joint whose gravity torque exceeds its limit most, and the torque; or None."""
    gravity = pin.computeGeneralizedGravity(
        arm.model, arm.model.createData(), arm.configuration("initial")
    )
    torque, limit = np.abs(gravity), arm.effort_limit
    over = ~(torque <= limit)
    if not over.any():
        return None
    worst = int(np.argmax(np.where(over, torque - limit, -np.inf)))
    return worst, float(torque[worst])


def _scaled_links(links: Any, masses: Vector, lengths: Vector, inertias: Vector) -> Any:
    """Return the links times factors; entry i of the factors belongs to body i, 0 to the base."""
    changed = pin.Model(links)
    for i, parent in enumerate(links.parents):
        own = links.inertias[i]
        changed.inertias[i] = pin.Inertia(
            own.mass * masses[i], own.lever * lengths[i], own.inertia * inertias[i]
        )
        changed.jointPlacements[i].translation = (
            links.jointPlacements[i].translation * lengths[parent]
        )
    for own, frame in zip(links.frames, changed.frames, strict=True):
        frame.placement.translation = own.placement.translation * lengths[own.parentJoint]
    return changed
