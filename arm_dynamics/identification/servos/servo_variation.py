"""Unknowns of an arm with servos, and the quantities of a rollout that they change.

x = x₀ exp(σ θ),   θ ~ N(0, 1)

x₀ is the nominal value, or a typical one without any, σ its tolerance. The delay
is additive. Friction of joint and motor have one factor. A quantity that is not free keeps the
nominal value, also if that is 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np

from arm_dynamics.batch.variation import rollout_arm
from arm_dynamics.core.arrays import BoolArray, IntArray, Matrix, Vector, as_readonly
from arm_dynamics.identification.servos.position_loops import ServoLoops
from arm_dynamics.model.arm_model import ArmModel, Joint

TOLERANCES: Mapping[str, float] = {
    "loop_gain": 1.0,
    "armature": 0.5,
    "viscous": 0.7,
    "coulomb": 1.0,
    "stribeck": 1.0,
    "loss": 1.0,
    "supply": 0.1,
    "current_limit": 0.3,
    "mass": 0.1,
    "backlash": 1.0,
}
"""Quantity of a joint → σ: gain of the position loop, reflected rotor inertia, viscous and
Coulomb friction, Stribeck friction over Coulomb friction, loss 1 - η of the gear, supply voltage,
largest current, mass of the link, backlash of the gear."""
UNITS = {
    "loop_gain": "V/rad",
    "armature": "kg·m²",
    "viscous": "N·m·s/rad",
    "coulomb": "N·m",
    "stribeck": "1",
    "loss": "1",
    "supply": "V",
    "current_limit": "A",
    "mass": "kg",
    "backlash": "rad",
}
MOTORS, BACK_EMF, PAYLOAD, DELAY = 0.1, 0.1, 1.5, 0.03
"""σ of a common factor of all motor constants kt and ke, of a further one of ke, of the payload,
and of the delay [s]. The efficiency of the gear and the data sheet's rounding separate kt and ke:
with a known ratio, back-EMF would determine the scale of all efforts."""
TYPICAL_FRICTION, TYPICAL_STRIBECK, TYPICAL_LOSS = 0.02, 0.1, 0.05
"""Friction over stall torque, Stribeck over Coulomb friction and loss of a gear without values."""
TYPICAL_SPEED = 0.1
"""Stribeck velocity at the joint [rad/s] of a motor without stiction."""
TYPICAL_ARMATURE = 0.1
"""Rotor inertia over inertia of the link."""
TYPICAL_PAYLOAD = 0.03
"""Payload over the mass of the links."""
MAX_LOSS = 0.9
ANY_CONTACT = {"backlash": 1e-3, "gear_stiffness": 1.0, "gear_damping": 0.01}
"""Constants of a tooth contact that a rollout replaces."""
UNLIMITED = 1e3
"""Largest current of a motor without limit, over its stall current."""


@dataclass(frozen=True, slots=True, eq=False)
class ServoVariation:
    """Unknowns θ (p,) of an arm with servos.

    ``arm`` has the values x₀. ``start`` (p,) are x₀ and ``nominal`` (p,) the nominal
    values, in the order of ``names``. ``free`` (p,): the quantities that θ changes.
    """

    arm: ArmModel
    loops: ServoLoops
    start: Vector
    nominal: Vector
    free: BoolArray

    @classmethod
    def of(cls, arm: ArmModel, loops: ServoLoops) -> ServoVariation:
        """Return the unknowns around a nominal model; missing values become typical ones."""
        joints = tuple(_with_typical_values(arm, i, float(loops.supply[i])) for i in range(arm.nv))
        total = sum(inertia.mass for inertia in arm.links.inertias)
        mass = arm.payload.mass or TYPICAL_PAYLOAD * total
        base = replace(arm, joints=joints, payload=replace(arm.payload, mass=mass))
        start = as_readonly(_values(base, loops))
        free = np.ones(start.size, dtype=bool)
        free[_slice("backlash", arm.nv)] = _constants(base, "backlash") > 0
        return cls(base, loops, start, as_readonly(_values(arm, loops)), free)

    def with_free(self, free: BoolArray) -> ServoVariation:
        """Return the same with other free quantities (p,)."""
        return replace(self, free=free)

    def with_backlash(self, arm: ArmModel, free: Sequence[int]) -> ServoVariation:
        """Return the same with the gears of ``arm``, whose backlash is free in some joints."""
        start, own = self.start.copy(), self.free.copy()
        start[_slice("backlash", arm.nv)] = _constants(arm, "backlash")
        own[self.backlash_entries[list(free)]] = True
        return replace(self, arm=arm, start=as_readonly(start), free=own)

    @property
    def simulated_arm(self) -> ArmModel:
        """The arm of a rollout with ``varied``, which replaces all constants of tooth contacts.

        Those of ``arm`` depend on the recording, and other numbers need another kernel.
        """
        simulated_arm = self.arm
        for joint, motor in zip(simulated_arm.joint_names, simulated_arm.actuators, strict=True):
            if motor.constants["backlash"] > 0:
                simulated_arm = simulated_arm.with_motor(joint, **ANY_CONTACT)
        return simulated_arm

    @property
    def backlash_entries(self) -> IntArray:
        """Entries (nv,) of θ with the backlash of each joint."""
        return np.arange(len(self.names))[_slice("backlash", self.arm.nv)]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of θ: "J1.loop_gain" … "J5.mass", "motor_constants", "back_emf" … "delay"."""
        own = (f"{joint}.{name}" for name in TOLERANCES for joint in self.arm.joint_names)
        return (*own, "motor_constants", "back_emf", "payload", "delay")

    @property
    def units(self) -> tuple[str, ...]:
        """Units of ``values``."""
        own = (unit for unit in UNITS.values() for _ in self.arm.joints)
        return (*own, "1", "1", "kg", "s")

    @property
    def is_typical(self) -> BoolArray:
        """Quantities (p,) that the nominal model does not have: x₀ is a typical value."""
        return ~np.isclose(self.start, self.nominal, rtol=1e-9, atol=0.0)

    @property
    def sigma(self) -> Vector:
        """Tolerances σ (p,) of θ; that of the delay in s."""
        return np.append(
            np.repeat(list(TOLERANCES.values()), self.arm.nv), (MOTORS, BACK_EMF, PAYLOAD, DELAY)
        )

    def values(self, theta: Matrix) -> Matrix:
        """Return the quantities x (batch, p) of θ (batch, p)."""
        factors = np.exp(theta[:, :-1] * self.sigma[:-1])
        x = np.column_stack((self.start[:-1] * factors, DELAY * theta[:, -1]))
        return np.where(self.free, x, self.nominal)

    def varied(self, theta: Matrix) -> tuple[dict[str, Matrix], Vector]:
        """Return what θ (batch, p) changes in a rollout, (batch, nv), and the delay (batch,)."""
        nv, arm = self.arm.nv, self.arm
        x = self.values(theta)
        parts = x[:, : nv * len(TOLERANCES)].reshape(len(x), -1, nv)
        gain, armature, viscous, coulomb, stribeck, loss, supply, current, mass, play = np.moveaxis(
            parts, 1, 0
        )
        first = self.start[: nv * len(TOLERANCES)].reshape(-1, nv)
        ratio = _constants(arm, "gear_ratio")
        wet, dry = viscous / first[2], coulomb / first[3]
        slip = dry * _constants(arm, "coulomb_friction")
        loss = np.minimum(loss, MAX_LOSS)
        back = (1 - _constants(arm, "back_efficiency")) / first[5] * loss
        varied = {
            "joint.damping": wet * [joint.damping for joint in arm.joints],
            "joint.friction": dry * [joint.friction for joint in arm.joints],
            "motor.rotor_inertia": armature / ratio**2,
            "motor.viscous_friction": wet * _constants(arm, "viscous_friction"),
            "motor.coulomb_friction": slip,
            "motor.stiction": slip + stribeck * coulomb / ratio,
            "motor.efficiency": 1 - loss,
            "motor.back_efficiency": 1 - np.minimum(back, MAX_LOSS),
            "motor.kt": x[:, -4:-3] * _constants(arm, "kt"),
            "motor.ke": x[:, -4:-3] * x[:, -3:-2] * _constants(arm, "ke"),
            "motor.supply_voltage": supply * self.loops.max_duty,
            "motor.current_limit": current,
            "link.mass": mass,
            "payload": x[:, -2:-1],
            "gains.p": gain,
        }
        if play.any():
            varied["motor.backlash"] = play
            for name in ("gear_stiffness", "gear_damping"):
                varied[f"motor.{name}"] = np.tile(_constants(arm, name), (len(x), 1))
        return varied, x[:, -1]

    def arm_of(self, theta: Vector) -> ArmModel:
        """Return the arm of θ (p,); quantities that are not free are nominal."""
        varied, _ = self.varied(theta[None])
        del varied["gains.p"]
        varied["motor.supply_voltage"] /= self.loops.max_duty
        arm_of = rollout_arm(self.arm, {name: x[0] for name, x in varied.items()})
        stribeck, current = self.quantity("stribeck", theta), self.quantity("current_limit", theta)
        stall = self.loops.supply / _constants(self.arm, "resistance")
        for i, joint in enumerate(arm_of.joint_names):
            if not stribeck[i]:
                arm_of = arm_of.with_motor(joint, stiction=0.0, stribeck_velocity=1.0)
            if current[i] >= UNLIMITED * stall[i]:
                arm_of = arm_of.with_motor(joint, current_limit=np.inf)
        return arm_of

    @property
    def exists(self) -> BoolArray:
        """Quantities (p,) of the arm: current limits and backlash only if they are nominal."""
        exists = np.ones(len(self.names), dtype=bool)
        stall = self.loops.supply / _constants(self.arm, "resistance")
        limit, play = (_slice(name, self.arm.nv) for name in ("current_limit", "backlash"))
        exists[limit] = self.nominal[limit] < UNLIMITED * stall
        exists[play] = self.nominal[play] > 0
        return exists

    def quantity(self, name: str, theta: Vector) -> Vector:
        """Return one quantity of ``TOLERANCES`` (nv,) at θ (p,)."""
        return self.values(theta[None])[0, _slice(name, self.arm.nv)]


