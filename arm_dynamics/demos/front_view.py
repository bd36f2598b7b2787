"""Animate tools that follow a moving target, seen from the front of the arm."""

from __future__ import annotations

from collections.abc import Mapping

from arm_dynamics.core.arrays import Matrix
from arm_dynamics.core.figure_style import FAINT, PALETTE, figure, label, styled
from arm_dynamics.demos.demo_result import Animation
from arm_dynamics.simulation.trace import MotionRecord

RATE = 20
"""Frames per second."""
MARGIN = 0.05
"""Space around the path of the target [m]."""


@styled
def animate_front_view(
    name: str,
    title: str,
    runs: Mapping[str, MotionRecord],
    targets: Matrix,
    speed: float,
) -> Animation:
    """Return an animation of tools in the plane y, z, next to each other.

    Parameters
    ----------
    name, title : str
        Name of the file, title of the animation.
    runs : Mapping[str, MotionRecord]
        Motions by their titles, with equal times.
    targets : (n, 3) array
        Positions of the target at these times [m].
    speed : float
        Speed of the animation relative to real time.

    """
    drawn, grid = figure(title, 1, len(runs), 3.4, sharey=True)
    time, path = next(iter(runs.values())).time, targets[:, 1:]
    low, high = path.min(axis=0) - MARGIN, path.max(axis=0) + MARGIN
    parts = []
    for axes, (text, trace) in zip(grid[0], runs.items(), strict=True):
        axes.plot(*path.T, color=FAINT, linewidth=0.8)
        (tool,) = axes.plot([], [], color=PALETTE[1], linewidth=1.4, label=text)
        (dot,) = axes.plot([], [], "o", color=PALETTE[2], markersize=7)
        axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal", title=text)
        label(axes, "y [m]", "z [m]")
        parts.append((trace.tool[:, 1:], tool, dot))
    stride = round(speed / RATE / time[1])

    def update(frame: int) -> None:
        now = frame * stride
        drawn.suptitle(f"{title}: t = {time[now]:4.2f} s")
        for points, tool, dot in parts:
            tool.set_data(*points[: now + 1].T)
            dot.set_data(*path[now : now + 1].T)

    update(0)
    drawn.canvas.draw()
    drawn.set_layout_engine("none")  # the layout is equal in all frames
    shown = "real time" if speed == 1 else f"{100 * speed:g} % of real time"
    caption = f"The target (dot) and the paths of the tools, seen from the front, in {shown}."
    return Animation(name, caption, drawn, update, (time.size - 1) // stride + 1, RATE)
