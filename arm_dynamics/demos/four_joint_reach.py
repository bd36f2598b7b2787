"""Pictures of LQR on four_joint: reaches from its table, shortcuts, and the size of tables."""

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
"""J3 [rad] at which the shortcut's cost is computed."""
SHOULDERS = (-0.4, 0.3, 1.0)
"""J2 [rad] of its three curves."""
VIEW = {"elev": 22, "azim": -50}


def pair() -> Pair:
    """The published reach with true gains, and with those of diag(M)."""
    start, target = lqr.PUBLISHED
    kinds = (Lqr, lqr.Shortcut)
    true, short = (lqr.reaching_motion(lqr.lqr_controller(kind), start, target) for kind in kinds)
    return true, short


def key_figures(reaches: lqr.Reaches, both: Pair) -> tuple[tuple[str, str], ...]:
    """What is left of the reaches, what the shortcut costs, the table's size and its time."""
    left = max(float(np.abs(t.q[-1] - lqr.TARGET).max()) for t in reaches)
    weights, target = lqr.lqr_controller().weights, lqr.PUBLISHED[1]
    true, short = (float(lqr.cost(t, weights, target)[-1]) for t in both)
    table = lqr.gain_table(lqr.CHOSEN)
    ratio = lqr.published_size(lqr.CHOSEN) / lqr.table_bytes(table)
    return (
        (f"{len(reaches)} reaches from the table: largest error after 3 s", f"{left:.1e} rad"),
        ("cost of the published reach, true gains", f"{true:.3f}"),
        ("cost of the published reach, gains of diag(M)", f"{short:.3f}"),
        (
            "the table",
            f"{lqr.table_bytes(table) / 1e3:.0f} kB, over all states {ratio:.0f} times that",
        ),
        ("look-up in the table, now and here", f"{1e6 * lqr.lookup_time():.1f} µs"),
    )


@styled
def reaching(reaches: lqr.Reaches) -> DemoFigure:
    """Tools' paths through space; distance of the joints and torques over time."""
    drawn, _ = figure("LQR from anywhere in its table", 1, 1, 4.6)
    drawn.clear()
    drawn.suptitle("LQR from anywhere in its table")
    grid = drawn.add_gridspec(2, 2, width_ratios=(1.1, 1))
    space: Any = drawn.add_subplot(grid[:, 0], projection="3d")
    away, torque = (drawn.add_subplot(grid[k, 1]) for k in (0, 1))
    for k, trace in enumerate(reaches):
        colour = PALETTE[k % len(PALETTE)]
        space.plot(*trace.tool.T, color=colour, linewidth=1.4)
        space.plot(*trace.points[0].T, "o-", color=colour, markersize=2.5, linewidth=0.8, alpha=0.5)
        error = np.abs(trace.q - lqr.TARGET).max(axis=1)
        away.semilogy(trace.time, error, color=colour, linewidth=1.2)
        torque.plot(trace.time, np.abs(trace.tau).max(axis=1), color=colour, linewidth=1.2)
    goal = joint_origins(reaches[0].arm, lqr.TARGET)
    space.plot(*goal.T, "o-", color=INK, markersize=4, linewidth=2.2, label="target")
    legend(space)
    label(space, "x [m]", "y [m]")
    space.set(zlabel="z [m]", xlim=(-0.8, 0.8), ylim=(-0.6, 1.0), zlim=(0, 1.0))
    space.set(xticks=(-0.5, 0, 0.5), yticks=(-0.5, 0, 0.5), zticks=(0, 0.5, 1.0))
    space.set_box_aspect((1.6, 1.6, 1), zoom=0.82)
    space.view_init(**VIEW)
    label(away, "", "largest error [rad]")
    label(torque, "time [s]", "largest torque [N·m]")
    drawn.align_ylabels()
    caption = (
        f"{len(reaches)} starts anywhere in the table, one target, told at once: tau ="
        " tau* - K (x - x*) with K looked up in the table at the target, tau* = g(q*). Left the"
        " arms at their starts and the tools' paths."
    )
    return DemoFigure("four_joint_reach", caption, drawn)


