"""Gravity compensation: it holds where the model is true, and drifts where it is 0.1 % off."""

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
"""Of the masses that the law believes [%]."""
Runs = dict[str, MotionRecord]


def simulate(error: float) -> MotionRecord:
    """The arm let go along +x; in continuous time, as a sampled torque would act like friction."""
    arm = load_arm("two_link")
    law = GravityCompensation(with_model_error(arm, mass=error))
    start = [0.0, 0.0]
    return simulate_closed_loop(
        arm, law, JointTrajectory.hold(start), State.of(start),
        seconds=SECONDS, period=INTERVAL, continuous=True, tolerance=TOLERANCE,
    )  # fmt: skip


def key_figures(runs: Runs) -> tuple[tuple[str, str], ...]:
    """Where each ends."""
    return tuple(
        (f"gravity compensation {name}: J1, J2 after 1000 s", f"{format_row(t.q[-1])} rad")
        for name, t in runs.items()
    )


@styled
def make_figure(runs: Runs) -> DemoFigure:
    """Angles over 1000 s, the first 30 s of it beside them."""
    drawn, grid = figure("Gravity compensation over 1000 s", 2, 2, 5.4, sharex="col", sharey="row")
    for (whole, begin), joint in zip(grid, (0, 1), strict=True):
        for axes, until in ((whole, SECONDS), (begin, 30.0)):
            for (name, trace), colour in zip(runs.items(), PALETTE, strict=False):
                shown = trace.time <= until
                angle = trace.q[shown, joint].round(6)  # held exactly, rounding alone drifts
                axes.plot(trace.time[shown], angle, color=colour, label=name)
        for target in (-np.pi / 2, np.pi / 2) if joint == 0 else ():
            whole.axhline(target, color=FAINT, linestyle=":", linewidth=1.2)
            begin.axhline(target, color=FAINT, linestyle=":", linewidth=1.2)
        label(whole, "time [s]" if joint else "", f"J{joint + 1} [rad]")
        label(begin, "time [s]" if joint else "", f"J{joint + 1} [rad]")
    heading(grid[0, 0], "1000 s")
    heading(grid[0, 1], "the first 30 s")
    legend(grid[0, 0])
    caption = (
        "tau = g(q) alone, the arm let go along +x. With a true model it stays."
        " With masses wrong by 0.1 % a thousandth of the weight is left over: the arm drifts, but"
        " not without bounds. Friction of 0.1 N·m·s/rad takes the energy, and it settles upright,"
        " J1 = π/2, where the law lifts too much, and hanging, J1 = -π/2, where it lifts too"
        " little (dotted)."
    )
    return DemoFigure("two_link_hold", caption, drawn)
