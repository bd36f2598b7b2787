"""five_dof reaches targets on both sides of a wall, below a ball, by MPPI."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter
from typing import Any

import numpy as np
import pinocchio as pin
from matplotlib.patches import Circle, Rectangle
from numpy.typing import ArrayLike

from arm_dynamics.batch.kernels.cost import Cost
from arm_dynamics.batch.planning.horizon import Horizon
from arm_dynamics.batch.planning.mpc import Mpc
from arm_dynamics.batch.planning.planner import Planner
from arm_dynamics.batch.planning.sampling_methods import Mppi
from arm_dynamics.collision.scene_files import parse_scene
from arm_dynamics.collision.self_collision import SelfCollision
from arm_dynamics.control.closed_loop_simulation import simulate_closed_loop
from arm_dynamics.control.trajectories.joint_trajectory import JointTrajectory
from arm_dynamics.core.arrays import Matrix, Vector, as_readonly
from arm_dynamics.core.compiled_math import maximum
from arm_dynamics.core.figure_style import FAINT, INK, PALETTE, figure, label, legend, styled
from arm_dynamics.core.state import Reference, State
from arm_dynamics.demos.demo_result import Animation, DemoFigure, DemoResult, format_row
from arm_dynamics.demos.planar import View, animate
from arm_dynamics.model.load import load_arm
from arm_dynamics.simulation.trace import MotionRecord

TITLE = "Reaching among obstacles"
START = (0.45, -1.0, -0.1, 0.0, 0.0)
"""Configuration at the start [rad]."""
TARGETS = as_readonly([(0.52, -0.25, 0.15), (0.52, 0.25, 0.15), (0.52, -0.25, 0.15)])
"""Targets of the tool [m], one after the other."""
SCENE = parse_scene("""
objects:
  ground: {shape: ground, position: [0, 0, -0.02]}
  wall: {shape: box, size: [0.40, 0.04, 0.24], position: [0.55, 0, 0.1]}
  ball: {shape: sphere, radius: 0.07, position: [0.5, 0, 0.6]}
