"""The step of the published five_dof arm as DynaMechs takes it, artifacts included.

One call:

1. q += dt q̇,  q̇ += dt q̈ with the q̈ of the incoming state. The integrator is explicit Euler, and
   a voltage moves q̇ one call later.
2. A velocity whose sign is opposite to the previous one becomes 0 and sets the stiction flag.
3. q̈ by the articulated-body algorithm, with the motor's torque inside its inward pass:

   - T = β + τ_limit + Kt (V' - Ke ω) / Ra, where β is the component along the joint's axis of the
     articulated bias force: velocity products of the link and what outboard links pass on, motor
     torques included. Gravity is not part of β: it enters as an acceleration of the base.
   - ω = 0 and |T| < fc, or T = 0: T = 0, the flag stays. ω = 0 otherwise: T - sgn(T) fc, flag 0.
     ω != 0: T - sgn(ω) fc - fv ω, flag 0.
   - τ* = T + τ_limit drives the joint. A set flag makes the joint's acceleration zero in the
     outward pass, where outboard links follow a joint that does not accelerate.
   - The rotor inertia Jm is added to the element of the joint's axis in the spatial inertia of the
     link. Inboard links feel it as inertia of the link, its gyroscopic bias is missing, and Jm of a
     link without outboard links is ignored.
4. Previous velocity = q̇.

Artifacts that the step of ``Plant`` does not have: the torque of the joint limits counts twice;
step 2 acts with zero friction too, so that each reversal stops the joint for one call; the stiction
test omits gravity and inertial reactions, so that a joint may lock in free fall (at zero
voltage R5 of five_dof locks in call 18 and stays). R5 has no limits in the publication:
``published_arm`` removes them, ``load_arm("five_dof")`` has them in this mode too.

The original has no supply and current limits, gear losses, breakaway effort above the Coulomb
friction and friction of a joint that has a motor: they are ignored here.

Source: S. McMillan, D. E. Orin, R. B. McGhee, DynaMechs: an object oriented software package
for efficient dynamic simulation of underwater robotic vehicles (1995), classes dmRevDCMotor and
dmMDHLink, with the numbers that AffectiveSilicon published for its arm.
"""

from __future__ import annotations

from math import inf

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.core.argument_checks import check_names
from arm_dynamics.core.arrays import Vector, check_float, check_vector
from arm_dynamics.core.compiled_math import compiled, sign, where
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.dynamics.bodies import bodies
from arm_dynamics.model.arm_argument import check_arm, require_no_mimic_joints
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.load import load_arm
from arm_dynamics.simulation.actuators.winding import brush_voltage
from arm_dynamics.simulation.articulated_bodies import (
    Tree,
    body_tree,
    eliminate,
    joint_transform,
    matvec,
)
from arm_dynamics.simulation.end_stops import end_stop_effort

CONTROLLED = ("R2", "R3", "R5")
"""Joints whose gains were searched."""
LOST = 9999999.0
"""Objective of gains with which the simulation diverges."""
LOST_ERROR = 100.0
"""Sum of the joint errors [rad] above which it has diverged."""

# Rows of the one array that compiled code works on, one column a joint.
Q, V, A, FLAG, PREVIOUS, VOLTAGE, TAU = range(7)
KT, KE, RESISTANCE, DROP, HALF, DRY, VISCOUS = range(7, 14)
LOWER, UPPER, STIFFNESS, DAMPING = range(14, 18)
TARGET, GAIN_P, GAIN_I, ERROR_SUM, ACTIVE = range(18, 23)
LIMIT, ROTOR = 23, 24
ROWS = 25


@compiled
def motor_torque(
    voltage: float, load: float, velocity: float, flag: float,
    constants: tuple[float, float, float, float, float, float, float],
) -> tuple[float, float]:  # fmt: skip
    """Return the torque at the joint, load included, and the flag after the stiction test.

    T = load + Kt (V' - Ke ω) / Ra;  ω != 0: T - fv ω - fc sgn(ω), flag cleared;
    ω = 0: T - fc sgn(T), flag cleared, if |T| >= fc and T != 0; else 0, flag unchanged.

    voltage [V], load and torque [N·m], velocity ω [rad/s]; ``constants`` at the joint: rows KT to
    VISCOUS. Source: DynaMechs, dmRevDCMotor.
    """
    kt, ke, resistance, drop, half, dry, viscous = constants
    net = load + kt * (brush_voltage(voltage, drop, half) - ke * velocity) / resistance
    moving = net - viscous * velocity - dry * sign(velocity)
    leaves = where(abs(net) < dry, 0.0, abs(net)) > 0.0
    resting = where(leaves, net - dry * sign(net), 0.0)
    held = where(leaves, 0.0, flag)
    return where(velocity == 0.0, resting, moving), where(velocity == 0.0, held, 0.0)


