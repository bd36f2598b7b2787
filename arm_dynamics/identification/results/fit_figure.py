"""Figure of a joint's measured and predicted effort or position, as SVG for an HTML page."""

from __future__ import annotations

import re
from io import BytesIO
from itertools import pairwise

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.figure_style import FAINT, INK, PALETTE, figure, label, legend, styled
from arm_dynamics.identification.results.fit_summary import JointFit

HEIGHT = 4.2
"""Height of a figure [inch]."""
BUCKETS = 400
"""Intervals of a curve, each drawn with its smallest and largest value."""
AFTER, BEFORE = PALETTE[0], PALETTE[1]
COLORS = {
    INK: "currentColor", "#000000": "currentColor", FAINT: "var(--faint)",
    "#E4E4E4": "var(--grid)", BEFORE: "var(--before)", AFTER: "var(--after)",
}  # fmt: skip
"""Colors of the figure to those of the page, which differ in light and dark."""


@styled
def prediction_figure(joint: JointFit, quantity: str) -> str:
    """Return measured and predicted values above and the residuals below, as an <svg> element.

    The quantity is "effort" or "position".
    """
    drawn, axes = figure("", 2, 1, HEIGHT, sharex=True, height_ratios=(3, 2))
    above, below = axes[:, 0]
    above.plot(*thinned(joint.time, joint.measured), color=INK, label="measured", linewidth=2.4)
    for curve, color, name in (
        (joint.before, BEFORE, "prior"),
        (joint.after, AFTER, "identified"),
    ):
        if curve.size:
            above.plot(*thinned(joint.time, curve), color=color, label=name, linewidth=1.2)
            residual = thinned(joint.time, joint.measured - curve)
            below.plot(*residual, color=color, linewidth=1.2)
    legend(above)
    label(above, "", f"{quantity} [{joint.unit}]")
    label(below, "time [s]", f"residual [{joint.unit}]")
    file = BytesIO()
    drawn.savefig(file, format="svg", transparent=True, metadata={"Date": None})
    return _for_page(file.getvalue().decode(), f"{quantity}s of joint {joint.name}")


def thinned(time: Vector, values: Vector) -> tuple[Vector, Vector]:
    """Return at most two samples per bucket: the smallest and the largest one, in their order."""
    n = time.size
    if n <= 2 * BUCKETS:
        return time, values
    edges = np.linspace(0, n, BUCKETS + 1).astype(int)
    kept = {0, n - 1}
    for first, last in pairwise(edges.tolist()):
        part = np.nan_to_num(values[first:last])
        kept |= {first + int(part.argmin()), first + int(part.argmax())}
    order = np.array(sorted(kept))
    return time[order], values[order]


def _for_page(svg: str, name: str) -> str:
    """Return the element without prolog, metadata and fixed size, with the colors of the page."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    start, rest = svg.split(">", 1)
    start = re.sub(r' (?:width|height|xmlns(?::\w+)?|version)="[^"]*"', "", start)
    rest = re.sub(r'<g id="[^"]*"', "<g", rest.replace("xlink:href", "href"))
    for color, variable in COLORS.items():
        rest = re.sub(re.escape(color), variable, rest, flags=re.IGNORECASE)
    title = re.sub(r"[^\w .-]", "_", name)
    return f'{start} role="img" aria-label="{title}">{rest.strip()}'
