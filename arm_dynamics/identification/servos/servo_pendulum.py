"""Simulation of a servo motor with a pendulum, in the time steps of BAM."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.core.argument_checks import check_type
from arm_dynamics.core.arrays import (
    BoolArray,
    Matrix,
    Vector,
    as_readonly,
    check_float,
    check_vector,
)
from arm_dynamics.core.compiled_math import clip, compiled
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.identification.servos.servo_friction import friction_limit, friction_torque
from arm_dynamics.identification.servos.servo_parameters import (
    BY_CURRENT,
    VELOCITY_LIMIT,
    ServoParameters,
    loop_command,
    motor_torque,
)

GRAVITY = 9.80665
"""Standard acceleration of gravity [m/s²]."""
VELOCITY_BOUND = 100.0
"""Largest velocity of BAM's simulation [rad/s]."""


@dataclass(frozen=True, slots=True, eq=False)
class PendulumMotion:
    """Motion of a servo motor with a pendulum; n samples, each at the start of its step.

    ``time`` (n,) [s]; ``q`` (n,) [rad], 0 downward; ``v`` (n,) [rad/s]; ``command`` (n,) of the
    position loop [V or A]; ``torque`` (n,) of the motor before friction [N·m]; ``friction`` (n,)
    [N·m].
    """

    time: Vector
    q: Vector
    v: Vector
    command: Vector
    torque: Vector
    friction: Vector


def simulate_pendulum(
    servo: ServoParameters,
    target: ArrayLike,
    *,
    mass: float,
    length: float,
    rod_mass: float = 0.0,
    dt: float = 0.005,
    initial_q: float = 0.0,
    initial_v: float = 0.0,
    initial_target: float | None = None,
    enabled: ArrayLike | None = None,
) -> PendulumMotion:
    """Simulate a servo motor that moves a pendulum to a sequence of targets.

    M = (m + m_r / 3) l² + J,  τ_e = -(m + m_r / 2) g l sin(q + offset)
    a = (τ_m + τ_e + τ_f) / M,  v⁺ = v + a dt,  q⁺ = q + v⁺ dt + a dt² / 2

    τ_f is ``friction_torque``, which stops the pendulum within a step or slows it by at most
    ``friction_limit``. The term a dt² / 2 in addition to v⁺ dt is that of BAM: its parameters are
    fitted with it.

    Parameters
    ----------
    servo : ServoParameters
        The servo, for example from ``read_bam``.
    target : array_like
        Position targets (n,) [rad], each for one step.
    mass : float
        Point mass m at the end of the rod [kg].
    length : float
        Length l of the rod [m].
    rod_mass : float
        Mass m_r of the uniform rod [kg].
    dt : float
        Time step [s].
    initial_q, initial_v : float
        Position [rad], 0 downward, and velocity [rad/s] at the start.
    initial_target : float, optional
        Internal target of a servo with a velocity limit at the start [rad]; ``initial_q`` by
        default. BAM's program starts with 0.
    enabled : array_like, optional
        Whether the motor is enabled in each step (n,); always by default.

    Returns
    -------
    PendulumMotion
        Samples at the times 0, dt, ... (n - 1) dt.

    Raises
    ------
    InvalidValue
        For a value that is negative, not finite, or of another size, and without inertia.

    References
    ----------
    Rhoban/bam, ``simulate.py`` and ``testbench.py``: the scheme, matched to rounding errors.

    """
    check_type(ServoParameters, "servo", servo)
    targets = check_vector("target [rad]", target)
    mass = check_float("mass [kg]", mass, lower=0)
    rod = check_float("rod_mass [kg]", rod_mass, lower=0)
    length = check_float("length [m]", length, above=0)
    inertia = (mass + rod / 3) * length**2 + servo.armature
    check_float("inertia of pendulum and servo [kg·m²]", inertia, above=0)
    q = check_float("initial_q [rad]", initial_q)
    start = q if initial_target is None else initial_target
    flags = np.full(targets.size, True) if enabled is None else np.array(enabled, dtype=bool)
    if flags.shape != targets.shape:
        raise InvalidValue(f"enabled: shape = {flags.shape}; expected {targets.shape}, as target")
    samples: Matrix = np.zeros((5, targets.size))
    v = check_float("initial_v [rad/s]", initial_v)
    _simulate(
        (targets, flags),
        (servo.constants, servo.friction.constants),
        np.array([inertia, (mass + rod / 2) * GRAVITY * length, servo.offset]),
        check_float("dt [s]", dt, above=0),
        (q, v, check_float("initial_target [rad]", start)),
        samples,
    )
    if not np.isfinite(samples).all():
        raise InvalidValue(f"simulation diverged: pendulum is not finite at dt = {dt:g} s")
    return PendulumMotion(as_readonly(dt * np.arange(targets.size)), *samples)


@compiled
def _simulate(
    inputs: tuple[Vector, BoolArray],
    servo: tuple[Vector, Vector],
    pendulum: Vector,
    dt: float,
    start: tuple[float, float, float],
    samples: Matrix,
) -> None:
    """Write q, v, command, motor torque and friction (5, n) into ``samples``.

    ``inputs``: target and whether the motor is enabled, per step; ``servo``: constants of motor and
    friction; ``start``: q, v and internal target.
    """
    (target, enabled), (motor, friction), (q, v, internal) = inputs, servo, start
    inertia, weight, offset = pendulum[0], pendulum[1], pendulum[2]
    reach = motor[VELOCITY_LIMIT] * dt
    for i in range(target.size):
        internal = clip(target[i], internal - reach, internal + reach)
        command = loop_command(internal, q, v, motor)
        torque = motor_torque(command if enabled[i] else 0.0, v, motor)
        if not enabled[i] and motor[BY_CURRENT] == 0.0:
            torque = 0.0  # no voltage source, and thus no braking by the back-EMF
        external = -weight * np.sin(q + offset)
        stopping = inertia / dt * v + torque + external
        loss = friction_torque(friction_limit(torque, external, v, friction), stopping)
        samples[0, i], samples[1, i], samples[2, i] = q, v, command
        samples[3, i], samples[4, i] = torque, loss
        acceleration = (torque + external + loss) / inertia
        v = clip(v + acceleration * dt, -VELOCITY_BOUND, VELOCITY_BOUND)
        q += v * dt + 0.5 * acceleration * dt * dt
