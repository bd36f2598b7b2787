"""The text of a kernel's module: plain numba code that advances all lanes of a block at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from textwrap import indent
from typing import Any

from arm_dynamics.batch.rollout.emitter import (
    Emitter,
    by_longest_chain,
    elementary_constants,
    elementary_text,
)
from arm_dynamics.batch.rollout.kernel import Layout
from arm_dynamics.batch.rollout.step_trace import StepTrace, TracedFunction
from arm_dynamics.simulation.friction import SWEEPS

FAST = '{"contract", "nsz", "arcp"}'
"""Freedoms that rounding is given: fused products, one zero, reciprocals."""

HEAD = '''"""{title}

Written by arm_dynamics for one arm and its options; made anew when either changes.
Row r of lane l is x[r * LANES + l]. Rows: {rows}.
"""

import numba
from numpy import abs, float32, float64, floor, int32, int64, log, sqrt
from numpy import {precision} as F
from numpy import {whole} as I

LAYOUT = {layout}
PRECISION = "{precision}"
LANES = {lanes}
SIGN, BOTH, LAST = I({sign}), I(2), I(1)
{constants}
options = dict(cache=True, nogil=True, error_model="numpy", fastmath={fastmath})
{elementary}'''

STEP = '''

@numba.njit(**options)
def step(x):
    """One time step of every lane; whether any left the finite numbers."""
    odd = False
    for l in range(LANES):
{body}
{rub}
    return odd
'''

PART = '''

@numba.njit(**options)
def {name}(x):
    """{purpose}"""
    for l in range(LANES):
{body}
'''

ROLLOUT = '''

@numba.njit(**options)
def rollout(x, given, every, stride, count, chosen, out, failed):
    """Steps under given (periods, {given_size} * LANES), ``every`` a period; rows ``chosen`` out.

    out (records, chosen, LANES) takes every ``stride``-th state, ``count`` steps having been
    taken before; failed (LANES,) the step at which a lane first left the finite numbers.
    """
    record = 0
    for k in range(given.shape[0]):
        for r in range({given_size} * LANES):
            x[{given} * LANES + r] = given[k, r]
        {before}
        for _ in range(every):
            odd = step(x)
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
        {after}
'''

RUB = """\
# Impulse of dry friction: projected Gauss-Seidel on v⁺ = v + M⁻¹ λ, as the plant has it. A lane
# that has converged is left alone, so that no lane's numbers depend on its neighbours'.
for r in range({n} * LANES):
    x[{impulse} * LANES + r] = ZERO
    x[{before} * LANES + r] = x[{v} * LANES + r]
for l in range(LANES):
    x[{going} * LANES + l] = ONE
for _ in range({sweeps}):
    for l in range(LANES):
        x[{largest} * LANES + l] = ZERO
    for i in range({n}):
        for l in range(LANES):
            inverse = x[({inverse} + i * {n} + i) * LANES + l]
            held = x[({impulse} + i) * LANES + l]
            wanted = held - x[({v} + i) * LANES + l] / inverse
            most, least = x[({backward} + i) * LANES + l], -x[({forward} + i) * LANES + l]
            taken = least if wanted < least else (most if wanted > most else wanted)
            change = (taken - held) if x[{going} * LANES + l] > ZERO else ZERO
            x[({impulse} + i) * LANES + l] = held + change
            x[{change} * LANES + l] = change
            size, largest = abs(change * inverse), x[{largest} * LANES + l]
            x[{largest} * LANES + l] = size if size > largest else largest
        for j in range({n}):
            for l in range(LANES):
                gain = x[({inverse} + i * {n} + j) * LANES + l]
                x[({v} + j) * LANES + l] += gain * x[{change} * LANES + l]
    busy = ZERO
    for l in range(LANES):
        going = ZERO if x[{largest} * LANES + l] < TOLERANCE else ONE
        x[{going} * LANES + l] = going
        busy = going if going > busy else busy
    if busy == ZERO:
        break
for i in range({n}):
    for l in range(LANES):
        held = x[({impulse} + i) * LANES + l]
        free = held <= -x[({forward} + i) * LANES + l] or held >= x[({backward} + i) * LANES + l]
        after = x[({v} + i) * LANES + l] if free else ZERO
        x[({v} + i) * LANES + l] = after
        moved = x[{late} * LANES + l] * (after - x[({before} + i) * LANES + l])
        stuck = x[({start_v} + i) * LANES + l] == ZERO and after == ZERO
        there = x[({q} + i) * LANES + l] + moved
        x[({q} + i) * LANES + l] = x[({start_q} + i) * LANES + l] if stuck else there\
