"""Tables of the page in HTML: status, and one row per joint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import degrees, isfinite

from arm_dynamics.viewer.plot import HistorySample, color

STYLE = (
    "font:12px/1.55 ui-monospace,'DejaVu Sans Mono',monospace;font-variant-numeric:tabular-nums;"
    "padding:2px 10px"
)
RIGHT = "text-align:right;padding:1px 0 1px 5px;white-space:nowrap"
GRID = "width:100%;border-collapse:collapse"
NAME = "max-width:9em;overflow:hidden;text-overflow:ellipsis;white-space:nowrap"
DIM = "opacity:.62;font-weight:400;"


NARROW = "<style>@container (max-width:330px) {.deg {display:none}}</style>"
"""Hides the column of degrees on narrow screens."""
LEGEND = (
    f"<div style='{DIM}font-size:11px;padding-top:3px'>"
    "<span style='color:#78aaff'>&#9644;</span> position between the joint's limits"
    " &nbsp;<span style='color:#ff5c5c'>&#9644;</span> at a limit</div>"
)
"""Legend of the bars below the rows."""
FAULT = "var(--mantine-color-red-text, #ff5c5c)"
"""Color of a fault."""
MAX_NAME_LENGTH = 12
"""Largest number of characters of a joint's name on the panel."""


def short(name: str) -> str:
    """Return ``name``, or begin and end of a long one without "_joint"; tooltips show all of it."""
    text = name if len(name) <= MAX_NAME_LENGTH else name.removesuffix("_joint")
    return text if len(text) <= MAX_NAME_LENGTH else f"{text[:4]}…{text[5 - MAX_NAME_LENGTH :]}"


def status_html(status: Mapping[str, str]) -> str:
    """Return a table of names and values."""
    rows = "".join(
        f"<tr><td style='{DIM}padding-right:12px'>{escape(str(name))}</td>"
        f"<td style='text-align:right'><b>{escape(str(value))}</b></td></tr>"
        for name, value in status.items()
    )
    return f"<div style=\"{STYLE}\"><table style='width:100%'>{rows}</table></div>"


def table_html(
    names: Sequence[str],
    limits: Sequence[tuple[float, float]],
    sample: HistorySample,
    units: Sequence[str] = (),
) -> str:
    """Return the table of the joints with the columns of the sample."""
    units = tuple(units) or ("rad",) * len(names)
    both = {"rad", "m"} <= {*units}
    unit = "rad, m" if both else units[0] if units else "rad"
    heads = [unit]
    if sample.v is not None:
        heads.append(f"{'1' if both else unit}/s")
    if sample.effort is not None:
        heads.append("N·m, N" if both else "N·m" if unit == "rad" else "N")
    if sample.error is not None:
        heads.append("error")
    cells = [f"<th style='{RIGHT};{DIM}'>{text}</th>" for text in heads]
    if "rad" in units:
        cells.insert(1, f"<th class='deg' style='{RIGHT};{DIM}'>deg</th>")
    head = "".join(cells)
    rows = "".join(_row(i, name, limits[i], sample, units) for i, name in enumerate(names))
    grid = f"<table style='{GRID}'><tr><th></th>{head}</tr>{rows}</table>"
    box = f'<div style="{STYLE};container-type:inline-size;overflow-x:auto">'
    return f"{NARROW}{box}{grid}{LEGEND}</div>"


MotorStates = Mapping[str, tuple[str, bool]]
"""State of a motor, such as its fault or torque, and whether it is OK, by joint."""


def motors_html(names: Sequence[str], sample: HistorySample, states: MotorStates) -> str:
    """Return the table of the motors; "" if no motor reports anything."""
    rows = []
    for i, name in enumerate(names):
        cells = [
            "" if values is None or not isfinite(values[i]) else f"{values[i]:.1f}"
            for values in (sample.voltage, sample.temperature)
        ]
        text, ok = states.get(name, ("", True))
        if not (any(cells) or text):
            continue
        style = "" if ok else f"color:{FAULT};font-weight:700;"
        numbers = "".join(f"<td style='{RIGHT}'>{cell}</td>" for cell in cells)
        rows.append(
            f"<tr><td style='{NAME}' title='{escape(name)}'>{escape(short(name))}</td>{numbers}"
            f"<td style='{style}padding-left:8px'>{escape(text)}</td></tr>"
        )
    if not rows:
        return ""
    head = "".join(
        f"<th style='{align};{DIM}'>{title}</th>"
        for title, align in (
            ("V", RIGHT),
            ("°C", RIGHT),
            ("motor", "text-align:left;padding-left:8px"),
        )
    )
    return (
        f'<div style="{STYLE}"><table style="{GRID}"><tr><th></th>{head}</tr>{"".join(rows)}'
        "</table></div>"
    )


def _row(
    i: int, name: str, limits: tuple[float, float], sample: HistorySample, units: Sequence[str]
) -> str:
    """Return the row of joint ``i``."""
    q = float(sample.q[i])
    cells = [f"{q:+.4f}"]
    if sample.v is not None:
        cells.append(f"{sample.v[i]:+.3f}")
    if sample.effort is not None:
        cells.append(f"{sample.effort[i]:+.2f}")
    if sample.error is not None:
        cells.append(f"{sample.error[i]:+.4f}")
    columns = [f"<td style='{RIGHT}'>{cell}</td>" for cell in cells]
    if "rad" in units:
        turned = f"{degrees(q):+.1f}" if units[i] == "rad" else ""
        columns.insert(1, f"<td class='deg' style='{RIGHT}'>{turned}</td>")
    text = "".join(columns)
    dot = f"<span style='color:{color(i)}'>&#9632;</span>"
    label = f"<td style='{NAME}' title='{escape(name)}'>{dot} {escape(short(name))}</td>"
    return f"<tr style='{_bar(q, limits)}'>{label}{text}</tr>"


def _bar(q: float, limits: tuple[float, float]) -> str:
    """Return the style of a row: a bar up to the position within the limits, red at a limit."""
    lower, upper = limits
    if not (isfinite(lower) and isfinite(upper) and upper > lower):
        return "border-bottom:1px solid rgba(128,128,128,.25)"
    fraction = min(max((q - lower) / (upper - lower), 0.0), 1.0)
    tint = "#ff5c5c" if fraction in (0.0, 1.0) else "rgba(120,170,255,.75)"
    end = f"{100 * fraction:.1f}%"
    return (
        f"background:linear-gradient(90deg,{tint} {end},rgba(128,128,128,.25) {end})"
        " bottom/100% 1px no-repeat"
    )