def _values(arm: ArmModel, loops: ServoLoops) -> Vector:
    """Return the values (p,) of the quantities in an arm; the delay is 0."""
    ratio = _constants(arm, "gear_ratio")
    slip = ratio * _constants(arm, "coulomb_friction")
    stall = loops.supply / _constants(arm, "resistance")
    excess = np.maximum(ratio * _constants(arm, "stiction") - slip, 0.0)
    dry = slip + [joint.friction for joint in arm.joints]
    by_joint = (
        loops.gain,
        ratio**2 * _constants(arm, "rotor_inertia"),
        ratio**2 * _constants(arm, "viscous_friction") + [joint.damping for joint in arm.joints],
        dry,
        np.divide(excess, dry, out=np.zeros_like(dry), where=dry > 0),
        1 - _constants(arm, "efficiency"),
        loops.supply,
        np.minimum(_constants(arm, "current_limit"), UNLIMITED * stall),
        [arm.links.inertias[i + 1].mass for i in range(arm.nv)],
        _constants(arm, "backlash"),
    )
    rows = (np.asarray(x, dtype=float) for x in by_joint)
    return np.concatenate((*rows, [1.0, 1.0, arm.payload.mass, 0.0]))


def _slice(name: str, nv: int) -> slice:
    """Return the entries of x with one quantity of ``TOLERANCES``."""
    first = list(TOLERANCES).index(name) * nv
    return slice(first, first + nv)


def _constants(arm: ArmModel, name: str) -> Vector:
    return np.array([motor.constants[name] for motor in arm.actuators])


def _with_typical_values(arm: ArmModel, i: int, supply: float) -> Joint:
    """Return joint i with typical values where the nominal model has none."""
    joint, c = arm.joints[i], dict(arm.actuators[i].constants)
    c["supply_voltage"], ratio = supply, c["gear_ratio"]
    stall = ratio * c["kt"] * supply / c["resistance"]
    c["current_limit"] = min(c["current_limit"], supply / c["resistance"])
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