@styled
def shortcut(both: Pair) -> DemoFigure:
    """Errors and costs of both gains, and the shortcut's extra cost over the configuration."""
    drawn, grid = figure("Gains of the true inertia, and of its diagonal alone", 2, 2, 6.0)
    (errors, costs), (elbow, torques) = grid
    weights, target = lqr.lqr_controller().weights, lqr.PUBLISHED[1]
    for trace, name, dashes in zip(both, ("true M", "diag(M)"), ("-", "--"), strict=True):
        for k, colour in enumerate(PALETTE[:4]):
            named = f"J{k + 1}" if dashes == "-" else None
            options: Any = {"color": colour, "linestyle": dashes, "linewidth": 1.3}
            errors.plot(trace.time, trace.q[:, k] - target[k], label=named, **options)
            torques.plot(trace.time, trace.tau[:, k], label=named, **options)
        style: Any = {"color": INK, "linestyle": dashes, "label": name}
        costs.plot(trace.time, lqr.cost(trace, weights, target), **style)
    for shoulder, colour in zip(SHOULDERS, PALETTE, strict=False):
        extra = [100 * lqr.extra_cost(np.array([0, shoulder, e, 0.1])) for e in ELBOWS]
        elbow.plot(ELBOWS, extra, color=colour, label=f"J2 = {shoulder:g} rad")
    for axes in grid.flat:
        legend(axes)
    for axes in (errors, torques):
        axes.set_xlim(0, 1.5)
    label(errors, "time [s]", "error [rad]")
    label(costs, "time [s]", "cost ∫ (eᵀQe + δtau²) dt [1]")
    label(elbow, "J3 [rad]", "extra cost [%]")
    label(torques, "time [s]", "torque [N·m]")
    caption = (
        "The published reach. Solid: gains of the true inertia. Dashed: the published shortcut,"
        " whose kinetic energy keeps the diagonal of M alone. It costs some per cent more, and how"
        " many depends on the pose (below left: mean over displacements of all joints, linearized)."
    )
    return DemoFigure("four_joint_shortcut", caption, drawn)


@styled
def sizes() -> DemoFigure:
    """Bytes and accuracy over the number of poses on an axis."""
    drawn, ((bytes_, wrong),) = figure("Tables of gains", 1, 2, 3.6)
    counts = np.array(lqr.COUNTS, dtype=float)
    ours = [lqr.table_bytes(lqr.gain_table(n)) / 1e6 for n in lqr.COUNTS]
    theirs = [lqr.published_size(n) / 1e6 for n in lqr.COUNTS]
    bytes_.loglog(counts, theirs, "o-", color=PALETTE[1], label="over all states, n⁸")
    bytes_.loglog(counts, ours, "o-", color=PALETTE[0], label="over J2 to J4, n³")
    error = [100 * lqr.interpolation_error(lqr.gain_table(n)) for n in lqr.COUNTS]
    wrong.loglog(counts, error, "o-", color=PALETTE[0], label="looked-up gains")
    slope = error[0] * ((counts - 1) / (counts[0] - 1)) ** -2
    wrong.loglog(counts, slope, ":", color=INK, label="second order")
    for axes in (bytes_, wrong):
        axes.set_xticks(counts, [f"{n:g}" for n in counts])
        axes.minorticks_off()
        legend(axes)
    label(bytes_, "poses on an axis n [1]", "size [MB]")
    label(wrong, "poses on an axis n [1]", "largest error [%]")
    caption = (
        "An arm's equations are affine in its torques, with B = M⁻¹, so at rest gains depend on"
        " the configuration alone, and not on the angle about the vertical: a table needs n³"
        " entries, where one over all eight states needs n⁸. Interpolated between poses, the"
        " gains' error falls with the square of the spacing."
    )
    return DemoFigure("four_joint_table", caption, drawn)
