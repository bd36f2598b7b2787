"""The step of the published five_dof arm as DynaMechs takes it, quirks included.

One call:  1. q += dt q̇,  q̇ += dt q̈ with the q̈ that came in.  2. A velocity whose sign is
opposite to the previous one becomes 0 and sets the stiction flag.  3. q̈ = dynamics(q, q̇, V),
previous velocity = q̇. So a voltage moves q̇ one call later, and the method is explicit Euler.

Two artefacts that the product does not have are reproduced here on purpose:

- the torque of the joint limits counts twice: it enters the motor's stiction test, leaves it
  as part of the motor's torque, and is added to the joint once more;
- the rule of step 2 acts with zero friction too: each reversal stops the joint for one call.

What the original does not know is left out: supply and current limits, losses of a gear, a
break-away effort above the Coulomb friction, and friction of a joint that has a motor.

Source: S. McMillan, D. E. Orin, R. B. McGhee, DynaMechs: an object oriented software package
for efficient dynamic simulation of underwater robotic vehicles (1995), class dmRevDCMotor, with
the numbers that AffectiveSilicon published for its arm.
"""

from __future__ import annotations

from math import inf

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from arm_dynamics.actuators.winding import brush_voltage
from arm_dynamics.arrays import Vector, scalar, vector
from arm_dynamics.errors import InvalidValue
from arm_dynamics.expect import names
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.given_arm import given_arm
from arm_dynamics.model.load import load_arm
from arm_dynamics.scalar import compiled, sign, where
from arm_dynamics.stops import stop_effort

CONTROLLED = ("R2", "R3", "R5")
"""Joints whose gains were searched."""
LOST = 9999999.0
"""Objective of gains with which the arm blows up."""
LOST_ERROR = 100.0
"""Sum of the joints' errors [rad] at which it has."""

# Rows of the one array that compiled code works on, one column a joint.
Q, V, A, FLAG, PREVIOUS, VOLTAGE, TAU = range(7)
KT, KE, RESISTANCE, DROP, HALF, DRY, VISCOUS = range(7, 14)
LOWER, UPPER, STIFFNESS, DAMPING = range(14, 18)
TARGET, GAIN_P, GAIN_I, ERROR_SUM, ACTIVE = range(18, 23)
ROWS = 23


@compiled
def motor(
    voltage: float,
    external: float,
    velocity: float,
    flag: float,
    previous: float,
    kt: float,
    ke: float,
    resistance: float,
    drop: float,
    half: float,
    dry: float,
    viscous: float,
) -> tuple[float, float, float]:
    """Torque at the joint, external torque included, velocity and flag after the stiction test.

    w = 0 and the flag is set if w w_previous < 0;  net = Kt (V' - Ke w) / Ra + external;
    w != 0:  net - fv w - fc sgn(w), flag cleared;
    w = 0:   net - fc sgn(net), flag cleared, if |net| > fc; else 0, flag as it was.

    voltage [V], torques [N·m], velocities [rad/s], constants at the joint.
    Source: DynaMechs, dmRevDCMotor.
    """  # fmt: skip
    turned = velocity * previous < 0.0
    w, stuck = where(turned, 0.0, velocity), where(turned, 1.0, flag)
    net = kt * (brush_voltage(voltage, drop, half) - ke * w) / resistance + external
    moving = net - viscous * w - dry * sign(w)
    leaves = abs(net) > dry
    resting = where(leaves, net - dry * sign(net), 0.0)
    stuck = where(leaves, 0.0, stuck)
    return where(w == 0.0, resting, moving), w, where(w == 0.0, stuck, 0.0)


@compiled
def advance(x: Vector, dt: float) -> None:
    """Steps 1 to 3 up to the effort TAU that gives the new acceleration; x (ROWS, nv), in place.

    External to the motor is what its joint's limit does, k (limit - q) - b w.
    """
    for i in range(x.shape[1]):
        x[Q, i] += dt * x[V, i]
        x[V, i] += dt * x[A, i]
        w = where(x[V, i] * x[PREVIOUS, i] < 0.0, 0.0, x[V, i])
        limit = stop_effort(x[Q, i], w, x[LOWER, i], x[UPPER, i], x[STIFFNESS, i], x[DAMPING, i])
        torque, x[V, i], x[FLAG, i] = motor(
            x[VOLTAGE, i], limit, x[V, i], x[FLAG, i], x[PREVIOUS, i],
            x[KT, i], x[KE, i], x[RESISTANCE, i], x[DROP, i], x[HALF, i], x[DRY, i], x[VISCOUS, i],
        )  # fmt: skip
        x[TAU, i] = torque + limit
        x[PREVIOUS, i] = x[V, i]


