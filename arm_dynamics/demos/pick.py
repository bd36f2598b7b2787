"""An SO-101 picks a cube from a table, carries it and puts it down: a page, then figures."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from time import monotonic

import numpy as np
import pinocchio as pin
from numpy.typing import ArrayLike

from arm_dynamics.collision.self_collision import collision_shapes
from arm_dynamics.core.arrays import FloatArray, Vector
from arm_dynamics.core.figure_style import INK, PALETTE, figure, label, legend, styled
from arm_dynamics.core.files import prepare_folder
from arm_dynamics.core.number_option import Number, port
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.core.timing import Pacer
from arm_dynamics.demos import registry
from arm_dynamics.demos.demo_result import Animation, DemoFigure, DemoResult
from arm_dynamics.demos.pick_and_place import (
    EDGE,
    FIXED_JAW,
    GRIPPER,
    MASS,
    MOVING_JAW,
    PERIOD,
    PLACES,
    SAMPLE,
    PickAndPlace,
    PickRecord,
    heaviest_mass,
)
from arm_dynamics.demos.writer import print_results, write_figures
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.viewer.page import ArmPage
from arm_dynamics.viewer.show import open_page

TITLE = "SO-101 picks a cube"
PAGE_PERIOD = 1 / 30
"""Time [s] between two updates of the page."""
RATE = 10
"""Frames per second of the animation."""
STEEL = "#8A8F98"


def run(arguments: Sequence[str]) -> int:
    """Carry the cube back and forth in real time until Ctrl-C or --count, then write figures."""
    options = command_parser().parse_args(arguments)
    prepare_folder(options.output)  # raises before the page opens if the folder cannot be written
    picking, record = PickAndPlace(), None
    try:
        with open_page(picking.arm, options.port, control_hint="it repeats its motion") as page:
            print(f"page: {page.url} (Ctrl-C to stop)", flush=True)
            display = Display(page, picking)
            for k in count() if options.count is None else range(options.count):
                record = picking.carry(PLACES[k % 2], PLACES[(k + 1) % 2], display.update)
    except KeyboardInterrupt:
        print("stopped", flush=True)
    if record is not None:
        print_results(write_figures(result(record), options.output), options.output)
    return 0


def command_parser() -> argparse.ArgumentParser:
    """Return the parser of the command."""
    parser = SuggestingParser(prog="arm-dynamics demo pick", description=__doc__)
    add, output = parser.add_argument, registry.OUT / "pick"
    text = "port of the page; 0 for any free one (default: 8080)"
    add("--port", type=port("--port"), default=8080, metavar="PORT", help=text)
    text = "number of times that the cube is carried (default: until Ctrl-C)"
    add("--count", type=Number("--count", 1, 1e6, whole=True), metavar="N", help=text)
    text = f"folder of the figures (default: {output})"
    add("--output", type=Path, metavar="FOLDER", default=output, help=text)
    return parser


class Display:
    """Shows the arm and the cube on a page in real time."""

    def __init__(self, page: ArmPage, picking: PickAndPlace) -> None:
        self._page, self._picking, self._pacer = page, picking, Pacer(PERIOD)
        self._due = 0.0

    def update(self) -> None:
        """Show the present state if an update is due, and wait for the end of the period."""
        if monotonic() >= self._due:
            self._due = monotonic() + PAGE_PERIOD
            state, (_, reference) = self._picking.simulation.state, self._picking.loop.present()
            status = {"time": f"{state.time:.1f} s"}
            self._page.show(state.q, state.v, state.tau, status, reference.q, time=state.time)
            self._page.show_scene(self._picking.simulation.scene)
        self._pacer.wait()


def show() -> DemoResult:
    """Carry the cube once and draw the motion."""
    return result(PickAndPlace().carry(*PLACES))


@styled
def result(record: PickRecord) -> DemoResult:
    """Draw a motion with the cube."""
    return DemoResult(TITLE, (motion_figure(record), animation(record)), key_figures(record))


def key_figures(record: PickRecord) -> tuple[tuple[str, str], ...]:
    """Return errors of the cube, forces with their closed forms, and the computing time."""
    slip, turned = record.slip
    force, expected = record.force[record.held], record.grip_force[record.held]
    motor = record.motion.arm.actuators[record.motion.arm.index(GRIPPER)].constants
    friction = motor["gear_ratio"] * motor["coulomb_friction"]
    duration = record.motion.time[-1] - record.motion.time[0]
    return (
        ("distance of the cube from its target", f"{1e3 * record.error:.2f} mm"),
        ("motion of the held cube in the hand", f"{1e3 * slip:.3f} mm, {1e3 * turned:.2f} mrad"),
        ("forces of fixed and moving jaw", "{:.2f} N, {:.2f} N".format(*force.mean(axis=0))),
        ("closed form: effort over lever", f"{expected.mean():.2f} N"),
        ("dry friction of the gripper", f"{1e3 * friction:.0f} mN·m"),
        ("heaviest mass held, 2 μ F / g", f"{heaviest_mass(float(force.min())):.2f} kg"),
        ("mass of the cube", f"{MASS:g} kg"),
        ("processor time of the loop", f"{record.computing:.1f} s for {duration:.1f} s"),
    )


@styled
def motion_figure(record: PickRecord) -> DemoFigure:
    """Draw heights, forces of the jaws, and the distance of the cube from the tool."""
    drawn, grid = figure(TITLE, 3, 1, 7.2, sharex=True)
    time, (height, force, slip) = record.motion.time, grid[:, 0]
    height.plot(time, 1e3 * record.motion.tool[:, 2], color=INK, label="tool")
    height.plot(time, 1e3 * record.position[:, 2], color=PALETTE[1], label="cube")
    label(height, "", "height [mm]")
    height.set_ylim(-5, 240)
    for phase in record.phases:
        height.text((phase.start + phase.end) / 2, 215, phase.name, ha="center", fontsize=8)
        for axes in grid[:, 0]:
            axes.axvline(phase.start, color=STEEL, linewidth=0.5)
    for k, name in enumerate(("fixed jaw", "moving jaw")):
        force.plot(time, record.force[:, k], color=PALETTE[k], label=name)
    held = record.held
    expected = record.grip_force[held]
    force.plot(time[held], expected, "--", color=INK, label="effort over lever")
    force.set_ylim(0, 12)  # without the impact of the jaw
    label(force, "", "normal force [N]")
    distances = 1e3 * np.linalg.norm(record.in_hand[0][held], axis=1)
    slip.plot(time[held], distances, color=PALETTE[2], label="held cube")
    slip.set_ylim(distances.mean() - 0.1, distances.mean() + 0.1)
    label(slip, "time [s]", "distance from tool [mm]")
    for axes in grid[:, 0]:
        legend(axes)
    drawn.align_ylabels()
    caption = (
        "The reference of the gripper ends beyond the contact, so that the proportional gain holds"
        " the cube of 20 g. The forces differ from effort over lever by the dry friction of the"
        " joint. The impact of the jaw exceeds the axis. Below: distance from the tool to the"
        " center of the held cube, which does not slip."
    )
    return DemoFigure("pick_motion", caption, drawn)


@styled
def animation(record: PickRecord) -> Animation:
    """Animate arm, jaws and cube from the front left."""
    picture, ((axes,),) = figure(TITLE, 1, 1, 4.6, subplot_kw={"projection": "3d"})
    axes.set(xlim=(0, 0.4), ylim=(-0.1, 0.2), zlim=(0, 0.25), xlabel="x [m]", ylabel="y [m]")
    axes.set(zlabel="z [m]", yticks=(-0.1, 0, 0.1, 0.2), zticks=(0, 0.1, 0.2))
    axes.set_box_aspect((0.4, 0.3, 0.25), zoom=1.15)
    axes.view_init(elev=22, azim=-62)
    (links,) = axes.plot([], [], [], "o-", color=INK, markersize=4, linewidth=3)
    jaws, cube = JawBoxes(record.motion.arm), box_outline((EDGE, EDGE, EDGE))
    outlines = [axes.plot([], [], [], color=STEEL, linewidth=1.2)[0] for _ in jaws.outlines]
    (shown,) = axes.plot([], [], [], color=PALETTE[1], linewidth=1.6)
    stride = round(1 / RATE / SAMPLE)

    def update(frame: int) -> None:
        now = frame * stride
        picture.suptitle(f"{TITLE}: t = {record.motion.time[now]:4.1f} s")
        links.set_data_3d(*record.motion.points[now].T)
        for line, points in zip(outlines, jaws.at(record.motion.q[now]), strict=True):
            line.set_data_3d(*points.T)
        shown.set_data_3d(*(cube @ record.rotation[now].T + record.position[now]).T)

    update(0)
    picture.canvas.draw()
    picture.set_layout_engine("none")  # the layout is equal in all frames
    caption = "Joints of the arm, collision geometry of hand and jaw, and the cube, in real time."
    frames = (record.motion.time.size - 1) // stride + 1
    return Animation("pick", caption, picture, update, frames, RATE)


def box_outline(size: ArrayLike) -> FloatArray:
    """Return a line (n, 3) [m] along the edges of a box with its center at the origin."""
    x, y, z = np.asarray(size) / 2
    ring = [(x, y), (-x, y), (-x, -y), (x, -y), (x, y)]
    lower, upper = [(*p, -z) for p in ring], [(*p, z) for p in ring]
    sides = [(-x, y, z), (-x, y, -z), (-x, -y, -z), (-x, -y, z), (x, -y, z), (x, -y, -z)]
    return np.array([*lower, *upper, *sides])


class JawBoxes:
    """Outlines of the boxes of hand and jaw."""

    def __init__(self, arm: ArmModel) -> None:
        self._model, self._shapes = arm.model, collision_shapes(arm)[0]
        self._data, self._placed = self._model.createData(), self._shapes.createData()
        links = [arm.model.frames[x.parentFrame].name for x in self._shapes.geometryObjects]
        self._indices = [k for k, name in enumerate(links) if name in (FIXED_JAW, MOVING_JAW)]
        geometry = [self._shapes.geometryObjects[k].geometry for k in self._indices]
        self.outlines = [box_outline(2 * np.asarray(box.halfSide)) for box in geometry]

    def at(self, q: Vector) -> list[FloatArray]:
        """Return the outlines (n, 3) [m] in base axes at ``q`` (nv,) [rad]."""
        pin.updateGeometryPlacements(self._model, self._data, self._shapes, self._placed, q)
        poses = [self._placed.oMg[k] for k in self._indices]
        pairs = zip(self.outlines, poses, strict=True)
        return [points @ M.rotation.T + M.translation for points, M in pairs]
