"""LQR of ``four_joint``: gains from a table, and the cost of a diagonal mass matrix."""

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
from arm_dynamics.core.arrays import Matrix, Vector, as_readonly
from arm_dynamics.core.state import State
from arm_dynamics.dynamics.rigid_body import gravity, mass_matrix
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.load import load_arm
from arm_dynamics.simulation.trace import MotionRecord

LEVEL = np.pi / 2 - 0.3 - 0.8
"""J4 [rad] that makes the last link level."""
SECONDS, PERIOD, DT = 3.0, 2e-3, 1e-3
GAINS = {"position_weight": 100.0, "velocity_weight": 1.0, "effort_weight": 1.0}
"""Published weights: Q = diag(100, 1), R = 1."""
RANGE = {"J2": (-0.6, 1.2), "J3": (0.2, 1.6), "J4": (-0.8, 1.0)}
"""Range of the table [rad]. No gain depends on J1, which turns about the vertical."""
COUNTS = (3, 4, 5, 6, 7, 9)
"""Numbers of configurations per axis of the tables."""
COUNT = 7
"""Number of configurations per axis of the table in use."""
TARGET = as_readonly([0.5, 0.4, 0.9, 0.2])
"""Target of all reaching motions [rad]."""
PUBLISHED = (as_readonly([0.2, 0.5, 0.6, 0.2 + LEVEL]), as_readonly([0.0, 0.3, 0.8, LEVEL]))
"""Start and target of the published reaching motion [rad]; its last link is level."""
REACHES, PROBES, LOOKUPS = 8, 40, 500
Reaches = tuple[MotionRecord, ...]


def lqr_controller(kind: type[Lqr] = Lqr) -> Lqr:
    """Return an LQR controller of four_joint with the published weights."""
    arm = load_arm("four_joint")
    return kind(arm, dict.fromkeys(arm.joint_names, GAINS))


@cache
def gain_table(count: int) -> GainTable:
    """Return the gains on ``count`` configurations per axis."""
    nominal = lqr_controller()
    return build_gain_table(
        nominal.arm, nominal.weights, {n: (*r, count) for n, r in RANGE.items()}
    )


def postures(count: int, seed: int) -> Matrix:
    """Return random configurations (count, 4) [rad] within the table, J1 within 1.5 rad."""
    lower, upper = np.array([(-1.5, 1.5), *RANGE.values()]).T
    return as_readonly(np.random.default_rng(seed).uniform(lower, upper, (count, 4)))


def reaching_motion(controller: Lqr, start: Vector, target: Vector = TARGET) -> MotionRecord:
    """Simulate a step of the reference from rest at ``start`` to ``target``, both (nv,) [rad]."""
    return simulate_closed_loop(
        controller.arm, controller, JointTrajectory.hold(target), State.of(start),
        seconds=SECONDS, period=PERIOD, dt=DT,
    )  # fmt: skip


def from_anywhere() -> Reaches:
    """Simulate motions to TARGET from random configurations, with gains of the table."""
    controller = lqr_controller()
    controller.set_gain_table(gain_table(COUNT))
    return tuple(reaching_motion(controller, start) for start in postures(REACHES, 1))


def diagonal_gain(arm: ArmModel, q: Vector, weights: LqrWeights) -> Matrix:
    """Return the gain K (nv, 2 nv) of the published shortcut, which replaces M by diag(M)."""
    A, _ = linear_dynamics(arm, q)
    M = mass_matrix(arm, q)
    inverse = np.diag(1 / np.diag(M))
    A[arm.nv :] = inverse @ M @ A[arm.nv :]
    B = np.vstack([np.zeros((arm.nv, arm.nv)), inverse])
    Q = np.diag(np.concatenate([weights.position, weights.velocity]))
    return as_readonly((B / weights.effort).T @ solve_riccati(A, B / weights.effort @ B.T, Q))


class Shortcut(Lqr):
    """LQR with the gains of ``diagonal_gain``."""

    def gain(self, q: Vector) -> Matrix:
        """Return the gain K (nv, 2 nv) at the configuration ``q``."""
        return diagonal_gain(self.arm, q, self.weights)


def extra_cost(q: Vector) -> float:
    """Return the relative extra cost of the shortcut near ``q``, mean over all displacements.

    With S of (A - B K)ᵀ S + S (A - B K) = -(Q + Kᵀ R K) a displacement e costs eᵀ S e.
    """
    nominal = lqr_controller()
    A, B = linear_dynamics(nominal.arm, q)
    weights, nv = nominal.weights, nominal.arm.nv
    Q = np.diag(np.concatenate([weights.position, weights.velocity]))
    costs = []
    for K in (diagonal_gain(nominal.arm, q, weights), lqr_gain(nominal.arm, q, weights)):
        running = Q + (K.T * weights.effort) @ K
        S = solve_continuous_lyapunov((A - B @ K).T, -running)
        costs.append(np.trace(S[:nv, :nv]))
    return float(costs[0] / costs[1] - 1)


def cost(trace: MotionRecord, weights: LqrWeights, target: Vector) -> Vector:
    """Return the cost ∫ Σ (q e² + v ė² + r δtau²) dt up to each sample, shape (n,)."""
    gravity_torque = gravity(trace.arm, target)
    error = (trace.q - target) ** 2 @ weights.position + trace.v**2 @ weights.velocity
    return trace.work(as_readonly(error + (trace.tau - gravity_torque) ** 2 @ weights.effort))


def interpolation_error(gains: GainTable) -> float:
    """Return the largest interpolation error at PROBES configurations over the largest gain."""
    nominal, worst, largest = lqr_controller(), 0.0, 0.0
    for q in postures(PROBES, 3):
        exact, interpolated = lqr_gain(nominal.arm, q, nominal.weights), gains.at(q)
        assert interpolated is not None
        worst = max(worst, float(np.abs(interpolated - exact).max()))
        largest = max(largest, float(np.abs(exact).max()))
    return worst / largest


def table_bytes(gains: GainTable) -> int:
    """Return the size of a table [byte], 8 per gain."""
    return gains.gains.nbytes


def published_size(count: int) -> int:
    """Return the size [byte] of a table over all 8 states: n⁸ times 4 x 8 gains."""
    return count**8 * 4 * 8 * 8


def lookup_time() -> float:
    """Measure the median time of a table look-up [s]."""
    gains, times = gain_table(COUNT), []
    for q in postures(LOOKUPS, 5):
        start = perf_counter()
        gains.at(q)
        times.append(perf_counter() - start)
    return float(np.median(times))