""")
STAY, PERIOD, DT = 1.5, 5e-3, 5e-4
"""Time for each target, control period, time step of the plant [s]."""
MARGIN, WEIGHT = 0.02, 1000.0
"""Gap [m] below which a pair costs, and the cost per meter."""
AVOIDING, BLIND = "gaps in the cost", "no gaps in the cost"
FRONT = View((1, 2), (-0.45, 0.45, -0.05, 0.85))
Runs = dict[str, MotionRecord]


def running(s: Any, p: Any) -> Any:
    """Return the cost of a stage: distance, velocities, gaps below MARGIN, position limits."""
    e = s.tool_position - p.target
    near = sum(maximum(MARGIN - gap, 0.0) for gap in (*s.object_gaps, *s.own_gaps))
    beyond = s.position_excess @ s.position_excess
    return 100 * (e @ e) + 0.2 * (s.v @ s.v) + 50 * beyond + p.weight * near


def terminal(s: Any, p: Any) -> Any:
    """Return the cost of the last stage."""
    e = s.tool_position - p.target
    return 1000 * (e @ e) + 5 * (s.v @ s.v)


class ReachingMpc(Mpc):
    """MPC of 512 motions over 0.6 s, which takes the next target every STAY."""

    def __init__(self, weight: float) -> None:
        cost = Cost(running, terminal, {"target": TARGETS[0], "weight": weight})
        method = Mppi(2.0, samples=512, knots=5, temperature=0.05, color=1.0)
        planner = Planner(
            load_arm("five_dof"), cost, method, Horizon(30, 0.02, 4), policy="acceleration",
            scene=SCENE,
        )  # fmt: skip
        super().__init__(planner)

    def cost_parameters(self, state: State, reference: Reference) -> Mapping[str, ArrayLike]:
        """Return the present target."""
        del reference
        return {"target": targets(np.array([state.time]))[0]}


def targets(times: Vector) -> Matrix:
    """Return the targets (n, 3) [m] at ``times`` (n,) [s]."""
    return as_readonly(TARGETS[np.minimum((times / STAY + 1e-9).astype(int), len(TARGETS) - 1)])


def simulate() -> Runs:
    """Simulate the motion with gaps in the cost, and without."""
    return {
        name: simulate_closed_loop(
            load_arm("five_dof"), ReachingMpc(weight), JointTrajectory.hold(START),
            State.of(START), seconds=STAY * len(TARGETS), period=PERIOD, dt=DT,
            integrator="semi_implicit_euler",
        )
        for name, weight in ((AVOIDING, WEIGHT), (BLIND, 0.0))
    }  # fmt: skip


def distances(trace: MotionRecord) -> Vector:
    """Return the smallest distances (n,) [m] of links from objects and each other, exactly."""
    checks = SelfCollision(trace.arm, 0.0, trace.q[0], scene=SCENE)
    data, results = trace.arm.model.createData(), checks.shapes.createData()
    smallest = []
    for q in trace.q:
        pin.updateGeometryPlacements(trace.arm.model, data, checks.shapes, results, q)
        pin.computeDistances(checks.shapes, results)
        smallest.append(min(pair.min_distance for pair in results.distanceResults))
    return as_readonly(smallest)


def plan_times(trace: MotionRecord) -> Vector:
    """Return the times (n,) [ms] of plans along a motion."""
    planner, times = ReachingMpc(WEIGHT).planner, []
    for k in range(0, len(trace.time), 4):
        start = perf_counter()
        planner.update(State.of(trace.q[k], trace.v[k], time=float(trace.time[k])))
        times.append(1e3 * (perf_counter() - start))
    return as_readonly(times)


@styled
def show() -> DemoResult:
    """Draw distances from target and obstacles, and animate the motion."""
    runs = simulate()
    return DemoResult(TITLE, (motion_figure(runs), animation(runs)), key_figures(runs))


def key_figures(runs: Runs) -> tuple[tuple[str, str], ...]:
    """Return errors at the end of each target, smallest distances, and times of plans."""
    rows = []
    for name, trace in runs.items():
        error = target_error(trace)[round(STAY / PERIOD) - 1 :: round(STAY / PERIOD)]
        rows.append((f"{name}: distances at the end", f"{format_row(error)} mm"))
        rows.append((f"{name}: smallest distance", f"{1e3 * distances(trace).min():.1f} mm"))
    p50, p99 = np.percentile(plan_times(runs[AVOIDING]), [50, 99])
    return (*rows, ("time of a plan on this machine, p50, p99", f"{p50:.2f}, {p99:.2f} ms"))


def target_error(trace: MotionRecord) -> Vector:
    """Return the distances (n,) [mm] of the tool from its target."""
    return as_readonly(1e3 * np.linalg.norm(trace.tool - targets(trace.time), axis=1))


@styled
def motion_figure(runs: Runs) -> DemoFigure:
    """Draw the distances from the target, and the smallest from obstacles and other links."""
    drawn, ((error,), (nearest,)) = figure(TITLE, 2, 1, 5.4, sharex=True)
    for (name, trace), color in zip(runs.items(), PALETTE, strict=False):
        error.plot(trace.time, target_error(trace), color=color, label=name)
        nearest.plot(trace.time, 1e3 * distances(trace), color=color)
    nearest.axhline(1e3 * MARGIN, color=FAINT, linestyle="--", linewidth=1.0, label="margin")
    nearest.axhline(0.0, color=INK, linewidth=1.0, label="contact")
    label(error, "", "distance of tool from target [mm]")
    label(nearest, "time [s]", "smallest distance of links [mm]")
    for axes in (error, nearest):
        legend(axes)
    drawn.align_ylabels()
    caption = (
        f"Each {STAY:g} s the target changes to the other side of the wall. MPPI predicts 512"
        " motions over 0.6 s each 20 ms. Its cost adds what the gaps between obstacles and the"
        " spheres that cover the links lack to the margin, and the same between links. Below:"
        " smallest distance of the exact shapes. Without this cost the arm goes through the wall;"
        " the simulation has no contact."
    )
    return DemoFigure("obstacles_motion", caption, drawn)


def animation(runs: Runs) -> Animation:
    """Animate both runs between the wall and the ball, seen from the front."""
    traces = tuple(runs.values())
    caption = (
        "Arm, obstacles, target (dot) and last second of the tool's path from the front, in real"
        " time. The elbow passes behind the ball."
    )
    at = targets(traces[0].time)
    moving = animate("obstacles", caption, TITLE, traces, tuple(runs), FRONT, (at,))
    wall, ball = SCENE["wall"], SCENE["ball"]
    (_, width, height), (radius,) = wall.shape.size, ball.shape.size
    corner = wall.position[1] - width / 2, wall.position[2] - height / 2
    for axes in moving.figure.axes:
        axes.add_patch(Rectangle(corner, width, height, color=FAINT))
        axes.add_patch(Circle((ball.position[1], ball.position[2]), radius, color=FAINT))
    return moving
