"""A yaw base and three planar joints: a fall of the turning arm, and reaching motions by LQR."""

from __future__ import annotations

import four_joint_lqr
import numpy as np

from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.figure_style import (
    INK,
    PALETTE,
    curves,
    figure,
    heading,
    label,
    styled,
)
from arm_dynamics.demos.constant_command import release_from_rest, simulate_constant_command
from arm_dynamics.demos.demo_result import DemoFigure, DemoResult
from arm_dynamics.demos.planar import energies
from arm_dynamics.dynamics.rigid_body import mass_matrix
from arm_dynamics.model.load import load_arm
from arm_dynamics.simulation.trace import MotionRecord

SECONDS, INTERVAL, DT = 2.5, 0.01, 2.5e-4
START = np.array([0.0, 0.15, 0.0, 0.0])
"""Initial configuration [rad], nearly upright: exactly upright is an equilibrium."""
SPIN = np.array([2.0, 0.0, 0.0, 0.0])
"""Initial velocity [rad/s], of the yaw joint."""
FRICTION = 0.3
"""Damping [N·m·s/rad] of every joint in the second fall."""
TITLES = ("without friction", f"with friction, {FRICTION:g} N·m·s/rad")
VIEW = {"elev": 18, "azim": -55}


def simulate(damping: float = 0.0, dt: float = DT) -> MotionRecord:
    """Simulate the fall with ``damping`` [N·m·s/rad] in every joint."""
    arm = load_arm("four_joint")
    for name in arm.joint_names:
        arm = arm.with_joint(name, damping=damping)
    start, nothing = release_from_rest(arm, START, SPIN)
    return simulate_constant_command(arm, start, nothing, seconds=SECONDS, interval=INTERVAL, dt=dt)


def yaw_momentum(trace: MotionRecord) -> Vector:
    """Return the angular momentum p₁ = (M(q) v)₁ about the vertical, shape (n,) [N·m·s].

    It is constant without friction: U does not depend on q₁, so ṗ₁ = ∂L/∂q₁ + tau₁ = tau₁
    (Noether).
    """
    pairs = zip(trace.q, trace.v, strict=True)
    return as_readonly([mass_matrix(trace.arm, q)[0] @ v for q, v in pairs])


@styled
def show() -> DemoResult:
    """Draw both falls, reaching motions by LQR, the diagonal shortcut and the sizes of tables."""
    falls = (simulate(), simulate(FRICTION))
    reaches, both = four_joint_lqr.from_anywhere(), four_joint_lqr.pair()
    pictures = (
        motion_figure(*falls),
        tool_path_figure(*falls),
        four_joint_lqr.reaching_figure(reaches),
        four_joint_lqr.shortcut_figure(both),
        four_joint_lqr.table_figure(),
    )
    numbers = (*key_figures(*falls), *four_joint_lqr.key_figures(reaches, both))
    return DemoResult("Four joints", pictures, numbers)


def key_figures(free: MotionRecord, braked: MotionRecord) -> tuple[tuple[str, str], ...]:
    """Return momentum, energies and the lowest point of the tool."""
    momentum = yaw_momentum(free)
    return (
        ("angular momentum about the vertical at the start", f"{momentum[0]:.4f} N·m·s"),
        ("its largest change without friction", f"{np.ptp(momentum):.1e} N·m·s"),
        ("largest drift of the energy without friction", f"{np.ptp(free.energy):.1e} J"),
        ("energy lost with friction", f"{braked.energy[0] - braked.energy[-1]:.2f} J"),
        ("lowest point of the tool, without friction", f"{free.tool[:, 2].min():.3f} m"),
    )


@styled
def motion_figure(*falls: MotionRecord) -> DemoFigure:
    """Draw joint angles, energies and the yaw momentum of both falls."""
    drawn, grid = figure("A turning arm falls from nearly upright", 3, 2, 7.2, sharex=True)
    for column, trace, title in zip(grid.T, falls, TITLES, strict=True):
        curves(column[0], trace.time, trace.q, trace.arm.joint_names)
        heading(column[0], title)
        label(column[0], "", "joint angle [rad]")
        energies(column[1], trace)
        label(column[1], "", "energy [J]")
        column[2].plot(trace.time, yaw_momentum(trace), color=PALETTE[0])
        column[2].set_ylim(-0.02, 0.2)
        label(column[2], "time [s]", "yaw momentum [N·m·s]")
    drawn.align_ylabels()
    caption = (
        "Released 0.15 rad from upright while the base turns at 2 rad/s. No torque acts about the"
        " vertical axis, so without friction the angular momentum about it is constant, and the"
        " base turns faster when the arm is closer to the axis. With friction in the joints the"
        " momentum decays with the energy."
    )
    return DemoFigure("four_joint_fall", caption, drawn)


@styled
def tool_path_figure(*falls: MotionRecord) -> DemoFigure:
    """Draw the paths of the tool in space, and the arm at the start and at the end."""
    drawn, grid = figure("Path of the tool", 1, 2, 4.4, subplot_kw={"projection": "3d"})
    for axes, trace, title in zip(grid[0], falls, TITLES, strict=True):
        axes.plot(*trace.tool.T, color=PALETTE[1], linewidth=1.0, label="path of the tool")
        for points, color, name in (
            (trace.points[0], PALETTE[5], "start"),
            (trace.points[-1], INK, "end"),
        ):
            style = {"color": color, "markersize": 4, "linewidth": 2.2, "label": name}
            axes.plot(*points.T, "o-", **style)
        axes.set_title(title)
        label(axes, "x [m]", "y [m]")
        axes.set(zlabel="z [m]", xlim=(-0.8, 0.8), ylim=(-0.8, 0.8), zlim=(-1.0, 1.0))
        axes.set(xticks=(-0.5, 0, 0.5), yticks=(-0.5, 0, 0.5), zticks=(-1, -0.5, 0, 0.5, 1))
        axes.set_box_aspect((1, 1, 1.25), zoom=0.85)
        axes.view_init(**VIEW)
    grid[0, 0].legend(loc="upper left", bbox_to_anchor=(0.0, 0.95), frameon=False)
    caption = "Path of the tool in both falls, and the arm at the start and at the end."
    return DemoFigure("four_joint_space", caption, drawn)
