"""Drawings of arms that move in a vertical plane: snapshots, path of the tip, animation."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.lines import Line2D

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.figure_style import INK, PALETTE, figure, label, legend, styled
from arm_dynamics.demos.demo_result import Animation
from arm_dynamics.simulation.trace import MotionRecord

AGES = LinearSegmentedColormap.from_list("ages", ["#BBD6EC", "#0072B2", "#001A2B"])
"""From early to late, light to dark."""
TIP = PALETTE[1]
RATE = 20
"""Frames a second of an animation, in the time of the motion."""
TAIL = 1.0
"""Length [s] of the tip's path behind an animated arm."""


def plane(trace: MotionRecord) -> Vector:
    """Points of the arm in the plane x, z (n, nv + 1, 2) [m]."""
    return trace.points[:, :, (0, 2)]


@styled
def snapshots(axes: Axes, trace: MotionRecord, every: float, until: float) -> None:
    """Path of the tip up to ``until`` [s], and the arm every ``every`` [s], darker with time."""
    shown = trace.time <= until + 1e-9
    points, stride = plane(trace)[shown], round(every / trace.time[1])
    axes.plot(*points[:, -1].T, color=TIP, linewidth=0.9, label="path of the tip")
    for time, pose in zip(trace.time[shown][::stride], points[::stride], strict=True):
        shade = AGES(time / until)
        name = f"pose at {time:g} s" if time in (0.0, until) else None
        axes.plot(*pose.T, "o-", color=shade, markersize=3.5, linewidth=1.8, label=name)
    label(axes, "x [m]", "z [m]")
    axes.set_aspect("equal")
    legend(axes)


@styled
def animate(
    name: str, caption: str, title: str, traces: Sequence[MotionRecord], titles: Sequence[str]
) -> Animation:
    """The arms beside each other, with the last second of the tip's path and the time."""
    drawn, grid = figure(title, 1, len(traces), 3.6)
    moving = [_stage(*pair) for pair in zip(grid[0], titles, strict=True)]
    time = traces[0].time
    stride, tail = round(1 / RATE / time[1]), round(TAIL / time[1])

    def update(frame: int) -> None:
        now = frame * stride
        drawn.suptitle(f"{title}: t = {time[now]:5.2f} s")
        for trace, (arm, path) in zip(traces, moving, strict=True):
            points = plane(trace)
            arm.set_data(*points[now].T)
            path.set_data(*points[max(0, now - tail) : now + 1, -1].T)

    update(0)
    drawn.canvas.draw()
    drawn.set_layout_engine("none")  # laid out once, for all frames
    return Animation(name, caption, drawn, update, (time.size - 1) // stride + 1, RATE)


def _stage(axes: Axes, title: str) -> tuple[Line2D, Line2D]:
    """Axes of one arm: the lines of the arm and of its tip's path."""
    (path,) = axes.plot([], [], color=TIP, linewidth=1.4)
    (arm,) = axes.plot([], [], "o-", color=INK, markersize=7, linewidth=3.5)
    axes.set_title(title)
    label(axes, "x [m]", "z [m]")
    axes.set(xlim=(-3.2, 3.2), ylim=(-3.2, 1.4), aspect="equal")
    return arm, path


@styled
def energies(axes: Axes, trace: MotionRecord) -> None:
    """Kinetic and potential energy [J] and their sum over time, with a legend."""
    for y, name, colour in (
        (trace.kinetic, "kinetic", PALETTE[4]),
        (trace.potential, "potential", PALETTE[5]),
        (trace.energy, "sum", INK),
    ):
        axes.plot(trace.time, y, label=name, color=colour)
    legend(axes)
