"""The Puma 560 without brakes: its motors without voltage, and without current."""

from __future__ import annotations

from math import pi

import numpy as np

from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.figure_style import PALETTE, curves, figure, heading, label, styled
from arm_dynamics.core.state import Command
from arm_dynamics.demos.demo_result import DemoFigure, DemoResult, format_row
from arm_dynamics.demos.motion_record import release_from_rest, simulate_constant_command
from arm_dynamics.dynamics.rigid_body import gravity
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.load import load_arm
from arm_dynamics.simulation.trace import MotionRecord

SECONDS = {"voltage": 20.0, "effort": 2.0}
INTERVAL, DT = 0.02, 5e-4
INTEGRATOR = "semi_implicit_euler"
"""Dry friction acts between steps of first order, so no step of a higher one is worth its cost."""
START = (0.0, pi / 4, -3 * pi / 4, 0.0, 0.0, 0.0)
"""Upper arm 45° up, forearm level [rad]."""
TITLES = ("no voltage: back-EMF brakes", "current held at zero")


def simulate(interface: str, dt: float = DT) -> MotionRecord:
    """The arm let go at START with 0 V ("voltage"), or with 0 A ("effort").

    Gears, rotors and their friction turn along in both. Amplifiers keep the current at zero
    as far as their supply outweighs the back-EMF.
    """
    arm = load_arm("puma560")
    start, _ = release_from_rest(arm, np.array(START))
    nothing = Command.checked(interface, np.zeros(arm.nv), arm.nv)
    return simulate_constant_command(
        arm,
        start,
        nothing,
        seconds=SECONDS[interface],
        interval=INTERVAL,
        dt=dt,
        integrator=INTEGRATOR,
    )


def holding_voltage(arm: ArmModel, q: Vector) -> Vector:
    """V = Ra g(q) / (N Kt) (nv,) [V]: what carries the arm's weight at rest."""
    constants = [actuator.constants for actuator in arm.actuators]
    return as_readonly(
        gravity(arm, q) * [c["resistance"] / (c["gear_ratio"] * c["kt"]) for c in constants]
    )


def stuck(trace: MotionRecord) -> tuple[str, ...]:
    """Names of the joints that dry friction held all the time."""
    moved = (trace.q != trace.q[0]).any(axis=0)
    return tuple(name for name, any_ in zip(trace.arm.joint_names, moved, strict=True) if not any_)


@styled
def show() -> DemoResult:
    """Both falls: angles from the start, velocities, height of the tool."""
    falls = (simulate("voltage"), simulate("effort"))
    return DemoResult("Puma 560 let go", (_motion(*falls),), _numbers(*falls))


def _numbers(slow: MotionRecord, free: MotionRecord) -> tuple[tuple[str, str], ...]:
    arm, start = slow.arm, slow.q[0]
    dry = as_readonly([actuator.breakaway_effort for actuator in arm.actuators])
    return (
        ("weight on the joints at the start", f"{format_row(gravity(arm, start))} N·m"),
        ("dry friction of the joints", f"{format_row(dry)} N·m"),
        ("voltage that holds the pose", f"{format_row(holding_voltage(arm, start))} V"),
        ("held by friction, no voltage", ", ".join(stuck(slow)) or "none"),
        ("held by friction, no current", ", ".join(stuck(free)) or "none"),
        ("tool falls by, no voltage", f"{slow.tool[0, 2] - slow.tool[-1, 2]:.3f} m"),
        ("tool falls by, no current", f"{free.tool[0, 2] - free.tool[-1, 2]:.3f} m"),
    )


def _motion(*falls: MotionRecord) -> DemoFigure:
    drawn, grid = figure("Puma 560 let go, its forearm level", 3, 2, 7.4, sharex="col")
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
        "Upper arm 45° up, forearm level, no brakes. Left: motors at 0 V. J2 sinks to its end stop,"
        " J3 until gravity at the elbow falls below the dry friction there, which then holds it;"
        " the other joints never break away. Right: amplifiers keep the currents at zero, rotors"
        " and friction turn along. J2 falls freely until its back-EMF outweighs the supply of 40 V."
    )
    return DemoFigure("puma560_fall", caption, drawn)
