"""Servo motors of BAM files as ``dc_motor`` actuators of an arm.

At constant velocity a motor torque τ_m against an external torque τ_e balances

(1 - K_m) |τ_m| = (1 + K_e) |τ_e| + K_c + K_v |v|     the motor drives,
(1 + K_m) |τ_m| = (1 - K_e) |τ_e| - K_c - K_v |v|     the load drives,

which are the efficiencies η = (1 - K_m) / (1 + K_e) and η_b = (1 - K_e) / (1 + K_m) of a gear.
"""

from __future__ import annotations

import numpy as np

from arm_dynamics.core.argument_checks import check_type
from arm_dynamics.core.arrays import check_float
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.identification.servos.servo_friction import ServoFriction
from arm_dynamics.identification.servos.servo_parameters import ServoParameters
from arm_dynamics.model.arm_argument import requires_arm
from arm_dynamics.model.arm_model import ArmModel

STRIBECK_EXPONENT = 2.0
"""Exponent of the Stribeck friction of ``dc_motor``."""
CURVE = np.linspace(0.0, 5.0, 2001)
"""Speeds relative to the Stribeck velocity at which two Stribeck curves are compared."""


@requires_arm
def with_bam(
    arm: ArmModel, joint: str, servo: ServoParameters, *, load_speed: float = 0.0
) -> ArmModel:
    """Return the arm with a servo motor of a BAM file in one joint.

    The joint gets the actuator ``dc_motor`` with gear ratio 1 (BAM's constants are those of the
    output shaft): kt = ke, R, J, the gear efficiencies η and η_b, and

    fc = K_c / (1 + K_e),  fs = (K_c + K_cs) / (1 + K_e),  b = K_v / (1 + K_e).

    These equal BAM's friction at constant velocity and at breakaway while the motor drives.
    ``bam_differences`` lists the remaining differences. The servo's friction replaces ``damping``
    and ``friction`` of the joint. The position loop is not part of the arm:
    ``ServoParameters.command`` returns its command for the interface "voltage".

    Parameters
    ----------
    arm : ArmModel
        The arm.
    joint : str
        Name of the joint.
    servo : ServoParameters
        The servo, for example from ``read_bam``.
    load_speed : float
        Speed [rad/s] whose load-dependent friction K_m + s K_ms, K_e + s K_es the gear gets;
        0 is that at rest.

    Returns
    -------
    ArmModel
        The changed arm.

    Raises
    ------
    UnknownName
        For a joint that does not exist.
    InvalidValue
        For a load-dependent friction of 1 or more: the motor cannot drive the joint, or the
        joint cannot drive the motor.

    """
    check_type(ServoParameters, "servo", servo)
    arm.index(joint)
    motor_load, external_load = _load(servo.friction, load_speed)
    friction, loop, behind = servo.friction, servo.loop, 1.0 + external_load
    limits = {"supply_voltage": loop.supply_voltage * loop.max_duty}
    if loop.by_current and np.isfinite(loop.max_current):
        limits["current_limit"] = loop.max_current
    changed = arm.with_actuator(
        "dc_motor",
        joints=[joint],
        kt=servo.kt,
        ke=servo.kt,
        resistance=servo.resistance,
        rotor_inertia=servo.armature,
        viscous_friction=friction.viscous / behind,
        coulomb_friction=friction.coulomb / behind,
        stiction=(friction.coulomb + friction.stribeck) / behind,
        stribeck_velocity=friction.stribeck_velocity,
        efficiency=(1 - motor_load) / behind,
        back_efficiency=(1 - external_load) / (1 + motor_load),
        **limits,
    )
    return changed.with_joint(joint, damping=0.0, friction=0.0)


def bam_differences(servo: ServoParameters, *, load_speed: float = 0.0) -> tuple[str, ...]:
    """Return the terms of a servo that the actuator of ``with_bam`` does not represent.

    Parameters
    ----------
    servo : ServoParameters
        The servo, for example from ``read_bam``.
    load_speed : float
        Speed [rad/s] as for ``with_bam``.

    Returns
    -------
    tuple of str
        One sentence for each term, with its size; empty if the equations are the same.

    Raises
    ------
    InvalidValue
        As ``with_bam``.

    """
    check_type(ServoParameters, "servo", servo)
    c, notes = servo.friction, list[str]()
    motor_load, external_load = _load(c, load_speed)
    if c.stribeck > 0 and c.stribeck_exponent != STRIBECK_EXPONENT:
        gap = np.exp(-(CURVE**c.stribeck_exponent)) - np.exp(-(CURVE**STRIBECK_EXPONENT))
        notes.append(
            f"Stribeck exponent {c.stribeck_exponent:g} is replaced by 2: dry friction differs by"
            f" at most {float(np.max(np.abs(gap))) * c.stribeck:.3g} N·m."
        )
    if c.motor_load_stribeck > 0 or c.external_load_stribeck > 0:
        notes.append(
            "Load-dependent friction does not change with the speed: its coefficients are"
            f" {motor_load:.3g} and {external_load:.3g}, as at {load_speed:g} rad/s,"
            f" instead of {c.motor_load + c.motor_load_stribeck:.3g} and"
            f" {c.external_load + c.external_load_stribeck:.3g} at rest,"
            f" {c.motor_load:.3g} and {c.external_load:.3g} at high speed."
        )
    if c.motor_quadratic > 0 or c.external_quadratic > 0:
        notes.append(
            f"Quadratic friction of {c.motor_quadratic:.3g} and {c.external_quadratic:.3g}"
            " 1/(N·m) is omitted."
        )
    if external_load > 0:
        loss = 2 * external_load / (1 + external_load)
        notes.append(
            "Dry and viscous friction without load dependence are"
            f" {100 * loss:.3g} % too small while the load drives."
        )
    if motor_load > 0 or external_load > 0:
        notes.append(
            "Load-dependent friction is that of the motor torque alone: it differs during"
            " acceleration and where motor and load act in the same direction."
        )
    if np.isfinite(servo.loop.velocity_limit):
        limit = servo.loop.velocity_limit
        notes.append(f"The velocity limit of the target of {limit:.3g} rad/s is omitted.")
    return tuple(notes)


def _load(friction: ServoFriction, speed: float) -> tuple[float, float]:
    """Return K_m and K_e at ``speed`` [rad/s], both below 1."""
    speed = check_float("load_speed [rad/s]", speed, lower=0)
    found = friction.load_coefficients(speed)
    for value, name, effect in zip(
        found,
        ("motor", "external"),
        ("the motor cannot drive the joint", "the load cannot drive the motor"),
        strict=True,
    ):
        if value >= 1:
            raise InvalidValue(
                f"servo friction: {name} load coefficient = {value:.4g} at {speed:g} rad/s;"
                f" expected below 1: {effect}"
            )
    return found
