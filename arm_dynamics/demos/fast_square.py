"""five_dof draws a square faster than its 12 V allow: computed torque and MPC with voltages."""

from __future__ import annotations

import numpy as np

from arm_dynamics.control.controllers.computed_torque import ComputedTorque
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.figure_style import FAINT, PALETTE, figure, label, legend, styled
from arm_dynamics.demos.demo_result import DemoFigure, DemoResult
from arm_dynamics.demos.square import upright_square
from arm_dynamics.demos.tool_tracking import (
    POSTURE_WEIGHT,
    START,
    ToolTarget,
    TrackingMpc,
    animate_front,
    follow,
)
from arm_dynamics.dynamics.kinematics.frames import tool_pose
from arm_dynamics.model.load import load_arm
from arm_dynamics.simulation.trace import MotionRecord

TITLE = "A square faster than the supply allows"
SIDE, SIDE_TIME = 0.2, 0.45
"""Side of the square [m], time of one side [s]."""
FREE_WEIGHT = 3.0
"""Cost of joint errors with which the wrist helps."""
JOINT = "R2"
"""Joint whose voltage is at the limit."""
TORQUE, HELD, FREE = "computed torque", "MPC", "MPC, wrist free"
Runs = dict[str, MotionRecord]


def square() -> ToolTarget:
    """Return the square, for which R2 would have to exceed its no-load speed."""
    return ToolTarget.along(upright_square(load_arm("five_dof"), START, SIDE, SIDE_TIME))


def simulate(target: ToolTarget) -> Runs:
    """Simulate computed torque, and MPC with two weights of the joint errors."""
    controllers = {
        TORQUE: ComputedTorque(load_arm("five_dof")),
        HELD: TrackingMpc(target, POSTURE_WEIGHT),
        FREE: TrackingMpc(target, FREE_WEIGHT),
    }
    return {name: follow(target, controller) for name, controller in controllers.items()}


def tilt(target: ToolTarget, trace: MotionRecord) -> Vector:
    """Return the angles (n,) [deg] between the orientations of tool and target."""
    pairs = zip(trace.q, target.postures(trace.time), strict=True)
    traces = [
        float(np.trace(tool_pose(trace.arm, q)[1].T @ tool_pose(trace.arm, q_ref)[1]))
        for q, q_ref in pairs
    ]
    return as_readonly(np.degrees(np.arccos(np.clip((np.array(traces) - 1) / 2, -1, 1))))


def voltage(name: str, trace: MotionRecord) -> Vector:
    """Return the voltage (n,) [V] of the motor of JOINT that a run demands."""
    k = trace.arm.index(JOINT)
    if name != TORQUE:
        return trace.tau[:, k]
    motor = trace.arm.actuators[k].constants
    current = trace.tau[:, k] / motor["kt"]
    return as_readonly(motor["resistance"] * current + motor["ke"] * trace.v[:, k])


@styled
def show() -> DemoResult:
    """Draw distance, orientation and voltage of all runs, and animate two of them."""
    target = square()
    runs = simulate(target)
    shown = {name: runs[name] for name in (TORQUE, HELD)}
    moving = animate_front("fast_square", TITLE, shown, target)
    return DemoResult(TITLE, (motion_figure(target, runs), moving), key_figures(target, runs))


def key_figures(target: ToolTarget, runs: Runs) -> tuple[tuple[str, str], ...]:
    """Return distances, orientation errors and voltages."""
    rows = []
    for name, trace in runs.items():
        distance = target.distance(trace)
        rms = np.sqrt(np.mean(distance**2))
        rows.append((f"{name}: distance, rms and largest", f"{rms:.1f}, {distance.max():.1f} mm"))
        rows.append((f"{name}: largest orientation error", f"{tilt(target, trace).max():.1f} deg"))
        demanded = np.abs(voltage(name, trace)).max()
        rows.append((f"{name}: largest voltage demanded, {JOINT}", f"{demanded:.1f} V"))
    return tuple(rows)


@styled
def motion_figure(target: ToolTarget, runs: Runs) -> DemoFigure:
    """Draw distances, orientation errors and voltages."""
    drawn, grid = figure(TITLE, 3, 1, 6.6, sharex=True)
    distance, angle, volts = grid[:, 0]
    for (name, trace), color in zip(runs.items(), PALETTE, strict=False):
        distance.plot(trace.time, target.distance(trace), color=color, label=name)
        angle.plot(trace.time, tilt(target, trace), color=color)
        volts.plot(trace.time, voltage(name, trace), color=color, linewidth=1.2)
    arm = runs[TORQUE].arm
    supply = arm.actuators[arm.index(JOINT)].constants["supply_voltage"]
    for sign, text in ((-1, None), (1, "supply")):
        volts.axhline(sign * supply, color=FAINT, linestyle="--", linewidth=1.0, label=text)
    legend(distance)
    legend(volts)
    label(distance, "", "distance [mm]")
    label(angle, "", "orientation error [deg]")
    label(volts, "time [s]", f"voltage of {JOINT} [V]")
    drawn.align_ylabels()
    caption = (
        f"Sides of {SIDE:g} m in {SIDE_TIME:g} s each, from rest to rest: {JOINT} would have to"
        " turn faster than its motor does at 12 V without load. Computed torque demands more than"
        " the supply has, lags, and recovers slowly. MPC (iLQR, motors in the prediction, voltages"
        " within the supply) uses the target of the next 0.2 s, computed torque only the present"
        " one. With a smaller weight of the joint errors the wrist helps, at the expense of the"
        " orientation."
    )
    return DemoFigure("fast_square_motion", caption, drawn)
