"""Two rods in a vertical plane: swing, joint-space and task-space motions, gravity compensation."""

from __future__ import annotations

import two_link_hold
import two_link_joints
import two_link_tool

from arm_dynamics.core.figure_style import curves, figure, heading, label, styled
from arm_dynamics.demos.constant_command import release_from_rest, simulate_constant_command
from arm_dynamics.demos.demo_result import DemoFigure, DemoResult
from arm_dynamics.demos.planar import energies, snapshots
from arm_dynamics.model.load import load_arm
from arm_dynamics.simulation.trace import MotionRecord

SECONDS, INTERVAL, DT = 10.0, 0.01, 5e-4
EVERY, UNTIL = 0.5, 3.0
"""Interval and end of the snapshots [s]."""
TITLES = {"two_link": "1 m, 1 kg and 1 m, 1 kg", "two_link_pb": "1 m, 1 kg and 0.6 m, 0.6 kg"}
"""Titles by arm: lengths and masses of the rods."""


def simulate(name: str = "two_link", dt: float = DT) -> MotionRecord:
    """Simulate the swing of an arm with friction of 0.1 N·m·s/rad in each joint."""
    arm = load_arm(name)
    start, nothing = release_from_rest(arm, arm.configuration("zero"))
    return simulate_constant_command(arm, start, nothing, seconds=SECONDS, interval=INTERVAL, dt=dt)


@styled
def show() -> DemoResult:
    """Draw the swing, joint-space control, lines of the tool, workspace, gravity compensation."""
    swings = [simulate(name) for name in TITLES]
    moved = {name: two_link_joints.simulate(name) for name in two_link_joints.CONTROLLERS}
    lines = two_link_tool.simulate()
    held = {name: two_link_hold.simulate(error) for name, error in two_link_hold.ERRORS.items()}
    pictures = (
        motion_figure(*swings),
        snapshot_figure(*swings),
        two_link_joints.make_figure(moved),
        two_link_tool.workspace_figure(),
        two_link_tool.path_figure(lines),
        two_link_tool.snapshot_figure(lines),
        two_link_hold.make_figure(held),
    )
    rows = [row for swing in swings for row in key_figures(swing)]
    rows += two_link_joints.key_figures(moved) + two_link_tool.key_figures(lines)
    return DemoResult("Two links", pictures, (*rows, *two_link_hold.key_figures(held)))


def key_figures(swing: MotionRecord) -> tuple[tuple[str, str], ...]:
    """Return energy, work of the friction, largest velocities and the lowest point of the tip."""
    friction, name = [joint.damping for joint in swing.arm.joints], swing.arm.name
    lost, speeds = swing.work((swing.v**2) @ friction)[-1], abs(swing.v).max(axis=0)
    return (
        (f"{name}: energy after 10 s", f"{swing.energy[-1]:.3f} J"),
        (f"{name}: work of the friction", f"{lost:.3f} J"),
        (f"{name}: largest velocity of J1, J2", "{:.2f}, {:.2f} rad/s".format(*speeds)),
        (f"{name}: lowest point of the tip", f"{swing.tool[:, 2].min():.3f} m"),
    )


@styled
def motion_figure(*swings: MotionRecord) -> DemoFigure:
    """Draw joint angles, velocities and energies of both swings."""
    drawn, grid = figure("Unactuated swing of two links", 3, 2, 7.2, sharex=True, sharey="row")
    for (angles, speeds, energy), swing in zip(grid.T, swings, strict=True):
        heading(angles, TITLES[swing.arm.name])
        curves(angles, swing.time, swing.q, swing.arm.joint_names)
        label(angles, "", "joint angle [rad]")
        curves(speeds, swing.time, swing.v, swing.arm.joint_names)
        label(speeds, "", "velocity [rad/s]")
        energies(energy, swing)
        label(energy, "time [s]", "energy [J]")
    drawn.align_ylabels()
    caption = (
        "Two uniform rods, released from rest along +x, with viscous friction of 0.1 N·m·s/rad in"
        " both joints and without actuation. Left: the arm two_link. Right: two_link_pb with a"
        " shorter and lighter second rod. The sum of the energies decreases by the work of the"
        " friction."
    )
    return DemoFigure("two_link_swing", caption, drawn)


@styled
def snapshot_figure(*swings: MotionRecord) -> DemoFigure:
    """Draw the arm every 0.5 s, and the path of the tip."""
    drawn, (row,) = figure("Snapshots of the unactuated swing", 1, 2, 3.4, sharex=True, sharey=True)
    for axes, swing in zip(row, swings, strict=True):
        snapshots(axes, swing, EVERY, UNTIL)
        heading(axes, TITLES[swing.arm.name])
    caption = "The arm every 0.5 s for three seconds, darker with time, and the path of the tip."
    return DemoFigure("two_link_poses", caption, drawn)
