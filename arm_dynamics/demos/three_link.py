"""Free fall of three links from rest along +x, without friction and with tau = -q̇."""

from __future__ import annotations

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.figure_style import (
    PALETTE,
    curves,
    figure,
    heading,
    label,
    legend,
    styled,
)
from arm_dynamics.demos.constant_command import (
    INTEGRATOR,
    release_from_rest,
    simulate_constant_command,
)
from arm_dynamics.demos.demo_result import DemoFigure, DemoResult, format_row
from arm_dynamics.demos.planar import animate, energies, snapshots
from arm_dynamics.dynamics.rigid_body import aba
from arm_dynamics.model.load import load_arm
from arm_dynamics.simulation.trace import MotionRecord

SECONDS, INTERVAL, DT = 10.0, 0.01, 5e-4
FRICTION = 1.0
"""Damping [N·m·s/rad] of every joint in the second fall: tau = -q̇."""
COARSE_DT = 0.01
"""Time step [s] of the comparison of integrators."""
TITLES = ("without friction", "with friction τ = -q̇")
INTEGRATORS = (
    "explicit_euler",
    "semi_implicit_euler",
    "velocity_verlet",
    "rk4",
    "implicit_midpoint",
)


def simulate(damping: float = 0.0, dt: float = DT, integrator: str = INTEGRATOR) -> MotionRecord:
    """Simulate the fall with ``damping`` [N·m·s/rad] in every joint."""
    arm = load_arm("three_link")
    for name in arm.joint_names:
        arm = arm.with_joint(name, damping=damping)
    start, nothing = release_from_rest(arm, arm.configuration("zero"))
    return simulate_constant_command(
        arm, start, nothing, seconds=SECONDS, interval=INTERVAL, dt=dt, integrator=integrator
    )


def first_acceleration(trace: MotionRecord) -> Vector:
    """Return q̈(0) (3,) [rad/s²]; it is (-g, g, 0) for stretched links of equal length."""
    return aba(trace.arm, trace.q[0], trace.v[0], trace.tau[0])


@styled
def show() -> DemoResult:
    """Draw angles and energy, path of the tip and energy drift; animate the fall."""
    falls = (simulate(), simulate(FRICTION))
    title, caption = (
        "Free fall of three links",
        "Both falls in real time, with the last second of the tip's path.",
    )
    animation = animate("three_link", caption, title, falls, TITLES)
    pictures = (motion_figure(*falls), path_figure(*falls), drift_figure(), animation)
    return DemoResult(title, pictures, key_figures(*falls))


def key_figures(free: MotionRecord, braked: MotionRecord) -> tuple[tuple[str, str], ...]:
    """Return the first acceleration, energies and the lowest point of the tip."""
    drift = np.abs(free.energy - free.energy[0]).max()
    return (
        ("first acceleration q̈(0)", f"({format_row(first_acceleration(free))}) rad/s²"),
        ("largest drift of the energy without friction", f"{drift:.1e} J"),
        ("largest kinetic energy without friction", f"{free.kinetic.max():.1f} J"),
        ("energy lost with friction", f"{braked.energy[0] - braked.energy[-1]:.2f} J"),
        ("lowest point of the tip, without friction", f"{free.tool[:, 2].min():.3f} m"),
    )


@styled
def motion_figure(*falls: MotionRecord) -> DemoFigure:
    """Draw joint angles and energies of both falls."""
    drawn, grid = figure("Free fall of three links from rest along +x", 2, 2, 6.0, sharex=True)
    for column, trace, title in zip(grid.T, falls, TITLES, strict=True):
        curves(column[0], trace.time, trace.q, trace.arm.joint_names)
        heading(column[0], title)
        label(column[0], "", "joint angle [rad]")
        energies(column[1], trace)
        label(column[1], "time [s]", "energy [J]")
    start = format_row(first_acceleration(falls[0]))
    grid[0, 0].set_ylim(bottom=-4.2)
    grid[0, 0].text(0.02, 0.04, f"q̈(0) = ({start}) rad/s²", transform=grid[0, 0].transAxes)
    drawn.align_ylabels()
    caption = (
        "Joint angles (each relative to the previous link) and energies of three 1 m links with 2,"
        " 1 and 1 kg at their ends. They start with accelerations (-g, g, 0): the first link drops"
        " while the second stays level. Without friction the sum of the energies is constant; with"
        " friction it decreases monotonically."
    )
    return DemoFigure("three_link_fall", caption, drawn)


@styled
def path_figure(*falls: MotionRecord) -> DemoFigure:
    """Draw the arm and the path of the tip in the first two seconds."""
    drawn, grid = figure("The first two seconds of the fall", 2, 1, 8.0)
    for axes, trace, title in zip(grid.T[0], falls, TITLES, strict=True):
        snapshots(axes, trace, 0.1, 2.0)
        axes.set_title(title)
        axes.set(xlim=(-3.2, 3.2), ylim=(-3.2, 0.4))
    caption = (
        "The arm every 0.1 s, darker with time, and the path of the tip. Friction in the joints"
        " prevents whipping of the outer links."
    )
    return DemoFigure("three_link_path", caption, drawn)


@styled
def drift_figure() -> DemoFigure:
    """Draw the energy error of each integrator."""
    drawn, ((axes,),) = figure(f"Energy error of the integrators, dt = {COARSE_DT:g} s", 1, 1, 4.0)
    for name, color in zip(INTEGRATORS, PALETTE, strict=False):
        trace = simulate(dt=COARSE_DT, integrator=name)
        error = np.abs(trace.energy - trace.energy[0])[1:]
        axes.semilogy(trace.time[1:], error, color=color, label=name, linewidth=1.2)
    label(axes, "time [s]", "|E(t) - E(0)| [J]")
    legend(axes)
    caption = (
        "The same fall with each integrator at one coarse time step. The exact energy is constant,"
        " so each curve is an error."
    )
    return DemoFigure("three_link_drift", caption, drawn)
