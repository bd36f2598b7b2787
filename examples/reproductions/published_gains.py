"""The gains AffectiveSilicon published for five_dof: controller, validation, file, stability."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from arm_dynamics.batch.rollouts.closed_loop import rollout_closed_loop
from arm_dynamics.batch.rollouts.reference_table import MeasurementNoise
from arm_dynamics.batch.stability.stability_report import LinearLoop
from arm_dynamics.batch.tuning.cases import Cases
from arm_dynamics.batch.tuning.parameter_file import parameter_text
from arm_dynamics.batch.tuning.validation import ValidationResult, concatenate, evaluate_cases
from arm_dynamics.control.controllers.pid import Pid
from arm_dynamics.control.linear_controller import voltage_pi_controller
from arm_dynamics.core.arrays import Matrix
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation.dynamechs import (
    CONTROLLED,
    KE,
    KT,
    RESISTANCE,
    constants,
    objective,
    published_arm,
)
from arm_dynamics.simulation.linearization import find_equilibrium, linearize

PUBLISHED_P: Mapping[str, float] = MappingProxyType(
    {"R2": 1688.61035631972, "R3": 5529.51939064412, "R5": 5578.2466209947}
)
"""Proportional gains [V/rad]; R1 and R4 get 0 V."""
PUBLISHED_I: Mapping[str, float] = MappingProxyType(
    {"R2": 11.7143467458887, "R3": 4.57248153380727, "R5": 0.451883276796821}
)
"""Integral gains [V/rad] on the plain sum of errors, found with PUBLISHED_P."""
PUBLISHED_DT = 1e-4
"""Time step and control period [s]."""
PUBLISHED_INTEGRATOR = "explicit_euler"
PUBLISHED_DURATION = 3.0
"""Simulated time [s] of an objective."""
DIVERGED_RATIO = 10.0
"""Objective over that of the published gains from which on the motion counts as diverged."""
FACTOR_TOLERANCE = 1e-4
"""Accuracy of the stability limit."""


def published_policy(names: tuple[str, ...], target: Matrix) -> Callable[..., Matrix]:
    """Return the policy V = P e + I Σ e [V], e = target - q, Σ the plain sum over the calls.

    Parameters
    ----------
    names : tuple of str
        Joints; those without published gains get 0 V.
    target : Matrix
        Reference [rad], shape (batch, nv).

    """
    p, i = (np.array([g.get(name, 0.0) for name in names]) for g in (PUBLISHED_P, PUBLISHED_I))
    total = np.zeros_like(target)

    def policy(q: Matrix, v: Matrix, time: float) -> Matrix:
        del v, time
        error = target - q
        total[:] += error
        with np.errstate(invalid="ignore", over="ignore"):  # diverged arms
            voltage: Matrix = p * error + i * total
        return voltage

    return policy


def run_published(cases: Cases, integrator: str, *, supply: bool) -> ValidationResult:
    """Run ``cases`` under the published controller.

    It is called every time step, its voltage acts one call late, the first call has 0 V. Only the
    joints that it controls are evaluated.

    Parameters
    ----------
    cases : Cases
        Cases.
    integrator : str
        Integrator.
    supply : bool
        Whether the supply limits the voltage.

    """
    joints = [cases.arm.index(name) for name in CONTROLLED]
    arm = cases.arm if supply else cases.arm.with_motors(supply_voltage=np.inf)
    vary = {n: v for n, v in cases.vary.items() if supply or n != "motor.supply_voltage"}
    c, parts, order = cases.conditions, [], []
    for dt in sorted(set(cases.dt.tolist())):
        rows = np.flatnonzero(cases.dt == dt)
        start = np.hstack([cases.start, np.zeros_like(cases.start)])[rows]
        policy = published_policy(cases.arm.joint_names, cases.target[rows])
        result = rollout_closed_loop(
            arm, start, policy, cases.target[rows][:, None, :], dt, dt, c.duration,
            interface="voltage", one_period_delay=True, integrator=integrator,
            vary={name: values[rows] for name, values in vary.items()},
            noise=MeasurementNoise(c.noise_q, c.noise_v, cases.seed),
        )  # fmt: skip
        parts.append(evaluate_cases(result, joints))
        order.append(rows)
    return concatenate(parts, np.concatenate(order))


def published_results(cases: Cases) -> dict[str, ValidationResult]:
    """Return results of the published gains; empty for any arm but five_dof with its motors."""
    if cases.arm.name != "five_dof" or any(j.actuator != "dc_motor" for j in cases.arm.joints):
        return {}
    return {
        "published, explicit Euler, no supply limit": run_published(
            cases, "explicit_euler", supply=False
        ),
        "published, semi-implicit Euler, supply limit": run_published(
            cases, "semi_implicit_euler", supply=True
        ),
    }


def effort_gains(
    arm: ArmModel, gains: Mapping[str, tuple[float, float]], dt: float = PUBLISHED_DT
) -> dict[str, dict[str, float]]:
    """Return PID gains on efforts with the torque of V = P e + I Σ e.

    τ = Kt (V - Ke q̇) / R = p e + i ∫ e dt - d q̇, with p = Kt P / R, i = Kt I / (R dt) and
    d = Kt Ke / R. Joints without gains are damped by their motors only.

    Parameters
    ----------
    arm : ArmModel
        Arm with DC motors.
    gains : Mapping[str, tuple of float]
        Joint to P, I [V/rad].
    dt : float
        Time between two calls [s].

    Returns
    -------
    dict
        Joint to p, i, d in the units of ``Pid``.

    """
    by_joint, rows = {}, constants(arm)
    for k, joint in enumerate(arm.joint_names):
        p, i = gains.get(joint, (0.0, 0.0))
        factor = float(rows[KT, k] / rows[RESISTANCE, k])
        by_joint[joint] = {"p": factor * p, "i": factor * i / dt, "d": factor * float(rows[KE, k])}
    return by_joint


def published_file(arm: ArmModel, gains: Mapping[str, tuple[float, float]]) -> str:
    """Return the text of a parameter file for controller pid with gains P, I [V/rad]."""
    notes = (
        "five_dof: gains of the published search, converted to efforts of the same loop.",
        f"They hold the initial configuration at a control period of {PUBLISHED_DT:g} s, at the",
        "stability limit and without effort limits. Not suitable for a physical arm, nor for a",
        "longer period.",
    )
    efforts = effort_gains(arm, gains)
    return parameter_text(arm.name, "pid", Pid(arm, efforts), efforts, notes)


def published_loop(
    q: ArrayLike | None = None, dt: float = PUBLISHED_DT, factor: float = 1.0
) -> LinearLoop:
    """Return five_dof under V = P e on R2, R3, R5, as in the published search.

    A voltage computed from the state of call k acts from the next call on: with explicit Euler one
    step late. End stops, and the rule that stops a joint at each reversal, are omitted.

    Parameters
    ----------
    q : ArrayLike, optional
        Configuration [rad], default: initial.
    dt : float
        Time step [s].
    factor : float
        Factor on P.

    """
    arm = published_arm()
    configuration = arm.configuration("initial") if q is None else q
    state, command = find_equilibrium(arm, configuration, "voltage")
    gains = np.array([factor * PUBLISHED_P.get(name, 0.0) for name in arm.joint_names])
    controller = voltage_pi_controller(arm, gains)
    return LinearLoop(linearize(arm, state, command), lambda _: controller, dt, None, 1)


def published_stability_limit(stable: float = 1.0, unstable: float = 1.1) -> float:
    """Return the smallest factor on the published gains at which the published step diverges.

    The motion is simulated by ``dynamechs.objective`` for 3 s, with the rule that stops a joint at
    each reversal. The factor is bisected to FACTOR_TOLERANCE.

    Parameters
    ----------
    stable, unstable : float
        Bounds; returned if the first diverges, or the second does not.

    """
    arm, p = published_arm(), np.array(list(PUBLISHED_P.values()))

    def cost(factor: float) -> float:
        return objective(
            arm, factor * p, joints=tuple(PUBLISHED_P), duration=PUBLISHED_DURATION,
            dt=PUBLISHED_DT,
        )  # fmt: skip

    limit = DIVERGED_RATIO * cost(1.0)
    if cost(stable) > limit:
        return stable
    if cost(unstable) <= limit:
        return unstable
    while unstable - stable > FACTOR_TOLERANCE:
        middle = (stable + unstable) / 2
        if cost(middle) > limit:
            unstable = middle
        else:
            stable = middle
    return unstable
