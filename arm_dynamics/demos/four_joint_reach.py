"""Figures of LQR on four_joint: reaching motions, the diagonal shortcut, the size of tables."""

from __future__ import annotations

from typing import Any

import numpy as np

from arm_dynamics.control.controllers.lqr import Lqr
from arm_dynamics.core.figure_style import INK, PALETTE, figure, label, legend, styled
from arm_dynamics.demos import four_joint_lqr as lqr
from arm_dynamics.demos.demo_result import DemoFigure
from arm_dynamics.dynamics.kinematics import joint_origins
from arm_dynamics.simulation.trace import MotionRecord

Pair = tuple[MotionRecord, MotionRecord]
ELBOWS = np.linspace(0.2, 1.6, 29)
"""Values of J3 [rad] at which the extra cost is computed."""
SHOULDERS = (-0.4, 0.3, 1.0)
"""Values of J2 [rad] of the three curves of extra cost."""
VIEW = {"elev": 22, "azim": -50}


def pair() -> Pair:
    """Simulate the published motion with the gains of M and of diag(M)."""
    start, target = lqr.PUBLISHED
    kinds = (Lqr, lqr.Shortcut)
    full, short = (lqr.reaching_motion(lqr.lqr_controller(kind), start, target) for kind in kinds)
    return full, short


def key_figures(reaches: lqr.Reaches, both: Pair) -> tuple[tuple[str, str], ...]:
    """Return the final errors, the costs of both gains, the table's size and look-up time."""
    error = max(float(np.abs(t.q[-1] - lqr.TARGET).max()) for t in reaches)
    weights, target = lqr.lqr_controller().weights, lqr.PUBLISHED[1]
    full, short = (float(lqr.cost(t, weights, target)[-1]) for t in both)
    table = lqr.gain_table(lqr.COUNT)
    ratio = lqr.published_size(lqr.COUNT) / lqr.table_bytes(table)
    return (
        (f"{len(reaches)} motions with the table: largest error after 3 s", f"{error:.1e} rad"),
        ("cost of the published motion, gains of M", f"{full:.3f}"),
        ("cost of the published motion, gains of diag(M)", f"{short:.3f}"),
        (
            "size of the table",
            f"{lqr.table_bytes(table) / 1e3:.0f} kB; {ratio:.0f} times as large over all states",
        ),
        ("look-up time on this machine", f"{1e6 * lqr.lookup_time():.1f} µs"),
    )


@styled
def reaching(reaches: lqr.Reaches) -> DemoFigure:
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
        error = np.abs(trace.q - lqr.TARGET).max(axis=1)
        errors.semilogy(trace.time, error, color=color, linewidth=1.2)
        torque.plot(trace.time, np.abs(trace.tau).max(axis=1), color=color, linewidth=1.2)
    target = joint_origins(reaches[0].arm, lqr.TARGET)
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
def shortcut(both: Pair) -> DemoFigure:
    """Draw errors and costs of both gains, and the extra cost over the configuration."""
    drawn, grid = figure("Gains of the mass matrix, and of its diagonal only", 2, 2, 6.0)
    (errors, costs), (elbow, torques) = grid
    weights, target = lqr.lqr_controller().weights, lqr.PUBLISHED[1]
    for trace, name, dashes in zip(both, ("M", "diag(M)"), ("-", "--"), strict=True):
        for k, color in enumerate(PALETTE[:4]):
            named = f"J{k + 1}" if dashes == "-" else None
            options: Any = {"color": color, "linestyle": dashes, "linewidth": 1.3}
            errors.plot(trace.time, trace.q[:, k] - target[k], label=named, **options)
            torques.plot(trace.time, trace.tau[:, k], label=named, **options)
        style: Any = {"color": INK, "linestyle": dashes, "label": name}
        costs.plot(trace.time, lqr.cost(trace, weights, target), **style)
    for shoulder, color in zip(SHOULDERS, PALETTE, strict=False):
        extra = [100 * lqr.extra_cost(np.array([0, shoulder, e, 0.1])) for e in ELBOWS]
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
def sizes() -> DemoFigure:
    """Draw size and accuracy over the number of configurations per axis."""
    drawn, ((bytes_, errors),) = figure("Gain tables", 1, 2, 3.6)
    counts = np.array(lqr.COUNTS, dtype=float)
    package = [lqr.table_bytes(lqr.gain_table(n)) / 1e6 for n in lqr.COUNTS]
    published = [lqr.published_size(n) / 1e6 for n in lqr.COUNTS]
    bytes_.loglog(counts, published, "o-", color=PALETTE[1], label="over all states, n⁸")
    bytes_.loglog(counts, package, "o-", color=PALETTE[0], label="over J2 to J4, n³")
    error = [100 * lqr.interpolation_error(lqr.gain_table(n)) for n in lqr.COUNTS]
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