"""


def module_text(trace: StepTrace, title: str, lanes: int, precision: str) -> str:
    """The module for a traced step; ``precision`` is "float64" or "float32"."""
    layout, n = trace.layout, trace.layout.sizes["q"]
    if trace.has_dry_friction:
        more = {"impulse": n, "before": n, "change": 1, "largest": 1, "going": 1}
        layout = Layout.of({**layout.sizes, **more})
    constants = shared_constants(precision)
    parts = [part_lines(part, layout, constants) for part in trace.parts]
    first = layout.first
    head = head_text(title, layout, lanes, precision, constants)
    rub = (
        indent(RUB.format(n=n, sweeps=SWEEPS, **_plain(first)), " " * 4)
        if trace.has_dry_friction
        else ""
    )
    names = [part.name for part in trace.parts]
    calls = {
        when: f"{name}(x)" if name in names else "pass"
        for when, name in (("before", "tick"), ("after", "score"))
    }
    given = {"given": first[trace.given[0]], "n": n, "v": first["v"]}
    size = sum(layout.sizes[name] for name in trace.given)
    texts = [
        STEP.format(body=body, rub=rub)
        if part.name == "step"
        else PART.format(name=part.name, purpose=part.purpose, body=body)
        for part, body in zip(trace.parts, parts, strict=True)
    ]
    return head + "".join(texts) + ROLLOUT.format(**given, given_size=size, **calls)


def head_text(
    title: str,
    layout: Layout,
    lanes: int,
    precision: str,
    constants: Mapping[str, float],
    fastmath: str = FAST,
) -> str:
    """All that comes before a module's functions; ``fastmath`` as numba takes it."""
    return HEAD.format(
        title=title,
        rows=", ".join(f"{name} from {row}" for name, row in layout.first.items()),
        layout=repr(layout.sizes),
        lanes=lanes,
        precision=precision,
        whole=precision.replace("float", "int"),
        sign=62 if precision == "float64" else 30,
        constants="\n".join(f"{name} = F({_text(value)})" for name, value in constants.items()),
        fastmath=fastmath,
        elementary=elementary_text(precision),
    )


def part_lines(part: TracedFunction, layout: Layout, constants: dict[str, float]) -> str:
    """The lines for one lane of a traced function; its literals join ``constants``."""
    read = {
        (k, i): f"i{k}_{i}"
        for k, name in enumerate(part.inputs)
        for i in range(part.function.numel_in(k))
    }
    emitter = Emitter(read, f"{part.name}_k")
    emitter.emit(part.function)
    constants |= emitter.constants
    loads = [
        f"{text} = x[{_row(layout, part.inputs, at)} * LANES + l]" for at, text in read.items()
    ]
    stores = [
        f"x[{_row(layout, part.outputs, at)} * LANES + l] = {text}"
        for at, text in emitter.outputs.items()
    ]
    if part.name == "step":
        speeds = [t for (k, _), t in emitter.outputs.items() if part.outputs[k] == "v"]
        stores += [f"speeds = {' + '.join(speeds)}", "odd |= speeds - speeds != ZERO"]
    return indent("\n".join([*by_longest_chain([*loads, *emitter.lines]), *stores]), " " * 8)


def _row(layout: Layout, names: Sequence[str], at: tuple[int, int]) -> int:
    return layout.first[names[at[0]]] + at[1]


def _plain(where: Mapping[str, int]) -> dict[str, Any]:
    return {name: first for name, first in where.items() if "." not in name}


def shared_constants(precision: str) -> dict[str, float]:
    """Literals that every module has, by name."""
    numbers = {"ZERO": 0.0, "QUARTER": 0.25, "HALF": 0.5, "ONE": 1.0, "TWO": 2.0, "THREE": 3.0}
    tolerance = 1e-14 if precision == "float64" else 1e-6
    return {**numbers, "TOLERANCE": tolerance, **elementary_constants(precision)}


def _text(value: float) -> str:
    return f'"{value}"' if not isfinite(value) else repr(float(value))
