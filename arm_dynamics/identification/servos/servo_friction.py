"""Friction of geared servo motors: Coulomb, viscous, Stribeck and load-dependent terms.

τ_f = K_c + K_v |v| + |K_m τ_m - K_e τ_e| + s(v) (K_cs + |K_ms τ_m - K_es τ_e| + Q)

s(v) = exp(-|v / v_s|^α), motor torque τ_m, external torque τ_e (gravity, load), both positive
along v. Q is quadratic, see ``quadratic_load``. τ_f is the largest friction: at rest friction
balances the net torque up to it. The models M1 to M6 of BAM are special cases.

References
----------
M. Duclusaud, G. Passault, V. Padois, O. Ly, Extended friction models for the physics simulation
of servo actuators, arXiv:2410.08650 (2024), section II. Where the published text and BAM's
program (Rhoban/bam) differ, the equations are those of the program.

"""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields

import numpy as np

from arm_dynamics.core.arrays import Vector, check_float
from arm_dynamics.core.compiled_math import NUMBER, VECTOR, compiled, compiled_for, exp, sign, where

COULOMB, VISCOUS, STRIBECK, STRIBECK_VELOCITY, STRIBECK_EXPONENT = range(5)
MOTOR_LOAD, EXTERNAL_LOAD, MOTOR_LOAD_STRIBECK, EXTERNAL_LOAD_STRIBECK = range(5, 9)
MOTOR_QUADRATIC, EXTERNAL_QUADRATIC = range(9, 11)


@dataclass(frozen=True, slots=True)
class ServoFriction:
    """Coefficients of the friction at the output shaft of a servo motor; all at least 0.

    Parameters
    ----------
    coulomb : float
        Dry friction K_c [N·m].
    viscous : float
        Viscous friction K_v [N·m·s/rad].
    stribeck : float
        Additional dry friction at rest K_cs [N·m].
    stribeck_velocity : float
        Speed v_s [rad/s], above 0, at which s = 1/e.
    stribeck_exponent : float
        Exponent α [1], above 0.
    motor_load, external_load : float
        Load-dependent friction per motor torque K_m and per external torque K_e [1].
    motor_load_stribeck, external_load_stribeck : float
        The same for the additional friction at rest, K_ms and K_es [1].
    motor_quadratic, external_quadratic : float
        Quadratic friction K_mq per τ_m² and K_eq per τ_e² [1/(N·m)].

    Raises
    ------
    InvalidValue
        For a negative or non-finite value, and for a speed or exponent of 0.

    """

    coulomb: float
    viscous: float
    stribeck: float = 0.0
    stribeck_velocity: float = 1.0
    stribeck_exponent: float = 2.0
    motor_load: float = 0.0
    external_load: float = 0.0
    motor_load_stribeck: float = 0.0
    external_load_stribeck: float = 0.0
    motor_quadratic: float = 0.0
    external_quadratic: float = 0.0

    def __post_init__(self) -> None:
        """Check every coefficient."""
        for field in fields(self):
            name, positive = f"servo friction: {field.name}", field.name in POSITIVE
            bounds = {"above": 0.0} if positive else {"lower": 0.0}
            value = check_float(name, getattr(self, field.name), **bounds)
            object.__setattr__(self, field.name, value)

    @property
    def constants(self) -> Vector:
        """Coefficients (11,) in the order of the fields, as the compiled functions take them."""
        return np.array(astuple(self))

    def limit(self, motor: float, external: float, v: float) -> float:
        """Return the largest friction τ_f [N·m].

        Parameters
        ----------
        motor, external : float
            Motor torque τ_m and external torque τ_e [N·m], both positive along v.
        v : float
            Velocity [rad/s].

        Returns
        -------
        float
            τ_f [N·m], at least 0; see ``friction_limit``.

        """
        motor = check_float("motor torque [N·m]", motor)
        external = check_float("external torque [N·m]", external)
        return friction_limit(motor, external, check_float("v [rad/s]", v), self.constants)

    def load_coefficients(self, v: float) -> tuple[float, float]:
        """Return K_m + s(v) K_ms and K_e + s(v) K_es [1] at speed v [rad/s]."""
        s = stribeck_fraction(check_float("v [rad/s]", v), self.constants)
        return (
            self.motor_load + s * self.motor_load_stribeck,
            self.external_load + s * self.external_load_stribeck,
        )


POSITIVE = ("stribeck_velocity", "stribeck_exponent")
"""Coefficients that cannot be 0."""


@compiled_for(NUMBER, VECTOR)
def stribeck_fraction(v: float, c: Vector) -> float:
    """Return s = exp(-|v / v_s|^α) [1]: 1 at rest, 0 at high speed; v [rad/s]."""
    return exp(-(abs(v / c[STRIBECK_VELOCITY]) ** c[STRIBECK_EXPONENT]))


@compiled
def quadratic_load(motor: float, external: float, c: Vector) -> float:
    """Return Q [N·m], the quadratic load-dependent friction of model M6.

    Q = K_eq τ_e² for |τ_m| > |τ_e|,  K_mq τ_m² for |τ_m| < |τ_e|;  0 where both act in the same
    direction and where they are equal.
    """
    driving = where(abs(motor) > abs(external), c[EXTERNAL_QUADRATIC] * external * external, 0.0)
    driven = where(abs(motor) < abs(external), c[MOTOR_QUADRATIC] * motor * motor, 0.0)
    return where(sign(motor) == sign(external), 0.0, driving + driven)


@compiled_for(NUMBER, NUMBER, NUMBER, VECTOR)
def friction_limit(motor: float, external: float, v: float, c: Vector) -> float:
    """Return the largest friction τ_f [N·m] of the module's equation.

    motor τ_m, external τ_e [N·m], v [rad/s]; c (11,) are ``ServoFriction.constants``.
    """
    load = abs(c[MOTOR_LOAD] * motor - c[EXTERNAL_LOAD] * external)
    resting = abs(c[MOTOR_LOAD_STRIBECK] * motor - c[EXTERNAL_LOAD_STRIBECK] * external)
    stiction = c[STRIBECK] + resting + quadratic_load(motor, external, c)
    dry = c[COULOMB] + load + stribeck_fraction(v, c) * stiction
    limit: float = dry + c[VISCOUS] * abs(v)
    return limit


@compiled
def friction_torque(limit: float, stopping: float) -> float:
    """Return the friction -sgn(τ_s) min(|τ_s|, τ_f) [N·m]; limit τ_f [N·m].

    stopping τ_s = M v / dt + τ_m + τ_e [N·m] is the torque that friction must balance for
    standstill after a step dt.
    """
    size: float = where(abs(stopping) < limit, abs(stopping), limit)
    return -sign(stopping) * size
