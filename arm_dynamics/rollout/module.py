"""The text of a kernel's module: plain numba code that steps all lanes of a block at once."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from textwrap import indent
from typing import Any

from arm_dynamics.friction import SWEEPS
from arm_dynamics.rollout.emit import Emitter
from arm_dynamics.rollout.layout import Layout
from arm_dynamics.rollout.trace import Trace

REDUCTION = {
    "float64": (1.57079632673412561417e00, 6.07710050630396597660e-11, 2.02226624879595063154e-21),
    "float32": (1.5703125, 4.837512969970703125e-4, 7.54978995489188e-8),
}
"""π/2 in parts, the first with trailing zeros: n times it is exact for |n| below a million (f32:
a thousand). Source: W. Cody and W. Waite, Software Manual for the Elementary Functions (1980)."""
SINE = (
    -1 / 6,
    1 / 120,
    -1.984126984126984e-4,
    2.7557319223985893e-6,
    -2.505210838544172e-8,
    1.6059043836821613e-10,
)
COSINE = (
    1 / 24,
    -1 / 720,
    2.48015873015873e-5,
    -2.755731922398589e-7,
    2.08767569878681e-9,
    -1.1470745597729725e-11,
)
"""Taylor coefficients; the arguments are at most π/4 and the first neglected terms below 2e-15."""

HEAD = '''"""{title}

Written by arm_dynamics for one arm and its options; made anew when either changes.
Row r of lane l is x[r * LANES + l]. Rows: {rows}.
"""

import numba
from numpy import abs, float32, float64, floor, int32, int64, log, sqrt
from numpy import {precision} as F

LAYOUT = {layout}
PRECISION = "{precision}"
LANES = {lanes}
{constants}
options = dict(
    cache=True, nogil=True, error_model="numpy", fastmath={{"contract", "nsz", "arcp"}}
)


@numba.njit(inline="always", **options)
def exponential(x):
    """e^x by reduction with ln 2 and its series."""
    n = floor(x * LOG2E + HALF)
    n = CLIFF if n > CLIFF else (-CLIFF if n < -CLIFF else n)
    y = (x - n * LN_2A) - n * LN_2B
    p = E13
    p = E12 + y * p
    p = E11 + y * p
    p = E10 + y * p
    p = E9 + y * p
    p = E8 + y * p
    p = E7 + y * p
    p = E6 + y * p
    p = E5 + y * p
    p = E4 + y * p
    p = E3 + y * p
    p = HALF + y * p
    p = ONE + y * p
    p = ONE + y * p
    return p * {power}
'''

ROLLOUT = '''

@numba.njit(**options)
def rollout(x, told, every, stride, chosen, out, failed):
    """Steps under told (periods, {n} * LANES), ``every`` a period; rows ``chosen`` to out.

    out (records, chosen, LANES) takes every ``stride``-th state; failed (LANES,) the step at
    which a lane first left the finite numbers.
    """
    count = record = 0
    for k in range(told.shape[0]):
        for r in range({n} * LANES):
            x[{told} * LANES + r] = told[k, r]
        for _ in range(every):
            odd = False
            for l in range(LANES):
{body}
{rub}
            count += 1
            if odd:  # v - v is 0 for finite v
                for l in range(LANES):
                    lost = ZERO
                    for i in range({n}):
                        lost += x[({v} + i) * LANES + l] - x[({v} + i) * LANES + l]
                    if not lost == ZERO and failed[l] < 0:
                        failed[l] = count
            if count % stride == 0:
                for c in range(chosen.size):
                    for l in range(LANES):
                        out[record, c, l] = x[chosen[c] * LANES + l]
                record += 1
'''

RUB = """\
# Impulse of dry friction: projected Gauss-Seidel on v⁺ = v + M⁻¹ λ, as the plant has it.
for r in range({n} * LANES):
    x[{impulse} * LANES + r] = ZERO
    x[{before} * LANES + r] = x[{v} * LANES + r]
for _ in range({sweeps}):
    largest = ZERO
    for i in range({n}):
        for l in range(LANES):
            inverse = x[({inverse} + i * {n} + i) * LANES + l]
            held = x[({impulse} + i) * LANES + l]
            wanted = held - x[({v} + i) * LANES + l] / inverse
            most, least = x[({backward} + i) * LANES + l], -x[({forward} + i) * LANES + l]
            taken = least if wanted < least else (most if wanted > most else wanted)
            change = taken - held
            x[({impulse} + i) * LANES + l] = taken
            x[{change} * LANES + l] = change
            size = abs(change * inverse)
            largest = size if size > largest else largest
        for j in range({n}):
            for l in range(LANES):
                gain = x[({inverse} + i * {n} + j) * LANES + l]
                x[({v} + j) * LANES + l] += gain * x[{change} * LANES + l]
    if largest < TOLERANCE:
        break
