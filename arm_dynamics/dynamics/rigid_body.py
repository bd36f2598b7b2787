"""Rigid-body dynamics of an arm: M(q) a + C(q, v) v + g(q) = tau.

Pure functions of (arm, q, v, ...). M includes the reflected rotor inertia of the motors; friction
and end stops are part of the plant. Algorithms: R. Featherstone, Rigid Body Dynamics Algorithms
(2008), chapters 5 (RNEA), 6 (CRBA), 7 (ABA), as implemented in Pinocchio. Inputs are (nv,) in rad,
rad/s, rad/s², N·m; every function raises InvalidValue for a wrong size, a non-finite entry, a
non-finite result or a kinematic arm. ``RigidBodyDynamics`` has the same functions without checks,
for control cycles.
"""

from __future__ import annotations

import threading
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from arm_dynamics.core.arrays import Matrix, Vector, check_float, check_vector
from arm_dynamics.core.compiled_math import is_finite
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.small_matrices import solve_spd, symmetric_from_upper
from arm_dynamics.model.arm_argument import check_arm, requires_arm, requires_masses
from arm_dynamics.model.arm_model import ArmModel

FLOAT = np.dtype(np.float64)
_scratch = threading.local()


@requires_masses
def mass_matrix(arm: ArmModel, q: ArrayLike) -> Vector:
    """Return M(q), symmetric positive definite (nv, nv) [kg·m²], with rotor inertia; CRBA."""
    upper = pin.crba(arm.model, pinocchio_data(arm), _numbers("q", q, arm.nv))
    return _finite("M(q)", symmetric_from_upper(upper))


@requires_masses
def coriolis_matrix(arm: ArmModel, q: ArrayLike, v: ArrayLike) -> Vector:
    """Return C(q, v) with Ṁ - 2C skew-symmetric (nv, nv) [N·m·s/rad]."""
    q, v = _numbers("q", q, arm.nv), _numbers("v", v, arm.nv)
    data = tree_data(arm)  # the result is a view of it
    C = pin.computeCoriolisMatrix(arm.tree, data, arm.tree_positions(q), arm.tree_velocities(v))
    return _finite("C(q, v)", arm.reduced(C))


@requires_masses
def gravity(arm: ArmModel, q: ArrayLike) -> Vector:
    """Return the gravity torque g(q) = ∂U/∂q (nv,) [N·m], the effort of static equilibrium."""
    g = pin.computeGeneralizedGravity(arm.model, pinocchio_data(arm), _numbers("q", q, arm.nv))
    return _finite("g(q)", g)


@requires_masses
def nle(arm: ArmModel, q: ArrayLike, v: ArrayLike) -> Vector:
    """Return the bias C(q, v) v + g(q) (nv,) [N·m]."""
    q, v = _numbers("q", q, arm.nv), _numbers("v", v, arm.nv)
    return _finite("C(q, v) v + g(q)", pin.nonLinearEffects(arm.model, pinocchio_data(arm), q, v))


