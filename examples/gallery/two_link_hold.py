"""Gravity compensation: an exact model holds the arm; with 0.1 % of model error it drifts."""

from __future__ import annotations

import numpy as np

from arm_dynamics.control.closed_loop_simulation import simulate_closed_loop
from arm_dynamics.control.controllers.gravity_compensation import GravityCompensation
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.core.figure_style import FAINT, PALETTE, figure, heading, label, legend, styled
from arm_dynamics.core.state import State
from arm_dynamics.demos.demo_result import DemoFigure, format_row
from arm_dynamics.model.load import load_arm
from arm_dynamics.model.model_error import with_model_error
from arm_dynamics.simulation.trace import MotionRecord

SECONDS, INTERVAL, TOLERANCE = 1000.0, 0.5, 1e-9
ERRORS = {"exact": 0.0, "0.1 % too heavy": 0.1, "0.1 % too light": -0.1}
"""Error [%] of the masses in the controller's model."""
Runs = dict[str, MotionRecord]


def simulate(error: float) -> MotionRecord:
    """Simulate the arm from rest along +x, in continuous time: sampling would act like friction."""
    arm = load_arm("two_link")
    controller = GravityCompensation(with_model_error(arm, mass=error))
    start = [0.0, 0.0]
    return simulate_closed_loop(
        arm, controller, JointTrajectory.hold(start), State.of(start),
        seconds=SECONDS, period=INTERVAL, continuous=True, tolerance=TOLERANCE,
    )  # fmt: skip


def key_figures(runs: Runs) -> tuple[tuple[str, str], ...]:
    """Return the final angles of each run."""
    return tuple(
        (f"gravity compensation {name}: J1, J2 after 1000 s", f"{format_row(t.q[-1])} rad")
        for name, t in runs.items()
    )


@styled
def make_figure(runs: Runs) -> DemoFigure:
    """Draw the angles over 1000 s, and over the first 30 s."""
    drawn, grid = figure("Gravity compensation over 1000 s", 2, 2, 5.4, sharex="col", sharey="row")
    for (whole, first), joint in zip(grid, (0, 1), strict=True):
        for axes, until in ((whole, SECONDS), (first, 30.0)):
            for (name, trace), color in zip(runs.items(), PALETTE, strict=False):
                shown = trace.time <= until
                # rounded: an exactly held angle drifts by rounding errors only
                angle = trace.q[shown, joint].round(6)
                axes.plot(trace.time[shown], angle, color=color, label=name)
        for target in (-np.pi / 2, np.pi / 2) if joint == 0 else ():
            whole.axhline(target, color=FAINT, linestyle=":", linewidth=1.2)
            first.axhline(target, color=FAINT, linestyle=":", linewidth=1.2)
        label(whole, "time [s]" if joint else "", f"J{joint + 1} [rad]")
        label(first, "time [s]" if joint else "", f"J{joint + 1} [rad]")
    heading(grid[0, 0], "1000 s")
    heading(grid[0, 1], "the first 30 s")
    legend(grid[0, 0])
    caption = (
        "tau = g(q), released at rest along +x. With an exact model the arm does not move."
        " With a mass error of 0.1 %, a thousandth of the gravity torque is not compensated: the"
        " arm drifts within bounds. Friction of 0.1 N·m·s/rad dissipates the energy. The arm"
        " settles upright, J1 = π/2, if the torque is too large, and hanging, J1 = -π/2, if it is"
        " too small (dotted)."
    )
    return DemoFigure("two_link_hold", caption, drawn)
