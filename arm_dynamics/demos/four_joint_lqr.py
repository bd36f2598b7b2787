"""LQR on a yaw base and three planar joints: gains from a table, and what shortcuts cost."""

from __future__ import annotations

from functools import cache
from time import perf_counter

import numpy as np
from scipy.linalg import solve_continuous_lyapunov

from arm_dynamics.control.closed_loop_simulation import simulate_closed_loop
from arm_dynamics.control.controllers.lqr import Lqr
from arm_dynamics.control.lqr_design.gain_table import GainTable, build_gain_table
from arm_dynamics.control.lqr_design.lqr_gain import (
    LqrWeights,
    linear_dynamics,
    lqr_gain,
    solve_riccati,
)
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.state import State
from arm_dynamics.dynamics.rigid_body import gravity, mass_matrix
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.load import load_arm
from arm_dynamics.simulation.trace import MotionRecord

LEVEL = np.pi / 2 - 0.3 - 0.8
"""J4 [rad] that makes the last link level."""
SECONDS, PERIOD, DT = 3.0, 2e-3, 1e-3
GAINS = {"position_weight": 100.0, "velocity_weight": 1.0, "effort_weight": 1.0}
"""As published: Q = diag(100, 1), R = 1."""
RANGE = {"J2": (-0.6, 1.2), "J3": (0.2, 1.6), "J4": (-0.8, 1.0)}
"""Of the table [rad]. No gain depends on J1, which turns about the vertical."""
COUNTS = (3, 4, 5, 6, 7, 9)
"""Poses on an axis of the table."""
CHOSEN = 7
TARGET = as_readonly([0.5, 0.4, 0.9, 0.2])
"""Where all reaches from the table go [rad]."""
PUBLISHED = (as_readonly([0.2, 0.5, 0.6, 0.2 + LEVEL]), as_readonly([0.0, 0.3, 0.8, LEVEL]))
"""Start and target of the published reach [rad]; its last link is level."""
REACHES, PROBES, LOOKUPS = 8, 40, 500
Reaches = tuple[MotionRecord, ...]


def lqr_controller(kind: type[Lqr] = Lqr) -> Lqr:
    """With the published weights."""
    arm = load_arm("four_joint")
    return kind(arm, dict.fromkeys(arm.joint_names, GAINS))


@cache
def gain_table(count: int) -> GainTable:
    """Gains on ``count`` poses an axis."""
    known = lqr_controller()
    return build_gain_table(known.arm, known.weights, {n: (*r, count) for n, r in RANGE.items()})


def postures(count: int, seed: int) -> Vector:
    """Random ones (count, 4) [rad] within the table, J1 anywhere within 1.5 rad."""
    lower, upper = np.array([(-1.5, 1.5), *RANGE.values()]).T
    return as_readonly(np.random.default_rng(seed).uniform(lower, upper, (count, 4)))


def reaching_motion(regulator: Lqr, start: Vector, target: Vector = TARGET) -> MotionRecord:
    """From rest at ``start`` to ``target``, which is told at once."""
    goal = JointTrajectory.hold(target)
    begin, arm = State.of(start), regulator.arm
    return simulate_closed_loop(arm, regulator, goal, begin, seconds=SECONDS, period=PERIOD, dt=DT)


def from_anywhere() -> Reaches:
    """To TARGET from postures all over the table, gains looked up in it."""
    regulator = lqr_controller()
    regulator.set_gain_table(gain_table(CHOSEN))
    return tuple(reaching_motion(regulator, start) for start in postures(REACHES, 1))


def diagonal_gain(arm: ArmModel, q: Vector, weights: LqrWeights) -> Vector:
    """K of the published shortcut: diag(M) for M, of which kinetic energy keeps nothing else."""
    A, _ = linear_dynamics(arm, q)
    M = mass_matrix(arm, q)
    inverse = np.diag(1 / np.diag(M))
    A[arm.nv :] = inverse @ M @ A[arm.nv :]
    B = np.vstack([np.zeros((arm.nv, arm.nv)), inverse])
    Q = np.diag(np.concatenate([weights.position, weights.velocity]))
    return as_readonly((B / weights.effort).T @ solve_riccati(A, B / weights.effort @ B.T, Q))


class Shortcut(Lqr):
    """The law with the gains of ``diagonal_gain``."""

    def gain(self, q: Vector) -> Vector:
        """K (nv, 2 nv) at the pose ``q``."""
        return diagonal_gain(self.arm, q, self.weights)


def extra_cost(q: Vector) -> float:
    """Share by which the shortcut costs more near ``q``, mean over displacements of all ways.

    With S of (A - B K)ᵀ S + S (A - B K) = -(Q + Kᵀ R K) a displacement e costs eᵀ S e.
    """
    known = lqr_controller()
    A, B = linear_dynamics(known.arm, q)
    weights, nv = known.weights, known.arm.nv
    Q = np.diag(np.concatenate([weights.position, weights.velocity]))
    costs = []
    for K in (diagonal_gain(known.arm, q, weights), lqr_gain(known.arm, q, weights)):
        running = Q + (K.T * weights.effort) @ K
        S = solve_continuous_lyapunov((A - B @ K).T, -running)
        costs.append(np.trace(S[:nv, :nv]))
    return float(costs[0] / costs[1] - 1)


def cost(trace: MotionRecord, weights: LqrWeights, target: Vector) -> Vector:
    """∫ Σ (q e² + v ė² + r δtau²) dt (n,) up to every sample."""
    held = gravity(trace.arm, target)
    error = (trace.q - target) ** 2 @ weights.position + trace.v**2 @ weights.velocity
    return trace.work(as_readonly(error + (trace.tau - held) ** 2 @ weights.effort))


def interpolation_error(gains: GainTable) -> float:
    """Largest difference of looked-up gains from exact ones, of PROBES poses, over the largest."""
    known, worst, largest = lqr_controller(), 0.0, 0.0
    for q in postures(PROBES, 3):
        exact, found = lqr_gain(known.arm, q, known.weights), gains.at(q)
        assert found is not None
        worst = max(worst, float(np.abs(found - exact).max()))
        largest = max(largest, float(np.abs(exact).max()))
    return worst / largest


def table_bytes(gains: GainTable) -> int:
    """Numbers in a table times 8 [byte]."""
    return gains.gains.nbytes


def published_size(count: int) -> int:
    """A table over all 8 states, of 4 x 8 gains each [byte]: n⁸."""
    return count**8 * 4 * 8 * 8


def lookup_time() -> float:
    """Median time of a look-up [s], now and here."""
    gains, times = gain_table(CHOSEN), []
    for q in postures(LOOKUPS, 5):
        begin = perf_counter()
        gains.at(q)
        times.append(perf_counter() - begin)
    return float(np.median(times))
