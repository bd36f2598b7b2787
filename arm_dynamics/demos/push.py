"""five_dof pushes a cube over the ground to a place, by MPPI with contact in the predictions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.patches import Polygon

from arm_dynamics.batch.kernels.cost import Cost
from arm_dynamics.batch.planning.horizon import Horizon
from arm_dynamics.batch.planning.mpc import Mpc
from arm_dynamics.batch.planning.planner import Planner
from arm_dynamics.batch.planning.sampling_methods import Mppi
from arm_dynamics.collision.scene import Scene, SceneObject
from arm_dynamics.core.arrays import Matrix, Vector, as_readonly
from arm_dynamics.core.compiled_math import maximum
from arm_dynamics.core.figure_style import FAINT, INK, PALETTE, figure, label, legend, styled
from arm_dynamics.core.state import Reference, State
from arm_dynamics.demos.demo_result import Animation, DemoFigure, DemoResult
from arm_dynamics.demos.planar import AGES, View, animate
from arm_dynamics.model.load import load_arm
from arm_dynamics.model.solids import Shape
from arm_dynamics.simulation.contact.contact_dynamics import Contacts
from arm_dynamics.simulation.contact.contact_plant import ContactPlant, SceneState
from arm_dynamics.simulation.trace import MotionRecord

TITLE = "Pushing a cube to a place"
START = (0.65, -0.567, 0.567, 0.0, 0.0)
"""Configuration at the start [rad]: the tool is 29 mm above the ground, next to the cube."""
TARGET = as_readonly([0.6, -0.15])
"""Place of the cube (x, y) [m]."""
EDGE, MASS, FRICTION = 0.08, 0.3, 0.5
"""Edge [m], mass [kg] and friction coefficient of the cube in the predictions."""
OTHER_MASS, OTHER_FRICTION = 0.6, 0.25
"""Mass [kg] and friction coefficient that no prediction contains."""
SECONDS, PERIOD, DT = 4.0, 5e-3, 5e-4
"""Time, control period and time step of the plant [s]."""
HEIGHT, NEAR = 0.035, 0.08
"""Height of the tool, and its distance from the center of the cube without cost [m]."""
FREE = 0.02
"""Distance of the cube from its place [m] at which the cost of the tool is half."""
PREDICTED, OTHER = "as predicted", "twice the mass, half the friction"
ABOVE = View((0, 1), (-0.1, 0.8, -0.35, 0.4))


def scene(mass: float = MASS, friction: float = FRICTION) -> Scene:
    """Return a ground and the cube."""
    shape, position = Shape("box", (EDGE,) * 3), as_readonly([0.55, 0.12, EDGE / 2])
    cube = SceneObject("cube", shape, position, mass=mass, friction=friction)
    return Scene([SceneObject("ground", Shape("ground", ())), cube])


def pushing(s: Any) -> Any:
    """Return the cost of the cube's distance and speed, and of a tool that is not behind it."""
    e, offset = s.body_position[:2] - TARGET, s.tool_position[:2] - s.body_position[:2]
    missing, distance = math.sqrt(e @ e + 1e-5), math.sqrt(offset @ offset + 1e-6)
    cosine = (offset @ e) / (distance * math.sqrt(e @ e + 1e-3))
    behind = 3 * (1 - cosine) + 40 * maximum(distance - NEAR, 0.0)
    height, tilt = s.tool_position[2] - HEIGHT, 1 - s.body_rotation[2, 2]
    speed = s.body_velocity[:2] @ s.body_velocity[:2]
    cost = 200 * missing + behind * missing / (missing + FREE) + 6 * speed
    return cost + 300 * height * height + 20 * tilt


def running(s: Any, _: Any) -> Any:
    """Return the cost of a stage."""
    limits, wrist = s.position_excess @ s.position_excess, s.q[3:] @ s.q[3:]
    return pushing(s) + 0.2 * (s.v @ s.v) + 50 * limits + wrist


def terminal(s: Any, _: Any) -> Any:
    """Return the cost of the last stage."""
    return 10 * pushing(s) + 2 * (s.v @ s.v)


