"""Draw arms that move in a vertical plane: snapshots, path of the tip, animation, energies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap

from arm_dynamics.core.arrays import FloatArray, Matrix
from arm_dynamics.core.figure_style import INK, PALETTE, figure, label, legend, styled
from arm_dynamics.demos.demo_result import Animation
from arm_dynamics.simulation.trace import MotionRecord

AGES = LinearSegmentedColormap.from_list("ages", ["#BBD6EC", "#0072B2", "#001A2B"])
"""Colors over time, from light to dark."""
TIP = PALETTE[1]
RATE = 20
"""Frames per second of an animation in real time."""
TAIL = 1.0
"""Length [s] of the tip's path behind an animated arm."""


class View(NamedTuple):
    """Axes of an animation: two of x, y, z, and their limits (from, to, from, to) [m]."""

    plane: tuple[int, int]
    limits: tuple[float, float, float, float]


SIDE = View((0, 2), (-3.2, 3.2, -3.2, 1.4))


def plane(trace: MotionRecord) -> FloatArray:
    """Return the joint origins and the tip in the plane x, z, shape (n, nv + 1, 2) [m]."""
    return trace.points[:, :, (0, 2)]


@styled
def snapshots(axes: Axes, trace: MotionRecord, every: float, until: float) -> None:
    """Draw the path of the tip until ``until`` [s], and the arm every ``every`` [s]."""
    shown = trace.time <= until + 1e-9
    points, stride = plane(trace)[shown], round(every / trace.time[1])
    axes.plot(*points[:, -1].T, color=TIP, linewidth=0.9, label="path of the tip")
    for time, arm in zip(trace.time[shown][::stride], points[::stride], strict=True):
        shade = AGES(time / until)
        name = f"arm at {time:g} s" if time in (0.0, until) else None
        axes.plot(*arm.T, "o-", color=shade, markersize=3.5, linewidth=1.8, label=name)
    label(axes, "x [m]", "z [m]")
    axes.set_aspect("equal")
    legend(axes)


@styled
def animate(
    name: str,
    caption: str,
    title: str,
    traces: Sequence[MotionRecord],
    titles: Sequence[str],
    view: View = SIDE,
    targets: Sequence[Matrix] = (),
) -> Animation:
    """Return an animation of the arms next to each other, with the last second of the tip's path.

    Parameters
    ----------
    name, caption, title : str
        Name of the file, caption and title of the animation.
    traces : sequence of MotionRecord
        Motions with equal times.
    titles : sequence of str
        Titles of the motions.
    view : View
        Plane and limits of the axes.
    targets : sequence of (n, 3) arrays
        Positions of targets at the same times [m].

    """
    drawn, grid = figure(title, 1, len(traces), 3.6)
    lines = []
    for axes, text in zip(grid[0], titles, strict=True):
        (path,) = axes.plot([], [], color=TIP, linewidth=1.4)
        (arm,) = axes.plot([], [], "o-", color=INK, markersize=7, linewidth=3.5)
        lines.append((arm, path))
        axes.set_title(text)
        label(axes, *(f"{'xyz'[k]} [m]" for k in view.plane))
        axes.set(xlim=view.limits[:2], ylim=view.limits[2:], aspect="equal")
    dots = [(*axes.plot([], [], "o", color=PALETTE[2]), at) for axes in grid[0] for at in targets]
    time = traces[0].time
    stride, tail = round(1 / RATE / time[1]), round(TAIL / time[1])

    def update(frame: int) -> None:
        now = frame * stride
        drawn.suptitle(f"{title}: t = {time[now]:5.2f} s")
        for trace, (arm, path) in zip(traces, lines, strict=True):
            points = trace.points[:, :, view.plane]
            arm.set_data(*points[now].T)
            path.set_data(*points[max(0, now - tail) : now + 1, -1].T)
        for dot, at in dots:
            dot.set_data(*at[now : now + 1, view.plane].T)

    update(0)
    drawn.canvas.draw()
    drawn.set_layout_engine("none")  # the layout is equal in all frames
    return Animation(name, caption, drawn, update, (time.size - 1) // stride + 1, RATE)


@styled
def energies(axes: Axes, trace: MotionRecord) -> None:
    """Draw kinetic and potential energy [J] and their sum over time, with a legend."""
    for y, name, color in (
        (trace.kinetic, "kinetic", PALETTE[4]),
        (trace.potential, "potential", PALETTE[5]),
        (trace.energy, "sum", INK),
    ):
        axes.plot(trace.time, y, label=name, color=color)
    legend(axes)
