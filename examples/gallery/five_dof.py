"""An arm with DC motors falls: motors without voltage, and motors disconnected."""

from __future__ import annotations

import numpy as np

from arm_dynamics.core.arrays import Matrix, Vector, as_readonly
from arm_dynamics.core.figure_style import (
    INK,
    PALETTE,
    curves,
    figure,
    heading,
    label,
    legend,
    styled,
)
from arm_dynamics.core.state import Command
from arm_dynamics.demos.constant_command import release_from_rest, simulate_constant_command
from arm_dynamics.demos.demo_result import DemoFigure, DemoResult
from arm_dynamics.model.load import load_arm
from arm_dynamics.simulation.trace import MotionRecord

SECONDS, INTERVAL, DT = 20.0, 0.02, 4e-4
"""Duration, sampling interval and time step [s] of the braked fall."""
FREE_SECONDS, FREE_INTERVAL, FREE_DT = 2.0, 0.005, 5e-5
"""Duration, sampling interval and time step [s] of the free fall."""
TITLES = ("no voltage: back-EMF brakes", "motors disconnected")


def braked(seconds: float = SECONDS, dt: float = DT) -> MotionRecord:
    """Simulate the fall with the terminals of every motor shorted: 0 V."""
    arm = load_arm("five_dof")
    start, _ = release_from_rest(arm, arm.configuration("initial"))
    shorted = Command.checked("voltage", np.zeros(arm.nv), arm.nv)
    return simulate_constant_command(arm, start, shorted, seconds=seconds, interval=INTERVAL, dt=dt)


def disconnected(seconds: float = FREE_SECONDS, dt: float = FREE_DT) -> MotionRecord:
    """Simulate the fall with open terminals: no current, no motor effort; with end stops."""
    arm = load_arm("five_dof").with_actuator("ideal")
    start, nothing = release_from_rest(arm, arm.configuration("initial"))
    return simulate_constant_command(
        arm, start, nothing, seconds=seconds, interval=FREE_INTERVAL, dt=dt
    )


def current(trace: MotionRecord) -> Matrix:
    """Return the motor currents i = tau / (N Kt), shape (n, nv) [A]."""
    constants = [actuator.constants for actuator in trace.arm.actuators]
    return as_readonly(trace.tau / [c["gear_ratio"] * c["kt"] for c in constants])


def heat(trace: MotionRecord) -> Vector:
    """Return the heat of the windings ∫ Σ Ra i² dt, shape (n,) [J]."""
    resistance = np.array([a.constants["resistance"] for a in trace.arm.actuators])
    return trace.work(current(trace) ** 2 @ resistance)


@styled
def show() -> DemoResult:
    """Draw the motion of both falls, and the energy balance of the braked one."""
    falls = (braked(), disconnected())
    return DemoResult(
        "Falling arm with DC motors",
        (motion_figure(*falls), power_figure(*falls)),
        key_figures(*falls),
    )


def key_figures(slow: MotionRecord, free: MotionRecord) -> tuple[tuple[str, str], ...]:
    """Return speeds, currents and energies of both falls."""
    return (
        ("fastest joint, no voltage", _fastest(slow)),
        ("fastest joint, motors disconnected", _fastest(free)),
        ("largest current of a shorted motor", f"{np.abs(current(slow)).max():.2f} A"),
        ("energy lost, no voltage", f"{slow.energy[0] - slow.energy[-1]:.3f} J"),
        ("heat in the windings, no voltage", f"{heat(slow)[-1]:.3f} J"),
        ("fall of the tool, no voltage", f"{slow.tool[0, 2] - slow.tool[-1, 2]:.3f} m"),
        (
            "fall of the tool, motors disconnected",
            f"{free.tool[0, 2] - free.tool[:, 2].min():.3f} m",
        ),
    )


def _fastest(trace: MotionRecord) -> str:
    speeds = np.abs(trace.v).max(axis=0)
    joint = int(np.argmax(speeds))
    return f"{trace.arm.joint_names[joint]}, {speeds[joint]:.2f} rad/s"


@styled
def motion_figure(*falls: MotionRecord) -> DemoFigure:
    """Draw joint angles, velocities and the tool height of both falls."""
    drawn, grid = figure("A falling arm, with and without its motors", 3, 2, 7.4, sharex="col")
    for column, trace, title in zip(grid.T, falls, TITLES, strict=True):
        curves(column[0], trace.time, trace.q, trace.arm.joint_names)
        heading(column[0], title)
        label(column[0], "", "joint angle [rad]")
        curves(column[1], trace.time, trace.v, trace.arm.joint_names)
        label(column[1], "", "velocity [rad/s]")
        column[2].plot(trace.time, trace.tool[:, 2], color=PALETTE[0])
        label(column[2], "time [s]", "tool height [m]")
        column[2].set_ylim(-0.6, 0.5)
    drawn.align_ylabels()
    caption = (
        "Left: all motors at 0 V. A turning motor is a generator: its back-EMF drives a current"
        " that brakes it, and the arm sinks for many seconds. Right, on a time axis ten times"
        " shorter: the motors are disconnected, and only the end stops brake the arm."
        " Gravity acts in the plane of the arm, so R1 and R4 do not move."
    )
    return DemoFigure("five_dof_fall", caption, drawn)


@styled
def power_figure(slow: MotionRecord, free: MotionRecord) -> DemoFigure:
    """Draw motor currents of the braked fall, and the energies lost in both falls."""
    drawn, grid = figure("No voltage: where the energy of the fall goes", 2, 1, 5.4)
    (currents,), (energy,) = grid
    curves(currents, slow.time, current(slow), slow.arm.joint_names)
    label(currents, "time [s]", "motor current [A]")
    energy.plot(slow.time, slow.energy[0] - slow.energy, color=PALETTE[0], label="lost")
    energy.plot(slow.time, heat(slow), "--", color=INK, label="heat in the windings ∫ Σ Ra i² dt")
    lost = free.energy[0] - free.energy
    energy.plot(free.time, lost, color=PALETTE[1], label="lost with motors disconnected")
    label(energy, "time [s]", "energy [J]")
    legend(energy)
    drawn.align_ylabels()
    caption = (
        "Currents of the shorted motors, and the mechanical energy lost: without voltage all of it"
        " becomes heat in the windings. Disconnected motors absorb no energy: that fall loses"
        " energy only to the end stops, whose springs return some of it."
    )
    return DemoFigure("five_dof_power", caption, drawn)