@compiled
def control(x: Vector) -> float:
    """V = P e + I Σ e with e = target - q of the ACTIVE joints; returns Σ |e| over them [rad]."""
    total = 0.0
    for i in range(x.shape[1]):
        error = x[ACTIVE, i] * (x[TARGET, i] - x[Q, i])
        x[ERROR_SUM, i] += error
        x[VOLTAGE, i] = x[GAIN_P, i] * error + x[GAIN_I, i] * x[ERROR_SUM, i]
        total += abs(error)
    return total


def published_arm() -> ArmModel:
    """The arm as it was published: five_dof without supply voltage, R5 without stops."""
    arm = load_arm("five_dof").with_motors(supply_voltage=inf)
    return arm.with_joint("R5", stop_stiffness=0.0, stop_damping=0.0)


class Dynamechs:
    """The published step of one arm. Scratch memory is all it holds: one a thread.

    Raises InvalidValue for an arm with a joint that has no DC motor, or with motors that have
    states of their own.
    """

    def __init__(self, arm: ArmModel) -> None:
        _require_plain_motors(given_arm(arm))
        self.arm = arm
        self.rows = constants(arm)
        self._data = arm.model.createData()

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
        """Position, velocity, acceleration, flags and previous velocity after one call.

        All (nv,), in rad, rad/s, rad/s², V and s.
        """  # fmt: skip
        x = self.rows
        x[Q], x[V], x[A], x[FLAG], x[PREVIOUS], x[VOLTAGE] = q, v, a, stiction, previous, voltages
        self.call(dt)
        return x[Q].copy(), x[V].copy(), x[A].copy(), x[FLAG].copy(), x[PREVIOUS].copy()

    def call(self, dt: float) -> None:
        """One call on the rows, in place."""
        x = self.rows
        advance(x, dt)
        x[A] = pin.aba(self.arm.model, self._data, x[Q], x[V], x[TAU])


def objective(
    arm: ArmModel,
    p: ArrayLike,
    i: ArrayLike | None = None,
    *,
    joints: tuple[str, ...] = CONTROLLED,
    duration: float = 3.0,
    dt: float = 1e-4,
) -> float:
    """Σ over calls and ``joints`` of |target - q| [rad], holding the arm's initial pose.

    V = p e + i Σ e (plain sum over the calls) from the state that call k returned is the voltage
    of call k + 1; the first call has 0 V. LOST once the errors of a call add up to more than
    LOST_ERROR. p [V/rad] and i [V/rad] have one number for each of ``joints``; i defaults to 0.

    Raises InvalidValue for a wrong number of gains, one that is not finite, or a duration or dt
    [s] that is not positive; UnknownName for a joint that the arm has not.
    Source: the gain search published with the arm (Nelder-Mead over this function).
    """
    plant = Dynamechs(arm)
    dt = scalar("dt [s]", dt, above=0)
    calls = round(scalar("duration [s]", duration, lower=dt) / dt)
    x, columns = plant.rows, [arm.index(joint) for joint in names("joints", joints)]
    x[Q] = x[TARGET] = arm.pose("initial")
    x[ACTIVE, columns] = 1.0
    x[GAIN_P, columns] = vector("p", p, len(joints))
    x[GAIN_I, columns] = vector("i", np.zeros(len(joints)) if i is None else i, len(joints))
    total = 0.0
    for _ in range(calls):
        plant.call(dt)
        error = control(x)
        if not error <= LOST_ERROR:  # also when it is no number any more
            return LOST
        total += error
    return total


def _require_plain_motors(arm: ArmModel) -> None:
    for joint in arm.joints:
        if joint.actuator != "dc_motor":
            raise InvalidValue(
                f"compatibility 'dynamechs': joint '{joint.name}' has actuator '{joint.actuator}';"
                f" a dc_motor on every joint is expected"
            )
    if arm.na:
        raise InvalidValue(
            "compatibility 'dynamechs' knows no states of the actuators' own, the arm has"
            f" {', '.join(arm.act_names)}: motors without them are expected"
        )


def constants(arm: ArmModel) -> Vector:
    """Array (ROWS, nv) with the constants of joints and motors, these seen at the joint."""
    x = np.zeros((ROWS, arm.nv))
    for k, (joint, actuator) in enumerate(zip(arm.joints, arm.actuators, strict=True)):
        c, gear = actuator.constants, actuator.constants["gear_ratio"]
        x[[KT, KE, RESISTANCE], k] = gear * c["kt"], gear * c["ke"], c["resistance"]
        x[[DROP, HALF], k] = c["brush_drop"], c["brush_half_voltage"]
        x[[DRY, VISCOUS], k] = gear * c["coulomb_friction"], gear**2 * c["viscous_friction"]
        x[[LOWER, UPPER], k] = joint.lower, joint.upper
        x[[STIFFNESS, DAMPING], k] = joint.stop_stiffness, joint.stop_damping
    return x
