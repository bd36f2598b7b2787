"""Backlash of the gears of an arm of servos, from positions at the output side.

The position loop closes on the output, so that it moves the joint back through the gap. Positions
show backlash where the load of a gear changes its sign: the joint is free until the teeth touch on
the other side. A joint whose load does not change its sign does not show it.

With backlash the loop oscillates, and impacts of the teeth make simulations diverge from the
measured motion: the output error is a rough function of β with many minima. The fit therefore
minimizes the prediction errors of an observer (``OutputInjection``), whose states follow the
measured positions within τ. An impact has an effect for the time τ only:

minimize  ½ Σ (ε(θ, β) / σ)² / c + ½ |θ|²,   ε(t_k) = q_sim(t_k | q(t_0) … q(t_k-1)) - q(t_k)

A scan compares a few values β of every joint. The other parameters follow by a linear change: their
gradients are those of the rigid gear. The reference is a contact without backlash, not the rigid
gear, because losses of the two differ (docs/motors.md).

References
----------
L. Ljung, System Identification (1999), chapter 7 (prediction errors). H. Abarbanel et al.,
Dynamical state and parameter estimation, SIAM Journal on Applied Dynamical Systems 8 (2009).

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pinocchio as pin

from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.identification.servos.servo_fit import ServoFit
from arm_dynamics.identification.servos.servo_simulation import CONTACT_STEPS, PERIOD
from arm_dynamics.identification.servos.servo_variation import ServoVariation
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.recording.motions.motion_data import MotionData

INJECTION_TIME = 0.1
"""Time constant τ [s] of the observer."""
NONE, SCANNED = 1e-5, (0.001, 0.002, 0.005, 0.01, 0.02, 0.04)
"""Backlash [rad] of the reference, and the values that are compared with it."""
FINE = tuple(0.001 * 40 ** (k / 23) for k in range(24))
"""Values of a joint with probable backlash, from which it is fitted."""
TYPICAL_BACKLASH = 0.005
"""Backlash [rad] around which it is fitted, within a factor e."""
CONTACT_RATE, DAMPING_RATIO = 0.5, 0.2
"""ω dt and damping ratio ζ of the tooth contact: k = μ ω², d = 2 ζ μ ω, μ the reduced mass of rotor
and joint. Teeth rebound at 0.57 of the velocity of an impact. With ζ = 0.5 the backlash found is
too small where teeth rebound more; with ζ = 0.1 backlash is found in fewer motions."""
CANDIDATE = 8.0
"""Decrease of the cost with which backlash is fitted: four standard deviations."""
IDENTIFIABLE = 4.5
"""The same with which a motion would show it: three."""
SIMILAR = 1.5
"""Ratio of the median square errors below which another minimum is possible."""
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
            "not identifiable": self.hidden,
        }
        found = [
            f"{text}: {', '.join(joints[i] for i in own)}" for text, own in groups.items() if own
        ]
        return f"backlash {'; '.join(found) or 'fitted: none'}"


def with_contact(arm: ArmModel, backlash: dict[int, float], q: Matrix) -> ArmModel:
    """Return the arm with ``backlash`` [rad] in some joints, and the contact of their teeth.

    Stiffness k = μ (0.5 / dt)² and damping d = 0.2 μ / dt, with the time step dt of the simulation
    and the smallest reduced mass μ at positions q (n, nv): a damping ratio of 0.2, and stable up to
    twice the time step. Nominal constants remain.
    """
    model, data = arm.links, arm.links.createData()
    every = q[:: max(1, len(q) // POSES)]
    compliance = np.max([np.diag(np.linalg.inv(pin.crba(model, data, x))) for x in every], axis=0)
    for i, play in backlash.items():
        c, joint = arm.actuators[i].constants, arm.joint_names[i]
        reduced = 1 / (1 / (c["gear_ratio"] ** 2 * c["rotor_inertia"]) + float(compliance[i]))
        rate = CONTACT_RATE * CONTACT_STEPS / PERIOD
        given = c["gear_stiffness"] > 0
        arm = arm.with_motor(
            joint,
            backlash=play,
            gear_stiffness=c["gear_stiffness"] if given else reduced * rate**2,
            gear_damping=c["gear_damping"] if given else 2 * DAMPING_RATIO * reduced * rate,
        )
    return arm


def scan_backlash(problem: ServoFit, theta: Vector, windows: Sequence[MotionData]) -> BacklashScan:
    """Return the joints of a fit with rigid gears at θ (p,) that probably have backlash."""
    rigid, nv = problem.variation, problem.variation.arm.nv
    rest = [i for i in range(nv) if rigid.nominal[rigid.backlash_entries[i]] == 0]
    if not rest:
        return BacklashScan({}, ())
    decrease, effect = _compared(rigid, theta, rest, SCANNED, windows)
    best = decrease.argmax(axis=1)
    found = {i: SCANNED[best[k]] for k, i in enumerate(rest) if decrease[k, best[k]] > CANDIDATE}
    seen = zip(rest, effect > IDENTIFIABLE, strict=True)
    return BacklashScan(found, tuple(i for i, row in seen if not row.any()))


def _compared(
    rigid: ServoVariation,
    theta: Vector,
    joints: Sequence[int],
    values: Sequence[float],
    windows: Sequence[MotionData],
) -> tuple[Matrix, Matrix]:
    """Return the decrease of the cost, and the effect, of backlash ``values`` [rad] in ``joints``.

    Shape (joints, values). One joint at a time has backlash; the other parameters of θ (p,) change
    linearly.
    """
    entries = rigid.backlash_entries
    q = np.concatenate([window.q for window in windows])
    variation = rigid.with_backlash(with_contact(rigid.arm, dict.fromkeys(joints, NONE), q), joints)
    cases = np.tile(theta, (1 + len(joints) * len(values), 1))
    cases[:, entries[list(joints)]] = 0.0
    for row, (i, play) in enumerate(((i, play) for i in joints for play in values), 1):
        cases[row, entries[i]] = np.log(play / NONE) / variation.sigma[entries[i]]
    residuals = ServoFit(variation, windows, INJECTION_TIME).residuals(cases)
    costs, effects = ServoFit(rigid, windows, INJECTION_TIME).refitted(
        theta, np.nan_to_num(residuals, nan=1e3)
    )
    shape = len(joints), len(values)
    return (costs[0] - costs[1:]).reshape(shape), effects[1:].reshape(shape)


def fit_backlash(
    rigid: ServoVariation,
    starts: Sequence[Vector],
    joints: list[int],
    windows: Sequence[MotionData],
    tests: Sequence[MotionData],
) -> tuple[ServoFit, Vector, float] | None:
    """Return the fit with backlash in some joints: problem, θ (p,), condition number.

    It begins at the best backlash at each of the ``starts`` (p,): oscillations of the loop distort
    the fit of rigid gears. A joint keeps the backlash if its deviation is below ``DETERMINED``,
    and if the logarithm of the mean square prediction error on ``tests`` decreases by more than
    the standard error of this decrease over blocks. The reference is the fit of rigid gears to the
    same prediction errors. None: no joint does.
    """
    if not joints:
        return None
    entries, sigma = rigid.backlash_entries, rigid.sigma[rigid.backlash_entries]
    reference = ServoFit(rigid, windows, INJECTION_TIME)
    plain, _ = _best(reference, [reference.minimum(start) for start in starts])
    before = np.log(ServoFit(rigid, tests, INJECTION_TIME).block_errors(plain))
    while joints:
        trial, theta, condition = _fit_joints(rigid, starts, joints, windows)
        deviation = sigma * np.sqrt(np.diag(trial.covariance))[entries]
        errors = ServoFit(trial.variation, tests, INJECTION_TIME).block_errors(theta)
        change = before - np.log(errors)
        error = change.std(axis=0) / np.sqrt(max(len(change) - 1, 1))
        is_better = (change.mean(axis=0) > error) & (deviation < DETERMINED)
        better = [i for i in joints if is_better[i]]
        if better == joints:
            return trial, theta, condition
        joints = better
    return None


def _fit_joints(
    rigid: ServoVariation,
    starts: Sequence[Vector],
    joints: list[int],
    windows: Sequence[MotionData],
) -> tuple[ServoFit, Vector, float]:
    """Return the fit with backlash in all ``joints``: problem, θ (p,), condition number."""
    q, entries = np.concatenate([window.q for window in windows]), rigid.backlash_entries[joints]
    arm = with_contact(rigid.arm, dict.fromkeys(joints, TYPICAL_BACKLASH), q)
    trial = ServoFit(rigid.with_backlash(arm, joints), windows, INJECTION_TIME)
    ends = []
    for start in starts:
        decrease, _ = _compared(rigid, start, joints, FINE, windows)
        theta = start.copy()
        play = np.array(FINE)[decrease.argmax(axis=1)]
        theta[entries] = np.log(play / TYPICAL_BACKLASH) / rigid.sigma[entries]
        ends.append(trial.minimum(theta))
    best, similar = _best(trial, ends)
    other = max(similar, key=lambda end: float(np.abs(end - best)[entries].max()))
    _, condition = trial.deviations(best, other)
    return trial, best, condition


def _best(problem: ServoFit, ends: Sequence[Vector]) -> tuple[Vector, list[Vector]]:
    """Return the θ (p,) of least median square error, and those with a similar error."""
    errors = [float(np.median(problem.block_errors(end), axis=0).sum()) for end in ends]
    similar = [
        end for end, error in zip(ends, errors, strict=True) if error < SIMILAR * min(errors)
    ]
    return ends[int(np.argmin(errors))], similar
