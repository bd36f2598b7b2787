"""The Puma 560 falls without brakes: motors without voltage, and without current."""

from __future__ import annotations

from math import pi

import numpy as np

from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.figure_style import PALETTE, curves, figure, heading, label, styled
from arm_dynamics.core.state import Command
from arm_dynamics.demos.constant_command import release_from_rest, simulate_constant_command
from arm_dynamics.demos.demo_result import DemoFigure, DemoResult, format_row
from arm_dynamics.dynamics.rigid_body import gravity
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.load import load_arm
from arm_dynamics.simulation.trace import MotionRecord

SECONDS = {"voltage": 20.0, "effort": 2.0}
INTERVAL, DT = 0.02, 5e-4
INTEGRATOR = "semi_implicit_euler"
"""Dry friction limits the order of every integrator to one, so a higher order has no benefit."""
START = (0.0, pi / 4, -3 * pi / 4, 0.0, 0.0, 0.0)
"""Initial configuration [rad]: upper arm 45° up, forearm level."""
TITLES = ("no voltage: back-EMF brakes", "current held at zero")


def simulate(interface: str, dt: float = DT) -> MotionRecord:
    """Simulate the fall from START with 0 V ("voltage") or with 0 A ("effort").

    Both include gears, rotors and their friction. The amplifiers keep the current at zero while
    their supply exceeds the back-EMF.
    """
    arm = load_arm("puma560")
    start, _ = release_from_rest(arm, np.array(START))
    zero = Command.checked(interface, np.zeros(arm.nv), arm.nv)
    return simulate_constant_command(
        arm,
        start,
        zero,
        seconds=SECONDS[interface],
        interval=INTERVAL,
        dt=dt,
        integrator=INTEGRATOR,
    )


def holding_voltage(arm: ArmModel, q: Vector) -> Vector:
    """Return the voltages V = Ra g(q) / (N Kt) that hold the arm at rest, shape (nv,) [V]."""
    constants = [actuator.constants for actuator in arm.actuators]
    return as_readonly(
        gravity(arm, q) * [c["resistance"] / (c["gear_ratio"] * c["kt"]) for c in constants]
    )


def stuck(trace: MotionRecord) -> tuple[str, ...]:
    """Return the names of the joints that dry friction held during the whole motion."""
    moved = (trace.q != trace.q[0]).any(axis=0)
    return tuple(name for name, any_ in zip(trace.arm.joint_names, moved, strict=True) if not any_)


@styled
def show() -> DemoResult:
    """Draw angles from the start, velocities and height of the tool in both falls."""
    falls = (simulate("voltage"), simulate("effort"))
    return DemoResult("Falling Puma 560", (motion_figure(*falls),), key_figures(*falls))


def key_figures(slow: MotionRecord, free: MotionRecord) -> tuple[tuple[str, str], ...]:
    """Return gravity and friction torques, holding voltages, stuck joints and fall heights."""
    arm, start = slow.arm, slow.q[0]
    dry = as_readonly([actuator.breakaway_effort for actuator in arm.actuators])
    return (
        ("gravity torque at the start", f"{format_row(gravity(arm, start))} N·m"),
        ("dry friction of the joints", f"{format_row(dry)} N·m"),
        ("voltage that holds the configuration", f"{format_row(holding_voltage(arm, start))} V"),
        ("held by friction, no voltage", ", ".join(stuck(slow)) or "none"),
        ("held by friction, no current", ", ".join(stuck(free)) or "none"),
        ("fall of the tool, no voltage", f"{slow.tool[0, 2] - slow.tool[-1, 2]:.3f} m"),
        ("fall of the tool, no current", f"{free.tool[0, 2] - free.tool[-1, 2]:.3f} m"),
    )


@styled
def motion_figure(*falls: MotionRecord) -> DemoFigure:
    """Draw joint angles, velocities and the tool height of both falls."""
    drawn, grid = figure("Puma 560 falls from a level forearm", 3, 2, 7.4, sharex="col")
    for column, trace, title in zip(grid.T, falls, TITLES, strict=True):
        heading(column[0], title)
        curves(column[0], trace.time, trace.q - trace.q[0], trace.arm.joint_names)
        label(column[0], "", "angle from start [rad]")
        curves(column[1], trace.time, trace.v, trace.arm.joint_names)
        label(column[1], "", "velocity [rad/s]")
        column[2].plot(trace.time, trace.tool[:, 2], color=PALETTE[0])
        label(column[2], "time [s]", "tool height [m]")
    drawn.align_ylabels()
    caption = (
        "Upper arm 45° up, forearm level, no brakes. Left: motors at 0 V. J2 sinks to its end stop."
        " J3 sinks until the gravity torque at the elbow is below the dry friction, which then"
        " holds it. The other joints never break away. Right: amplifiers keep the currents at zero;"
        " rotors and friction still act. J2 falls freely until its back-EMF exceeds the supply of"
        " 40 V."
    )
    return DemoFigure("puma560_fall", caption, drawn)
