"""Parameters in which the joint efforts of an arm are linear, and the arm of their values.

tau = Y(q, v, a) π + I_r a + b v + f sign(v) + o

π holds ten inertial parameters per link; the reflected rotor inertia I_r, the viscous friction b,
the Coulomb friction f and the effort offset o belong to a joint.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pinocchio as pin

from arm_dynamics.core.arrays import BoolArray, Matrix, Vector, as_readonly, check_vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.model.arm_argument import require_no_mimic_joints, requires_arm, requires_masses
from arm_dynamics.model.arm_model import NO_PAYLOAD, ArmModel, Joint

INERTIAL = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
"""Mass [kg], mass times center of mass [kg·m] and inertia about the joint frame's origin [kg·m²]
of a link, in the order of Pinocchio."""
SLIDING = 1e3
"""Speed [rad/s] at which a motor's Stribeck friction has faded."""
JOINT_TERMS = ("armature", "viscous", "coulomb", "offset")
"""Parameters of a joint: I_r [kg·m²], b [N·m·s/rad], f [N·m], o [N·m]."""


@dataclass(frozen=True, slots=True)
class ParameterLayout:
    """Entries of the parameters (14 nv,) of ``nv`` joints, by name: ``values[layout.coulomb]``.

    The slices select entries of a vector, and columns of a regressor. ``terms`` are ``armature``,
    ``viscous`` and ``coulomb``: the terms of the joints that are not negative.
    """

    nv: int

    @property
    def size(self) -> int:
        """Number of parameters, 14 nv."""
        return 14 * self.nv

    @property
    def inertial(self) -> slice:
        """Inertial parameters of all bodies, 10 nv entries."""
        return slice(0, 10 * self.nv)

    @property
    def terms(self) -> slice:
        """Rotor inertia, viscous and Coulomb friction, 3 nv entries."""
        return slice(10 * self.nv, 13 * self.nv)

    @property
    def armature(self) -> slice:
        """Reflected rotor inertia."""
        return slice(10 * self.nv, 11 * self.nv)

    @property
    def viscous(self) -> slice:
        """Viscous friction."""
        return slice(11 * self.nv, 12 * self.nv)

    @property
    def coulomb(self) -> slice:
        """Coulomb friction."""
        return slice(12 * self.nv, 13 * self.nv)

    @property
    def offset(self) -> slice:
        """Effort offsets."""
        return slice(13 * self.nv, 14 * self.nv)

    def body(self, i: int) -> slice:
        """Return the ten entries of the body of joint i."""
        return slice(10 * i, 10 * i + 10)

    def joint_terms(self, i: int) -> slice:
        """Return the four entries of joint i: armature, viscous, coulomb and offset."""
        return slice(10 * self.nv + i, 14 * self.nv, self.nv)

    def bodies(self, values: Matrix) -> Matrix:
        """Return the view (..., nv, 10) of the inertial parameters in values (..., 14 nv)."""
        return values[..., self.inertial].reshape(*values.shape[:-1], self.nv, 10)

    def mask(self, *entries: slice) -> BoolArray:
        """Return which parameters (14 nv,) are among the entries."""
        mask = np.zeros(self.size, dtype=bool)
        for each in entries:
            mask[each] = True
        return mask


def parameter_names(arm: ArmModel) -> tuple[str, ...]:
    """Return the names of all parameters (14 nv,), "J1.m" … "J5.Izz", "J1.armature" … "J5.offset".

    The ten inertial parameters of each joint's link come first, joint by joint; then the terms of
    the joints, term by term.
    """
    links = [f"{joint}.{name}" for joint in arm.joint_names for name in INERTIAL]
    return (*links, *(f"{joint}.{term}" for term in JOINT_TERMS for joint in arm.joint_names))


@requires_masses
def nominal_parameters(arm: ArmModel) -> Vector:
    """Return the parameters (14 nv,) of the arm itself, payload and motors included.

    A motor behind backlash is replaced by one with a rigid gear: efforts do not separate them.
    """
    require_no_mimic_joints(arm, "identification")
    arm = _without_backlash(arm)
    inertial = [inertia.toDynamicParameters() for inertia in list(arm.model.inertias)[1:]]
    pairs = list(zip(arm.joints, arm.actuators, strict=True))
    terms = (
        arm.model.armature,
        [joint.damping + actuator.viscous_friction for joint, actuator in pairs],
        [joint.friction + _sliding_friction(actuator) for joint, actuator in pairs],
        np.zeros(arm.nv),
    )
    return as_readonly(np.concatenate((*inertial, *terms)))


