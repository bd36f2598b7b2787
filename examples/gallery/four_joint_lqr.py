"""LQR of ``four_joint``: gains from a table, the cost of a diagonal mass matrix, their figures."""

from __future__ import annotations

from functools import cache
from time import perf_counter
from typing import Any

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
from arm_dynamics.core.figure_style import INK, PALETTE, figure, label, legend, styled
from arm_dynamics.core.state import State
from arm_dynamics.demos.demo_result import DemoFigure
from arm_dynamics.dynamics.kinematics.frames import joint_origins
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
Pair = tuple[MotionRecord, MotionRecord]
ELBOWS = np.linspace(0.2, 1.6, 29)
"""Values of J3 [rad] at which the extra cost is computed."""
SHOULDERS = (-0.4, 0.3, 1.0)
"""Values of J2 [rad] of the three curves of extra cost."""
VIEW = {"elev": 22, "azim": -50}


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


def pair() -> Pair:
    """Simulate the published motion with the gains of M and of diag(M)."""
    start, target = PUBLISHED
    kinds = (Lqr, Shortcut)
    full, short = (reaching_motion(lqr_controller(kind), start, target) for kind in kinds)
    return full, short


def key_figures(reaches: Reaches, both: Pair) -> tuple[tuple[str, str], ...]:
    """Return the final errors, the costs of both gains, the table's size and look-up time."""
    error = max(float(np.abs(t.q[-1] - TARGET).max()) for t in reaches)
    weights, target = lqr_controller().weights, PUBLISHED[1]
    full, short = (float(cost(t, weights, target)[-1]) for t in both)
    table = gain_table(COUNT)
    ratio = published_size(COUNT) / table_bytes(table)
    return (
        (f"{len(reaches)} motions with the table: largest error after 3 s", f"{error:.1e} rad"),
        ("cost of the published motion, gains of M", f"{full:.3f}"),
        ("cost of the published motion, gains of diag(M)", f"{short:.3f}"),
        (
            "size of the table",
            f"{table_bytes(table) / 1e3:.0f} kB; {ratio:.0f} times as large over all states",
        ),
        ("look-up time on this machine", f"{1e6 * lookup_time():.1f} µs"),
    )


@styled
def reaching_figure(reaches: Reaches) -> DemoFigure:
    """Draw paths of the tool, and errors and torques over time."""
    drawn, _ = figure("LQR with a gain table", 1, 1, 4.6)
    drawn.clear()
    drawn.suptitle("LQR with a gain table")
    grid = drawn.add_gridspec(2, 2, width_ratios=(1.1, 1))
    space: Any = drawn.add_subplot(grid[:, 0], projection="3d")
    errors, torque = (drawn.add_subplot(grid[k, 1]) for k in (0, 1))
    for k, trace in enumerate(reaches):
        color = PALETTE[k % len(PALETTE)]
        space.plot(*trace.tool.T, color=color, linewidth=1.4)
        space.plot(*trace.points[0].T, "o-", color=color, markersize=2.5, linewidth=0.8, alpha=0.5)
        error = np.abs(trace.q - TARGET).max(axis=1)
        errors.semilogy(trace.time, error, color=color, linewidth=1.2)
        torque.plot(trace.time, np.abs(trace.tau).max(axis=1), color=color, linewidth=1.2)
    target = joint_origins(reaches[0].arm, TARGET)
    space.plot(*target.T, "o-", color=INK, markersize=4, linewidth=2.2, label="target")
    legend(space)
    label(space, "x [m]", "y [m]")
    space.set(zlabel="z [m]", xlim=(-0.8, 0.8), ylim=(-0.6, 1.0), zlim=(0, 1.0))
    space.set(xticks=(-0.5, 0, 0.5), yticks=(-0.5, 0, 0.5), zticks=(0, 0.5, 1.0))
    space.set_box_aspect((1.6, 1.6, 1), zoom=0.82)
    space.view_init(**VIEW)
    label(errors, "", "largest error [rad]")
    label(torque, "time [s]", "largest torque [N·m]")
    drawn.align_ylabels()
    caption = (
        f"A step of the reference from {len(reaches)} random configurations within the table to"
        " one target: tau = tau* - K (x - x*) with tau* = g(q*) and K of the table at the target."
        " Left: the arms at the start and the paths of the tool."
    )
    return DemoFigure("four_joint_reach", caption, drawn)


