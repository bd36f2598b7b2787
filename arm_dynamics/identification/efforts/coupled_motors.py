"""Coupled motors: motors whose velocity is a combination of joint velocities.

θ̇ = r v,  τ = rᵀ (I θ̈ + b θ̇ + f sign(θ̇))

r are the factors of the joint velocities v. The reflected rotor inertia I and the friction b, f of
such a motor act on all of its joints, in addition to the joints' own terms. Examples: a wrist whose
motor 6 turns with joint 5 too (r = 1 for both), and a differential transmission, whose two motors
turn with sum and difference of two velocities (the ``DifferentialTransmission`` of ros2_control).

References
----------
M. Gautier, A. Janot, P. Vandanjon, A new closed-loop output error method for parameter
identification of robot dynamics, IEEE T-CST 21 (2013), section V (wrist of the TX40). W. Khalil, E.
Dombre, Modeling, Identification and Control of Robots (2002), section 9.5.

"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from arm_dynamics.core.arrays import BoolArray, FloatArray, Matrix, Vector, as_readonly, check_float
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.identification.results.fit_summary import ParameterFit
from arm_dynamics.model.arm_model import ArmModel

TERMS = ("armature", "viscous", "coulomb")
UNITS = ("kg·m²", "N·m·s/rad", "N·m")


def coupling_factors(arm: ArmModel, coupled: Sequence[Mapping[str, float]]) -> Matrix:
    """Return the factors r (nc, nv) of coupled motors.

    Parameters
    ----------
    arm : ArmModel
        The arm.
    coupled : Sequence[Mapping[str, float]]
        For each motor the factors of the joint velocities by joint name, 0 for other joints.

    Raises
    ------
    InvalidValue
        For an unknown joint, and for a motor of less than two joints.

    """
    factors = np.zeros((len(coupled), arm.nv))
    for k, motor in enumerate(coupled):
        for name, factor in motor.items():
            if name not in arm.joint_names:
                raise InvalidValue(
                    f"coupled motor: joint = '{name}'; expected one of {', '.join(arm.joint_names)}"
                )
            column = arm.joint_names.index(name)
            factors[k, column] = check_float(f"coupled motor: factor of '{name}'", factor)
        if np.count_nonzero(factors[k]) < 2:
            text = ", ".join(f"{name}={factor:g}" for name, factor in motor.items())
            raise InvalidValue(f"coupled motor: joints = {text}; expected at least two joints")
    return factors


def coupled_rows(factors: Matrix, v: Matrix, a: Matrix, sign: Matrix) -> FloatArray:
    """Return the columns (n, nv, 3 nc) of I, b and f of each motor.

    Parameters
    ----------
    factors : Matrix
        r (nc, nv).
    v, a : Matrix
        Velocities and accelerations of the joints (n, nv).
    sign : Matrix
        Directions (n, nc) of the motors.

    """
    motors = np.stack((a @ factors.T, v @ factors.T, sign), axis=2)
    found: FloatArray = np.einsum("nkt,ki->nikt", motors, factors)
    return found.reshape(*v.shape, 3 * len(factors))


def typical_terms(coupled: FloatArray, terms: Vector) -> Vector:
    """Return I, b, f (3 nc,) of each motor: the least I_j / r², b_j / r², f_j / |r| of its joints.

    ``terms`` (3 nv,) are those of the joints. ``coupled`` (n, nv, 3 nc) are the ``coupled_rows``,
    whose direction of motion contains |r|. A motor that never turns has the least of all joints.
    """
    size = np.abs(coupled[:, :, 2::3]).max(axis=0)
    of_joints = terms.reshape(len(TERMS), -1)
    found = np.empty((size.shape[1], len(TERMS)))
    for k, r in enumerate(size.T):
        own = r > 0 if (r > 0).any() else np.ones(r.size, dtype=bool)
        scale = np.where(r > 0, r, 1.0)[own]
        found[k] = (of_joints[:, own] / np.stack((scale**2, scale**2, scale))).min(axis=1)
    return found.ravel()


def with_motor_rest(certain: BoolArray, factors: Matrix) -> BoolArray:
    """Return where the directions (n, nv) of the joints and of all of their motors are certain.

    ``certain`` (n, nv + nc) are those of the joints, then of the motors.
    """
    joints, motors = np.split(certain, [factors.shape[1]], axis=1)
    uncertain: BoolArray = (~motors).astype(int) @ (factors != 0).astype(int) > 0
    return joints & ~uncertain


@dataclass(frozen=True, slots=True, eq=False)
class CoupledMotors:
    """Identified coupled motors.

    ``factors`` r (nc, nv); ``terms`` (nc, 3): I [kg·m²], b [N·m·s/rad], f [N·m]; ``deviation``
    (nc, 3): their standard deviations.
    """

    factors: Matrix
    terms: Matrix
    deviation: Matrix

    @classmethod
    def none(cls, nv: int) -> CoupledMotors:
        """Return no coupled motor of ``nv`` joints."""
        return cls(np.zeros((0, nv)), np.zeros((0, 3)), np.zeros((0, 3)))

    @property
    def own_terms(self) -> Vector:
        """I r², b r², f |r| (3 nv,): terms of the joints while their other joints rest."""
        size = np.abs(self.factors)
        each = [term @ size**power for term, power in zip(self.terms.T, (2, 2, 1), strict=True)]
        return as_readonly(np.concatenate(each))

    def names(self, joints: Sequence[str]) -> list[str]:
        """Return the names of the motors, "J5 + J6" or "J6 - 0.5 J7"."""
        names = []
        for row in self.factors:
            parts = [
                f"{'-' if row[i] < 0 else '+'} {'' if abs(row[i]) == 1 else f'{abs(row[i]):g} '}"
                f"{joints[i]}"
                for i in np.flatnonzero(row).tolist()
            ]
            names.append(" ".join(parts).removeprefix("+ "))
        return names

    def parameters(self, joints: Sequence[str]) -> tuple[ParameterFit, ...]:
        """Return rows of the report."""
        motors = zip(self.names(joints), self.terms.tolist(), self.deviation.tolist(), strict=True)
        return tuple(
            ParameterFit(f"{name}.{term}", unit, 0.0, value, 100 * spread / value)
            for name, values, spreads in motors
            for term, unit, value, spread in zip(TERMS, UNITS, values, spreads, strict=True)
        )

    def notes(self, joints: Sequence[str]) -> list[str]:
        """Return a sentence for each motor about what the arm in simulation contains."""
        return [
            f"coupled motor {name}: rotor inertia {inertia:.4g} kg m^2, viscous friction"
            f" {viscous:.4g} N m s/rad, Coulomb friction {coulomb:.4g} N m; a URDF has no coupled"
            " motors: armature and friction of its joints contain them, without the coupling"
            for name, (inertia, viscous, coulomb) in zip(
                self.names(joints), self.terms.tolist(), strict=True
            )
        ]
