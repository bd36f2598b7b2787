"""A symbolic function as lines of Python for ``lane_loop``, one assignment per operation."""

from __future__ import annotations

import heapq
import re
from collections.abc import Mapping, Sequence
from typing import Any

import casadi as ca

from arm_dynamics.core.errors import InvalidValue

VARIABLE = re.compile(r"\b[a-z]\w*\b")
LATENCIES, LATENCY = {" / ": 17, "sin(": 60, "cos(": 60, "exp(": 60}, 4
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
    ca.OP_INV: "1.0 / {0}",
    ca.OP_SQRT: "sqrt({0})",
    ca.OP_FABS: "fabs({0})",
    ca.OP_SIGN: "1.0 if {0} > 0.0 else (-1.0 if {0} < 0.0 else 0.0)",
    ca.OP_FMIN: "{1} if {1} < {0} else {0}",
    ca.OP_FMAX: "{1} if {1} > {0} else {0}",
    ca.OP_LT: "{0} < {1}",
    ca.OP_LE: "{0} <= {1}",
    ca.OP_EQ: "{0} == {1}",
    ca.OP_NE: "{0} != {1}",
    ca.OP_NOT: "not {0}",
    ca.OP_AND: "{0} & {1}",
    ca.OP_OR: "{0} | {1}",
    ca.OP_IF_ELSE_ZERO: "{1} if {0} else 0.0",
    ca.OP_SIN: "sin({0})",
    ca.OP_COS: "cos({0})",
    ca.OP_EXP: "exp({0})",
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
        Constant to its name; ``emit`` adds those of a function.
    outputs : dict
        (number of the output, entry) to the variable that holds it.

    """

    def __init__(self, inputs: Mapping[tuple[int, int], str], constants: dict[float, str]) -> None:
        """Take the variable of each (number of the input, entry), and the constants so far."""
        self.inputs, self.constants = inputs, constants
        self.lines: list[str] = []
        self.outputs: dict[tuple[int, int], str] = {}
        self._variables: dict[int, str] = {}
        self._selections: dict[str, tuple[str, str]] = {}
        self._negated: dict[str, str] = {}

    def emit(self, function: Any) -> None:
        """Append the lines of ``function``, whose instructions are already in order."""
        for k in range(function.n_instructions()):
            operation = function.instruction_id(k)
            read, written = function.instruction_input(k), function.instruction_output(k)
            if operation == ca.OP_CONST:
                value = function.instruction_constant(k)
                name = self.constants.setdefault(value, f"c[{len(self.constants)}]")
                self._variables[written[0]] = name
            elif operation == ca.OP_INPUT:
                self._variables[written[0]] = self.inputs[read[0], read[1]]
            elif operation == ca.OP_OUTPUT:
                self.outputs[written[0], written[1]] = self._variables[read[0]]
            else:
                arguments = [self._variables[i] for i in read]
                self._variables[written[0]] = self._line(k, operation, arguments)

    def _line(self, k: int, operation: int, read: Sequence[str]) -> str:
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
            return f"{x} if {condition} else {y}"
        if self._negated.get(condition) == other:
            return f"{y} if {other} else {x}"
        return None
