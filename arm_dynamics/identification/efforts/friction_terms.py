"""Friction of joints in addition to viscous and Coulomb friction: Stribeck effect, gear loss.

f = s (f_c + f_s exp(-(v / v_s)²) + κ |τ|)

s is the state of the Dahl model, τ the effort of the motor: that of the model, since the measured
one would explain itself. κ is the loss of a gear: that of our
``dc_motor`` with the efficiencies η = 1 - κ, driving, and η_b = 1 / (1 + κ), back-driven.

References
----------
B. Armstrong-Hélouvry, P. Dupont, C. Canudas de Wit, Automatica 30 (1994), general kinetic friction
model. P. Hamon, M. Gautier, P. Garrec, Dynamic identification of robots with a dry friction model
depending on load and velocity, IROS 2010, section III.

"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from arm_dynamics.core.arrays import BoolArray, FloatArray, IntArray, Matrix, Vector, as_readonly
from arm_dynamics.identification.efforts.coupled_motors import CoupledMotors
from arm_dynamics.identification.results.fit_summary import ParameterFit
from arm_dynamics.model.arm_model import ArmModel

STRIBECK_VELOCITIES = (0.01, 0.03, 0.1, 0.3)
"""Stribeck velocities [rad/s or m/s] that are compared with each other."""
TYPICAL_STRIBECK, TYPICAL_LOSS = 0.02, 0.03
"""Prior of Stribeck friction over the rms effort, and of κ, without a nominal value."""
MAX_LOSS = 0.9
"""κ that a written efficiency has at most."""
ABSENT = 1e-9
"""Stribeck friction over Coulomb friction, and κ, below which a model has none."""


class FrictionTerm(NamedTuple):
    """Term of one joint: Stribeck friction of velocity ``number``, or gear loss (-1)."""

    joint: int
    number: int


LOSS = -1
"""``FrictionTerm.number`` of the gear loss."""


@dataclass(frozen=True, slots=True, eq=False)
class JointFriction:
    """Friction model of each joint.

    ``presliding`` (nv,): index of the distance of the Dahl model. ``velocity`` (nv,): Stribeck
    velocity v_s [rad/s or m/s], ``stribeck`` (nv,): f_s [N·m or N]; ``loss`` (2, nv): κ while the
    motor drives and while it is driven. All are 0 where a joint has none. ``deviation`` (2, nv):
    standard deviations of f_s and κ, NaN if not estimated. ``coupled``: motors that move several
    joints.
    """

    presliding: IntArray
    velocity: Vector
    stribeck: Vector
    loss: Matrix
    deviation: Matrix
    coupled: CoupledMotors

    @classmethod
    def of(cls, arm: ArmModel) -> JointFriction:
        """Return the nominal friction: that of its motors, without presliding."""
        nv = arm.nv
        velocity, stribeck, loss = np.zeros(nv), np.zeros(nv), np.zeros((2, nv))
        for i, motor in enumerate(arm.actuators):
            if not represents_terms(motor):
                continue
            c = motor.constants
            excess = float(c["gear_ratio"] * (c["stiction"] - c["coulomb_friction"]))
            if excess > ABSENT * abs(c["gear_ratio"] * c["coulomb_friction"]):
                velocity[i], stribeck[i] = c["stribeck_velocity"] / c["gear_ratio"], excess
            loss[:, i] = 1 - c["efficiency"], 1 / c["back_efficiency"] - 1
        none = np.full((2, nv), np.nan)
        return cls(
            np.zeros(nv, dtype=int),
            as_readonly(velocity),
            as_readonly(stribeck),
            as_readonly(loss),
            as_readonly(none),
            CoupledMotors.none(nv),
        )

    @property
    def has_stribeck(self) -> BoolArray:
        """Whether each joint (nv,) has Stribeck friction."""
        found: BoolArray = self.stribeck > 0
        return found

    @property
    def has_terms(self) -> bool:
        """Whether any joint has Stribeck friction, gear loss or a coupled motor."""
        return bool((self.has_stribeck | self.has_loss).any() or self.coupled.terms.size)

    @property
    def has_loss(self) -> BoolArray:
        """Whether the gear of each joint (nv,) has a loss."""
        found: BoolArray = np.any(self.loss > ABSENT, axis=0)
        return found


def represents_terms(motor: Any) -> bool:
    """Return whether an actuator simulates Stribeck friction and gear losses at its joint."""
    known = {parameter.name for parameter in motor.parameters}
    return {"stiction", "efficiency", "back_efficiency"} <= known and not (
        motor.constants["backlash"] > 0
    )


def unrepresented_joints(arm: ArmModel) -> tuple[int, ...]:
    """Return the joints whose actuators simulate neither Stribeck friction nor gear losses."""
    return tuple(i for i, motor in enumerate(arm.actuators) if not represents_terms(motor))


def stribeck_velocities(arm: ArmModel) -> Matrix:
    """Return the velocities (k, nv) [rad/s or m/s] that are compared, the nominal ones first."""
    own = JointFriction.of(arm)
    rows: Matrix = np.tile(np.array(STRIBECK_VELOCITIES)[:, None], arm.nv)
    if not own.has_stribeck.any():
        return rows
    return np.vstack((np.where(own.has_stribeck, own.velocity, rows[0]), rows))


def stribeck_shapes(sliding: FloatArray, v: Matrix, velocity: Matrix) -> FloatArray:
    """Return the friction s exp(-(v / v_s)²) (n, m, k, nv) of f_s = 1.

    Parameters
    ----------
    sliding : FloatArray
        Dahl states s (n, m, nv) of m presliding distances.
    v : Matrix
        Velocities (n, nv) [rad/s or m/s].
    velocity : Matrix
        Stribeck velocities v_s (k, nv) [rad/s or m/s].

    """
    shapes: FloatArray = sliding[:, :, None] * np.exp(-((v[:, None, None] / velocity) ** 2))
    return shapes


def with_gear_loss(effort: Matrix, sliding: Matrix, loss: Matrix) -> Matrix:
    """Return τ of τ = τ₀ + s κ |τ| (n, nv) [N·m or N].

    τ = τ₀ / (1 - κ |s|) while the motor drives, τ = τ₀ / (1 + κ |s|) while it is driven.

    Parameters
    ----------
    effort : Matrix
        τ₀ (n, nv): effort without the loss [N·m or N].
    sliding : Matrix
        States s (n, nv) of the Dahl model.
    loss : Matrix
        κ (2, nv): driving, driven.

    """
    size = np.minimum(np.abs(sliding), 1.0)
    driving, driven = np.minimum(loss[0], MAX_LOSS), loss[1]
    drives = effort * sliding > 0
    found: Matrix = effort / np.where(drives, 1 - driving * size, 1 + driven * size)
    return found


def without_gear_loss(effort: Matrix, sliding: Matrix, loss: Matrix) -> Matrix:
    """Return τ₀ of ``with_gear_loss`` (n, nv) [N·m or N] from τ (n, nv)."""
    size = np.minimum(np.abs(sliding), 1.0)
    driving, driven = np.minimum(loss[0], MAX_LOSS), loss[1]
    found: Matrix = effort * np.where(effort * sliding > 0, 1 - driving * size, 1 + driven * size)
    return found


def with_friction_terms(arm: ArmModel, friction: JointFriction) -> ArmModel:
    """Return the arm with the Stribeck friction and gear losses of motors that represent them."""
    nominal = JointFriction.of(arm)
    for i, (name, motor) in enumerate(zip(arm.joint_names, arm.actuators, strict=True)):
        if not represents_terms(motor):
            continue
        changed: dict[str, float] = {}
        ratio = float(motor.constants["gear_ratio"])
        if friction.has_stribeck[i]:
            slip = float(motor.constants["coulomb_friction"])
            changed["stiction"] = slip + float(friction.stribeck[i]) / ratio
            changed["stribeck_velocity"] = float(friction.velocity[i]) * ratio
        if friction.has_loss[i] or nominal.has_loss[i]:
            driving, driven = np.minimum(friction.loss[:, i], MAX_LOSS).tolist()
            changed |= {"efficiency": 1 - driving, "back_efficiency": 1 / (1 + driven)}
        if changed:
            arm = arm.with_motor(name, **changed)
    return arm


def friction_notes(arm: ArmModel, presliding: Vector, friction: JointFriction) -> list[str]:
    """Return sentences about joints with presliding, Stribeck friction or gear loss.

    ``presliding`` (nv,) [rad or m] are the distances over which dry friction develops.
    """
    has, notes = (friction.has_stribeck, friction.has_loss), []
    if presliding.any():
        pairs = zip(arm.joint_names, presliding, strict=True)
        distances = ", ".join(f"{name} {x:g}" for name, x in pairs if x)
        notes.append(f"dry friction with presliding [rad or m]: {distances}")
    found = []
    for i, joint in enumerate(arm.joints):
        unit = "m/s" if joint.unit == "m" else "rad/s"
        if has[0][i]:
            found.append(f"{joint.name} Stribeck ({friction.velocity[i]:.2g} {unit})")
        if has[1][i]:
            found.append(f"{joint.name} load-dependent")
    if found:
        notes.append(f"further friction, chosen by held-out error: {', '.join(found)}")
    left = [arm.joint_names[i] for i in unrepresented_joints(arm) if has[0][i] or has[1][i]]
    if left:
        notes.append(
            f"actuators of joints {', '.join(left)} have no such friction: the URDF contains"
            " Coulomb friction of the same mean; actuator dc_motor represents it"
        )
    return notes


def friction_parameters(arm: ArmModel, friction: JointFriction) -> tuple[ParameterFit, ...]:
    """Return rows of the report: Stribeck friction f_s and gear loss κ of joints that have them."""
    nominal, rows = JointFriction.of(arm), []
    losses = friction.loss.mean(axis=0), nominal.loss.mean(axis=0)
    for i, joint in enumerate(arm.joints):
        for name, unit, old, new, spread in (
            (
                "stribeck",
                joint.effort_unit,
                nominal.stribeck[i],
                friction.stribeck[i],
                friction.deviation[0, i],
            ),
            ("gear_loss", "1", losses[1][i], losses[0][i], friction.deviation[1, i]),
        ):
            if new > 0:
                relative = 100 * float(spread / new)
                rows.append(
                    ParameterFit(f"{joint.name}.{name}", unit, float(old), float(new), relative)
                )
    return tuple(rows)