for i in range({n}):
    for l in range(LANES):
        held = x[({impulse} + i) * LANES + l]
        free = held <= -x[({forward} + i) * LANES + l] or held >= x[({backward} + i) * LANES + l]
        after = x[({v} + i) * LANES + l] if free else ZERO
        x[({v} + i) * LANES + l] = after
        x[({q} + i) * LANES + l] += x[{dt} * LANES + l] * (after - x[({before} + i) * LANES + l])\
"""


def module_text(trace: Trace, title: str, lanes: int, precision: str) -> str:
    """The module for a traced step; ``precision`` is "float64" or "float32"."""
    layout, n = trace.layout, trace.layout.sizes["q"]
    if trace.rubs:
        layout = Layout.of({**layout.sizes, "impulse": n, "before": n, "change": 1})
    emitter = Emitter(_inputs(trace))
    emitter.emit(trace.function)
    body = [*_loads(trace, layout), *emitter.lines, *_stores(trace, layout, emitter)]
    where = {name: layout.first[name] for name in layout.first}
    constants = {**_shared_constants(precision), **emitter.constants}
    head = HEAD.format(
        title=title,
        rows=", ".join(f"{name} from {first}" for name, first in where.items()),
        layout=repr(layout.sizes),
        lanes=lanes,
        precision=precision,
        constants="\n".join(f"{name} = F({_text(value)})" for name, value in constants.items()),
        power=POWER[precision],
    )
    rub = RUB.format(n=n, sweeps=SWEEPS, **_plain(where)) if trace.rubs else ""
    places = {"n": n, "body": indent("\n".join(body), " " * 16), "rub": indent(rub, " " * 12)}
    return head + ROLLOUT.format(**places, **_plain(where))


POWER = {
    "float64": "int64(int64(n + 1023.0) << 52).view(float64)",
    "float32": "int32(int32(n + 127.0) << 23).view(float32)",
}


def _inputs(trace: Trace) -> dict[tuple[int, int], str]:
    sizes = trace.layout.sizes
    names = [name for name in sizes if name not in ("effort", "forward", "backward", "inverse")]
    return {(k, i): f"i{k}_{i}" for k, name in enumerate(names) for i in range(sizes[name])}


def _loads(trace: Trace, layout: Layout) -> list[str]:
    names = list(layout.sizes)
    return [
        f"{text} = x[{layout.first[names[k]] + i} * LANES + l]"
        for (k, i), text in _inputs(trace).items()
    ]


def _stores(trace: Trace, layout: Layout, emitter: Emitter) -> list[str]:
    lines = [
        f"x[{layout.first[trace.outputs[k]] + i} * LANES + l] = {text}"
        for (k, i), text in emitter.outputs.items()
    ]
    speeds = [t for (k, _), t in emitter.outputs.items() if trace.outputs[k] == "v"]
    return [*lines, *(f"odd |= {t} - {t} != ZERO" for t in speeds)]


def _plain(where: Mapping[str, int]) -> dict[str, Any]:
    return {name: first for name, first in where.items() if "." not in name}


def _shared_constants(precision: str) -> dict[str, float]:
    numbers = {"ZERO": 0.0, "QUARTER": 0.25, "HALF": 0.5, "ONE": 1.0, "TWO": 2.0, "THREE": 3.0}
    parts = dict(zip(("PI_2A", "PI_2B", "PI_2C"), REDUCTION[precision], strict=True))
    series = {f"S{i + 1}": c for i, c in enumerate(SINE)}
    series |= {f"C{i + 1}": c for i, c in enumerate(COSINE)}
    factorial = 2.0
    for i in range(3, 14):
        factorial *= i
        series[f"E{i}"] = 1 / factorial
    ends = {
        "LOG2E": 1.4426950408889634,
        "LN_2A": 0.693145751953125,
        "LN_2B": 1.4286068203094173e-06,
    }
    ends["CLIFF"] = 1022.0 if precision == "float64" else 126.0
    ends["TOLERANCE"] = 1e-14 if precision == "float64" else 1e-6
    two_over_pi = {"FOUR": 4.0, "TWO_OVER_PI": 0.6366197723675814}
    return {**numbers, **two_over_pi, **parts, **series, **ends}


def _text(value: float) -> str:
    return f'"{value}"' if not isfinite(value) else repr(float(value))
