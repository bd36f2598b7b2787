"""five_dof follows a target on a circle, while commands act 20 ms after the state."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from arm_dynamics.control.controllers.computed_torque import ComputedTorque
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.trajectories.cartesian_trajectory import CartesianTrajectory
from arm_dynamics.control.trajectories.profiles import quintic
from arm_dynamics.core.figure_style import PALETTE, figure, label, legend, styled
from arm_dynamics.demos.demo_result import DemoFigure, DemoResult
from arm_dynamics.demos.tool_tracking import (
    PERIOD,
    START,
    ToolTarget,
    TrackingMpc,
    animate_front,
    follow,
)
from arm_dynamics.model.load import load_arm
from arm_dynamics.simulation.trace import MotionRecord

TITLE = "A moving target behind a delay of 20 ms"
DELAY = 0.02
"""Time from a state to the effect of its command [s]."""
RADIUS, TURNS, HOLD, DURATION = 0.08, 2, 0.5, 3.0
"""Radius [m], turns, time at rest before the circle and time of the circle [s]."""
SOFT = 0.7
"""Factor of the bandwidth of computed torque with which it does not oscillate."""
MIN_DISTANCE = 0.1
"""Smallest distance of the figure [mm]."""
PAYLOAD = 0.3
"""Payload [kg] that no model contains."""
TORQUE, SOFTER = "computed torque", "computed torque, softer"
IGNORED, PREDICTED = "MPC, delay ignored", "MPC, delay predicted"
Runs = dict[str, MotionRecord]


def circle() -> ToolTarget:
    """Return the target: at rest, then on an upright circle."""
    path = CartesianTrajectory.from_configuration(load_arm("five_dof"), START).hold(HOLD)
    center = path.position - np.array([0, 0, RADIUS])
    turned = path.circle(center, [1, 0, 0], 2 * math.pi * TURNS, quintic(DURATION))
    return ToolTarget.along(turned)


def computed_torque(scale: float) -> ComputedTorque:
    """Return computed torque with ``scale`` times its bandwidth."""
    controller = ComputedTorque(load_arm("five_dof"))
    controller.slow_down(scale)
    return controller


CONTROLLERS: dict[str, Callable[[ToolTarget], Controller]] = {
    TORQUE: lambda target: computed_torque(1.0),
    SOFTER: lambda target: computed_torque(SOFT),
    IGNORED: TrackingMpc,
    PREDICTED: lambda target: TrackingMpc(target, delay=DELAY),
}


def simulate(target: ToolTarget, payload: float = 0.0) -> Runs:
    """Simulate all controllers; no model contains the payload [kg]."""
    return {
        name: follow(target, make(target), DELAY, payload) for name, make in CONTROLLERS.items()
    }


def largest_distance(target: ToolTarget, trace: MotionRecord) -> float:
    """Return the largest distance [mm] of the tool from the target while this moves."""
    return float(target.distance(trace)[round(HOLD / PERIOD) :].max())


@styled
def show() -> DemoResult:
    """Draw the distances of all controllers, and animate three of them."""
    target = circle()
    runs = simulate(target)
    shown = {name: runs[name] for name in (TORQUE, IGNORED, PREDICTED)}
    moving = animate_front("moving_target", TITLE, shown, target)
    return DemoResult(TITLE, (motion_figure(target, runs), moving), key_figures(target, runs))


def key_figures(target: ToolTarget, runs: Runs) -> tuple[tuple[str, str], ...]:
    """Return the largest distances, also with a payload that no model contains."""
    loaded = simulate(target, PAYLOAD)
    rows = [
        (
            f"{name}: largest distance; with {PAYLOAD:g} kg",
            f"{largest_distance(target, trace):.2f} mm;"
            f" {largest_distance(target, loaded[name]):.2f} mm",
        )
        for name, trace in runs.items()
    ]
    return tuple(rows)


@styled
def motion_figure(target: ToolTarget, runs: Runs) -> DemoFigure:
    """Draw the distances of the tool from the target."""
    drawn, ((axes,),) = figure(TITLE, 1, 1, 4.2)
    for (name, trace), color in zip(runs.items(), PALETTE, strict=False):
        distance = np.maximum(target.distance(trace), MIN_DISTANCE)
        axes.semilogy(trace.time, distance, color=color, linewidth=1.2, label=name)
    legend(axes)
    label(axes, "time [s]", "distance from the target [mm]")
    caption = (
        "The target rests for 0.5 s and then runs on a circle of 80 mm, twice in 3 s. Each command"
        " acts 20 ms after the state that it answers. Computed torque with its default gains"
        f" oscillates; with {SOFT:g} times the bandwidth it does not. MPC without the delay in its"
        " horizon oscillates too. With the delay it plans from the state at which its commands act."
        " MPC uses the target of the next 0.2 s, computed torque only the present one. Distances"
        " below 0.1 mm are drawn as 0.1 mm."
    )
    return DemoFigure("moving_target_motion", caption, drawn)
