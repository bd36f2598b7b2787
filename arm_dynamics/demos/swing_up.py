"""Two links swing up with half of the torque that gravity demands: iLQR, and LQR alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from arm_dynamics.batch.kernels.cost import Cost
from arm_dynamics.batch.planning.horizon import Horizon
from arm_dynamics.batch.planning.ilqr import Ilqr
from arm_dynamics.batch.planning.mpc import Mpc
from arm_dynamics.batch.planning.planner import Planner
from arm_dynamics.control.closed_loop_simulation import simulate_closed_loop
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.controllers.lqr import Lqr
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.core.arrays import as_readonly
from arm_dynamics.core.figure_style import (
    FAINT,
    INK,
    PALETTE,
    curves,
    figure,
    heading,
    label,
    legend,
    styled,
)
from arm_dynamics.core.state import State
from arm_dynamics.demos.demo_result import DemoFigure, DemoResult
from arm_dynamics.demos.planar import View, animate
from arm_dynamics.dynamics.rigid_body import potential_energy
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.load import load_arm
from arm_dynamics.simulation.trace import MotionRecord

TITLE = "Swing-up with half of the gravity torque"
UP, HANGING = as_readonly([math.pi / 2, 0.0]), as_readonly([-math.pi / 2, 0.0])
"""Upright and hanging configuration [rad]."""
LIMITS = (9.81, 2.45)
"""Torque limits [N·m]: half of g(0) = (19.62, 4.905) N·m."""
SECONDS, PERIOD = 5.0, 0.01
"""Simulated time and control period [s]."""
TOLERANCE = 0.02
"""Largest distance of the tool from its highest point [m] of an arm that is upright."""
VIEW = View((0, 2), (-2.2, 2.2, -2.2, 2.2))
Runs = Mapping[str, MotionRecord]


def weak_arm() -> ArmModel:
    """Return two_link with half of the torques that hold it level."""
    arm = load_arm("two_link")
    pairs = zip(arm.joints, LIMITS, strict=True)
    return replace(arm, joints=tuple(replace(joint, effort=limit) for joint, limit in pairs))


def upright_error(s: Any) -> Any:
    """Return the distance from the upright configuration, 0 to 4, equal after whole turns."""
    return 2 - math.cos(s.q[0] - math.pi / 2) - math.cos(s.q[1])


def running(s: Any, p: Any) -> Any:
    """Return the cost of a stage; p.energy is that of the arm at rest upright."""
    energy = (s.kinetic_energy + s.potential_energy) / p.energy - 1
    return upright_error(s) + 0.01 * s.v @ s.v + 1e-3 * s.command @ s.command + 10 * energy**2


def terminal(s: Any, p: Any) -> Any:
    """Return the cost of the last stage."""
    return 100 * upright_error(s) + 3 * s.v @ s.v


def planner(arm: ArmModel) -> Planner:
    """Return a planner of the swing-up by iLQR, over 2 s."""
    cost = Cost(running, terminal, {"energy": potential_energy(arm, UP)})
    return Planner(arm, cost, Ilqr(3, noise=1.0), Horizon(periods=50, period=0.04, steps=4))


def simulate() -> Runs:
    """Simulate the hanging arm under each controller."""
    arm = weak_arm()
    controllers: dict[str, Controller] = {"iLQR": Mpc(planner(arm)), "LQR": Lqr(arm)}
    return {
        name: simulate_closed_loop(
            arm, controller, JointTrajectory.hold(UP), State.of(HANGING), seconds=SECONDS,
            period=PERIOD, integrator="semi_implicit_euler",
        )
        for name, controller in controllers.items()
    }  # fmt: skip


def upright_since(trace: MotionRecord) -> float:
    """Return the time [s] after which the tool stays at its highest point; infinity if never."""
    low = np.flatnonzero(trace.tool[:, 2] < 2 - TOLERANCE)
    after = int(low[-1]) + 1 if low.size else 0
    return float(trace.time[after]) if after < trace.time.size else math.inf


@styled
def show() -> DemoResult:
    """Draw height and torques of both controllers, and animate both."""
    runs = simulate()
    caption = "Both controllers in real time, with the last second of the tool's path."
    moving = animate("swing_up", caption, TITLE, tuple(runs.values()), tuple(runs), VIEW)
    return DemoResult(TITLE, (motion_figure(runs), moving), key_figures(runs))


def key_figures(runs: Runs) -> tuple[tuple[str, str], ...]:
    """Return the torques, the time of the swing-up and the heights."""
    planned, regulated = runs.values()
    used, limit = np.abs(planned.tau).max(axis=0), planned.arm.effort_limit
    return (
        ("torque limits", " and ".join(f"{x:.2f} N·m" for x in limit)),
        ("largest torques, iLQR", " and ".join(f"{x:.2f} N·m" for x in used)),
        ("upright by iLQR after", f"{upright_since(planned):.2f} s"),
        ("height of the tool at the end, iLQR", f"{planned.tool[-1, 2]:.3f} m"),
        ("largest height of the tool, LQR", f"{regulated.tool[:, 2].max():.3f} m"),
    )


@styled
def motion_figure(runs: Runs) -> DemoFigure:
    """Draw the height of the tool and the torques, a column per controller."""
    drawn, grid = figure(TITLE, 2, len(runs), 5.4, sharex=True, sharey="row")
    for (height, torque), (name, trace) in zip(grid.T, runs.items(), strict=True):
        height.axhline(2.0, color=FAINT, linestyle="--", linewidth=1.0, label="upright")
        height.plot(trace.time, trace.tool[:, 2], color=INK, label="tool")
        legend(height)
        heading(height, name)
        label(height, "", "height [m]")
        curves(torque, trace.time, trace.tau, trace.arm.joint_names, linewidth=1.2)
        for limit, color in zip(trace.arm.effort_limit, PALETTE, strict=False):
            for sign in (-1, 1):
                torque.axhline(sign * limit, color=color, linestyle="--", linewidth=0.8)
        label(torque, "time [s]", "torque [N·m]")
    drawn.align_ylabels()
    caption = (
        "two_link hangs at rest. Its torques are limited (dashed) to half of those that hold it"
        " level. iLQR plans over 2 s each 0.04 s: it swings back and forth, and then holds the arm"
        " upright. LQR about the upright configuration needs more torque than the limits allow; it"
        " swings below the base."
    )
    return DemoFigure("swing_up_motion", caption, drawn)
