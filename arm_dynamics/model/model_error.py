"""What a law's model of an arm may have wrong: masses, lengths, inertias and friction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pinocchio as pin

from arm_dynamics.core.arrays import Vector, check_float, check_int
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.model.arm_argument import requires_arm
from arm_dynamics.model.arm_model import ArmModel, Joint

MOTOR_FRICTION = ("viscous_friction", "coulomb_friction", "stiction")
"""Constants of an actuator that are friction."""
Draw = Callable[[float, int], Vector]
"""Error [%] and number of bodies or joints → a factor for each."""


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
    """The arm as a law may take it for: x → x (1 + s error / 100), errors in per cent.

    s = 1 without a seed; with one, uniform in [-1, 1] for every link and joint by itself, the same
    for the same seed. ``mass``: of the links and the payload. ``length``: of the base and every
    link, its joints, centre of mass and tool going along. ``inertia``: about the centres of mass.
    ``friction``: damping and dry friction of the joints and in their actuators. Whatever is not
    named stays: motors, limits, stops.

    Raises InvalidValue for an error of -100 % or less, with a seed also for one of 100 % or more,
    for a seed that is no whole number, and as ``require_holdable`` where ``arm`` itself is borne.
    """
    draw = _uniform if seed is None else _random(check_int("seed", seed))
    masses, lengths, inertias, rubbing = (
        draw(_percent(name, error, seed is not None), count)
        for name, error, count in (
            ("mass", mass, arm.nv + 2),
            ("length", length, arm.nv + 1),
            ("inertia", inertia, arm.nv + 1),
            ("friction", friction, arm.nv),
        )
    )
    joints = tuple(_rubbing(j, float(f)) for j, f in zip(arm.joints, rubbing, strict=True))
    payload = replace(arm.payload, mass=arm.payload.mass * float(masses[-1]))
    links = _links(arm.links, masses, lengths, inertias)
    wrong = replace(arm, links=links, joints=joints, payload=payload)
    return require_holdable(wrong) if _unborne(arm) is None else wrong


def require_holdable(model: ArmModel) -> ArmModel:
    """Return ``model`` when |g(q)| is within the effort limits at its pose "initial".

    A law with another one could only push against its limits, even at home. Raises InvalidValue
    naming the joint, its weight and its limit.
    """
    found = _unborne(model)
    if found is None:
        return model
    joint, weight = model.joints[found[0]], found[1]
    unit = "N·m" if joint.unit == "rad" else "N"
    raise InvalidValue(
        f"model of arm '{model.name}' with a payload of {model.payload.mass:g} kg: joint"
        f" '{joint.name}' would carry {weight:.4g} {unit} at the initial pose, beyond its limit"
        f" {joint.effort:.4g} {unit}; payload and errors of a model that weighs"
        f" {joint.effort / weight:.2g} times as much there are allowed"
    )


def _unborne(arm: ArmModel) -> tuple[int, float] | None:
    """The joint whose weight at home exceeds its limit most, and that weight; None: none does."""
    held = pin.computeGeneralizedGravity(
        arm.model, arm.model.createData(), arm.configuration("initial")
    )
    weight, limit = np.abs(held), arm.effort_limit
    over = ~(weight <= limit)
    if not over.any():
        return None
    worst = int(np.argmax(np.where(over, weight - limit, -np.inf)))
    return worst, float(weight[worst])


def _percent(name: str, error: float, either_way: bool) -> float:
    value = check_float(f"{name} error [%]", error, above=-100)
    return check_float(f"{name} error [%], either way,", value, upper=99.9) if either_way else value


def _uniform(error: float, count: int) -> Vector:
    return np.full(count, 1 + error / 100)


def _random(seed: int) -> Draw:
    source = np.random.default_rng(seed)
    return lambda error, count: 1 + error / 100 * source.uniform(-1, 1, count)


def _rubbing(joint: Joint, factor: float) -> Joint:
    constants = {
        name: value * factor if name in MOTOR_FRICTION else value
        for name, value in joint.constants.items()
    }
    return replace(
        joint,
        damping=joint.damping * factor,
        friction=joint.friction * factor,
        constants=MappingProxyType(constants),
    )


def _links(links: Any, masses: Vector, lengths: Vector, inertias: Vector) -> Any:
    """Bodies, joints and frames; entry i of the factors belongs to body i, 0 to the base."""
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