@compiled
def advance_published_step(x: Vector, dt: float) -> None:
    """Apply steps 1 and 2 and fill LIMIT, the torque of the end stops; x (ROWS, nv), in place."""
    for i in range(x.shape[1]):
        x[Q, i] += dt * x[V, i]
        x[V, i] += dt * x[A, i]
        turned = x[V, i] * x[PREVIOUS, i] < 0.0
        x[V, i] = where(turned, 0.0, x[V, i])
        x[FLAG, i] = where(turned, 1.0, x[FLAG, i])
        x[PREVIOUS, i] = x[V, i]
        x[LIMIT, i] = end_stop_effort(
            x[Q, i], x[V, i], x[LOWER, i], x[UPPER, i], x[STIFFNESS, i], x[DAMPING, i]
        )


@compiled
def joint_torque(x: Vector, i: int, load: float) -> tuple[float, float]:
    """Return τ* = T + τ_limit of joint i under ``load`` [N·m], and its flag."""
    constants = (
        x[KT, i], x[KE, i], x[RESISTANCE, i], x[DROP, i], x[HALF, i], x[DRY, i], x[VISCOUS, i],
    )  # fmt: skip
    torque, flag = motor_torque(x[VOLTAGE, i], load + x[LIMIT, i], x[V, i], x[FLAG, i], constants)
    return torque + x[LIMIT, i], flag


@compiled
def unloaded_torques(x: Vector) -> None:
    """Fill TAU of motors without dry friction: the load passes through them unchanged."""
    for i in range(x.shape[1]):
        x[TAU, i] = joint_torque(x, i, 0.0)[0]


@compiled
def velocity_terms(body: Tree, x: Vector, turn: Vector, zeta: Vector, force: Vector) -> None:
    """Write velocity-dependent terms into zeroed arrays; accelerations are of a body's origin.

    turn (n, 6, 6): the transform from the parent's frame; zeta (n, 6): [ω × z q̇; ω' × (ω' × r)]
    with ω' of the parent and r from its origin, 2 ω × z q̇ more for a prismatic joint;
    force (n, 6): -β = [ω × I ω; ω × (ω × m c)]. In a plane β is exactly 0, which a torque of
    exactly 0 in the stiction test relies on.
    """
    omega = np.zeros((x.shape[1], 3))
    for i in range(x.shape[1]):
        slides, r = body.slides[i], body.offset[i]
        joint_transform(slides, body.rotation[i], r, x[Q, i], turn[i])
        if slides:
            r = r + x[Q, i] * body.rotation[i][:, 2]
        E, rate = turn[i, :3, :3].copy(), np.array([0.0, 0.0, x[V, i]])
        if body.parents[i] >= 0:
            inboard = omega[body.parents[i]]
            omega[i] = E @ inboard
            zeta[i, 3:] = E @ np.cross(inboard, np.cross(inboard, r))
        if slides:
            zeta[i, 3:] += 2.0 * np.cross(omega[i], rate)
        else:
            omega[i] += rate
            zeta[i, :3] = np.cross(omega[i], rate)
        I = body.inertia[i]  # noqa: E741 - its name in every text
        moment = np.array([I[2, 4], I[0, 5], I[1, 3]])
        force[i, :3] = np.cross(omega[i], I[:3, :3].copy() @ omega[i])
        force[i, 3:] = np.cross(omega[i], np.cross(omega[i], moment))


@compiled
def accelerate(body: Tree, x: Vector) -> None:
    """Apply step 3: fill the accelerations A and flags of x (ROWS, nv), in place.

    Source: S. McMillan, Computational dynamics for robotic systems on land and under water
    (1994), articulated-body algorithm, with DynaMechs' actuators.
    """
    n, parents = x.shape[1], body.parents
    turn, zeta, force = np.zeros((n, 6, 6)), np.zeros((n, 6)), np.zeros((n, 6))
    velocity_terms(body, x, turn, zeta, force)
    whole, column, pivot = body.inertia.copy(), np.zeros((n, 6)), np.zeros(n)
    for i in range(n - 1, -1, -1):
        along = 5 if body.slides[i] else 2
        whole[i, along, along] += x[ROTOR, i]
        column[i], pivot[i] = whole[i, :, along], whole[i, along, along]
        x[TAU, i], x[FLAG, i] = joint_torque(x, i, -force[i, along])
        if parents[i] >= 0:
            eliminate(
                turn[i], whole[i], (column[i], pivot[i], x[TAU, i]), zeta[i], force[i],
                (whole[parents[i]], force[parents[i]]),
            )  # fmt: skip
    moved, base = np.zeros((n, 6)), np.zeros(6)
    base[3:] = -body.gravity
    for i in range(n):
        along = 5 if body.slides[i] else 2
        matvec(turn[i], moved[parents[i]] if parents[i] >= 0 else base, moved[i])
        moved[i] += zeta[i]
        free = (x[TAU, i] - column[i] @ moved[i]) / pivot[i]
        x[A, i] = where(x[FLAG, i] != 0.0, 0.0, free)
        moved[i, along] += x[A, i]