def planner() -> Planner:
    """Return the planner: 512 motions over 0.5 s, each with contact."""
    method = Mppi(2.0, samples=512, knots=5, temperature=0.05, color=1.0)
    return Planner(
        load_arm("five_dof"), Cost(running, terminal), method, Horizon(25, 0.02, 2),
        policy="acceleration", scene=scene(), contact=True, precision="float32",
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class PushRecord:
    """Motions of the arm and the cube.

    Attributes
    ----------
    motion : MotionRecord
        Motion of the arm.
    cubes : tuple of SceneObject
        The cube at the same times.
    force : (n,) array
        Horizontal force of the arm on the cube [N], mean of a control period.
    plan_times : (n,) array
        Times of the plans [ms].

    """

    motion: MotionRecord
    cubes: tuple[SceneObject, ...]
    force: Vector
    plan_times: Vector

    @property
    def distance(self) -> Vector:
        """Distances (n,) of the cube from its place [mm]."""
        return as_readonly([1e3 * np.linalg.norm(x.position[:2] - TARGET) for x in self.cubes])


def simulate(seconds: float = SECONDS) -> dict[str, PushRecord]:
    """Simulate the cube of the predictions, and another one."""
    others = {PREDICTED: scene(), OTHER: scene(OTHER_MASS, OTHER_FRICTION)}
    return {name: push(one, seconds) for name, one in others.items()}


def push(objects: Scene, seconds: float = SECONDS) -> PushRecord:
    """Simulate the arm and its controller in a scene, with the contact of ``ContactPlant``."""
    arm, controller, reference = load_arm("five_dof"), Mpc(planner()), Reference.hold(START)
    plant, state, rows = ContactPlant(arm, objects), State.of(START), []
    for _ in range(round(seconds / PERIOD)):
        start, forces = perf_counter(), []
        command = controller.update(state, reference, PERIOD)
        elapsed = 1e3 * (perf_counter() - start)
        row = state.time, state.q, state.v, command.value, plant.scene_at(state)["cube"], elapsed
        for _ in range(round(PERIOD / DT)):
            state = plant.step(state, command, DT)
            assert isinstance(state, SceneState)  # always of this plant
            forces.append(force_of_arm(state.contacts))
        rows.append((*row, np.linalg.norm(np.mean(forces, axis=0)[:2])))
    *columns, cubes, times, force = zip(*rows, strict=True)
    motion = MotionRecord(arm, *(as_readonly(x) for x in columns))
    planned = round(controller.planner.horizon.period / PERIOD)
    return PushRecord(motion, cubes, as_readonly(force), as_readonly(times[planned::planned]))


def force_of_arm(contacts: Contacts) -> Vector:
    """Return the force (3,) [N] of the links on the cube."""
    total = np.zeros(3)
    for first, second, force in zip(contacts.first, contacts.second, contacts.force, strict=True):
        if "cube" in (first, second) and "ground" not in (first, second):
            total += force if second == "cube" else -force
    return total


def show() -> DemoResult:
    """Draw the paths of cube and tool, distances and forces, and animate the motions."""
    runs = simulate()
    return DemoResult(TITLE, (motion_figure(runs), animation(runs)), key_figures(runs))


def key_figures(runs: dict[str, PushRecord]) -> tuple[tuple[str, str], ...]:
    """Return distances at the end, largest forces, and times of plans."""
    rows = []
    for name, run in runs.items():
        rows.append((f"{name}: distance of cube from place", f"{run.distance[-1]:.1f} mm"))
        rows.append((f"{name}: largest force of arm", f"{run.force.max():.1f} N"))
    p50, p99 = np.percentile(runs[PREDICTED].plan_times, [50, 99])
    return (*rows, ("time of a plan on this machine, p50, p99", f"{p50:.1f}, {p99:.1f} ms"))


def outline(cube: SceneObject) -> Matrix:
    """Return the lower face (4, 2) [m] of the cube from above."""
    corners = np.array([[-1, -1, -1], [1, -1, -1], [1, 1, -1], [-1, 1, -1]]) * EDGE / 2
    return as_readonly((corners @ cube.rotation.T + cube.position)[:, :2])


def draw_place(axes: Axes) -> None:
    """Draw the place of the cube."""
    corners = outline(scene()["cube"].placed([*TARGET, EDGE / 2], np.eye(3)))
    axes.add_patch(Polygon(corners, fill=False, ls="--", lw=1.6, color=PALETTE[2], label="place"))


@styled
def motion_figure(runs: dict[str, PushRecord]) -> DemoFigure:
    """Draw both motions from above, the distances of the cubes from the place, and the forces."""
    drawn, grid = figure(TITLE, 2, 2, 7.2)
    for axes, (name, run) in zip(grid[0], runs.items(), strict=True):
        draw_place(axes)
        for k in [*range(0, len(run.cubes), round(0.2 / PERIOD)), len(run.cubes) - 1]:
            color, corners = AGES(k / len(run.cubes)), outline(run.cubes[k])
            axes.add_patch(Polygon(corners, facecolor=to_rgba(color, 0.15), edgecolor=color))
        axes.plot(*run.motion.tool[:, :2].T, color=PALETTE[1], linewidth=1.0, label="tool")
        axes.set(xlim=(0.35, 0.8), ylim=(-0.28, 0.28), aspect="equal")
        axes.text(0.36, -0.27, name)
        label(axes, "x [m]", "y [m]")
        legend(axes)
    distance, force = grid[1]
    for (name, run), color in zip(runs.items(), PALETTE, strict=False):
        distance.plot(run.motion.time, run.distance, color=color, label=name)
        force.plot(run.motion.time, run.force, color=color, linewidth=1.0)
    distance.set_yscale("log")
    label(distance, "time [s]", "distance of cube from place [mm]")
    label(force, "time [s]", "force of arm on cube [N]")
    legend(distance)
    caption = (
        "Every 20 ms MPPI predicts 512 motions of arm and cube over 0.5 s, with contact between"
        " links, cube and ground. Above: the cube every 0.2 s, from light to dark, and the path of"
        f" the tool. Left: {MASS:g} kg and a friction coefficient of {FRICTION:g}, as in the"
        f" predictions. Right: {OTHER_MASS:g} kg and {OTHER_FRICTION:g}, which no prediction"
        " contains. Below: distance of the cube from its place, and horizontal force of the arm on"
        " it. The simulation solves the exact contact problem."
    )
    return DemoFigure("push_motion", caption, drawn)


@styled
def animation(runs: dict[str, PushRecord]) -> Animation:
    """Animate both motions from above."""
    caption = "Arm, cube and its place (dashed) from above, in real time."
    traces = tuple(run.motion for run in runs.values())
    moving = animate("push", caption, TITLE, traces, tuple(runs), ABOVE)
    cubes = [Polygon(np.zeros((4, 2)), facecolor=FAINT, edgecolor=INK) for _ in runs]
    for axes, cube in zip(moving.figure.axes, cubes, strict=True):
        draw_place(axes)
        axes.add_patch(cube)
    stride = (len(traces[0].time) - 1) // (moving.frames - 1)

    def update(frame: int) -> None:
        for cube, run in zip(cubes, runs.values(), strict=True):
            cube.set_xy(outline(run.cubes[frame * stride]))
        moving.update(frame)

    update(0)
    return Animation(moving.name, caption, moving.figure, update, moving.frames, moving.rate)
