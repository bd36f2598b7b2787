"""Sine, cosine and exponential in a kernel's text: no call and no branch, lanes side by side."""

from __future__ import annotations

from collections.abc import Sequence
from math import e, factorial, log2, pi

REDUCTION = {
    "float64": (1.57079632673412561417, 6.0771005065061922493e-11, 1.5 * 2.0**52),
    "float32": (1.5703125, 4.8382679489661923e-4, 1.5 * 2.0**23),
}
"""π/2 in two parts, the first with trailing zeros: n times it is exact for |n| below a million
(single precision: a thousand); and a number whose sum with x has round(x) in its last bits.
Source: W. Cody and W. Waite, Software Manual for the Elementary Functions (1980)."""
SINE = {
    "float64": (
        -0.16666666666666632048,
        8.3333333333224191027e-3,
        -1.9841269829812394092e-4,
        2.75573136935771042e-6,
        -2.5050758384975888605e-8,
        1.5896811829077066732e-10,
    ),
    "float32": (-0.1666665494019948942, 8.3321779163583924567e-3, -1.9517266840903413949e-4),
}
"""Coefficients of (sin y - y) / y³ in y², least maximal error for y up to π/4 (Remez): 4e-18, and
4e-9 in single precision."""
COSINE = {
    "float64": (
        4.1666666666602225399e-2,
        -1.3888888878270152649e-3,
        2.4801580969800719771e-5,
        -2.7555566785789437963e-7,
        2.0647715334474821674e-9,
    ),
    "float32": (4.1666646860525502683e-2, -1.3887367212940051865e-3, 2.4438415537795276638e-5),
}
"""The same of (cos y - 1 + y²/2) / y⁴: 8e-17, and 1e-10 in single precision."""

EXPONENTIAL = {"float64": 13, "float32": 7}
"""Degree of the series of e^y for y up to ln 2 / 2: rest below 1e-16, and 1e-8."""
SHIFT = {
    "float64": "int64(int64(n + 1023.0) << 52).view(float64)",
    "float32": "int32(int32(n + 127.0) << 23).view(float32)",
}
"""2ⁿ by the bits of its exponent."""

TEXT = '''

@numba.njit(**options)
def picked(condition, first, second):
    """first where condition holds, else second: a call costs the compiler less than a branch."""
    return first if condition else second


@numba.njit(**options)
def turned(x, quarters):
    """x with its sign changed where the second bit of quarters is set."""
    return I(F(x).view(I) ^ ((quarters & BOTH) << SIGN)).view(F)


@numba.njit(**options)
def sine_series(z):
    """(sin y - y) / y³ at z = y²."""
    return {sine}


@numba.njit(**options)
def cosine_series(z):
    """(cos y - 1 + y²/2) / y⁴ at z = y²."""
    return {cosine}


@numba.njit(inline="always", **options)
def exponential(x):
    """e^x by reduction with ln 2 and its series."""
    n = floor(x * LOG2E + HALF)
    n = CLIFF if n > CLIFF else (-CLIFF if n < -CLIFF else n)
    z = (x - n * LN_2A) - n * LN_2B
    return ({exponential}) * {shift}
'''


def elementary_text(precision: str) -> str:
    """The functions, in terms of ``elementary_constants``."""
    factors = [f"E{k}" for k in range(3, EXPONENTIAL[precision] + 1)]
    return TEXT.format(
        sine=_horner([f"S{k + 1}" for k in range(len(SINE[precision]))]),
        cosine=_horner([f"C{k + 1}" for k in range(len(COSINE[precision]))]),
        exponential=_horner(["ONE", "ONE", "HALF", *factors]),
        shift=SHIFT[precision],
    )


def elementary_constants(precision: str) -> dict[str, float]:
    """Numbers of these functions by name."""
    series = {f"S{k + 1}": c for k, c in enumerate(SINE[precision])}
    series |= {f"C{k + 1}": c for k, c in enumerate(COSINE[precision])}
    series |= {f"E{k}": 1 / factorial(k) for k in range(3, EXPONENTIAL[precision] + 1)}
    parts = dict(zip(("PI_2A", "PI_2B", "ROUND"), REDUCTION[precision], strict=True))
    logarithms = {"LOG2E": log2(e), "LN_2A": 0.693145751953125, "LN_2B": 1.4286068203094173e-06}
    cliff = 1022.0 if precision == "float64" else 126.0
    return {**parts, "TWO_OVER_PI": 2 / pi, **series, **logarithms, "CLIFF": cliff}


def _horner(names: Sequence[str]) -> str:
    """c0 + z (c1 + z (c2 + ...))."""
    text = names[-1]
    for name in reversed(names[:-1]):
        text = f"{name} + z * ({text})" if "+" in text else f"{name} + z * {text}"
    return text