@requires_arm
def regressor(arm: ArmModel, q: Matrix, v: Matrix, a: Matrix) -> Matrix:
    """Return W (n, nv, 14 nv) of tau = W π for n instants.

    Parameters
    ----------
    arm : ArmModel
        The arm; only its geometry and gravity are used.
    q, v, a : Matrix
        Positions, velocities and accelerations (n, nv) [rad, rad/s, rad/s²], finite.

    Returns
    -------
    Matrix
        Rows of the joints at each instant (n, nv, 14 nv), in the order of ``parameter_names``.

    References
    ----------
    W. Khalil, E. Dombre, Modeling, Identification and Control of Robots (2002), section 12.3.

    """
    require_no_mimic_joints(arm, "identification")
    n, nv = q.shape
    layout, joints = ParameterLayout(nv), np.arange(nv)
    rows = np.zeros((n, nv, layout.size))
    model, data = arm.model, arm.model.createData()
    for k in range(n):
        rows[k, :, layout.inertial] = pin.computeJointTorqueRegressor(model, data, q[k], v[k], a[k])
    for term, values in zip(JOINT_TERMS, (a, v, np.sign(v), np.ones_like(v)), strict=True):
        rows[..., getattr(layout, term)][:, joints, joints] = values
    return rows


@requires_arm
def with_parameters(arm: ArmModel, values: Vector) -> ArmModel:
    """Return the arm with the inertia, rotor inertia and friction of ``values`` (14 nv,).

    The payload becomes part of its link. Friction of the motor stays where it is at most the total
    of the joint; the joint has the rest. Effort offsets are not part of an arm; backlash remains.

    Parameters
    ----------
    arm : ArmModel
        The nominal arm.
    values : Vector
        Parameters (14 nv,) in the order of ``parameter_names``.

    Returns
    -------
    ArmModel
        The arm with these parameters.

    Raises
    ------
    InvalidValue
        For a wrong size, and for negative masses, rotor inertia or friction.

    """
    layout = ParameterLayout(arm.nv)
    values = check_vector("parameters", values, layout.size)
    links = pin.Model(arm.links)
    for i, body in enumerate(layout.bodies(values)):
        if body[0] < 0:
            raise InvalidValue(
                f"joint '{arm.joint_names[i]}': mass of its link = {body[0]:.4g} kg; expected at"
                " least 0; fit with physical consistency"
            )
        links.inertias[i + 1] = pin.Inertia.FromDynamicParameters(body)
    rigid = _without_backlash(arm)
    joints = [
        _with_terms(rigid, i, *values[layout.joint_terms(i)].tolist()[:3]) for i in range(arm.nv)
    ]
    for i, joint in enumerate(arm.joints):
        if "backlash" in joint.constants:
            constants = {**joints[i].constants, "backlash": joint.constants["backlash"]}
            joints[i] = replace(joints[i], constants=MappingProxyType(constants))
    return replace(arm, links=links, joints=tuple(joints), payload=NO_PAYLOAD)


def _without_backlash(arm: ArmModel) -> ArmModel:
    """Return the arm with rigid gears: its rotors move with the joints."""
    for joint, actuator in zip(arm.joint_names, arm.actuators, strict=True):
        if actuator.constants.get("backlash"):
            arm = arm.with_motor(joint, backlash=0.0)
    return arm


def _with_terms(arm: ArmModel, i: int, armature: float, viscous: float, coulomb: float) -> Joint:
    """Return joint i with its total friction and reflected rotor inertia."""
    joint, actuator, constants = arm.joints[i], arm.actuators[i], dict(arm.joints[i].constants)
    for name, value in (("armature", armature), ("viscous", viscous), ("coulomb", coulomb)):
        if value < 0:
            raise InvalidValue(
                f"joint '{joint.name}': {name} = {value:.4g}; expected at least 0; fit with"
                " physical consistency"
            )
    known = {parameter.name for parameter in actuator.parameters}
    if "rotor_inertia" in known and actuator.armature != armature:
        ratio = float(actuator.constants["gear_ratio"])
        constants["rotor_inertia"] = armature / ratio**2
    elif "armature" in known:
        constants["armature"] = armature
    if viscous < actuator.viscous_friction:
        constants["viscous_friction"] = 0.0
    if coulomb < _sliding_friction(actuator):
        constants |= {name: 0.0 for name in ("coulomb_friction", "stiction") if name in known}
    changed = replace(joint, constants=MappingProxyType(constants))
    motor = replace(arm, joints=(*arm.joints[:i], changed, *arm.joints[i + 1 :])).actuators[i]
    return replace(
        changed,
        damping=max(viscous - motor.viscous_friction, 0.0),
        friction=max(coulomb - _sliding_friction(motor), 0.0),
    )


def _sliding_friction(actuator: Any) -> float:
    """Return the dry friction [N·m] of a moving motor without load."""
    return float(max(actuator.dry_friction_bounds(SLIDING, 0.0)))
