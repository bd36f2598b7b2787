"""A joint-space cubic: PID, with gravity compensation, and with a model error of 5 %."""

from __future__ import annotations

import numpy as np
from two_link_controllers import GAINS

from arm_dynamics.control.closed_loop_simulation import simulate_closed_loop
from arm_dynamics.control.controllers.velocity_pid import VelocityPid
from arm_dynamics.control.trajectories.joint_splines import cubic_trajectory
from arm_dynamics.core.arrays import Matrix, as_readonly
from arm_dynamics.core.figure_style import INK, curves, figure, heading, label, legend, styled
from arm_dynamics.core.state import State
from arm_dynamics.demos.demo_result import DemoFigure
from arm_dynamics.model.load import load_arm
from arm_dynamics.model.model_error import with_model_error
from arm_dynamics.simulation.trace import MotionRecord

START, END, DURATION, SECONDS = (-1.0, 1.2), (0.8, 0.5), 4.0, 5.0
"""Start and end of the cubic [rad], its duration and the simulated time [s]."""
PERIOD, DT = 2e-3, 1e-3
CONTROLLERS = {"PID": (0.0, 0.0), "PID + g(q)": (1.0, 0.0), "PID + g(q), 5 % error": (1.0, 5.0)}
"""Scale of g(q), and error of the controller's masses and lengths [%]."""
TRAJECTORY = cubic_trajectory([START, END], [0.0, DURATION])
QUANTITIES = ("angle [rad]", "error [mrad]", "velocity [rad/s]", "torque [N·m]")
Runs = dict[str, MotionRecord]


def simulate(name: str) -> MotionRecord:
    """Simulate the cubic with one of CONTROLLERS."""
    arm, (gravity, error) = load_arm("two_link"), CONTROLLERS[name]
    model = with_model_error(arm, mass=error, length=error)
    pid = VelocityPid(model, {**GAINS, "controller": {"gravity_scale": gravity}})
    return simulate_closed_loop(
        arm, pid, TRAJECTORY, State.of(START), seconds=SECONDS, period=PERIOD, dt=DT
    )


def errors(trace: MotionRecord) -> Matrix:
    """Return q - q_ref, shape (n, 2) [rad]."""
    return as_readonly(trace.q - np.array([TRAJECTORY.at(t).q for t in trace.time.tolist()]))


def key_figures(runs: Runs) -> tuple[tuple[str, str], ...]:
    """Return the final errors of each controller."""
    return tuple(
        (f"{name}: error of J1, J2 after 5 s", "{:.2e}, {:.2e} rad".format(*errors(trace)[-1]))
        for name, trace in runs.items()
    )


@styled
def make_figure(runs: Runs) -> DemoFigure:
    """Draw angles, errors, velocities and torques of each controller."""
    drawn, grid = figure("A cubic in joint space with three controllers", 4, 3, 8.6, sharex=True)
    for column, (name, trace) in zip(grid.T, runs.items(), strict=True):
        names, desired = trace.arm.joint_names, [TRAJECTORY.at(t) for t in trace.time.tolist()]
        for axes, values, reference in (
            (column[0], trace.q, [r.q for r in desired]),
            (column[2], trace.v, [r.v for r in desired]),
        ):
            curves(axes, trace.time, values, names)
            for k, curve in enumerate(np.array(reference).T):
                text = "_" if k else "ref."
                axes.plot(trace.time, curve, "--", color=INK, linewidth=0.9, label=text)
            legend(axes)
        curves(column[1], trace.time, 1e3 * errors(trace), names)
        curves(column[3], trace.time, trace.tau, names)
        for axes, text in zip(column, QUANTITIES, strict=True):
            label(axes, "time [s]" if axes is column[-1] else "", text)
        heading(column[0], name)
    for row in grid[[0, 2, 3]]:
        for axes in row[1:]:
            axes.sharey(row[0])
    drawn.align_ylabels()
    caption = (
        "Both joints along a cubic of 4 s, then at rest (dashed: the reference). With PID only,"
        " gravity causes errors of hundredths of a radian. With g(q) of an exact model the error is"
        " a hundredth of that; with masses and lengths 5 % too large it is a tenth. Note the scales"
        " of the errors. Published gains: Kp 100, 20; Ki 200, 50; Kd 0.5, 0.05; here at 500 Hz."
    )
    return DemoFigure("two_link_joints", caption, drawn)