@compiled
def published_control_step(x: Vector) -> float:
    """Set V = P e + I Σ e, e = target - q, of the ACTIVE joints; return their Σ |e| [rad]."""
    total = 0.0
    for i in range(x.shape[1]):
        error = x[ACTIVE, i] * (x[TARGET, i] - x[Q, i])
        x[ERROR_SUM, i] += error
        x[VOLTAGE, i] = x[GAIN_P, i] * error + x[GAIN_I, i] * x[ERROR_SUM, i]
        total += abs(error)
    return total


def published_arm() -> ArmModel:
    """Return the published arm: five_dof with an unlimited supply and no end stops of R5."""
    arm = load_arm("five_dof").with_motors(supply_voltage=inf)
    return arm.with_joint("R5", stop_stiffness=0.0, stop_damping=0.0)


class Dynamechs:
    """The published step of one arm. It holds scratch memory only: use one per thread.

    Raises InvalidValue for a joint without a DC motor and for motors with actuator states.
    """

    def __init__(self, arm: ArmModel) -> None:
        require_no_mimic_joints(check_arm(arm), "compatibility 'dynamechs'")
        for joint in arm.joints:
            if joint.actuator != "dc_motor":
                raise InvalidValue(
                    f"compatibility 'dynamechs': joint '{joint.name}': actuator ="
                    f" '{joint.actuator}'; expected dc_motor"
                )
        if arm.na:
            raise InvalidValue(
                f"compatibility 'dynamechs': actuator states = {', '.join(arm.act_names)};"
                " expected none"
            )
        self.arm = arm
        self.rows = constants(arm)
        self._body = body_tree(bodies(arm), arm.gravity)

    def step(
        self,
        q: Vector,
        v: Vector,
        a: Vector,
        stiction: Vector,
        previous: Vector,
        voltages: Vector,
        dt: float,
    ) -> tuple[Vector, Vector, Vector, Vector, Vector]:
        """Return position, velocity, acceleration, flags and previous velocity after one call.

        All (nv,), in rad, rad/s, rad/s², V and s.
        """  # fmt: skip
        x = self.rows
        x[Q], x[V], x[A], x[FLAG], x[PREVIOUS], x[VOLTAGE] = q, v, a, stiction, previous, voltages
        self.call(dt)
        return x[Q].copy(), x[V].copy(), x[A].copy(), x[FLAG].copy(), x[PREVIOUS].copy()

    def call(self, dt: float) -> None:
        """Advance the rows by one call, in place."""
        advance_published_step(self.rows, dt)
        accelerate(self._body, self.rows)


def objective(
    arm: ArmModel,
    p: ArrayLike,
    i: ArrayLike | None = None,
    *,
    joints: tuple[str, ...] = CONTROLLED,
    duration: float = 3.0,
    dt: float = 1e-4,
) -> float:
    """Return Σ |target - q| [rad] over calls and ``joints``, at the initial configuration.

    V = p e + i Σ e (plain sum over the calls) from the state that call k returned is the voltage
    of call k + 1; the first call has 0 V. LOST once the errors of a call add up to more than
    LOST_ERROR. p [V/rad] and i [V/rad] have one number for each of ``joints``; i defaults to 0.

    Raises InvalidValue for a wrong number of gains, one that is not finite, or a duration or dt
    [s] that is not positive; UnknownName for a joint that the arm does not have.
    Source: the gain search published with the arm (Nelder-Mead over this function).
    """
    plant = Dynamechs(arm)
    dt = check_float("dt [s]", dt, above=0)
    calls = round(check_float("duration [s]", duration, lower=dt) / dt)
    x, columns = plant.rows, [arm.index(joint) for joint in check_names("joints", joints)]
    x[Q] = x[TARGET] = arm.configuration("initial")
    x[ACTIVE, columns] = 1.0
    x[GAIN_P, columns] = check_vector("p", p, len(joints))
    x[GAIN_I, columns] = check_vector("i", np.zeros(len(joints)) if i is None else i, len(joints))
    total = 0.0
    for _ in range(calls):
        plant.call(dt)
        error = published_control_step(x)
        if not error <= LOST_ERROR:  # also when it is NaN
            return LOST
        total += error
    return total


def constants(arm: ArmModel) -> Vector:
    """Return an array (ROWS, nv) with the constants of the joints, and of the motors at them."""
    x = np.zeros((ROWS, arm.nv))
    for k, (joint, actuator) in enumerate(zip(arm.joints, arm.actuators, strict=True)):
        c, gear = actuator.constants, actuator.constants["gear_ratio"]
        x[[KT, KE, RESISTANCE], k] = gear * c["kt"], gear * c["ke"], c["resistance"]
        x[[DROP, HALF], k] = c["brush_drop"], c["brush_half_voltage"]
        x[[DRY, VISCOUS], k] = gear * c["coulomb_friction"], gear**2 * c["viscous_friction"]
        x[[LOWER, UPPER], k] = joint.lower, joint.upper
        x[[STIFFNESS, DAMPING], k] = joint.stop_stiffness, joint.stop_damping
        x[ROTOR, k] = gear**2 * c["rotor_inertia"]
    x[ROTOR, np.setdiff1d(np.arange(arm.nv), [body.parent for body in bodies(arm)])] = 0.0
    return x
