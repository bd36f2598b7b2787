"""The published gains of five_dof in the cases that found gains are validated with."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from arm_dynamics.batch.rollout import MeasurementNoise, rollout_closed_loop
from arm_dynamics.batch.stability.analyzed_loops import PUBLISHED_P
from arm_dynamics.batch.tuning.cases import Cases
from arm_dynamics.batch.tuning.validation import ValidationResult, concatenate, evaluate_cases
from arm_dynamics.core.arrays import Vector
from arm_dynamics.simulation.dynamechs import CONTROLLED

PUBLISHED_I = {"R2": 11.7143467458887, "R3": 4.57248153380727, "R5": 0.451883276796821}
"""Gains [V/rad] on the plain sum of errors that go with PUBLISHED_P."""


def published_policy(names: tuple[str, ...], target: Vector) -> Callable[..., Vector]:
    """V = P e + I Σ e [V], Σ the plain sum over the calls, for joints ``names`` of lanes.

    e = ``target`` (lanes, nv) - q; 0 V for joints without published gains.
    """
    p, i = (np.array([g.get(name, 0.0) for name in names]) for g in (PUBLISHED_P, PUBLISHED_I))
    total = np.zeros_like(target)

    def law(q: Vector, v: Vector, time: float) -> Vector:
        del v, time
        error = target - q
        total[:] += error
        with np.errstate(invalid="ignore", over="ignore"):  # of arms that are lost
            volts: Vector = p * error + i * total
        return volts

    return law


def run_published(cases: Cases, method: str, *, supply: bool) -> ValidationResult:
    """``cases`` under the published law, with or without the supply's limit.

    Called every time step, the voltage one call late, 0 V at the first call: as published. Only
    the joints that it controls are judged; |e| <= BOUND in the last fifth, as of all others.
    """
    joints = [cases.arm.index(name) for name in CONTROLLED]
    arm = cases.arm if supply else cases.arm.with_motors(supply_voltage=np.inf)
    vary = {n: v for n, v in cases.vary.items() if supply or n != "motor.supply_voltage"}
    c, parts, order = cases.conditions, [], []
    for dt in sorted(set(cases.dt.tolist())):
        lanes = np.flatnonzero(cases.dt == dt)
        start = np.hstack([cases.start, np.zeros_like(cases.start)])[lanes]
        law = published_policy(cases.arm.joint_names, cases.target[lanes])
        batch = rollout_closed_loop(
            arm, start, law, cases.target[lanes][:, None, :], dt, dt, c.duration,
            interface="voltage", one_period_delay=True, integrator=method,
            vary={name: rows[lanes] for name, rows in vary.items()},
            noise=MeasurementNoise(c.noise_q, c.noise_v, cases.seed),
        )  # fmt: skip
        parts.append(evaluate_cases(batch, joints))
        order.append(lanes)
    return concatenate(parts, np.concatenate(order))


def published_results(cases: Cases) -> dict[str, ValidationResult]:
    """Validation results of the published gains; empty for any arm but five_dof with its motors."""
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
