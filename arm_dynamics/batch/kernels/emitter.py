"""A symbolic function as lines of numba code, one assignment per operation.

``Emitter`` translates the operations, ``by_longest_chain`` orders the lines, and
``elementary_text`` defines sine, cosine and exponential without a library call or a branch, so
that the compiler vectorizes over the lanes.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Mapping, Sequence
from math import e, factorial, log2, pi
from typing import Any

import casadi as ca

from arm_dynamics.core.errors import InvalidValue

REDUCTION = {
    "float64": (1.57079632673412561417, 6.0771005065061922493e-11, 1.5 * 2.0**52),
    "float32": (1.5703125, 4.8382679489661923e-4, 1.5 * 2.0**23),
}
"""π/2 in two parts, the first with trailing zeros, so that n times it is exact for |n| below 1e6
(single precision: 1e3); and a number whose sum with x has round(x) in its last bits. Source:
W. Cody, W. Waite, Software Manual for the Elementary Functions (1980)."""
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
"""Coefficients of (sin y - y) / y³ in y², minimax for y up to π/4 (Remez): error 4e-18, and 4e-9 in
single precision."""
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
"""Coefficients of (cos y - 1 + y²/2) / y⁴ likewise: 8e-17, and 1e-10 in single precision."""
EXPONENTIAL_DEGREE = {"float64": 13, "float32": 7}
"""Degree of the series of e^y for y up to ln 2 / 2: remainder below 1e-16, and 1e-8."""
POWER_OF_TWO = {
    "float64": "int64(int64(n + 1023.0) << 52).view(float64)",
    "float32": "int32(int32(n + 127.0) << 23).view(float32)",
}
"""2ⁿ by the bits of its exponent."""

ELEMENTARY = '''

@numba.njit(**options)
def picked(condition, first, second):
    """first if condition holds, else second; a call compiles faster than a branch."""
    return first if condition else second


@numba.njit(**options)
def turned(x, quarters):
    """x with its sign changed if the second bit of ``quarters`` is set."""
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
    """Return the source of the elementary functions, by ``elementary_constants``."""
    factors = [f"E{k}" for k in range(3, EXPONENTIAL_DEGREE[precision] + 1)]
    return ELEMENTARY.format(
        sine=_horner([f"S{k + 1}" for k in range(len(SINE[precision]))]),
        cosine=_horner([f"C{k + 1}" for k in range(len(COSINE[precision]))]),
        exponential=_horner(["ONE", "ONE", "HALF", *factors]),
        shift=POWER_OF_TWO[precision],
    )


def elementary_constants(precision: str) -> dict[str, float]:
    """Return the constants of the elementary functions by name."""
    series = {f"S{k + 1}": c for k, c in enumerate(SINE[precision])}
    series |= {f"C{k + 1}": c for k, c in enumerate(COSINE[precision])}
    series |= {f"E{k}": 1 / factorial(k) for k in range(3, EXPONENTIAL_DEGREE[precision] + 1)}
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


VARIABLE = re.compile(r"\b[a-z]\w*\b")
LATENCIES, LATENCY = {" / ": 17, "_series(": 30}, 4
"""Latency of a quotient, a series and any other operation [cycles], on recent processors."""


def by_longest_chain(lines: Sequence[str]) -> list[str]:
    """Return ``lines``, one assignment each, ordered by list scheduling on the critical path.

    A processor looks about a hundred instructions ahead: independent chains then run in parallel.

    References
    ----------
    T. C. Hu, Operations Research 9 (1961), 841.

    """
    users: list[list[int]] = [[] for _ in lines]
    waiting, assigned = [0] * len(lines), dict[str, int]()
    for i, line in enumerate(lines):
        name, _, text = line.partition(" = ")
        sources = {assigned[word] for word in VARIABLE.findall(text) if word in assigned}
        for j in sources:
            users[j].append(i)
        waiting[i], assigned[name] = len(sources), i
    height = [0] * len(lines)
    for i in reversed(range(len(lines))):
        latency = next((cycles for text, cycles in LATENCIES.items() if text in lines[i]), LATENCY)
        height[i] = latency + max((height[k] for k in users[i]), default=0)
    ready = [(-height[i], i) for i, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        _, i = heapq.heappop(ready)
        order.append(lines[i])
        for k in users[i]:
            waiting[k] -= 1
            if not waiting[k]:
                heapq.heappush(ready, (-height[k], k))
    return order


OPERATIONS: dict[int, str] = {
    ca.OP_ADD: "{0} + {1}",
    ca.OP_SUB: "{0} - {1}",
    ca.OP_MUL: "{0} * {1}",
    ca.OP_DIV: "{0} / {1}",
    ca.OP_NEG: "-{0}",
    ca.OP_SQ: "{0} * {0}",
    ca.OP_TWICE: "{0} + {0}",
    ca.OP_INV: "ONE / {0}",
    ca.OP_SQRT: "sqrt({0})",
    ca.OP_FABS: "abs({0})",
    ca.OP_SIGN: "picked({0} > ZERO, ONE, picked({0} < ZERO, -ONE, ZERO))",
    ca.OP_FMIN: "picked({1} < {0}, {1}, {0})",
    ca.OP_FMAX: "picked({1} > {0}, {1}, {0})",
    ca.OP_LT: "{0} < {1}",
    ca.OP_LE: "{0} <= {1}",
    ca.OP_EQ: "{0} == {1}",
    ca.OP_NE: "{0} != {1}",
    ca.OP_NOT: "not {0}",
    ca.OP_AND: "{0} & {1}",
    ca.OP_OR: "{0} | {1}",
    ca.OP_IF_ELSE_ZERO: "picked({0}, {1}, ZERO)",
    ca.OP_SIN: "sine({0})",
    ca.OP_COS: "cosine({0})",
    ca.OP_EXP: "exponential({0})",
    ca.OP_LOG: "log({0})",
    ca.OP_TANH: "tanh({0})",
    ca.OP_POW: "{0} ** {1}",
    ca.OP_CONSTPOW: "{0} ** {1}",
    ca.OP_ASSIGN: "{0}",
}
"""CasADi operation -> source."""


class Emitter:
    """Translator of one function.

    Attributes
    ----------
    lines : list of str
        Assignments.
    constants : dict
        Constants by name.
    outputs : dict
        (number of the output, entry) to the variable that holds it.

    """

    def __init__(self, inputs: Mapping[tuple[int, int], str], prefix: str = "k") -> None:
        """Take the variable of each (number of the input, entry), and the prefix of constants."""
        self.inputs, self.prefix = inputs, prefix
        self.constants: dict[str, float] = {}
        self.lines: list[str] = []
        self.outputs: dict[tuple[int, int], str] = {}
        self._names: dict[float, str] = {}
        self._variables: dict[int, str] = {}
        self._selections: dict[str, tuple[str, str]] = {}
        self._negated: dict[str, str] = {}
        self._reduced: dict[str, str] = {}

    def emit(self, function: Any) -> None:
        """Append the lines of ``function``, whose instructions are already in order."""
        for k in range(function.n_instructions()):
            operation = function.instruction_id(k)
            read, written = function.instruction_input(k), function.instruction_output(k)
            if operation == ca.OP_CONST:
                value = function.instruction_constant(k)
                name = self._names.setdefault(value, f"{self.prefix}{len(self._names)}")
                self.constants.setdefault(name, value)
                self._variables[written[0]] = name
            elif operation == ca.OP_INPUT:
                self._variables[written[0]] = self.inputs[read[0], read[1]]
            elif operation == ca.OP_OUTPUT:
                self.outputs[written[0], written[1]] = self._variables[read[0]]
            else:
                arguments = [self._variables[i] for i in read]
                self._variables[written[0]] = self._line(k, operation, arguments)

    def _line(self, k: int, operation: int, read: Sequence[str]) -> str:
        if operation in (ca.OP_SIN, ca.OP_COS):
            return self._sine_or_cosine(operation, read[0])
        if operation not in OPERATIONS:
            raise InvalidValue(
                f"kernel: operation of the trace = {operation}; expected one of emitter.OPERATIONS"
            )
        name, text = f"t{k}", OPERATIONS[operation].format(*read)
        if operation == ca.OP_NOT:
            self._negated[name] = read[0]
        elif operation == ca.OP_IF_ELSE_ZERO:
            self._selections[name] = (read[0], read[1])
        elif operation == ca.OP_ADD:
            text = self._either(*read) or text
        self.lines.append(f"{name} = {text}")
        return name

    def _either(self, first: str, second: str) -> str | None:
        """Return ``x if c else y`` for the sum by which CasADi expresses a choice."""
        if first not in self._selections or second not in self._selections:
            return None
        (condition, x), (other, y) = self._selections[first], self._selections[second]
        if self._negated.get(other) == condition:
            return f"picked({condition}, {x}, {y})"
        if self._negated.get(condition) == other:
            return f"picked({other}, {y}, {x})"
        return None

    def _sine_or_cosine(self, operation: int, angle: str) -> str:
        """Return sine or cosine; both use one reduction of the angle."""
        if angle not in self._reduced:
            suffix = f"{len(self._reduced)}"
            self._reduced[angle] = suffix
            self.lines += SINE_AND_COSINE.replace("@", suffix).replace("ANGLE", angle).splitlines()
        return f"{'s' if operation == ca.OP_SIN else 'c'}_{self._reduced[angle]}"


SINE_AND_COSINE = """\
r_@ = ANGLE * TWO_OVER_PI + ROUND
n_@ = r_@ - ROUND
m_@ = F(r_@).view(I)
y_@ = (ANGLE - n_@ * PI_2A) - n_@ * PI_2B
z_@ = y_@ * y_@
a_@ = y_@ + y_@ * z_@ * sine_series(z_@)
b_@ = ONE + z_@ * (z_@ * cosine_series(z_@) - HALF)
o_@ = (m_@ & LAST) != 0
u_@ = picked(o_@, b_@, a_@)
w_@ = picked(o_@, a_@, b_@)
s_@ = turned(u_@, m_@)
c_@ = turned(w_@, m_@ + LAST)"""
"""Sine and cosine without a library call or a branch; quarter turns swap them and change signs."""
