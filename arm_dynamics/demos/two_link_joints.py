"""A cubic of both joints under PID, with gravity compensation, and with a model that is 5 % off."""

from __future__ import annotations

import numpy as np

from arm_dynamics.control.closed_loop_simulation import simulate_closed_loop
from arm_dynamics.control.controllers.velocity_pid import VelocityPid
from arm_dynamics.control.trajectories.joint_splines import cubic_trajectory
from arm_dynamics.core.arrays import Vector, as_readonly
from arm_dynamics.core.figure_style import INK, curves, figure, heading, label, legend, styled
from arm_dynamics.core.state import State
from arm_dynamics.demos.demo_result import DemoFigure
from arm_dynamics.demos.two_link_controllers import GAINS
from arm_dynamics.model.load import load_arm
from arm_dynamics.model.model_error import with_model_error
from arm_dynamics.simulation.trace import MotionRecord

START, END, DURATION, SECONDS = (-1.0, 1.2), (0.8, 0.5), 4.0, 5.0
"""The cubic [rad], its time and that of the figures [s]."""
PERIOD, DT = 2e-3, 1e-3
LAWS = {"PID": (0.0, 0.0), "PID + g(q)": (1.0, 0.0), "PID + g(q), 5 % off": (1.0, 5.0)}
"""Scale of g(q), and error of the controller's masses and lengths [%]."""
WAY = cubic_trajectory([START, END], [0.0, DURATION])
QUANTITIES = ("angle [rad]", "error [mrad]", "velocity [rad/s]", "torque [N·m]")
Runs = dict[str, MotionRecord]


def simulate(law: str) -> MotionRecord:
    """The cubic under one of LAWS."""
    arm, (gravity, error) = load_arm("two_link"), LAWS[law]
    model = with_model_error(arm, mass=error, length=error)
    pid = VelocityPid(model, {**GAINS, "controller": {"gravity_scale": gravity}})
    return simulate_closed_loop(
        arm, pid, WAY, State.of(START), seconds=SECONDS, period=PERIOD, dt=DT
    )


def errors(trace: MotionRecord) -> Vector:
    """q - q_ref (n, 2) [rad]."""
    return as_readonly([q - WAY.at(t).q for t, q in zip(trace.time.tolist(), trace.q, strict=True)])


def key_figures(runs: Runs) -> tuple[tuple[str, str], ...]:
    """Where each law stands at the end."""
    return tuple(
        (f"{law}: error of J1, J2 after 5 s", "{:.2e}, {:.2e} rad".format(*errors(trace)[-1]))
        for law, trace in runs.items()
    )


@styled
def make_figure(runs: Runs) -> DemoFigure:
    """Angles, errors, velocities and torques of every law."""
    drawn, grid = figure("A cubic in joint space under three laws", 4, 3, 8.6, sharex=True)
    for column, (law, trace) in zip(grid.T, runs.items(), strict=True):
        _column(column, trace)
        heading(column[0], law)
    for row in grid[[0, 2, 3]]:
        for axes in row[1:]:
            axes.sharey(row[0])
    drawn.align_ylabels()
    caption = (
        "Both joints along a cubic of 4 s, then at rest (dashed: the reference). The arm's weight"
        " makes PID alone lag by hundredths of a radian; with g(q) of a true model the error is a"
        " hundredth of that, and a model whose masses and lengths are 5 % too large gives back"
        " a tenth of it. Note the scales of the errors. Gains as published: Kp 100, 20;"
        " Ki 200, 50; Kd 0.5, 0.05, here in a loop of 500 Hz."
    )
    return DemoFigure("two_link_joints", caption, drawn)


def _column(column: Vector, trace: MotionRecord) -> None:
    names = trace.arm.joint_names
    wanted = [WAY.at(t) for t in trace.time.tolist()]
    for axes, values, reference in (
        (column[0], trace.q, [r.q for r in wanted]),
        (column[2], trace.v, [r.v for r in wanted]),
    ):
        curves(axes, trace.time, values, names)
        for k, asked in enumerate(np.array(reference).T):
            axes.plot(trace.time, asked, "--", color=INK, linewidth=0.9, label="_" if k else "ref.")
        legend(axes)
    curves(column[1], trace.time, 1e3 * errors(trace), names)
    curves(column[3], trace.time, trace.tau, names)
    for axes, text in zip(column, QUANTITIES, strict=True):
        label(axes, "time [s]" if axes is column[-1] else "", text)
