"""Unknowns of an arm with servos, and the quantities of a rollout that they change.

x = x₀ exp(σ θ),   θ ~ N(0, 1)

x₀ is the value of the description, or a typical one where it has none, σ its tolerance. The delay is
additive. Friction of joint and motor have one factor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from arm_dynamics.batch.variation import rollout_arm
from arm_dynamics.core.arrays import Matrix, Vector, as_readonly
from arm_dynamics.identification.servo_loops import ServoLoops
from arm_dynamics.model.arm_model import ArmModel, Joint

TOLERANCES: Mapping[str, float] = {
    "loop_gain": 1.0,
    "armature": 0.5,
    "viscous": 0.7,
    "coulomb": 1.0,
    "stribeck": 1.0,
    "loss": 1.0,
    "mass": 0.2,
}
"""Quantity of a joint → σ: gain of the position loop, reflected rotor inertia, viscous friction,
Coulomb friction, Stribeck friction over Coulomb friction, loss 1 - η of the gear, mass."""
UNITS = {
    "loop_gain": "V/rad",
    "armature": "kg·m²",
    "viscous": "N·m·s/rad",
    "coulomb": "N·m",
    "stribeck": "",
    "loss": "",
    "mass": "kg",
}
PAYLOAD, DELAY = 1.5, 0.03
"""σ of the payload, and of the delay [s]."""
TYPICAL_FRICTION, TYPICAL_STRIBECK, TYPICAL_LOSS = 0.02, 0.1, 0.05
"""Friction over stall torque, Stribeck over Coulomb friction and loss of a gear without values."""
TYPICAL_SPEED = 0.1
"""Stribeck velocity at the joint [rad/s] of a motor without stiction."""
TYPICAL_ARMATURE = 0.1
"""Rotor inertia over inertia of the link."""
TYPICAL_PAYLOAD = 0.03
"""Payload over the mass of the links."""
LARGEST_LOSS = 0.9


@dataclass(frozen=True, slots=True, eq=False)
class ServoVariation:
    """Unknowns θ (p,) of an arm with servos.

    ``arm`` has the values x₀; ``start`` (quantities, nv) are those of ``TOLERANCES``.
    """

    arm: ArmModel
    loops: ServoLoops
    start: Matrix

    @classmethod
    def of(cls, arm: ArmModel, loops: ServoLoops) -> ServoVariation:
        """Return the unknowns around a description; missing values become typical ones."""
        joints = tuple(_described(arm, i, float(loops.max_voltage[i])) for i in range(arm.nv))
        total = sum(inertia.mass for inertia in arm.links.inertias)
        mass = arm.payload.mass or TYPICAL_PAYLOAD * total
        base = replace(arm, joints=joints, payload=replace(arm.payload, mass=mass))
        pairs = list(zip(joints, base.actuators, strict=True))
        dry = np.array([joint.friction + _coulomb(motor) for joint, motor in pairs])
        ratio = np.array([motor.constants["gear_ratio"] for motor in base.actuators])
        stiction = np.array([motor.constants["stiction"] for motor in base.actuators])
        slip = np.array([motor.constants["coulomb_friction"] for motor in base.actuators])
        start = (
            loops.gain,
            base.model.armature,
            [joint.damping + motor.viscous_friction for joint, motor in pairs],
            dry,
            ratio * (stiction - slip) / dry,
            [1 - motor.constants["efficiency"] for motor in base.actuators],
            [base.links.inertias[i + 1].mass for i in range(base.nv)],
        )
        return cls(base, loops, as_readonly(np.array(start, dtype=float)))

    @property
    def names(self) -> tuple[str, ...]:
        """Names of θ: "J1.loop_gain" … "J5.mass", "payload", "delay"."""
        own = (f"{joint}.{name}" for name in TOLERANCES for joint in self.arm.joint_names)
        return (*own, "payload", "delay")

    @property
    def units(self) -> tuple[str, ...]:
        """Units of ``values``."""
        own = (unit for unit in UNITS.values() for _ in self.arm.joints)
        return (*own, "kg", "s")

    def values(self, theta: Matrix) -> Matrix:
        """Return the quantities x (batch, p) of θ (batch, p)."""
        sigma = np.repeat(list(TOLERANCES.values()), self.arm.nv)
        factors = np.exp(theta[:, :-1] * np.append(sigma, PAYLOAD))
        first = np.append(self.start.reshape(-1), self.arm.payload.mass)
        return np.column_stack((factors * first, DELAY * theta[:, -1]))

    def varied(self, theta: Matrix) -> tuple[dict[str, Matrix], Vector]:
        """Return what θ (batch, p) changes in a rollout, (batch, nv), and the delay (batch,)."""
        nv, arm = self.arm.nv, self.arm
        x = self.values(theta)
        parts = x[:, : nv * len(TOLERANCES)].reshape(len(x), -1, nv)
        gain, armature, viscous, coulomb, stribeck, loss, mass = np.moveaxis(parts, 1, 0)
        ratio = self._constants("gear_ratio")
        wet, dry = viscous / self.start[2], coulomb / self.start[3]
        slip = dry * self._constants("coulomb_friction")
        loss = np.minimum(loss, LARGEST_LOSS)
        back = (1 - self._constants("back_efficiency")) / self.start[5] * loss
        varied = {
            "joint.damping": wet * [joint.damping for joint in arm.joints],
            "joint.friction": dry * [joint.friction for joint in arm.joints],
            "motor.rotor_inertia": armature / ratio**2,
            "motor.viscous_friction": wet * self._constants("viscous_friction"),
            "motor.coulomb_friction": slip,
            "motor.stiction": slip + stribeck * coulomb / ratio,
            "motor.efficiency": 1 - loss,
            "motor.back_efficiency": 1 - np.minimum(back, LARGEST_LOSS),
            "link.mass": mass,
            "payload": x[:, -2:-1],
            "gains.p": gain,
        }
        return varied, x[:, -1]

    def arm_of(self, theta: Vector) -> ArmModel:
        """Return the arm of θ (p,)."""
        varied, _ = self.varied(theta[None])
        return rollout_arm(
            self.arm, {name: x[0] for name, x in varied.items() if not name.startswith("gains.")}
        )

    def _constants(self, name: str) -> Vector:
        return np.array([motor.constants[name] for motor in self.arm.actuators])


def _described(arm: ArmModel, i: int, supply: float) -> Joint:
    """Return joint i with typical values where the description has none."""
    joint, c = arm.joints[i], dict(arm.actuators[i].constants)
    ratio = c["gear_ratio"]
    stall = ratio * c["kt"] * supply / c["resistance"]
    if not (joint.friction or c["coulomb_friction"]):
        c["coulomb_friction"] = TYPICAL_FRICTION * stall / ratio
    if not (joint.damping or c["viscous_friction"]):
        speed = supply / (ratio * max(c["ke"], 1e-3 * c["kt"]))
        c["viscous_friction"] = TYPICAL_FRICTION * stall / speed / ratio**2
    if not c["rotor_inertia"]:
        moment = float(np.linalg.eigvalsh(arm.links.inertias[i + 1].inertia).max())
        c["rotor_inertia"] = TYPICAL_ARMATURE * moment / ratio**2
    if c["stiction"] <= c["coulomb_friction"]:
        dry = c["coulomb_friction"] + joint.friction / ratio
        c["stiction"] = c["coulomb_friction"] + TYPICAL_STRIBECK * dry
        c["stribeck_velocity"] = TYPICAL_SPEED * ratio
    for name in ("efficiency", "back_efficiency"):
        c[name] = min(c[name], 1 - TYPICAL_LOSS)
    return replace(joint, constants=MappingProxyType(c))


def _coulomb(motor: object) -> float:
    constants = getattr(motor, "constants")
    return float(constants["gear_ratio"] * constants["coulomb_friction"])