@requires_masses
def rnea(arm: ArmModel, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Vector:
    """Return the inverse dynamics tau = M(q) a + C(q, v) v + g(q) (nv,) [N·m]."""
    q, v, a = _numbers("q", q, arm.nv), _numbers("v", v, arm.nv), _numbers("a", a, arm.nv)
    return _finite("M(q) a + C(q, v) v + g(q)", pin.rnea(arm.model, pinocchio_data(arm), q, v, a))


@requires_masses
def rnea_batch(arm: ArmModel, q: Vector, v: Vector, a: Vector) -> Vector:
    """Return ``rnea`` of many instants: rows of q, v, a and of the result (m, nv), finite."""
    scratch, found = pinocchio_data(arm), np.empty(q.shape)
    for k in range(len(q)):
        found[k] = pin.rnea(arm.model, scratch, q[k], v[k], a[k])
    found.setflags(write=False)
    return found


@requires_masses
def aba(arm: ArmModel, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> Vector:
    """Return the forward dynamics a = M(q)⁻¹ (tau - C(q, v) v - g(q)) (nv,) [rad/s²]."""
    q, v, tau = _numbers("q", q, arm.nv), _numbers("v", v, arm.nv), _numbers("tau", tau, arm.nv)
    algorithm = _aba_with_mimic_joints if arm.mimic_joints else pin.aba
    return _finite("the acceleration", algorithm(arm.model, pinocchio_data(arm), q, v, tau))


def _aba_with_mimic_joints(model: Any, data: Any, q: Vector, v: Vector, tau: Vector) -> Vector:
    """Return M⁻¹ (tau - h): ``pin.aba`` does not support mimic joints."""
    rest = tau - pin.nonLinearEffects(model, data, q, v)
    mass = symmetric_from_upper(pin.crba(model, data, q))
    acceleration: Vector = solve_spd(mass, rest[:, None])[:, 0]
    return acceleration


def _inverse_mass_with_mimic_joints(model: Any, data: Any, q: Vector) -> Matrix:
    mass = symmetric_from_upper(pin.crba(model, data, q))
    inverse: Matrix = solve_spd(mass, np.eye(model.nv))
    return inverse


@requires_masses
def aba_derivatives(
    arm: ArmModel, q: ArrayLike, v: ArrayLike, tau: ArrayLike
) -> tuple[Vector, Vector, Vector]:
    """Return ∂a/∂q, ∂a/∂v and ∂a/∂tau = M⁻¹ of a = aba(q, v, tau), each (nv, nv), analytical.

    Source: J. Carpentier and N. Mansard, RSS XIV (2018).
    """
    q, v, tau = _numbers("q", q, arm.nv), _numbers("v", v, arm.nv), _numbers("tau", tau, arm.nv)
    data = pinocchio_data(arm)
    if arm.mimic_joints:  # of M a + h = tau
        a, inverse = aba(arm, q, v, tau), _inverse_mass_with_mimic_joints(arm.model, data, q)
        motion = arm.tree_positions(q), arm.tree_velocities(v), arm.tree_velocities(a)
        data = tree_data(arm)
        by_q, by_v, _ = pin.computeRNEADerivatives(arm.tree, data, *motion)
        by_q, by_v = -inverse @ arm.reduced(by_q), -inverse @ arm.reduced(by_v)
    else:
        by_q, by_v, upper = pin.computeABADerivatives(arm.model, data, q, v, tau)
        inverse = symmetric_from_upper(upper)
    return _finite("∂a/∂q", by_q), _finite("∂a/∂v", by_v), _finite("M(q)⁻¹", inverse)


@requires_masses
def kinetic_energy(arm: ArmModel, q: ArrayLike, v: ArrayLike) -> float:
    """Return T = ½ vᵀ M(q) v [J], rotors included."""
    v = _numbers("v", v, arm.nv)
    with np.errstate(over="ignore", invalid="ignore"):
        return check_float("kinetic energy [J]", float(0.5 * v @ mass_matrix(arm, q) @ v))


@requires_masses
def potential_energy(arm: ArmModel, q: ArrayLike) -> float:
    """Return U = -Σ m_i gᵀ c_i(q) [J], zero at the height of the base frame."""
    q = arm.tree_positions(_numbers("q", q, arm.nv))
    return float(pin.computePotentialEnergy(arm.tree, tree_data(arm), q))


@requires_arm
def pinocchio_data(arm: ArmModel) -> Any:
    """Return Pinocchio's scratch memory for this arm in this thread."""
    cache: WeakKeyDictionary[ArmModel, Any] = _scratch.__dict__.setdefault(
        "data", WeakKeyDictionary()
    )
    if arm not in cache:
        cache[arm] = arm.model.createData()
    return cache[arm]


@requires_arm
def tree_data(arm: ArmModel) -> Any:
    """Return Pinocchio's scratch memory for ``arm.tree``; new memory with mimic joints."""
    return arm.tree.createData() if arm.mimic_joints else pinocchio_data(arm)


def _finite(what: str, result: Vector) -> Vector:
    """Return a read-only result; raises InvalidValue if it is not finite."""
    if not is_finite(result.ravel()):
        raise InvalidValue(f"{what} is not finite; expected smaller entries")
    own: Vector = result.copy()  # Pinocchio's results are its scratch memory
    own.setflags(write=False)
    return own


def _numbers(name: str, value: ArrayLike, size: int) -> Vector:
    """Return ``check_vector(name, value, size)``; a valid array is not copied.

    Controllers call this in every cycle: it costs a tenth.
    """
    if (
        type(value) is np.ndarray
        and value.dtype is FLOAT
        and value.shape == (size,)
        and value.flags.c_contiguous
        and is_finite(value)
    ):
        return value
    return check_vector(name, value, size)


class RigidBodyDynamics:
    """Rigid-body dynamics of one arm without checks, with separate scratch memory.

    q, v, a are (nv,), float64 and finite. The next call of the same method may change a result.
    """

    def __init__(self, arm: ArmModel) -> None:
        self._model = check_arm(arm).model
        self._data = self._model.createData()

    def mass_matrix(self, q: Vector) -> Vector:
        """Return M(q) (nv, nv) [kg·m²]."""
        return symmetric_from_upper(self.upper_mass_matrix(q))

    def upper_mass_matrix(self, q: Vector) -> Vector:
        """Return the upper triangle of M(q) (nv, nv) [kg·m²]."""
        upper: Vector = pin.crba(self._model, self._data, q)
        return upper

    def gravity(self, q: Vector) -> Vector:
        """Return g(q) (nv,) [N·m]."""
        found: Vector = pin.computeGeneralizedGravity(self._model, self._data, q)
        return found

    def nle(self, q: Vector, v: Vector) -> Vector:
        """Return C(q, v) v + g(q) (nv,) [N·m]."""
        found: Vector = pin.nonLinearEffects(self._model, self._data, q, v)
        return found

    def rnea(self, q: Vector, v: Vector, a: Vector) -> Vector:
        """Return M(q) a + C(q, v) v + g(q) (nv,) [N·m]."""
        found: Vector = pin.rnea(self._model, self._data, q, v, a)
        return found
