"""Backlash of the gears of an arm of servos, from positions at the output side.

The position loop closes on the output, so that it moves the joint back through the gap. Positions
show backlash where the load of a gear changes its sign: the joint is free until the teeth touch on
the other side. A joint whose load does not change its sign does not show it.

The scan simulates every joint with a few values β. The other parameters follow by a linear change:
their slopes are those of the rigid gear. The reference is a contact without backlash, not the rigid
gear, because losses of the two differ (docs/motors.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.identification.motion_data import MotionData
from arm_dynamics.identification.servo_fit import LAST_TURNS, ServoFit
from arm_dynamics.identification.servo_simulation import CONTACT_STEPS, PERIOD
from arm_dynamics.model.arm_model import ArmModel

NONE, SCANNED = 1e-5, (0.001, 0.002, 0.005, 0.01, 0.02, 0.04)
"""Backlash [rad] of the reference, and the values that are compared with it."""
TYPICAL_BACKLASH = 0.005
"""Backlash [rad] around which it is fitted, within a factor e."""
CONTACT = 0.5
"""ω dt and d dt / μ of the tooth contact: k = μ ω², μ the reduced mass of rotor and joint."""
CANDIDATE = 8.0
"""Decrease of the cost with which backlash is fitted: four standard deviations."""
REVEALED = 4.5
"""The same with which a motion would show it: three."""
STARTS = (0.5, 1.0, 2.0)
"""Factors of the scanned backlash from which it is fitted: the cost has several minima."""
SIMILAR, CONTACT_ERROR = 1.5, 0.05
"""Ratio of the median square errors below which another minimum is possible, and the relative
deviation of a backlash by the assumed contact of the teeth."""
DETERMINED = 0.25
"""Largest relative deviation of a backlash: four deviations from 0."""
POSES = 50
"""Configurations in which the smallest mass of the joints is searched."""


@dataclass(frozen=True, slots=True, eq=False)
class BacklashScan:
    """Joints with a probable ``backlash`` [rad], and joints whose motion would not show 40 mrad."""

    backlash: dict[int, float]
    hidden: tuple[int, ...]

    def note(self, joints: Sequence[str], fitted: Sequence[int]) -> str:
        """Return the sentence of the report."""
        groups = {
            "fitted": fitted,
            "probable, not determined": [i for i in self.backlash if i not in fitted],
            "not revealed": self.hidden,
        }
        found = [
            f"{text}: {', '.join(joints[i] for i in own)}" for text, own in groups.items() if own
        ]
        return f"backlash {'; '.join(found) or 'fitted: none'}"


def with_contact(arm: ArmModel, backlash: dict[int, float], q: Matrix) -> ArmModel:
    """Return the arm with ``backlash`` [rad] in some joints, and the contact of their teeth.

    Stiffness k = μ (0.5 / dt)² and damping d = 0.5 μ / dt, with the time step dt of the simulation
    and the smallest reduced mass μ at positions q (n, nv): a damping ratio of 0.5, and stable up to
    twice the time step. Constants of the description remain.
    """
    model, data = arm.links, arm.links.createData()
    every = q[:: max(1, len(q) // POSES)]
    compliance = np.max([np.diag(np.linalg.inv(pin.crba(model, data, x))) for x in every], axis=0)
    for i, play in backlash.items():
        c, joint = arm.actuators[i].constants, arm.joint_names[i]
        reduced = 1 / (1 / (c["gear_ratio"] ** 2 * c["rotor_inertia"]) + float(compliance[i]))
        rate = CONTACT * CONTACT_STEPS / PERIOD
        given = c["gear_stiffness"] > 0
        arm = arm.with_motor(
            joint,
            backlash=play,
            gear_stiffness=c["gear_stiffness"] if given else reduced * rate**2,
            gear_damping=c["gear_damping"] if given else reduced * rate,
        )
    return arm


def scan_backlash(problem: ServoFit, theta: Vector, windows: Sequence[MotionData]) -> BacklashScan:
    """Return the joints of a fit with rigid gears at θ (p,) that probably have backlash."""
    rigid, nv = problem.variation, problem.variation.arm.nv
    entries = rigid.backlash_entries
    rest = [i for i in range(nv) if rigid.described[entries[i]] == 0]
    if not rest:
        return BacklashScan({}, ())
    q = np.concatenate([window.q for window in windows])
    arm = with_contact(rigid.arm, dict.fromkeys(rest, NONE), q)
    variation = rigid.with_backlash(arm, rest)
    sigma = variation.sigma[entries]
    cases = np.tile(theta, (1 + len(rest) * len(SCANNED), 1))
    cases[:, entries[rest]] = 0.0
    for row, (i, play) in enumerate(((i, play) for i in rest for play in SCANNED), 1):
        cases[row, entries[i]] = np.log(play / NONE) / sigma[i]
    residuals = np.nan_to_num(ServoFit(variation, windows).residuals(cases), nan=1e3)
    costs, effects = problem.refitted(theta, residuals)
    decrease = (costs[0] - costs[1:]).reshape(len(rest), len(SCANNED))
    seen = effects[1:].reshape(decrease.shape) > REVEALED
    best = decrease.argmax(axis=1)
    found = {i: SCANNED[best[k]] for k, i in enumerate(rest) if decrease[k, best[k]] > CANDIDATE}
    return BacklashScan(found, tuple(i for i, row in zip(rest, seen, strict=True) if not row.any()))


def fit_backlash(
    rigid: ServoFit,
    theta: Vector,
    backlash: dict[int, float],
    windows: Sequence[MotionData],
    tests: Sequence[MotionData],
) -> tuple[ServoFit, Vector, float] | None:
    """Return the fit with backlash in some joints: problem, θ (p,), condition number.

    A joint keeps the backlash if its deviation is below ``DETERMINED``, and if the mean square of
    its errors on ``tests`` decreases by more than the standard error of this decrease
    over blocks. None: no joint does.
    """
    q = np.concatenate([window.q for window in windows])
    entries = rigid.variation.backlash_entries
    sigma = rigid.variation.sigma[entries]
    before = ServoFit(rigid.variation, tests).block_errors(theta)
    while backlash:
        arm = with_contact(rigid.variation.arm, dict.fromkeys(backlash, TYPICAL_BACKLASH), q)
        trial = ServoFit(rigid.variation.with_backlash(arm, list(backlash)), windows)
        first = np.tile(theta, (len(STARTS), 1))
        for i, play in backlash.items():
            first[:, entries[i]] = np.log(play * np.array(STARTS) / TYPICAL_BACKLASH) / sigma[i]
        ends = [trial.minimum(start, LAST_TURNS) for start in first]
        errors = [float(np.median(trial.block_errors(end), axis=0).sum()) for end in ends]
        found = ends[int(np.argmin(errors))]
        near = [e for e, error in zip(ends, errors, strict=True) if error < SIMILAR * min(errors)]
        other = max(near, key=lambda end: float(np.abs(end - found)[entries[list(backlash)]].max()))
        _, condition = trial.deviations(found, other)
        for i in backlash:
            trial.covariance[entries[i], entries[i]] += (CONTACT_ERROR / sigma[i]) ** 2
        deviation = sigma * np.sqrt(np.diag(trial.covariance))[entries]
        change = before - ServoFit(trial.variation, tests).block_errors(found)
        error = change.std(axis=0) / np.sqrt(max(len(change) - 1, 1))
        better = (change.mean(axis=0) > error) & (deviation < DETERMINED)
        kept = {i: play for i, play in backlash.items() if better[i]}
        if kept == backlash:
            return trial, found, condition
        backlash = kept
    return None
