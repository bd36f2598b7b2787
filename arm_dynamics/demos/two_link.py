"""Two rods that swing from rest along +x with nothing but their joints' friction."""

from __future__ import annotations

from arm_dynamics.demos.planar import snapshots
from arm_dynamics.demos.show import Picture, Show
from arm_dynamics.demos.style import curves, energies, figure, label, styled
from arm_dynamics.demos.trace import Trace, record, released
from arm_dynamics.model.load import load_arm

SECONDS, INTERVAL, DT = 10.0, 0.01, 5e-4
EVERY, UNTIL = 0.5, 3.0
"""Pose snapshots [s]."""


def simulate(dt: float = DT) -> Trace:
    """The swing of the arm of unit lengths and masses, friction 0.1 N·m·s/rad in each joint."""
    arm = load_arm("two_link")
    start, nothing = released(arm, arm.pose("zero"))
    return record(arm, start, nothing, seconds=SECONDS, interval=INTERVAL, dt=dt)


@styled
def show() -> Show:
    """Angles, velocities and energy of the swing; poses and path of the tip."""
    swing = simulate()
    return Show("Swing of two links", (_motion(swing), _poses(swing)), _numbers(swing))


def _numbers(swing: Trace) -> tuple[tuple[str, str], ...]:
    friction = [joint.damping for joint in swing.arm.joints]
    lost = swing.work((swing.v**2) @ friction)[-1]
    return (
        ("energy after 10 s", f"{swing.energy[-1]:.3f} J"),
        ("work of the friction", f"{lost:.3f} J"),
        ("largest speed of J1, J2", "{:.2f}, {:.2f} rad/s".format(*abs(swing.v).max(axis=0))),
        ("lowest point of the tip", f"{swing.tool[:, 2].min():.3f} m"),
    )


def _motion(swing: Trace) -> Picture:
    drawn, grid = figure("Unactuated swing of two links", 3, 1, 7.0, sharex=True)
    angles, speeds, energy = grid[:, 0]
    curves(angles, swing.time, swing.q, swing.arm.joint_names)
    label(angles, "", "joint angle [rad]")
    curves(speeds, swing.time, swing.v, swing.arm.joint_names)
    label(speeds, "", "velocity [rad/s]")
    energies(energy, swing)
    label(energy, "time [s]", "energy [J]")
    drawn.align_ylabels()
    caption = (
        "Two uniform rods of 1 m and 1 kg, released from rest along +x, with viscous friction of"
        " 0.1 N·m·s/rad in both joints and no actuation. The sum of the energies only ever falls,"
        " by the work of the friction."
    )
    return Picture("two_link_swing", caption, drawn)


def _poses(swing: Trace) -> Picture:
    drawn, ((axes,),) = figure("Poses of the unactuated swing", 1, 1, 5.2)
    snapshots(axes, swing, EVERY, UNTIL)
    axes.set_title(f"every {EVERY:g} s")
    caption = "Pose every 0.5 s for three seconds, darker with time, and the path of the tip."
    return Picture("two_link_poses", caption, drawn)
