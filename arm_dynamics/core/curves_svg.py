"""A chart of curves over time as SVG, for notebooks."""

from __future__ import annotations

from html import escape

import numpy as np

from arm_dynamics.core.arrays import Vector

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 600, 240, 56, 8, 8, 24
"""Size of a chart, and space around its curves [px]."""
POINTS = 400
"""Largest number of points of a curve."""
COLORS = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd", "#17becf", "#e377c2", "#bcbd22")


def curves_svg(time: Vector, values: Vector, names: tuple[str, ...], label: str) -> str:
    """Return a chart of ``values`` (n, m) over ``time`` (n,) [s] as SVG, one curve per name."""
    every = -(-len(time) // POINTS)
    t, rows = np.asarray(time)[::every], np.asarray(values)[::every]
    finite = rows[np.isfinite(rows)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    span = (high - low) or 1.0
    left, right, floor = LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM
    x = left + (t - t[0]) / (float(t[-1] - t[0]) or 1.0) * (right - left)
    y = TOP + (high - rows) / span * (floor - TOP)
    curves = "".join(
        f'<polyline fill="none" stroke="{COLORS[i % len(COLORS)]}" stroke-width="1.5" points="'
        + " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y[:, i], strict=True) if np.isfinite(b))
        + f'"><title>{escape(name)}</title></polyline>'
        for i, name in enumerate(names)
    )
    texts = "".join(
        f'<text x="{a}" y="{b}" text-anchor="{anchor}" font-size="11" fill="currentColor">{text}'
        "</text>"
        for a, b, anchor, text in (
            (left - 6, TOP + 8, "end", f"{high:.3g}"),
            (left - 6, floor, "end", f"{low:.3g}"),
            (left, HEIGHT - 8, "start", f"{t[0]:.3g} s"),
            (right, HEIGHT - 8, "end", f"{t[-1]:.3g} s"),
            ((left + right) // 2, HEIGHT - 8, "middle", escape(label)),
        )
    )
    frame = (
        f'<rect x="{left}" y="{TOP}" width="{right - left}" height="{floor - TOP}" fill="none"'
        ' stroke="currentColor" opacity="0.3"/>'
    )
    legend = " ".join(
        f'<span style="color:{COLORS[i % len(COLORS)]}">&#9632;</span> {escape(name)}'
        for i, name in enumerate(names)
    )
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" xmlns="http://www.w3.org/2000/svg">'
        f"{frame}{curves}{texts}</svg><div>{legend}</div>"
    )
