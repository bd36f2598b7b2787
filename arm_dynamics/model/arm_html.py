"""An arm as HTML, for notebooks: a drawing of its joints and tool, and a table of its limits."""

from __future__ import annotations

from html import escape
from math import isfinite
from typing import TYPE_CHECKING

import numpy as np
import pinocchio as pin

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.curves_svg import COLORS

if TYPE_CHECKING:
    from arm_dynamics.model.arm_model import ArmModel

WIDTH, HEIGHT, MARGIN = 300, 240, 16
"""Size of the drawing and its margin [px]."""
RIGHT = np.array([0.781, 0.625, 0.0])
UP = np.array([-0.236, 0.295, 0.926])
"""Axes of the drawing in base axes: the view of the page, from the right, front and above."""


def arm_svg(arm: ArmModel, q: Vector) -> str:
    """Return a drawing of the arm in the configuration ``q`` (nv,) [rad or m] as SVG.

    A line for each link, a dot for each joint (a square if it is prismatic), a ring at the tool.
    """
    model, data = arm.model, arm.model.createData()
    pin.framesForwardKinematics(model, data, np.asarray(q, dtype=float))
    tool = model.getFrameId(arm.tool_frame)
    points = np.array([*(placed.translation for placed in data.oMi), data.oMf[tool].translation])
    parents = [*model.parents, model.frames[tool].parentJoint]
    drawn = points @ np.array([RIGHT, -UP]).T
    low, extent = drawn.min(axis=0), np.ptp(drawn, axis=0)
    size = np.array([WIDTH, HEIGHT]) - 2 * MARGIN
    scale = float((size / np.maximum(extent, 1e-9)).min())
    xy = (drawn - low) * scale + MARGIN + (size - extent * scale) / 2
    lines = "".join(
        f'<line x1="{xy[parent, 0]:.1f}" y1="{xy[parent, 1]:.1f}" x2="{xy[i, 0]:.1f}"'
        f' y2="{xy[i, 1]:.1f}" stroke="currentColor" stroke-width="5" stroke-linecap="round"'
        ' opacity="0.55"/>'
        for i, parent in enumerate(parents)
        if i > 0
    )
    marks = "".join(
        _mark(
            xy[arm.tree_indices[i] + 1],
            COLORS[i % len(COLORS)],
            joint.kind == "prismatic",
            joint.name,
        )
        for i, joint in enumerate(arm.joints)
    )
    ring = (
        f'<circle cx="{xy[-1, 0]:.1f}" cy="{xy[-1, 1]:.1f}" r="7" fill="none"'
        f' stroke="currentColor" stroke-width="2"><title>{escape(arm.tool_frame)}</title></circle>'
    )
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" xmlns="http://www.w3.org/2000/svg">'
        f"{lines}{marks}{ring}</svg>"
    )


def _mark(at: Vector, color: str, square: bool, name: str) -> str:
    x, y = at.tolist()
    title = f"<title>{escape(name)}</title>"
    if square:
        return (
            f'<rect x="{x - 5:.1f}" y="{y - 5:.1f}" width="10" height="10" fill="{color}">'
            f"{title}</rect>"
        )
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{color}">{title}</circle>'


def arm_html(arm: ArmModel, q: Vector, title: str) -> str:
    """Return drawing and joint table of an arm at ``q`` (nv,) [rad or m] below a ``title``."""
    rows = "".join(
        f'<tr><td><span style="color:{COLORS[i % len(COLORS)]}">&#9632;</span> {escape(j.name)}'
        f"</td><td>{j.kind}</td><td>{x:.4g}</td><td>{_number(j.lower)} to {_number(j.upper)}</td>"
        f"<td>{_number(j.velocity)}</td><td>{_number(j.effort)}</td></tr>"
        for i, (j, x) in enumerate(zip(arm.joints, np.asarray(q).tolist(), strict=True))
    )
    heads = ("joint", "kind", "position", "limits [rad, m]", "velocity [1/s]", "effort [N·m, N]")
    head = "".join(f"<th>{text}</th>" for text in heads)
    return (
        f"<div><b>{escape(title)}</b></div>"
        '<div style="display:flex;flex-wrap:wrap;align-items:center;gap:16px">'
        f"{arm_svg(arm, q)}<table><tr>{head}</tr>{rows}</table></div>"
    )


def _number(value: float) -> str:
    return f"{value:.4g}" if isfinite(value) else "∞" if value > 0 else "−∞"