@styled
def shortcut_figure(both: Pair) -> DemoFigure:
    """Draw errors and costs of both gains, and the extra cost over the configuration."""
    drawn, grid = figure("Gains of the mass matrix, and of its diagonal only", 2, 2, 6.0)
    (errors, costs), (elbow, torques) = grid
    weights, target = lqr_controller().weights, PUBLISHED[1]
    for trace, name, dashes in zip(both, ("M", "diag(M)"), ("-", "--"), strict=True):
        for k, color in enumerate(PALETTE[:4]):
            named = f"J{k + 1}" if dashes == "-" else None
            options: Any = {"color": color, "linestyle": dashes, "linewidth": 1.3}
            errors.plot(trace.time, trace.q[:, k] - target[k], label=named, **options)
            torques.plot(trace.time, trace.tau[:, k], label=named, **options)
        style: Any = {"color": INK, "linestyle": dashes, "label": name}
        costs.plot(trace.time, cost(trace, weights, target), **style)
    for shoulder, color in zip(SHOULDERS, PALETTE, strict=False):
        extra = [100 * extra_cost(np.array([0, shoulder, e, 0.1])) for e in ELBOWS]
        elbow.plot(ELBOWS, extra, color=color, label=f"J2 = {shoulder:g} rad")
    for axes in grid.flat:
        legend(axes)
    for axes in (errors, torques):
        axes.set_xlim(0, 1.5)
    label(errors, "time [s]", "error [rad]")
    label(costs, "time [s]", "cost ∫ (eᵀQe + δtau²) dt [1]")
    label(elbow, "J3 [rad]", "extra cost [%]")
    label(torques, "time [s]", "torque [N·m]")
    caption = (
        "The published motion. Solid: gains of the mass matrix M. Dashed: the published shortcut,"
        " which replaces M by its diagonal. Its extra cost is some per cent and depends on the"
        " configuration (below left: mean over displacements of all joints, linearized)."
    )
    return DemoFigure("four_joint_shortcut", caption, drawn)


@styled
def table_figure() -> DemoFigure:
    """Draw size and accuracy over the number of configurations per axis."""
    drawn, ((bytes_, errors),) = figure("Gain tables", 1, 2, 3.6)
    counts = np.array(COUNTS, dtype=float)
    package = [table_bytes(gain_table(n)) / 1e6 for n in COUNTS]
    published = [published_size(n) / 1e6 for n in COUNTS]
    bytes_.loglog(counts, published, "o-", color=PALETTE[1], label="over all states, n⁸")
    bytes_.loglog(counts, package, "o-", color=PALETTE[0], label="over J2 to J4, n³")
    error = [100 * interpolation_error(gain_table(n)) for n in COUNTS]
    errors.loglog(counts, error, "o-", color=PALETTE[0], label="interpolated gains")
    slope = error[0] * ((counts - 1) / (counts[0] - 1)) ** -2
    errors.loglog(counts, slope, ":", color=INK, label="second order")
    for axes in (bytes_, errors):
        axes.set_xticks(counts, [f"{n:g}" for n in counts])
        axes.minorticks_off()
        legend(axes)
    label(bytes_, "configurations per axis n [1]", "size [MB]")
    label(errors, "configurations per axis n [1]", "largest error [%]")
    caption = (
        "The equations of motion are affine in the torques, with B = M⁻¹. Therefore the gains at"
        " rest depend only on the configuration, and not on the angle about the vertical: a table"
        " needs n³ entries instead of n⁸ over all eight states. The interpolation error of the"
        " gains decreases with the square of the spacing."
    )
    return DemoFigure("four_joint_table", caption, drawn)
